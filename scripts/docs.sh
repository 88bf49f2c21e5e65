#!/bin/sh
# SPDX-License-Identifier: MIT
# Refreshes what the README generates: the table of programs, between its two markers.
set -eu
cd "${0%/*}/.."

new=$(mktemp)
trap 'rm -f "$new"' EXIT
table=$(scripts/programs.sh --table) awk '
/^<!-- programs:begin/ { print; print ENVIRON["table"]; inside = 1; found = 1 }
/^<!-- programs:end/ { inside = 0 }
!inside { if ($0 !~ /^<!-- programs:begin/) print }
END { if (!found || inside) exit 1 }
' README.md >"$new" || { echo "README.md: needs <!-- programs:begin --> and <!-- programs:end -->" >&2; exit 1; }
if cmp -s "$new" README.md; then
    echo "README.md: the table of programs is fresh"
else
    cat "$new" >README.md
    echo "README.md: table of programs refreshed"
fi
