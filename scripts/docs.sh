#!/bin/sh
# SPDX-License-Identifier: MIT
# Updates the generated parts of README.md and docs/, each between two markers: the tables of chapters, programs, pictures and
# terms, and the recorded times, whose plots are drawn again.
set -eu
cd "${0%/*}/.."

new=$(mktemp)
trap 'rm -f "$new"' EXIT

refresh() { # file, name of the part, name of its markers, the lines between them
    file=$1
    shift
    text=$3 awk -v name="$2" '
    index($0, "<!-- " name ":begin") == 1 { print; if (ENVIRON["text"] != "") print ENVIRON["text"]; inside = 1; found = 1; next }
    index($0, "<!-- " name ":end") == 1 { inside = 0 }
    !inside { print }
    END { if (!found || inside) exit 1 }
    ' "$file" >"$new" || { echo "$file: needs <!-- $2:begin --> and <!-- $2:end -->" >&2; exit 1; }
    if cmp -s "$new" "$file"; then
        echo "$file: the $1 is fresh"
    else
        cat "$new" >"$file"
        echo "$file: $1 refreshed"
    fi
}

refresh README.md 'table of chapters' chapters "$(scripts/programs.sh --chapters)"
refresh docs/programs.md 'table of programs' programs "$(scripts/programs.sh --table)"
refresh docs/gallery.md gallery gallery "$(scripts/gallery.sh --table)"
refresh docs/index.md 'index of terms' terms "$(scripts/programs.sh --index)"

bench/report.py
summary=$(bench/report.py --summary)
table=$(bench/report.py --table)
plots=$(bench/report.py --plots)
refresh README.md 'table of times' performance "$summary"
refresh docs/performance.md 'table of times' performance "$table"
refresh docs/performance.md 'list of plots' plots "$plots"

for part in figures claims limits devices; do
    refresh docs/then-and-now.md "table of $part" "$part" "$(bench/then.py --$part)"
done

attacks=$(tests/attacks/record.py --page)
refresh docs/trust.md 'part about attacks' attacks "$attacks"

bench/scaling.py --plot
for part in measured model projection; do
    refresh docs/scaling.md "part $part" "$part" "$(bench/scaling.py --$part)"
done
