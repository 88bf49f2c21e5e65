#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the gallery: runs every program whose header says that it draws, with a small size, and writes the
# picture to docs/gallery. The tests compare the programs with these pictures. `make gallery` runs this script
# with the programs of the CPU back end, which draw the same pictures on every machine.
#   gallery.sh           makes the pictures and updates the pages
#   gallery.sh --list    one line per program: the program, the file of its picture, and the arguments that
#                        draw it, separated by tabs. Programs that draw the same picture share a file
#   gallery.sh --table   the pictures in Markdown, for docs/gallery.md
# BIN is the folder of the programs, as in the Makefile.
set -eu
cd "${0%/*}/.."

: "${BIN:=bin}"
limit=200000 # largest file, in bytes
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
tab=$(printf '\t')

# Animations are drawn smaller than stills, because they consist of many pictures.
list() {
    scripts/programs.sh | cut -f 1,5,8 | while IFS=$tab read -r program command picture; do
        [ -n "$picture" ] || continue
        arguments=${command#*"./bin/$program "}
        ending=${arguments##*.}
        arguments=${arguments%--output *}
        if [ "$ending" = png ]; then size=512 frames=; else size=256 frames='--frames 120'; fi
        # The options of a program may be in a header of its chapter or in common/proofs.
        headers=$(sed -n "s,^#include \"\([a-z_]*\.h\)\".*,${program%/*}/\1,p; s,^#include \"../\(common/proofs/[a-z_]*\.h\)\".*,\1,p" "$program.cu")
        # shellcheck disable=SC2086
        grep -q 'OPTION_SIZE("size"' "$program.cu" $headers && arguments="$arguments--size $size"
        owner=${picture#as }
        [ "$picture" = yes ] && owner=$program
        # shellcheck disable=SC2086
        echo "$program$tab""docs/gallery/$owner.$ending$tab"$arguments $frames
    done
}

# The alternative text of a picture is the title of its program. Where programs of several chapters have the
# same name, the chapter is shown too.
table() {
    { scripts/programs.sh | cut -f 1,2; list; } | awk -F "$tab" '
    function link(program,    parts, chapter) {
        split(program, parts, "/")
        chapter = parts[1]
        if (!sub(/^chapter0?/, "chapter ", chapter)) chapter = "appendix A"
        return "[" parts[2] (count[parts[2]] > 1 ? " (" chapter ")" : "") "](../" program ".cu)"
    }
    function escaped(text) {
        gsub(/&/, "\\&amp;", text)
        gsub(/"/, "\\&quot;", text)
        gsub(/</, "\\&lt;", text)
        gsub(/>/, "\\&gt;", text)
        gsub(/\|/, "\\&#124;", text)
        return text
    }
    NF == 2 { title[$1] = $2; next }
    {
        count[substr($1, index($1, "/") + 1)]++
        if (!($2 in programs)) file[n++] = $2
        programs[$2] = programs[$2] " " $1
        if (index($2, "docs/gallery/" $1 ".") == 1) alt[$2] = escaped(title[$1])
    }
    END {
        for (i = 0; i < n; i++) {
            split(programs[file[i]], of, " ")
            for (j = 1; j in of; j++) names[i] = names[i] (j > 1 ? ", " : "") link(of[j])
        }
        columns = 4
        for (i = 0; i < n; i += columns) {
            pictures = captions = "|"
            for (j = i; j < i + columns; j++) {
                pictures = pictures (j < n ? " <img src=\"" substr(file[j], 6) "\" width=\"200\" alt=\"" alt[file[j]] "\"> |" : " |")
                captions = captions (j < n ? " " names[j] " |" : " |")
            }
            print pictures
            if (i == 0) print "|:-:|:-:|:-:|:-:|"
            print captions
        }
    }'
}

# The first python3 on PATH may lack the packages of the distribution's python3.
animate() { # file, limit, frames
    for python in ${PYTHON-} python3 /usr/bin/python3; do
        if "$python" -c 'import PIL' 2>/dev/null; then "$python" scripts/animation.py "$@" && return; fi
    done
    echo "no python3 here has PIL: make setup gallery installs it" >&2
    return 1
}

make_pictures() {
    scratch=$(mktemp -d)
    trap 'rm -r "$scratch"' EXIT
    list >"$scratch/list"
    while IFS=$tab read -r program file arguments; do
        case $file in docs/gallery/$program.*) ;; *) continue ;; esac
        made=$scratch/${file##*/}
        case $file in *.png) output=$made ;; *) output=$scratch/frame-%04d.png ;; esac
        # shellcheck disable=SC2086
        env -u DISPLAY -u WAYLAND_DISPLAY "$BIN/$program" $arguments --output "$output" >"$scratch/out" 2>"$scratch/err" </dev/null || {
            echo "$program $arguments: $(cat "$scratch/err")" >&2
            exit 1
        }
        if [ "$output" != "$made" ]; then
            animate "$made" "$limit" "$scratch"/frame-*.png
            rm "$scratch"/frame-*.png
        fi
        bytes=$(($(wc -c <"$made")))
        [ "$bytes" -lt "$limit" ] || { echo "$file: $bytes bytes are too many" >&2; exit 1; }
        mkdir -p "${file%/*}"
        if cmp -s "$made" "$file"; then same=', as it was'; else same= && cat "$made" >"$file"; fi
        echo "$file: $bytes bytes$same"
    done <"$scratch/list"
    for file in docs/gallery/*/*; do
        if ! cut -f 2 "$scratch/list" | grep -qxF "$file"; then rm "$file" && echo "$file: no program draws it, removed"; fi
    done
}

case ${1-} in
'') make_pictures && scripts/docs.sh ;;
--list | --table) "${1#--}" ;;
*) sed -n '3,12s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac
