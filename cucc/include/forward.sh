#!/bin/sh
# SPDX-License-Identifier: MIT
# forward.sh OUTDIR: writes the headers of forward.txt into OUTDIR. A header that has not changed keeps its time.
set -eu
awk -v out="$1" '
    /^#/ || NF == 0 { next }
    $1 == "include" { $1 = ""; list = $0; next }
    {
        for (i = 1; i <= NF; i++) {
            n = split(list, headers, " ")
            last = $i
            sub(/.*\//, "", last)
            text = "// SPDX-License-Identifier: MIT\n#pragma once\n"
            optional = headers[1] == "?"
            if (optional)
                text = text "#if defined(THRUST_VERSION) && __has_include_next(<" $i ">)\n#include_next <" $i ">\n#else\n"
            for (k = 1 + optional; k <= n; k++)
                text = text "#include <" (headers[k] == "*" ? last : headers[k]) ">\n"
            text = text (optional ? "#endif\n" : "")
            file = out "/" $i
            for (old = ""; (getline line <file) > 0;)
                old = old line "\n"
            close(file)
            if (old != text) {
                system("mkdir -p \"" substr(file, 1, length(file) - length(last)) "\"")
                printf "%s", text >file
                if (close(file)) exit 1
            }
        }
    }' "${0%/*}/forward.txt"
