#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the programs of the suite, from the header comment of each chapterNN/name.cu. The build, `make run`,
# the tests and the generated tables all use this script to read the headers.
#   programs.sh [FOLDER…]   one line per program in reading order, fields separated by tabs:
#                           program, title, book, teaches, run, differs, needs, picture, expect, bench,
#                           terms, check
#   programs.sh --needs     "PROGRAM:cufft" for each program that needs a library or gl to build
#   programs.sh --check     prints "file:line: mistake" for each mistake in a header; exit status 1 if any
#   programs.sh --table     the table of docs/programs.md: every program, with what it teaches
#   programs.sh --chapters  the table of the README: one row per chapter, with a picture of one of its programs
#   programs.sh --index     the table of docs/index.md: the terms of docs/terms.txt, each with its
#                           definition and the programs that show it
set -eu
cd "${0%/*}/.."

mode=list
case ${1-} in
--needs | --check | --table | --chapters | --index) mode=${1#--} && shift ;;
-*) sed -n '3,13s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac
[ $# -gt 0 ] || set -- chapter[0-9][0-9] appendix_a

files=
for folder; do
    for file in "${folder%/}"/*.cu; do
        [ -s "$file" ] && files="$files $file"
    done
done
[ -n "$files" ] || exit 0

tab=$(printf '\t')
# Prints each program with its sort key in front, and mistakes with the key "!".
LC_ALL=C awk '
function complain(line, text) { print "!\t" file ":" line ": " text }

# 4.2.2 sorts as 004.002.002
function key(section,    parts, n, i, text) {
    n = split(section, parts, ".")
    text = ""
    for (i = 1; i <= n; i++) text = text (parts[i] ~ /^[0-9]+$/ ? sprintf("%03d", parts[i]) : parts[i]) "."
    return text
}

function check_needs(text, line,    words, n, i) {
    n = split(text, words, /[ ,|]+/)
    for (i = 1; i <= n; i++)
        if (words[i] !~ /^(gl|gpus=[1-9][0-9]*|sm=[1-9][0-9]+[af]?|arch=90a|libs=[a-z0-9_+]+)$/)
            complain(line, "Needs: \"" words[i] "\" is none of gl, gpus=N, sm=NN, arch=90a, libs=name")
}

# Each term must be in docs/terms.txt, with the same spelling.
function check_terms(text, line,    words, n, i) {
    n = split(text, words, /, */)
    for (i = 1; i <= n; i++)
        if (!(words[i] in term)) complain(line, "Terms: \"" words[i] "\" is not in docs/terms.txt")
}

# "yes", or "as chapterNN/name" with a program whose own field is "yes"
function check_picture(text, line) {
    if (value["Run"] !~ / --output [a-z0-9_]+\.[a-z0-9]+$/)
        complain(where["Run"], "Run: ends with --output FILE, since the program draws")
    if (text == "yes") drawn[name] = 1
    else if (text ~ /^as [a-z0-9_]+\/[a-z0-9_]+$/) like[++likes] = file "\t" line "\t" substr(text, 4)
    else complain(line, "Picture: is yes, or as chapterNN/name, or the line is left out")
}

# Values of --size. Only ladders, which include bench.h, have this field.
function check_bench(text, line,    words, n, i) {
    if (!ladder) complain(line, "Bench: is for what includes common/bench.h")
    n = split(text, words, " ")
    for (i = 1; i <= n; i++)
        if (words[i] !~ /^[1-9][0-9]*[KMG]?$/) complain(line, "Bench: \"" words[i] "\" is no value of --size")
}

# Runs of make check: options, and "(race)" after those of a run in which a race must be found
function check_runs(text, line,    runs, n, i) {
    n = split(text, runs, / [|] /)
    for (i = 1; i <= n; i++)
        if (runs[i] !~ /^--[a-z]/ || runs[i] !~ /^[a-z0-9. -]+( \(race\))?$/)
            complain(line, "Check: \"" runs[i] "\" is not the options of a run, or options and (race)")
}

function check_likes(    i, part) {
    for (i = 1; i <= likes; i++) {
        split(like[i], part, "\t")
        file = part[1]
        if (!(part[3] in drawn)) complain(part[2], "Picture: " part[3] " draws no picture of its own")
    }
}

