#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a CUDA program of 2010, for make old: FILE, with what CUDA has removed since (cucc/legacy), into BIN/old/NAME.
# A header that the program includes as "../common/book.h" is taken from beside it, if it is there, else from common/old/common.
# BACKEND, B, BIN, COMPILE and LIBS are those of the Makefile.
set -eu
cd "${0%/*}/.."

[ -n "$FILE" ] || { echo 'make old needs the program: make old FILE=/path/to/listing.cu' >&2; exit 64; }
[ -f "$FILE" ] || { echo "FILE=$FILE: there is no such file" >&2; exit 64; }
name=$(basename "$FILE")
name=${name%.*} folder=$B/old
mkdir -p "$folder" "$BIN/old"

# A copy of FILE is compiled, in which some things are changed. Messages name FILE, and its folder is searched too.
source=$folder/$name.cu
{ echo "#line 1 \"$FILE\"" && cat "$FILE"; } >"$source"
set -- -x cu -w "-I$(dirname "$FILE")" -Icommon/old/common -Icommon -c -o "$folder/$name.o"
case $BACKEND in
cpu) set -- --legacy "$@" ;;
gpu) set -- -Icucc/legacy -include cucc/legacy/legacy.h -Xcompiler=-pthread,-fpermissive "$@" ;;
esac

# Compilers on Windows accept `void main`.
void_main='^\([[:space:]]*\)void\([[:space:]]\{1,\}main[[:space:]]*(\)'
if grep -q "$void_main" "$FILE"; then
    echo "$FILE: main is compiled with the type int, not void"
    sed -i "s/$void_main/\1int\2/" "$source"
fi

compile() { eval "$COMPILE \"\$@\""; } # a compiler may be several words, in quotes

# nvcc accepted in 2010 that a kernel uses a class whose constructor lacks __device__. Its message says which class that is.
if ! compile "$@" "$source" 2>"$folder/$name.err"; then
    classes=$(sed -n 's/.*calling a __host__ function("\([^"(]*::\)\{0,1\}\([A-Za-z_0-9]*\)::\2(.*from a __\(device\|global\)__ function.*/\2/p' \
        "$folder/$name.err" | sort -u)
    [ -n "$classes" ] || { cat "$folder/$name.err" >&2; exit 1; }
    for class in $classes; do
        echo "$FILE: the constructors of $class are compiled with __host__ __device__ in front of them"
        sed -i "s/^\\([[:space:]]*\\)\\($class[[:space:]]*(\\)/\\1__host__ __device__ \\2/" "$source"
    done
    compile "$@" "$source"
else
    cat "$folder/$name.err" >&2
fi

# glut.o is in a library of its own, so that only programs that call GLUT get it.
ar rcs "$B/libglut.a" "$B/common/old/glut.o"
# shellcheck disable=SC2086
compile -Xlinker --export-dynamic -o "$BIN/old/$name" "$folder/$name.o" "$B/common/old/settings.o" "$B/libglut.a" "$B/libcommon.a" \
    -Xlinker --as-needed $LIBS

case $BIN in /*) program=$BIN/old/$name ;; *) program=./$BIN/old/$name ;; esac
echo "built $program"
