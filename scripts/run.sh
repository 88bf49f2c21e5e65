#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every program, or those of the given folders, without a window, and prints a table. Each program runs in
# build/run/chapterNN with its defaults, and a program of MPI as several processes; its output is saved there as NAME.txt, and its picture beside it. Rows
# are numbered; on a terminal the program that is running is shown too.
#   run.sh [FOLDER…]
# The exit status is 1 when a program failed. BIN and BUILD are the folders of the Makefile; TIME_LIMIT is in
# seconds.
set -eu
cd "${0%/*}/.."

: "${BIN:=bin}" "${BUILD:=build}" "${TIME_LIMIT:=120}"
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
runs=$BUILD/run
tab=$(printf '\t')
unset DISPLAY WAYLAND_DISPLAY

limit=
command -v timeout >/dev/null && limit="timeout -k 5 $TIME_LIMIT"

now() { date +%s.%N; }

# Sets the result of a program, and the reason: the last line that it wrote to stderr.
judge() { # status, program, Picture field, exit status that the header expects
    reason=$(tail -n 1 "$runs/$2.err" 2>/dev/null || :)
    if [ "$4" != 0 ] && [ "$1" = "$4" ]; then
        result=ok reason="status $1 as expected: $(head -n 1 "$runs/$2.err")"
        return
    fi
    case $1 in
    0)
        result=ok reason=
        if [ -n "$3" ] && [ -z "$picture" ]; then result=FAILED reason="wrote no picture"; fi
        if [ "$4" != 0 ]; then result=FAILED reason="exit status 0, its header expects $4"; fi
        ;;
    2) result=waived ;;
    124) result=FAILED reason="ran longer than $TIME_LIMIT s" ;;
    129 | 1[3-9]?) result=FAILED reason="ended by signal $(($1 - 128))" ;;
    *) result=FAILED reason="exit status $1${reason:+: $reason}" ;;
    esac
}

list=$(scripts/programs.sh "$@" | cut -f 1,5,8,9)
total=$(printf '%s\n' "$list" | grep -c . || :)
number=0
width=${#total}

row() { # program, result, time, the rest
    running ''
    printf "[%${width}d/%d] %-34s %-9s %9s  %s\n" "$number" "$total" "$1" "$2" "$3" "$4"
}

# On a terminal, prints a line that the next row replaces.
terminal=
if [ -t 1 ] && [ "${TERM-dumb}" != dumb ]; then terminal=1; fi
running() { # program, or nothing to clear the line
    [ -n "$terminal" ] || return 0
    if [ -n "$1" ]; then printf "[%${width}d/%d] %-34s %s" "$number" "$total" "$1" running; else printf '\r\033[K'; fi
}

printf "%$((2 * width + 3))s %-34s %-9s %9s  %s\n" '' program result time 'picture, or why not'
ok=0 failed=0 waived=0 absent=0
old_ifs=$IFS
IFS='
'
for line in $list; do
    IFS=$old_ifs
    number=$((number + 1))
    program=${line%%"$tab"*}
    expected=${line##*"$tab"}
    run=${line#*"$tab"}
    run=${run%"$tab"*}
    wants_picture=${run##*"$tab"}
    # The Run: field says how many processes a program of MPI has.
    ranks=
    case $run in 'mpirun -np '*) ranks=${run#mpirun } ranks="$PWD/scripts/mpirun.sh ${ranks%% ./*}" ;; esac
    name=${program#*/}
    folder=$runs/${program%/*}
    mkdir -p "$folder"
    rm -f "$folder/$name".*
    if [ ! -x "$BIN/$program" ]; then
        absent=$((absent + 1))
        needs=$(scripts/programs.sh --needs "${program%/*}" | sed -n "s|^$program:||p")
        row "$program" 'not built' '' "${needs:+needs }$needs"
        continue
    fi
    running "$program"
    start=$(now)
    status=0
    (cd "$folder" && exec $limit $ranks "$BIN/$program" >"$name.txt" 2>"$name.err" </dev/null) || status=$?
    seconds=$(echo "$start $(now)" | awk '{ printf "%.2f s", $2 - $1 }')
    [ -s "$folder/$name.err" ] || rm -f "$folder/$name.err"
    picture=
    for file in "$folder/$name".*; do
        case $file in *.txt | *.err) ;; *) [ -s "$file" ] && picture=$file ;; esac
    done
    judge "$status" "$program" "$wants_picture" "${expected:-0}"
    case $result in ok) ok=$((ok + 1)) ;; waived) waived=$((waived + 1)) ;; *) failed=$((failed + 1)) ;; esac
    row "$program" "$result" "$seconds" "${reason:-$picture}"
done
echo "$ok ok, $failed failed, $waived waived, $absent not built; what they printed is in $runs"
[ "$failed" -eq 0 ]