function begin() {
    file = FILENAME
    name = file
    sub(/\.cu$/, "", name)
    folder = name
    sub(/\/.*/, "", folder)
    base = name
    sub(/.*\//, "", base)
    split("", value)
    split("", where)
    title = ""
    last = ""
    ladder = 0
    state = "licence"
}

function finish(    n, i, keys, section, chapter) {
    if (state != "done") {
        complain(lines, "the header comment does not end")
    }
    if (title == "") complain(3, "the header begins with \" * " base ": what it is\"")
    n = split("Teaches Terms Book Run", keys, " ")
    for (i = 1; i <= n; i++)
        if (value[keys[i]] == "") complain(2, "the header has no " keys[i] ": field")
    section = value["Book"]
    sub(/[^0-9A-Z.].*/, "", section)
    sub(/\.$/, "", section)
    chapter = folder
    if (chapter ~ /^chapter/) { sub(/^chapter0*/, "", chapter) } else { sub(/^appendix_/, "", chapter); chapter = toupper(chapter) }
    if (value["Book"] != "" && section !~ ("^" chapter "(\\.[0-9]+)*$"))
        complain(where["Book"], "Book: \"" value["Book"] "\" does not begin with a section of chapter " chapter)
    run = value["Run"] " "
    if (value["Needs"] ~ /libs=mpi( |,|$)/ && !sub(/^mpirun -np [1-9][0-9]* /, "", run))
        complain(where["Run"], "Run: must begin with mpirun -np N, since the program uses MPI")
    if (value["Run"] != "" && index(run, "./bin/" name " ") != 1)
        complain(where["Run"], "Run: must begin with ./bin/" name)
    if (value["Needs"] != "") check_needs(value["Needs"], where["Needs"])
    if (value["Picture"] != "") check_picture(value["Picture"], where["Picture"])
    check_terms(value["Terms"], where["Terms"])
    if (value["Expect"] != "" && value["Expect"] != "1")
        complain(where["Expect"], "Expect: is 1, the exit status of a program that is wrong on purpose, or the line is left out")
    if (value["Bench"] != "") check_bench(value["Bench"], where["Bench"])
    else if (ladder) complain(2, "the header of a ladder has a Bench: field")
    if (value["Check"] != "") check_runs(value["Check"], where["Check"])
    # Sorted by chapter, the appendix last; in a section first the programs of the book, then the others.
    print (folder !~ /^chapter/) folder ":" key(section) " " (value["Book"] ~ /archive|course|lab|ladder|after the book/) " " \
        (section != value["Book"]) " " base "\t" name "\t" title "\t" value["Book"] "\t" value["Teaches"] "\t" \
        value["Run"] "\t" value["Differs"] "\t" value["Needs"] "\t" value["Picture"] "\t" value["Expect"] "\t" value["Bench"] "\t" value["Terms"] "\t" value["Check"]
}

BEGIN {
    while ((getline line < "docs/terms.txt") > 0)
        if (line !~ /^#/) term[substr(line, 1, index(line, ": ") - 1)] = 1
}

FNR == 1 {
    if (state != "") finish()
    begin()
}
{ lines = FNR; gsub(/\t/, " ") }
/^#include "\.\.\/common\/bench\.h"/ { ladder = 1 }
state == "done" { next }
state == "licence" {
    if ($0 != "// SPDX-License-Identifier: MIT") complain(1, "the first line must be // SPDX-License-Identifier: MIT")
    state = "open"
    next
}
state == "open" {
    if ($0 != "/*") { complain(FNR, "the header comment begins here with /*"); state = "done" } else state = "title"
    next
}
/^ \*\/$/ { state = "done"; next }
/\*\// { complain(FNR, "the header comment ends with \" */\" on a line of its own"); state = "done"; next }
state == "title" {
    if (index($0, " * " base ": ") == 1) title = substr($0, length(base) + 6)
    state = "fields"
    next
}
/^ \* [A-Z][a-z]*:/ {
    last = $2
    sub(/:.*/, "", last)
    text = $0
    sub(/^ \* [A-Z][a-z]*: */, "", text)
    if (last !~ /^(Teaches|Terms|Book|Run|Differs|Needs|Picture|Expect|Bench|Check)$/) complain(FNR, last ": is no field of a header")
    if (last in value) complain(FNR, last ": is here twice")
    if (text == "") complain(FNR, last ": is empty")
    value[last] = text
    where[last] = FNR
    next
}
/^ \*  +[^ ]/ {
    text = $0
    sub(/^ \* +/, "", text)
    if (last == "") complain(FNR, "this line belongs to no field")
    else value[last] = value[last] " " text
    next
}
/^ \*$/ { if (last != "") complain(FNR, "an empty line between fields"); next }
{ complain(FNR, "a line of the header begins with \" * \" and is a field, or goes on with one, deeper indented") }
END {
    if (state != "") finish()
    check_likes()
}
' $files | LC_ALL=C sort -t "$tab" -k 1,1 -s | awk -F "$tab" -v mode="$mode" '
# Escapes plain text for Markdown; otherwise __device__ would be bold, and <x> an HTML tag.
function markdown(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/__/, "\\_\\_", text)
    gsub(/\|/, "\\|", text)
    return text
}

BEGIN {
    heading["chapter03"] = "Introduction to CUDA C"
    heading["chapter04"] = "Parallel programming in CUDA C"
    heading["chapter05"] = "Thread cooperation"
    heading["chapter06"] = "Constant memory and events"
    heading["chapter07"] = "Texture memory"
    heading["chapter08"] = "Graphics interoperability"
    heading["chapter09"] = "Atomics"
    heading["chapter10"] = "Streams"
    heading["chapter11"] = "CUDA C on multiple GPUs"
    heading["chapter12"] = "Libraries and tools"
    heading["appendix_a"] = "Advanced atomics"
}
mode == "check" {
    if ($1 == "!") {
        print $2
        bad = 1
    }
    next
}
$1 == "!" { next }
mode == "needs" {
    gsub(/(gpus|sm|arch)=[^ ,|]*|libs=/, "", $8)
    gsub(/[ ,|]+/, ",", $8)
    gsub(/^,|,$/, "", $8)
    if ($8 != "") print $2 ":" $8
}
mode == "list" { print substr($0, length($1) + 2) }
mode == "table" {
    sub(/(^|[ ,|]+)arch=90a/, "", $8) # how it is compiled: it runs on any device
    if (!begun++) print "| program | book | what it is | what it teaches | notes |\n|---|---|---|---|---|"
    teaches = $5
    if (match(teaches, /[.?!:]( |$)/)) teaches = substr(teaches, 1, RSTART - 1) "."
    notes = $9 != "" ? "picture" : ""
    if ($11 != "") notes = notes (notes == "" ? "" : ", ") "ladder"
    if ($8 != "") notes = notes (notes == "" ? "" : ", ") "needs " $8
    if ($10 != "") notes = notes (notes == "" ? "" : ", ") "wrong on purpose: status " $10
    print "| [" $2 "](../" $2 ".cu) | " $4 " | " markdown($3) " | " markdown(teaches) " | " notes " |"
}
mode == "chapters" {
    split($2, part, "/")
    if (part[1] != chapter) {
        if (chapter != "") print " | " picture " |"
        else print "| chapter | programs | a picture from it |\n|---|---|---|"
        chapter = part[1]
        picture = ""
        number = chapter
        if (sub(/^chapter0*/, "", number)) number = number ". "
        else number = toupper(substr(chapter, 10)) ". "
        printf "| %s%s | ", number, heading[chapter]
    } else printf ", "
    printf "[%s](%s.cu)", part[2], $2
    if ($9 == "yes" && picture == "") {
        ending = $6
        sub(/.*\./, "", ending)
        picture = "<img src=\"docs/gallery/" $2 "." ending "\" width=\"96\" alt=\"picture of " part[2] "\">"
    }
}
mode == "index" {
    n = split($12, words, /, */)
    for (i = 1; i <= n; i++) shown[words[i]] = shown[words[i]] (shown[words[i]] == "" ? "" : ", ") "[" $2 "](../" $2 ".cu)"
}
END {
    if (mode == "chapters" && chapter != "") print " | " picture " |"
    if (mode == "index") {
        print "| term | meaning | programs |\n|---|---|---|"
        while ((getline line < "docs/terms.txt") > 0) {
            if (line ~ /^#/) continue
            name = substr(line, 1, index(line, ": ") - 1)
            print "| " markdown(name) " | " markdown(substr(line, length(name) + 3)) " | " shown[name] " |"
        }
    }
    exit bad
}
'
