#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs programs under tools that find mistakes, and prints what they report.
#   check.sh [PROGRAM | FOLDER]
# TOOLS in the environment is race (make check: programs built for the race detector of the CPU back end, cpu/src/race.cpp, run
# under several schedules), compiler (make sanitize: programs built with the sanitizers of the compiler) or compute-sanitizer
# (make sanitize on a GPU). Each program runs with the options that the Check: field of its header gives, because checking slows it
# down. The exit status is 1 when something is found in a program, or it fails, or has a race on purpose that is not found. BIN and
# BUILD are the folders of the Makefile; TIME_LIMIT is in seconds, for a run.
set -eu
cd "${0%/*}/.."

: "${BIN:=build/check}" "${BUILD:=build}" "${TIME_LIMIT:=120}" "${TOOLS:=race}"
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
runs=$BUILD/check-runs
tab=$(printf '\t')
unset DISPLAY WAYLAND_DISPLAY

# Schedules: how threads, and how streams are ordered. The detector itself needs one only; the others show what depends on
# the order, such as the result of a missing wait.
case $TOOLS in
race)
    ways='forward/late reverse/late random:1/random:1 random:2/random:2 random:3/random:3'
    found_by='cuda on the CPU: \(race\|divergent\|uninitialized\|out of bounds\) '
    ;;
compiler) ways=sanitizers found_by='\(Address\|Leak\|Thread\|UndefinedBehavior\)Sanitizer\|runtime error:' ;;
compute-sanitizer) ways='memcheck racecheck initcheck synccheck' found_by='^========= \(Invalid\|Error\|Warning\|Uninit\|Barrier\|Leaked\)' ;;
esac
if [ "$TOOLS" = compute-sanitizer ] && ! command -v compute-sanitizer >/dev/null; then
    echo 'no compute-sanitizer on PATH: it is part of the CUDA toolkit' >&2
    exit 1
fi

