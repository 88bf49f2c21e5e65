#!/bin/sh
# SPDX-License-Identifier: MIT
# Counts the lines of code above the line "// ---… proof" of each program, without blank lines and comments.
#   lesson    lines of the program
#   proof     those of them that belong to the proof: declarations and calls of functions that are defined below
#             the line, calls of check_*, includes of common/proofs, and static variables (options)
#   headers   lines above the same line of the headers in the program's folder and in common/proofs that it includes
#   lesson_lines.sh [FILE…]    default: every program
set -eu
cd "${0%/*}/.."
[ $# -gt 0 ] || set -- chapter[0-9][0-9]/*.cu appendix_a/*.cu

printf '%-46s %6s %6s %6s %8s %6s\n' program lesson proof share headers sum
awk '
function without_comments(line) {
    if (comment) { if (line !~ /\*\//) return ""; sub(/.*\*\//, "", line); comment = 0 }
    gsub(/\/\*[^*]*\*\//, "", line)
    if (line ~ /^[ ]*\/\*/) { comment = line !~ /\*\//; return "" }
    sub(/\/\/.*/, "", line)
    return line ~ /^[ ]*$/ ? "" : line
}
function header_lines(path,    line, n, all) {
    all = path !~ /common\//    # common/proofs without the line is all proof
    while ((getline line < path) > 0) {
        if (line ~ /^\/\/ -+ proof$/) { all = 1; break }
        if (without_comments(line) != "") n++
    }
    close(path)
    return all ? n : 0
}
function finish() {
    if (file != "")
        printf "%-46s %6d %6d %5.0f%% %8d %6d\n", file, lesson, proof, lesson ? 100 * proof / lesson : 0,
               headers, lesson + headers
}
FNR == 1 { finish(); file = FILENAME; lesson = proof = below = comment = headers = 0; split("", later) }
/^\/\/ -+ proof$/ { below = 1 }
below { next }
{
    line = without_comments($0)
    if (line == "") next
    lesson++
    if (line ~ /^#include "([^\/]*|\.\.\/common\/proofs\/.*)"/) {
        split(line, part, "\""); folder = FILENAME; sub(/[^\/]*$/, "", folder)
        headers += header_lines(folder part[2])
    }
    declared = line ~ /^static [^=]*\(.*\);$/
    if (declared) { match(line, /[a-zA-Z_0-9]+\(/); later[substr(line, RSTART, RLENGTH)] = 1 }
    own = declared || line ~ /settings\(|check_|proofs\// || line ~ /^static [^(]*; *$/
    for (name in later) if (index(line, name)) own = 1
    proof += own
}
END { finish() }' "$@"
