#!/bin/sh
# SPDX-License-Identifier: MIT
# Counts the lines of code above the line "// ---… proof" of each program, without blank lines and comments.
# The second number counts those of them that belong to the proof: declarations and calls of functions that
# are defined below the line, calls of check_*, includes of common/proofs, and static variables (options).
#   lesson_lines.sh [FILE…]    default: every program
set -eu
cd "${0%/*}/.."
[ $# -gt 0 ] || set -- chapter[0-9][0-9]/*.cu appendix_a/*.cu

printf '%-46s %6s %6s %6s\n' program lesson proof share
awk '
function finish() {
    if (file != "") printf "%-46s %6d %6d %5.0f%%\n", file, lesson, proof, lesson ? 100 * proof / lesson : 0
}
FNR == 1 { finish(); file = FILENAME; lesson = proof = below = comment = 0; split("", later) }
/^\/\/ -+ proof$/ { below = 1 }
below { next }
{
    line = $0
    if (comment) { if (line !~ /\*\//) next; sub(/.*\*\//, "", line); comment = 0 }
    gsub(/\/\*[^*]*\*\//, "", line)
    if (line ~ /^[ ]*\/\*/) { comment = 1; next }
    sub(/\/\/.*/, "", line)
    if (line ~ /^[ ]*$/) next
    lesson++
    declared = line ~ /^static [^=]*\(.*\);$/
    if (declared) { match(line, /[a-zA-Z_0-9]+\(/); later[substr(line, RSTART, RLENGTH)] = 1 }
    own = declared || line ~ /settings\(|check_|proofs\// || line ~ /^static [^(]*; *$/
    for (name in later) if (index(line, name)) own = 1
    proof += own
}
END { finish() }' "$@"
