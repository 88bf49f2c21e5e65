#!/bin/sh
# SPDX-License-Identifier: MIT
# Draws a launch of a program (make trace-chapterNN/name), which is built for the race detector of the CPU back end.
#   trace.sh PROGRAM [OPTION…]    the options are the program's
# FILE is the file to write, and what to record and draw, as in cucc/trace.py (docs/tools.md); default: BUILD/trace/PROGRAM.svg. BIN
# and BUILD are the folders of the Makefile. Files of the program itself are written into BUILD/trace too.
set -eu
cd "${0%/*}/.."

: "${BIN:=build/check}" "${BUILD:=build}" "${FILE:=}"
root=$PWD program=$1
shift
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
BIN=$(absolute "$BIN") folder=$BUILD/trace/${program%/*}
mkdir -p "$folder"
FILE=$(absolute "${FILE:-$BUILD/trace/$program.svg}")
cd "$folder"
exec env -u DISPLAY -u WAYLAND_DISPLAY "${PYTHON:-python3}" "$root/cucc/trace.py" "$FILE" "$BIN/$program" "$@"
