#!/bin/sh
# SPDX-License-Identifier: MIT
# Formats the C, CUDA C and C++ sources as .clang-format says and the Python sources as pyproject.toml says.
#   format.sh           formats
#   format.sh --check   changes nothing; names the files that are not formatted, with exit status 1 if there are any
# Other versions of the two tools than those of Debian 12 format differently, so they are refused, with status 2. CLANG_FORMAT and
# BLACK name the commands; BIN and BUILD are the folders of `make`.
set -eu
cd "${0%/*}/.."
! command -v clang-format-14 >/dev/null || : "${CLANG_FORMAT:=clang-format-14}"
: "${BIN:=bin}" "${BUILD:=build}" "${CLANG_FORMAT:=clang-format}" "${BLACK:=black}"

# clang-format would join the fields of a header, of which one line is too long.
long=$(LC_ALL=C.UTF-8 grep -snE '^ \* .{108}' chapter[0-9][0-9]/*.cu appendix_a/*.cu |
    sed 's/^\([^:]*:[0-9]*\):.*/\1: a line of the header has more than 110 columns; a field goes on in a line that is indented deeper/')
[ -z "$long" ] || { echo "$long" >&2 && exit 1; }

needs() { # name, version, command
    found=$("$3" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\)\..*/\1/p')
    [ "$found" = "$2" ] || { echo "format: needs $1 $2${found:+, found $found}: $(scripts/setup.sh --how "$1")" >&2; exit 2; }
}
needs clang-format 14 "$CLANG_FORMAT"
needs black 23 "$BLACK"
case ${1-} in
'') c_flags=-i python_flags= ;;
--check) c_flags='--dry-run -Werror' python_flags=--check ;;
*) sed -n '3,7s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac

status=0
# shellcheck disable=SC2038,SC2086
find . \( -path './.*' -o -path ./my -o -path "./$BUILD" -o -path "./$BIN" -o -name node_modules \) -prune -o -type f -regex '.*\.\([ch]\|cu\|cpp\)' -print |
    xargs -r "$CLANG_FORMAT" $c_flags || status=1
# shellcheck disable=SC2086
! "$BLACK" $python_flags --include '\.py$' . 2>&1 | grep -E '^(would reformat|error)' || status=1
exit $status
