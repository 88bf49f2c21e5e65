// SPDX-License-Identifier: MIT
// Text from outside, such as file names and arguments, on a terminal.
#pragma once

#include <stdbool.h>

// Whether a terminal would act on this character instead of showing it: the control characters, the line
// and paragraph separators, and those that change the direction of writing.
static inline bool is_control(unsigned code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

// The length of the UTF-8 character at `text`, and its code; 0 when the bytes are not UTF-8.
static inline int utf8_character(const unsigned char *text, unsigned *code) {
    static const unsigned first_of[] = {0, 0, 0x80, 0x800, 0x10000}; // lowest code, by length
    int length = *text < 0x80   ? 1
                 : *text < 0xc2 ? 0
                 : *text < 0xe0 ? 2
                 : *text < 0xf0 ? 3
                 : *text < 0xf5 ? 4
                                : 0;
    *code = length > 1 ? *text & (0xffu >> (length + 1)) : *text;
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3fu);
    }
    return length && *code >= first_of[length] && *code <= 0x10ffff ? length : 0;
}

// Replaces what is_control() names, and bytes that are not UTF-8, by question marks. Changes `text` and
// returns it.
static inline char *printable(char *text) {
    unsigned char *from = (unsigned char *)text, *to = from;
    while (*from) {
        unsigned code;
        int length = utf8_character(from, &code);
        if (length == 0 || is_control(code)) {
            *to++ = '?';
            from += length ? length : 1;
        } else
            while (length-- > 0)
                *to++ = *from++;
    }
    *to = '\0';
    return text;
}
