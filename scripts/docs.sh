#!/bin/sh
# SPDX-License-Identifier: MIT
# Refreshes what the README generates, each between its two markers: the table of programs and the gallery.
set -eu
cd "${0%/*}/.."

new=$(mktemp)
trap 'rm -f "$new"' EXIT

refresh() { # what it is, name of the markers, the lines between them
    text=$3 awk -v name="$2" '
    index($0, "<!-- " name ":begin") == 1 { print; print ENVIRON["text"]; inside = 1; found = 1; next }
    index($0, "<!-- " name ":end") == 1 { inside = 0 }
    !inside { print }
    END { if (!found || inside) exit 1 }
    ' README.md >"$new" || { echo "README.md: needs <!-- $2:begin --> and <!-- $2:end -->" >&2; exit 1; }
    if cmp -s "$new" README.md; then
        echo "README.md: the $1 is fresh"
    else
        cat "$new" >README.md
        echo "README.md: $1 refreshed"
    fi
}

refresh 'table of programs' programs "$(scripts/programs.sh --table)"
refresh gallery gallery "$(scripts/gallery.sh --table)"
