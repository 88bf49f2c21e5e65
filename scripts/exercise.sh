#!/bin/sh
# SPDX-License-Identifier: MIT
# Exercises: programs of the suite whose kernels the reader writes. They are in my/, which git ignores.
#   exercise.sh write PROGRAM…   writes my/PROGRAM.cu; a chapter stands for its exercises. A file that exists is never changed
#   exercise.sh all              writes every exercise that is not there yet, and lists all
#   exercise.sh progress         builds and runs the exercises that have changed, and lists all: done, wrong or open
# BACKEND, BIN and BUILD are the settings of make. TIME_LIMIT is in seconds, for a run.
set -eu
cd "${0%/*}/.."

: "${BACKEND:=cpu}" "${BIN:=bin}" "${BUILD:=build}" "${TIME_LIMIT:=60}"
tab=$(printf '\t')
unset DISPLAY WAYLAND_DISPLAY

exercise() { # mode, program
    awk -v mode="$1" -v up=../../ -v program="$2" -f scripts/exercise.awk "$2.cu"
}

why_none() { # program: prints why it is no exercise; nothing if it is one
    exercise why "$1"
}

write() { # program
    mkdir -p "my/${1%/*}"
    exercise write "$1" >"my/$1.new" || { cat "my/$1.new" >&2 && rm -f "my/$1.new" && exit 1; }
    mv "my/$1.new" "my/$1.cu"
}

# The program name, stars and title of each exercise, in the order of the book
all_exercises() { # folders, or nothing
    scripts/programs.sh "$@" | cut -f 1,2 | while IFS=$tab read -r program title; do
        stars=$(exercise stars "$program")
        [ -z "$stars" ] || printf '%s\t%s\t%s\n' "$program" "$stars" "$title"
    done
}

sum_of() { cksum <"$1" | tr ' ' -; }

# The state of an exercise, from the file that the last run has left, or - if the source or the back end has changed since
known_state() { # program
    record=$BUILD/progress/$1
    [ -f "$record" ] && [ "$(sed -n 1p "$record")" = "$BACKEND $(sum_of "my/$1.cu")" ] && sed -n 2p "$record" && return
    exercise write "$1" | cmp -s - "my/$1.cu" && echo open && return
    echo -
}

record() { # program, "done", "wrong" or "no device", the first line of the reason
    mkdir -p "$BUILD/progress/${1%/*}"
    printf '%s\n%s\n%s\n' "$BACKEND $(sum_of "my/$1.cu")" "$2" "$3" >"$BUILD/progress/$1"
}

try() { # program: builds and runs it
    name=${1#*/} folder=$BUILD/progress/${1%/*}
    mkdir -p "$folder"
    bin=$BIN
    case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
    if ! make --no-print-directory BACKEND="$BACKEND" BIN="$BIN" BUILD="$BUILD" "my/$1" >"$folder/$name.log" 2>&1; then
        record "$1" wrong "does not build: $(grep -m 1 -E 'error|Error|needs' "$folder/$name.log" || tail -n 1 "$folder/$name.log")"
        return
    fi
    status=0 options=$(exercise options "$1")
    # shellcheck disable=SC2086
    (cd "$folder" && exec timeout -k 5 "$TIME_LIMIT" "$bin/my/$1" $options >"$name.out" 2>"$name.log" </dev/null) || status=$?
    reason=$(grep -v '^cuda on the CPU: [0-9]* worker' "$folder/$name.log" | head -n 1)
    case $status in
    0) if tail -n 1 "$folder/$name.log" | grep -q ': right$'; then record "$1" "done" ''; else record "$1" wrong 'ended before its check'; fi ;;
    2) record "$1" waived "$reason" ;;
    124 | 137) record "$1" wrong "ran longer than $TIME_LIMIT s" ;;
    *) record "$1" wrong "${reason:-exit status $status}" ;;
    esac
}

show() { # number, program, stars, title, state
    stars=$(printf '%.*s' "$3" '****')
    printf '%3d  %-4s  %-38s %-6s %s\n' "$1" "$stars" "$2" "$5" "$4"
}

list() { # "run" to build and run what has changed
    number=0
    all_exercises >"$BUILD/exercises.list"
    while IFS=$tab read -r program stars title <&5; do
        number=$((number + 1)) state=
        if [ -f "my/$program.cu" ]; then
            state=$(known_state "$program")
            if [ "$state" = - ]; then
                state=changed
                if [ "$1" = run ]; then
                    try "$program"
                    state=$(sed -n 2p "$BUILD/progress/$program")
                fi
            fi
        fi
        show "$number" "$program" "$stars" "$title" "${state:--}"
        case $state in wrong | waived) sed -n '3s/^/           /p' "$BUILD/progress/$program" ;; esac
        echo "${state:--}" >>"$BUILD/exercises.states"
    done 5<"$BUILD/exercises.list"
}

mkdir -p "$BUILD"
mode=${1-}
shift || :
case $mode in
write)
    for one; do
        case $one in
        */*) programs=$one ;;
        *) programs=$(all_exercises "$one" | cut -f 1) ;;
        esac
        for program in $programs; do
            why=$(why_none "$program")
            if [ -n "$why" ]; then
                echo "make: $program is no exercise: $why" >&2
                exit 1
            elif [ -e "my/$program.cu" ]; then
                echo "my/$program.cu is there already and stays as it is"
            else
                write "$program"
                echo "my/$program.cu: write what the comments \"Task:\" ask for, then make my/$program; the first comment in it has all commands"
            fi
        done
    done
    ;;
all | progress)
    if [ "$mode" = all ]; then
        for program in $(all_exercises | cut -f 1); do
            [ -e "my/$program.cu" ] || write "$program"
        done
    fi
    rm -f "$BUILD/exercises.states"
    list "$([ "$mode" = all ] || echo run)"
    sort "$BUILD/exercises.states" | uniq -c | awk '
        $2 == "-" { $2 = "not written" }
        { text = text (text == "" ? "" : ", ") $1 " " $2 ($3 == "" ? "" : " " $3) }
        END { print text }'
    rm -f "$BUILD/exercises.states" "$BUILD/exercises.list"
    ;;
*) sed -n '3,8s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac
