#!/bin/sh
# SPDX-License-Identifier: MIT
# Grades solutions of exercises (make exercise): prints one line for each .cu file below a folder.
#   grade.sh FOLDER
# A file says which exercise it is by the "Run:" line of its header, or by its path, which ends in chapterNN/name.cu. Only the
# functions that the exercise asks for, and further __device__ functions, are taken from the file. They are put into the program of
# the suite, so the host part and the check are those of the suite, and the submission's own are not compiled. docs/teaching.md says
# what this holds and what it does not.
#
# BACKEND, BUILD and BIN are the settings of make. On the CPU back end the programs are built for make check, so data races and wrong
# barriers count as wrong; CHECK=0 builds and runs them as usual. TIME_LIMIT is in seconds for a run, MEMORY_LIMIT in MiB of address space (4096; on a GPU
# none, because CUDA reserves more than that), OUTPUT_LIMIT in MiB.
# The exit status is 1 unless all are right.
set -eu
folder=$(cd "$1" && pwd)
cd "${0%/*}/.."

: "${BACKEND:=cpu}" "${BUILD:=build}" "${TIME_LIMIT:=60}" "${races=}" "${MEMORY_LIMIT:=$([ "${BACKEND:-cpu}" = gpu ] || echo 4096)}" "${OUTPUT_LIMIT:=16}"
[ "$BACKEND" = gpu ] || [ "${CHECK:-1}" = 0 ] || races=1
unset DISPLAY WAYLAND_DISPLAY
root=$PWD
case $BUILD in /*) work=$BUILD/grade ;; *) work=$root/$BUILD/grade ;; esac
sources=my/.grade
rm -rf "$sources" "$work/runs"
mkdir -p "$sources" "$work/runs"
trap 'rm -rf "$root/$sources"' EXIT
trap 'exit 1' INT TERM HUP

# The exercise that a file is a solution of
program_of() { # file
    name=$(sed -n 's#^ \* Run: .*\./bin/\(my/\)*\([a-z0-9_]*/[a-z0-9_]*\).*#\2#p' "$1" | head -n 1)
    [ -n "$name" ] || name=$(printf '%s\n' "$1" | sed -n 's,.*/\([a-z0-9_]*/[a-z0-9_]*\)\.cu$,\1,p')
    case $name in
    */*/* | '') ;;
    *) [ ! -f "$name.cu" ] || printf '%s\n' "$name" ;;
    esac
}

verdict() { # file, program, verdict, reason
    printf '%-9s %-34s %s%s\n' "$3" "$2" "${1#"$folder"/}" "${4:+: $4}"
    echo "$3" >>"$work/verdicts"
}

# run_once PROGRAM SOURCE OPTION…: runs the program in a folder of its own, with limits. Sets `status`, and `said`, the verdict of
# common/exercise/verdict.c if it comes with the word that this script has drawn.
run_once() {
    program=$1 binary=$2 status=0
    shift 2
    here=$work/runs/here
    rm -rf "$here"
    mkdir -p "$here"
    word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "$word" >"$work/word"
    : >"$work/said"
    (
        cd "$here"
        ulimit -c 0
        ulimit -t "$((TIME_LIMIT * 2))"
        ulimit -f "$((OUTPUT_LIMIT * 2048))"
        # The race detector reserves 32 GiB of addresses for its table, and uses little of that.
        [ -z "$MEMORY_LIMIT" ] || ulimit -v "$(((MEMORY_LIMIT + ${races:+32768} + 0) * 1024))"
        exec 3<"$work/word" 4>"$work/said" 5>&- 6>&- 7>&- 8>&- 9>&-
        rm "$work/word"
        exec env -i PATH="$PATH" HOME="$here" TMPDIR="$here" EXERCISE_GRADED=1 CUDA_CPU_SCHEDULE="$schedule" \
            CUDA_CPU_STREAMS=late CUDA_CPU_STRICT=1 CUDA_CPU_FILL=nan \
            timeout -k 2 "$TIME_LIMIT" "$binary" "$@" >../out 2>../err </dev/null
    ) 2>/dev/null || status=$?
    said=$(sed -n "s/^$word //p" "$work/said")
}

first_line() { # of the errors of the last run, without the lines that every run has
    grep -v -e '--inject-error' "$work/runs/err" | head -n 1 | cut -c 1-160
}

grade() { # file, program, number
    why=$(awk -v mode=why -v program="$2" -f scripts/exercise.awk "$2.cu")
    if [ -n "$why" ]; then
        verdict "$1" "$2" unknown 'this program is no exercise'
        return
    fi
    source=$sources/$3/$2
    if [ ! -f "$source.cu" ]; then
        verdict "$1" "$2" wrong "$(cat "$work/$3.why")"
        return
    fi
    binary=$work/bin/$source
    if [ ! -x "$binary" ]; then
        reason=$(grep -m 1 -E "$source.*error" "$work/build.log" || grep -m 1 -F "$source" "$work/build.log" || :)
        verdict "$1" "$2" wrong "does not build: $(printf %s "$reason" | sed "s,$sources/$3/,,g" | cut -c 1-160)"
        return
    fi
    options=
    [ -z "$races" ] || options=$(awk -v mode=options -v program="$2" -f scripts/exercise.awk "$2.cu")
    for schedule in forward random:1 random:2; do
        # shellcheck disable=SC2086
        run_once "$2" "$binary" $options
        if grep -m 1 'cuda on the CPU: \(race\|divergent\|uninitialized\|out of bounds\) ' "$work/runs/err" >"$work/found"; then
            case $(cat "$work/found") in *': race '* | *': divergent '*) kind=race ;; *) kind=wrong ;; esac
            verdict "$1" "$2" "$kind" "$(sed "s,$sources/$3/,,g" "$work/found" | cut -c 1-200)"
            return
        fi
        case $said in
        right) [ "$status" = 0 ] && continue ;;
        'not checked') verdict "$1" "$2" unknown "$(first_line)" && return ;;
        esac
        case $status in
        124 | 137 | 152) verdict "$1" "$2" wrong "ran longer than $TIME_LIMIT s" ;;
        0) verdict "$1" "$2" wrong 'the program ended before its check' ;;
        2) verdict "$1" "$2" unknown "$(first_line)" ;; # the machine lacks what the program needs, such as a GPU
        *) verdict "$1" "$2" wrong "$(reason=$(first_line) && echo "${reason:-exit status $status}")" ;;
        esac
        return
    done
    # The check must also notice a result that is not right.
    # shellcheck disable=SC2086
    run_once "$2" "$binary" $options --inject-error
    if [ "$said" != wrong ]; then
        verdict "$1" "$2" wrong 'the check does not notice a changed result'
        return
    fi
    verdict "$1" "$2" right
}

: >"$work/verdicts"
find "$folder" -name '*.cu' -type f | LC_ALL=C sort >"$work/files"
[ -s "$work/files" ] || { echo "make: DIR=$1: there is no .cu file in it" >&2 && exit 1; }

# Put all together, and build them with one make.
number=0 goals=
while IFS= read -r file <&6; do
    number=$((number + 1))
    program=$(program_of "$file")
    [ -n "$program" ] || continue
    mkdir -p "$sources/$number/${program%/*}"
    if awk -v mode=grade -v up=../../../../ -v program="$program" -v submission="$file" -f scripts/exercise.awk "$program.cu" \
        >"$work/new.cu"; then
        if [ -s "$work/new.cu" ]; then
            mv "$work/new.cu" "$sources/$number/$program.cu"
            goals="$goals $sources/$number/$program"
        fi
    else
        tail -n 1 "$work/new.cu" >"$work/$number.why"
    fi
done 6<"$work/files"
rm -rf "$work/bin"
if [ -n "$goals" ]; then
    # A source that makes the compiler run without end stops at these limits too.
    # shellcheck disable=SC2086
    (ulimit -t 300 && ulimit -v $((6 * 1024 * 1024)) && make -k --no-print-directory BACKEND="$BACKEND" ${races:+RACES=1} BIN="$work/bin" BUILD="$BUILD" SANITIZE= \
        CHAPTER= PROGRAM= DIR= $goals) >"$work/build.log" 2>&1 8>&- || :
fi

number=0
while IFS= read -r file <&6; do
    number=$((number + 1))
    program=$(program_of "$file")
    if [ -z "$program" ]; then
        verdict "$file" - unknown 'its header has no "Run: ./bin/chapterNN/name" of a program of the suite'
    else
        grade "$file" "$program" "$number"
    fi
done 6<"$work/files"
sort "$work/verdicts" | uniq -c | awk '{ text = text (text == "" ? "" : ", ") $1 " " $2 } END { print text }'
! grep -qv '^right$' "$work/verdicts"
