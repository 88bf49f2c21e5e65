#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs programs that were built for checking (make check) under several schedules, and prints what the race detector of
# the CPU back end reports (cpu/src/race.cpp).
#   check.sh [PROGRAM | FOLDER]
# Each program runs with the options that the Check: field of its header gives, because checking slows it down. The exit
# status is 1 when a program has a race, or fails, or is wrong on purpose and nothing is found. BIN and BUILD are the folders
# of the Makefile; TIME_LIMIT is in seconds, for a run.
set -eu
cd "${0%/*}/.."

: "${BIN:=build/check}" "${BUILD:=build}" "${TIME_LIMIT:=120}"
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
runs=$BUILD/check-runs
tab=$(printf '\t')
unset DISPLAY WAYLAND_DISPLAY

# Schedules: how threads, and how streams are ordered. The detector itself needs one only; the others show what depends on
# the order, such as the result of a missing wait.
schedules='forward/late reverse/late random:1/random:1 random:2/random:2 random:3/random:3'

found_by_check=': race \|: divergent \|: uninitialized '

# A line for each run: program, expected exit status, options
one=
case ${1-} in
*/*) one=$1 list=$(scripts/programs.sh "${1%/*}") ;;
*) list=$(scripts/programs.sh "$@") ;;
esac
list=$(printf '%s\n' "$list" | awk -F "$tab" -v OFS="$tab" -v one="$one" '
    one == "" || $1 == one { n = split($12, runs, / [|] /); for (i = 1; i <= (n ? n : 1); i++) print $1, $9, runs[i] }')
total=$(printf '%s\n' "$list" | grep -c . || :)
width=${#total}
number=0 clean=0 found=0 failed=0 absent=0

# run_once PROGRAM SCHEDULE OPTION…: sets `status`; output in $log
run_once() {
    program=$1 threads=${2%/*} streams=${2#*/}
    shift 2
    status=0
    (cd "$folder" && CUDA_CPU_SCHEDULE=$threads CUDA_CPU_STREAMS=$streams CUDA_CPU_STRICT=1 exec timeout -k 5 "$TIME_LIMIT" \
        "$BIN/$program" "$@" >"$name.txt" 2>"$name.err" </dev/null) || status=$?
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
    name=${program#*/} folder=$runs/${program%/*}
    mkdir -p "$folder"
    if [ ! -x "$BIN/$program" ]; then
        absent=$((absent + 1))
        printf "[%${width}d/%d] %-34s %s\n" "$number" "$total" "$program" 'not built'
        continue
    fi
    start=$(date +%s.%N) result=clean reason=
    for schedule in $schedules; do
        # shellcheck disable=SC2086
        run_once "$program" "$schedule" $run
        if grep -q "$found_by_check" "$folder/$name.err"; then
            result=race reason=$(grep -A 1 "$found_by_check" "$folder/$name.err" | grep -v '^--$')
        elif [ "$status" = 2 ]; then
            result=waived reason=$(tail -n 1 "$folder/$name.err")
        elif [ "$status" != 0 ]; then
            result=FAILED reason="exit status $status: $(tail -n 1 "$folder/$name.err")"
            [ "$status" != 124 ] || reason="ran longer than $TIME_LIMIT s"
        fi
        [ -z "$one" ] || printf '    threads %-10s streams %-10s %s\n' "${schedule%/*}" "${schedule#*/}" "$result"
        [ "$result" = clean ] || break
    done
    seconds=$(echo "$start $(date +%s.%N)" | awk '{ printf "%.1f s", $2 - $1 }')
    case $result in
    clean | waived)
        clean=$((clean + 1))
        if [ -n "$expected" ] && [ $result = clean ]; then
            result=FAILED reason='wrong on purpose, but nothing was found' failed=$((failed + 1)) clean=$((clean - 1))
        fi
        ;;
    race)
        if [ -n "$expected" ]; then found=$((found + 1)) result='race, on purpose'; else failed=$((failed + 1)); fi
        ;;
    *) failed=$((failed + 1)) ;;
    esac
    printf "[%${width}d/%d] %-34s %-17s %9s\n" "$number" "$total" "$label" "$result" "$seconds"
    [ -z "$reason" ] || printf '%s\n' "$reason" | sed 's/^/    /'
done
echo "$clean of $total clean, $found wrong on purpose and found, $failed failed, $absent not built"
[ "$failed" -eq 0 ]
