#!/bin/sh
# SPDX-License-Identifier: MIT
# Updates the generated parts of README.md and docs/performance.md, each between two markers: the table of programs, the
# gallery, and the recorded times, whose plots are drawn again.
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

refresh README.md 'table of programs' programs "$(scripts/programs.sh --table)"
refresh README.md gallery gallery "$(scripts/gallery.sh --table)"

bench/report.py
table=$(bench/report.py --table)
plots=$(bench/report.py --plots)
refresh README.md 'table of times' performance "$table"
refresh docs/performance.md 'list of plots' plots "$plots"
