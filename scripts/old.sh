#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a CUDA program of 2010, for make old: FILE, with common/legacy.h before it, into BIN/old/NAME.
# A header that the program includes as "../common/book.h" is taken from beside it, if it is there, else from our common/.
# build.mk sets BACKEND, B, BIN and the commands: PREPROCESS and COMPILE (for cpu) or COMPILE (for gpu), and LINK with LIBS.
set -eu
cd "${0%/*}/.."

name=${FILE##*/}
name=${name%.*}
folder=$B/old
mkdir -p "$folder" "$BIN/old"

# The folder of FILE is searched too, because a changed copy of it lies elsewhere.
case $FILE in */*) own=${FILE%/*} ;; *) own=. ;; esac
set -- "-I$own" "-I$PWD/common/legacy/common" "-I$PWD/common" "-I$PWD/common/legacy" -include "$PWD/common/legacy.h"

# change SCRIPT: a copy of FILE, edited with sed, is compiled in its place. Messages name FILE.
source=$FILE
change() {
    [ "$source" != "$FILE" ] || { echo "#line 1 \"$FILE\"" && cat "$FILE"; } >"$folder/$name.cu"
    source=$folder/$name.cu
    sed -i "$1" "$source"
}

# Compilers on Windows accept `void main`.
void_main='^\([[:space:]]*\)void\([[:space:]]\{1,\}main[[:space:]]*(\)'
if grep -q "$void_main" "$FILE"; then
    echo "$FILE: main is compiled with the type int, not void"
    change "s/$void_main/\1int\2/"
fi

# Constructors without __device__ in a class that kernels use: nvcc accepted that in 2010. Says which, from nvcc's messages.
host_constructors() {
    sed -n 's/.*calling a __host__ function("\([^"(]*::\)\{0,1\}\([A-Za-z_0-9]*\)::\2(.*from a __\(device\|global\)__ function.*/\2/p' "$1" | sort -u
}

case $BACKEND in
cpu)
    # shellcheck disable=SC2086
    $PREPROCESS "$@" -x c++ -E -o "$folder/$name.ii" "$source"
    if grep -qw __CUDA_ARCH__ "$FILE"; then # then it is preprocessed for the device too
        $PREPROCESS "$@" -D__CUDA_ARCH__=800 -x c++ -E -o "$folder/$name.device.ii" "$source"
        set -- -d "$folder/$name.device.ii"
    else
        set --
    fi
    "$B/cu2cpp" "$@" "$folder/$name.ii" -o "$folder/$name.cpp.ii"
    $COMPILE -c -o "$folder/$name.o" "$folder/$name.cpp.ii"
    ;;
gpu)
    # shellcheck disable=SC2086
    if ! $COMPILE "$@" -x cu -c -o "$folder/$name.o" "$source" 2>"$folder/$name.err"; then
        classes=$(host_constructors "$folder/$name.err")
        if [ -n "$classes" ]; then
            for class in $classes; do
                echo "$FILE: the constructors of $class are compiled with __host__ __device__ in front of them"
                change "s/^\\([[:space:]]*\\)\\($class[[:space:]]*(\\)/\\1__host__ __device__ \\2/"
            done
            $COMPILE "$@" -x cu -c -o "$folder/$name.o" "$source"
        else
            cat "$folder/$name.err" >&2
            exit 1
        fi
    else
        cat "$folder/$name.err" >&2
    fi
    ;;
esac

# shellcheck disable=SC2086
$LINK -o "$BIN/old/$name" "$folder/$name.o" $LIBS

case $BIN in /*) program=$BIN/old/$name ;; *) program=./$BIN/old/$name ;; esac
echo "built $program"
if nm "$folder/$name.o" 2>/dev/null | grep -q ' U \(glutMainLoop\|display_canvas\)$'; then
    echo 'without a display it writes a file with its name, here; FRAMES=10 and OUTPUT=picture.png before it choose what:'
    echo "    FRAMES=10 OUTPUT=$name.png $program"
fi
