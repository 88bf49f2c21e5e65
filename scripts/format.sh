#!/bin/sh
# SPDX-License-Identifier: MIT
# Formats the C, CUDA C and C++ sources as .clang-format says and the Python sources as pyproject.toml says.
#   format.sh           formats
#   format.sh --check   changes nothing; names the files that are not formatted, with exit status 1 if there are any
#   format.sh --tools   only looks for the tools
# Other versions of the two tools format differently, so they are refused, with status 2. CLANG_FORMAT and BLACK name the
# commands; BIN and BUILD are the folders of `make`.
set -eu
cd "${0%/*}/.."

clang_format_version=14 black_version=23 # as in Debian 12
: "${BIN:=bin}" "${BUILD:=build}"
case ${1-} in
'' | --check | --tools) ;;
*) sed -n '3,8s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac

# Finds the command of the tool in the required version.
find_tool() { # name, version, the commands to try
    name=$1 version=$2 found=
    shift 2
    for command; do
        text=$("$command" --version 2>/dev/null | sed -n 1p) || :
        number=$(printf %s "$text" | sed -n 's/^[^0-9]*\([0-9]*\)\..*/\1/p')
        if [ "$number" = "$version" ]; then echo "$command" && return; fi
        found=$found${number:+, found $number}
    done
    echo "format: needs $name $version$found: $(scripts/setup.sh --how "$name")" >&2
    return 2
}

clang_format=$(find_tool clang-format $clang_format_version "${CLANG_FORMAT:-clang-format}" clang-format-$clang_format_version) || exit
black=$(find_tool black $black_version "${BLACK:-black}") || exit
case ${1-} in
--tools) exit ;;
--check) c_flags='--dry-run -Werror' python_flags=--check ;;
*) c_flags=-i python_flags= ;;
esac

sources() { # which, as find has it
    find . \( -path './.*' -o -path ./my -o -path "./$BUILD" -o -path "./$BIN" \) -prune -o -type f \( "$@" \) -print
}

status=0
# shellcheck disable=SC2086
sources -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' | sort | xargs -r "$clang_format" $c_flags || status=1
# shellcheck disable=SC2086
says=$(sources -name '*.py' | sort | xargs -r "$black" $python_flags 2>&1) ||
    { status=1 && echo "$says" | grep -E '^(would reformat|error)'; }
exit $status
