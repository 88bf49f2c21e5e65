#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints compile_commands.json: how each source is compiled, for editors and other tools. A .cu is parsed as .clangd says, in
# one step and without the toolkit, and not as it is built.
#   compile_commands.sh C_COMMAND PREPROCESSOR_FLAGS FILE…
set -eu
cd "${0%/*}/.."

c=$1
# The list of flags below "Add:" in .clangd
cuda="clang++ $(sed -n 's/^    - \([^'"'"']*\)$/\1/p' .clangd | tr '\n' ' ')$2"
shift 2

escape() { printf %s "$1" | sed 's/[\\"]/\\&/g'; }

folder=$(escape "$PWD")
comma=
echo '['
for file; do
    case $file in
    *.cu) command=$cuda ;;
    *) command=$c ;;
    esac
    printf '%s{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$comma" "$folder" "$file" "$(escape "$command")" "$file"
    comma=',
'
done
printf '\n]\n'
