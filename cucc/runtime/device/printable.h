// SPDX-License-Identifier: MIT
// Text from outside, such as file names, on a terminal.
#pragma once

// Replaces by question marks what a terminal would act on instead of showing it (control characters, line and
// paragraph separators, changes of writing direction), and bytes that are not UTF-8. Returns `text`.
inline char *printable(char *text) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000}; // lowest code, by length
    unsigned char *from = (unsigned char *)text, *to = from;
    while (const unsigned first = *from) {
        const int length = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
        unsigned code = length > 1 ? first & (0xffu >> (length + 1)) : first;
        int read = 1;
        for (; read < length && (from[read] & 0xc0) == 0x80; read++)
            code = code << 6 | (from[read] & 0x3fu);
        const bool valid = length && read == length && code >= least[length] && code <= 0x10ffff;
        const bool acts = code < 0x20 || (code >= 0x7f && code < 0xa0) ||
                          (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
        if (!valid || acts) {
            *to++ = '?';
            from += valid ? length : 1;
        } else {
            for (int i = 0; i < length; i++)
                *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}