# A line for each run: program, expected exit status, options. What is wrong on purpose is for make check only, and
# compute-sanitizer does not work with OpenGL and Vulkan (docs/book-vs-today.md). An exercise runs with the options of the program
# that it was made from. Of several runs, those in which a race is expected are left out.
one='' exercise=''
case ${1-} in
my/*) one=$1 exercise=${1#my/} list=$(scripts/programs.sh "${exercise%/*}" | sed "s,^$exercise$tab,my/&,") ;;
*/*) one=$1 list=$(scripts/programs.sh "${1%/*}") ;;
*) list=$(scripts/programs.sh "$@") ;;
esac
list=$(printf '%s\n' "$list" | awk -F "$tab" -v OFS="$tab" -v one="$one" -v exercise="$exercise" -v tools="$TOOLS" '
    one == "" || $1 == one {
        n = split($12, runs, / [|] /)
        for (i = 1; i <= (n ? n : 1); i++)
            if (exercise != "" && n > 1 && runs[i] ~ /[(]race[)]$/) continue
            else if (tools == "race" || !($9 || runs[i] ~ /[(]race[)]$/ || (tools == "compute-sanitizer" && $7 ~ /gl|vulkan/))) print $1, $9, runs[i]
    }')
total=$(printf '%s\n' "$list" | grep -c . || :)
width=${#total}
number=0 clean=0 found=0 failed=0 absent=0

# run_once PROGRAM WAY OPTION…: sets `status`; output in $name.txt and $name.err
run_once() {
    program=$1 way=$2 status=0
    shift 2
    ranks=$(sed -n 's,^ \* Run: *mpirun \(-np [0-9]*\) .*,\1,p' "$program.cu")
    set -- "$BIN/$program" "$@"
    if [ "$TOOLS" = compute-sanitizer ]; then
        [ "$way" != memcheck ] || set -- --leak-check full "$@"
        set -- compute-sanitizer --error-exitcode 9 --tool "$way" "$@"
    elif [ "$TOOLS" = race ]; then
        # Fresh memory holds NaN, all ones, and once zeros: a byte that must be 255 and is never written shows then.
        fill=$([ "$way" = reverse/late ] && echo zero || echo nan)
        set -- env CUDA_CPU_SCHEDULE="${way%/*}" CUDA_CPU_STREAMS="${way#*/}" CUDA_CPU_STRICT=1 CUDA_CPU_FILL="$fill" "$@"
    fi
    # shellcheck disable=SC2086
    [ -z "$ranks" ] || set -- "$PWD/scripts/mpirun.sh" $ranks "$@"
    (cd "$folder" && exec timeout -k 5 "$TIME_LIMIT" "$@" >"$name.txt" 2>"$name.err" </dev/null) || status=$?
    if [ "$TOOLS" = compute-sanitizer ]; then grep '^=========' "$folder/$name.txt" >>"$folder/$name.err" || :; fi
}

old_ifs=$IFS
IFS='
'
for line in $list; do
    IFS=$old_ifs
    program=${line%%"$tab"*} run=${line##*"$tab"} expected=${line#*"$tab"}
    expected=${expected%%"$tab"*}
    label=$program
    case $run in *' (race)') run=${run%" (race)"} expected=1 label="$program $run" ;; esac
    number=$((number + 1))
    name=${program##*/} folder=$runs/${program%/*}
    mkdir -p "$folder"
    if [ ! -x "$BIN/$program" ]; then
        absent=$((absent + 1))
        printf "[%${width}d/%d] %-34s %s\n" "$number" "$total" "$program" 'not built'
        continue
    fi
    start=$(date +%s.%N) result=clean reason='' kind=''
    for way in $ways; do
        # Programs of cuSPARSE and cuSOLVER have no kernels of their own, and these tools report the library's.
        case $TOOLS/$way in
        compute-sanitizer/memcheck) ;;
        compute-sanitizer/*) ! grep -q '^ \* Needs:.*\(cusparse\|cusolver\)' "$program.cu" || continue ;;
        esac
        # shellcheck disable=SC2086
        run_once "$program" "$way" $run
        if grep -q "$found_by" "$folder/$name.err"; then
            result=$([ "$TOOLS" = race ] && echo race || echo FOUND) reason=$(grep -A 1 "$found_by" "$folder/$name.err" | grep -v '^--$')
            case $reason in
            'cuda on the CPU: divergent'*) kind='divergent barrier' ;;
            'cuda on the CPU: uninit'*) kind=uninitialized ;;
            'cuda on the CPU: out of'*) kind='out of bounds' ;;
            esac
        elif [ "$status" = 2 ]; then
            result=waived reason=$(tail -n 1 "$folder/$name.err")
        elif [ "$status" != 0 ]; then
            result=FAILED reason="exit status $status: $(tail -n 1 "$folder/$name.err")"
            # The last line of an exercise is its verdict; the first ones are the first elements that differ.
            [ -z "$exercise" ] || reason=$(grep -v '^cuda on the CPU: [0-9]* worker' "$folder/$name.err" | head -n 4)
            [ "$status" != 124 ] || reason="ran longer than $TIME_LIMIT s"
        fi
        [ -z "$one" ] || case $TOOLS in
        race) printf '    threads %-10s streams %-10s %s\n' "${way%/*}" "${way#*/}" "${kind:-$result}" ;;
        *) printf '    %-10s %s\n' "$way" "$result" ;;
        esac
        [ "$result" = clean ] || break
    done
    seconds=$(echo "$start $(date +%s.%N)" | awk '{ printf "%.1f s", $2 - $1 }')
    case $result in
    clean | waived)
        clean=$((clean + 1))
        if [ -n "$expected" ] && [ "$result" = clean ]; then
            result=FAILED reason='wrong on purpose, but nothing was found' failed=$((failed + 1)) clean=$((clean - 1))
        fi
        ;;
    race)
        if [ -n "$expected" ]; then found=$((found + 1)) result='race, on purpose'; else failed=$((failed + 1)) result=${kind:-race}; fi
        ;;
    *) failed=$((failed + 1)) ;;
    esac
    printf "[%${width}d/%d] %-34s %-17s %9s\n" "$number" "$total" "$label" "$result" "$seconds"
    [ -z "$reason" ] || printf '%s\n' "$reason" | sed 's/^/    /'
done
echo "$clean of $total clean, $found wrong on purpose and found, $failed failed, $absent not built"
[ "$failed" -eq 0 ]
