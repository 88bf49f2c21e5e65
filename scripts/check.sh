#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs programs that were built for checking (make check) under several schedules, and prints what the race detector of
# the CPU back end reports (cpu/src/race.cpp).
#   check.sh [PROGRAM | FOLDER]
# Each program runs with small sizes, because checking slows it down. The exit status is 1 when a program has a race, or
# fails, or is wrong on purpose and nothing is found. BIN and BUILD are the folders of the Makefile; TIME_LIMIT is in
# seconds, for a run.
set -eu
cd "${0%/*}/.."

: "${BIN:=build/check}" "${BUILD:=build}" "${TIME_LIMIT:=120}"
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
runs=$BUILD/check-runs
tab=$(printf '\t')
unset DISPLAY WAYLAND_DISPLAY

# Options that make a run short
options_of() {
    case $1 in
    appendix_a/dot | chapter05/dot_gmem) echo --size 100000 ;;
    appendix_a/hashtable_*) echo --size 20000 ;;
    chapter09/atomics_race) echo --blocks 16 ;;
    chapter07/heat_ladder) echo --size 128 --iterations 4 ;;
    chapter*_ladder | chapter05/reduction) echo --size 20000 ;;
    chapter06/ray | chapter06/ray_noconst | chapter08/basic_interop) echo --size 128 ;;
    chapter10/copy_timed) echo --size 20000 --iterations 5 ;;
    chapter10/basic_*) echo --size 100000 --chunk 10000 ;;
    chapter11/time_zero2 | chapter11/multidevice | chapter11/portable | chapter11/peer_copy) echo --size 100000 ;;
    chapter04/julia_*) echo --size 200 ;;
    chapter05/matmul_*) echo --size 64 ;;
    chapter0[5-8]/ripple | chapter06/ray_animated) echo --size 128 --frames 2 ;;
    chapter0[78]/heat | chapter07/heat_gmem | chapter07/heat_2d) echo --size 128 --frames 2 --iterations 10 ;;
    chapter06/event_timing) echo --size 20000 ;;
    chapter09/hist_gpu_*) echo --size 100000 ;;
    esac
}

# Schedules: how threads, and how streams are ordered. The detector itself needs one only; the others show what depends on
# the order, such as the result of a missing wait.
schedules='forward/late reverse/late random:1/random:1 random:2/random:2 random:3/random:3'

one=
case ${1-} in
*/*) one=$1 list=$(scripts/programs.sh "${1%/*}" | awk -F "$tab" -v p="$1" '$1 == p { print $1 "\t" $9 }') ;;
*) list=$(scripts/programs.sh "$@" | cut -f 1,9) ;;
esac
# Also runs shared_bitmap without its barrier
list=$(printf '%s\n' "$list" | sed "s/^\(chapter05\/shared_bitmap\)\(.*\)/&\n\1 --no-sync\2/")
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
    program=${line%%"$tab"*} extra=
    case $program in *" "*) extra=${program#* } program=${program%% *} ;; esac
    expected=${line##*"$tab"}
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
        # shellcheck disable=SC2046
        run_once "$program" "$schedule" $(options_of "$program") $extra
        if grep -q ': race \|: divergent ' "$folder/$name.err"; then
            result=race reason=$(grep -A 1 ': race \|: divergent ' "$folder/$name.err" | grep -v '^--$')
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
    on_purpose=$expected
    case $program$extra in "chapter09/atomics_race" | *--no-sync) on_purpose=1 ;; esac
    case $result in
    clean | waived)
        clean=$((clean + 1))
        if [ -n "$on_purpose" ] && [ $result = clean ]; then
            result=FAILED reason='wrong on purpose, but nothing was found' failed=$((failed + 1)) clean=$((clean - 1))
        fi
        ;;
    race)
        if [ -n "$on_purpose" ]; then found=$((found + 1)) result='race, on purpose'; else failed=$((failed + 1)); fi
        ;;
    *) failed=$((failed + 1)) ;;
    esac
    printf "[%${width}d/%d] %-34s %-17s %9s\n" "$number" "$total" "$program${extra:+ $extra}" "$result" "$seconds"
    [ -z "$reason" ] || printf '%s\n' "$reason" | sed 's/^/    /'
done
echo "$clean of $total clean, $found wrong on purpose and found, $failed failed, $absent not built"
[ "$failed" -eq 0 ]
