// SPDX-License-Identifier: MIT
// Inline PTX (cuda_cpu/ptx.h). The template string of an asm statement in device code contains PTX
// instructions. Those that programs use most are translated to C++ statements; any other instruction or
// register is an error that names it.
#include "translate.h"
#include <ctype.h>

typedef struct {
    const Token *token;      // the word asm
    const char *at;          // the next character of the template string
    const char *instruction; // the current one, for error messages
    Text out;                // the C++ statements
    int operand_count;       // %0, %1 … in the template string
    bool has_carry;          // an instruction of this statement has written the carry flag (add.cc, sub.cc)
    struct {
        char name[32];
        int depth;   // number of PTX braces { } around the declaration
    } registers[64]; // the PTX registers that the template declares: .reg .u32 x;
    int register_count, depth;
} Ptx;

// The special registers, and the C++ expressions that have their values.
static const struct {
    const char *name, *value;
} ptx_registers[] = {
    {"laneid", "::cuda_cpu::lane()"},
    {"warpid", "(::cuda_cpu::thread_rank() / 32)"},
    {"nwarpid", "::cuda_cpu::ptx::warps()"},
    {"smid", "0u"},
    {"nsmid", "1u"},
    {"clock", "(unsigned)clock64()"},
    {"clock64", "clock64()"},
    {"globaltimer", "::cuda_cpu::ptx::globaltimer()"},
    {"globaltimer_lo", "(unsigned)::cuda_cpu::ptx::globaltimer()"},
    {"lanemask_eq", "::cuda_cpu::ptx::lanemask_eq()"},
    {"lanemask_lt", "::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_le", "(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"lanemask_ge", "~::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_gt", "~(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"tid.x", "threadIdx.x"},
    {"tid.y", "threadIdx.y"},
    {"tid.z", "threadIdx.z"},
    {"ntid.x", "blockDim.x"},
    {"ntid.y", "blockDim.y"},
    {"ntid.z", "blockDim.z"},
    {"ctaid.x", "blockIdx.x"},
    {"ctaid.y", "blockIdx.y"},
    {"ctaid.z", "blockIdx.z"},
    {"nctaid.x", "gridDim.x"},
    {"nctaid.y", "gridDim.y"},
    {"nctaid.z", "gridDim.z"},
    {"WARP_SZ", "32"},
};

// The PTX instructions that compute one result from source operands.
//
//   types     the type suffixes that are supported: u for .u8 to .u64, s for .s8 to .s64, b for .b8 to .b64,
//             f for .f32, d for .f64
//   operands  a letter for each source operand, which says to which C++ type it is converted: t to the type
//             of the suffix, u to unsigned, w to the integer type of twice that width, p to bool (predicate)
//   value     the C++ expression of the result, a template for fill(): $T is the C++ type of the suffix,
//             $1 to $4 are the source operands
static const struct {
    const char *name, *types, *operands, *value;
} ptx_instructions[] = {
    {"mov", "usbfd", "t", "$1"},
    {"cvta", "u", "t", "$1"},
    {"cvta.to", "u", "t", "$1"},
    {"add", "usfd", "tt", "::cuda_cpu::ptx::add<$T>($1, $2)"},
    {"sub", "usfd", "tt", "::cuda_cpu::ptx::sub<$T>($1, $2)"},
    {"mul", "fd", "tt", "$1 * $2"},
    {"mul.lo", "us", "tt", "::cuda_cpu::ptx::mul_lo<$T>($1, $2)"},
    {"mul.hi", "us", "tt", "::cuda_cpu::ptx::mul_hi<$T>($1, $2)"},
    {"mul.wide", "us", "tt", "::cuda_cpu::ptx::mul_wide<$T>($1, $2)"},
    {"mad.lo", "us", "ttt", "::cuda_cpu::ptx::add<$T>(::cuda_cpu::ptx::mul_lo<$T>($1, $2), $3)"},
    {"mad.hi", "us", "ttt", "::cuda_cpu::ptx::add<$T>(::cuda_cpu::ptx::mul_hi<$T>($1, $2), $3)"},
    {"mad.wide", "us", "ttw", "::cuda_cpu::ptx::add(::cuda_cpu::ptx::mul_wide<$T>($1, $2), $3)"},
    {"add.cc", "us", "tt", "::cuda_cpu::ptx::add_carry<$T>(cu_carry, false, $1, $2)"},
    {"addc.cc", "us", "tt", "::cuda_cpu::ptx::add_carry<$T>(cu_carry, true, $1, $2)"},
    {"addc", "us", "tt", "::cuda_cpu::ptx::add_carry<$T>(cu_carry, true, $1, $2)"},
    {"sub.cc", "us", "tt", "::cuda_cpu::ptx::sub_carry<$T>(cu_carry, false, $1, $2)"},
    {"subc.cc", "us", "tt", "::cuda_cpu::ptx::sub_carry<$T>(cu_carry, true, $1, $2)"},
    {"subc", "us", "tt", "::cuda_cpu::ptx::sub_carry<$T>(cu_carry, true, $1, $2)"},
    {"fma.rn", "fd", "ttt", "::std::fma($1, $2, $3)"},
    {"min", "usfd", "tt", "::cuda_cpu::ptx::minimum<$T>($1, $2)"},
    {"max", "usfd", "tt", "::cuda_cpu::ptx::maximum<$T>($1, $2)"},
    {"neg", "sfd", "t", "-$1"},
    {"abs", "sfd", "t", "::std::abs($1)"},
    {"and", "b", "tt", "$1 & $2"},
    {"or", "b", "tt", "$1 | $2"},
    {"xor", "b", "tt", "$1 ^ $2"},
    {"not", "b", "t", "~$1"},
    {"shl", "b", "tu", "::cuda_cpu::ptx::shift_left<$T>($1, $2)"},
    {"shr", "usb", "tu", "::cuda_cpu::ptx::shift_right<$T>($1, $2)"},
    {"bfe", "us", "tuu", "::cuda_cpu::ptx::bfe<$T>($1, $2, $3)"},
    {"bfind", "us", "t", "::cuda_cpu::ptx::bfind<$T>($1)"},
    {"bfind.shiftamt", "us", "t", "::cuda_cpu::ptx::bfind<$T>($1, true)"},
    {"bfi", "b", "ttuu", "::cuda_cpu::ptx::bfi<$T>($1, $2, $3, $4)"},
    {"lop3", "b", "tttu", "::cuda_cpu::ptx::lop3($1, $2, $3, $4)"},
    {"prmt", "b", "ttt", "::cuda_cpu::ptx::prmt($1, $2, $3)"},
    {"shf.l.wrap", "b", "ttu", "__funnelshift_l($1, $2, $3)"},
    {"shf.r.wrap", "b", "ttu", "__funnelshift_r($1, $2, $3)"},
    {"shf.l.clamp", "b", "ttu", "__funnelshift_lc($1, $2, $3)"},
    {"shf.r.clamp", "b", "ttu", "__funnelshift_rc($1, $2, $3)"},
    {"vabsdiff4.u32.u32", "u", "ttt", "__vsadu4($1, $2) + $3"},
    {"dp4a.s32", "s", "ttt", "__dp4a($1, $2, $3)"},
    {"dp4a.u32", "u", "ttt", "__dp4a($1, $2, $3)"},
    {"popc", "b", "t", "__popcll($1)"},
    {"selp", "usbfd", "ttp", "$3 ? $1 : $2"},
    {"vote.sync.ballot", "b", "pu", "__ballot_sync($2, $1)"},
    {"activemask", "b", "", "__activemask(~$place)"},
    {"rcp.approx", "f", "t", "1.0f / $1"},
    {"sqrt.approx", "f", "t", "::std::sqrt($1)"},
    {"rsqrt.approx", "f", "t", "1.0f / ::std::sqrt($1)"},
    {"ex2.approx", "f", "t", "::std::exp2($1)"},
    {"lg2.approx", "f", "t", "::std::log2($1)"},
    {"sin.approx", "f", "t", "::std::sin($1)"},
    {"cos.approx", "f", "t", "::std::cos($1)"},
    {"tanh.approx", "f", "t", "::std::tanh($1)"},
};

_Noreturn static void fail_ptx(const Ptx *p) {
    const int length = (int)strcspn(p->instruction, ";\n");
    fail(p->token, "inline PTX is not supported here: '%.*s'", length, p->instruction);
}

static void skip_blanks(Ptx *p) {
    p->at += strspn(p->at, " \t\n\r");
}

static bool accept(Ptx *p, char c) {
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static void expect(Ptx *p, char c) {
    if (!accept(p, c))
        fail_ptx(p);
}

// Returns the length of the register name at s, or 0 if there is none. A % or %% before the name is skipped:
// s is set to the first character of the name.
static size_t register_name(const char **s) {
    if (**s == '%')
        *s += (*s)[1] == '%' ? 2 : 1;
    const size_t length = strspn(*s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$");
    return length > 0 && !isdigit((unsigned char)**s) ? length : 0;
}

// Returns the C++ expression for a PTX operand: an operand of the asm statement (%0), a register that the
// template declares (x), a special register (%%laneid) or a constant (12, 0x96). Only the first two can be
// targets, to which an instruction writes.
static const char *operand(Ptx *p, bool is_target) {
    skip_blanks(p);
    const char *s = p->at;
    size_t length;
    if (s[0] == '%' && isdigit((unsigned char)s[1])) {
        char *end;
        const long n = strtol(s + 1, &end, 10);
        if (n >= p->operand_count)
            fail_ptx(p);
        p->at = end;
        return format("cu_p%ld", n);
    }
    const char *word = s;
    length = register_name(&word);
    for (int i = p->register_count - 1; i >= 0 && length > 0; i--)
        if (strlen(p->registers[i].name) == length && memcmp(p->registers[i].name, word, length) == 0) {
            p->at = word + length;
            return fill("cu_r_$name", "name", p->registers[i].name);
        }
    if (is_target)
        fail_ptx(p);
    if (s[0] == '%') { // a special register: %%laneid, for which nvcc also accepts %laneid
        s += s[1] == '%' ? 2 : 1;
        length = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.");
        for (size_t i = 0; i < sizeof ptx_registers / sizeof *ptx_registers; i++)
            if (strncmp(ptx_registers[i].name, s, length) == 0 && ptx_registers[i].name[length] == '\0') {
                p->at = s + length;
                return ptx_registers[i].value;
            }
        fail_ptx(p);
    }
    length = strspn(s, "-0123456789abcdefxABCDEFX");
    if (length == 0 || strchr("abcdefxABCDEFX", *s))
        fail_ptx(p);
    p->at = s + length;
    return format("%.*s", (int)length, s);
}

static const char *ptx_type(const char *name) {
    static const char *const types[][2] = {
        {"u8", "unsigned char"}, {"s8", "signed char"},
        {"b8", "unsigned char"}, {"u16", "unsigned short"},
        {"s16", "short"},        {"b16", "unsigned short"},
        {"u32", "unsigned"},     {"s32", "int"},
        {"b32", "unsigned"},     {"u64", "unsigned long long"},
        {"s64", "long long"},    {"b64", "unsigned long long"},
        {"f32", "float"},        {"f64", "double"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i][0], name) == 0)
            return types[i][1];
    return NULL;
}

// The values of ld and st: one operand or a vector {%0, %1}. Returns their number.
static int memory_values(Ptx *p, bool load, const char *values[4]) {
    const bool list = accept(p, '{');
    int count = 0;
    do {
        if (count == 4)
            fail_ptx(p);
        values[count++] = operand(p, load);
    } while (list && accept(p, ','));
    if (list)
        expect(p, '}');
    return count;
}

// The address of ld and st: [%2 + 4]
static const char *memory_address(Ptx *p) {
    expect(p, '[');
    const char *address = fill("(unsigned long long)$base", "base", operand(p, false));
    if (accept(p, '+'))
        address = fill("$address + $offset", "address", address, "offset", operand(p, false));
    expect(p, ']');
    return address;
}

// ld.u32 %0, [%1]; and st.u32 [%1], %0; with the parts of the instruction's name
static void translate_memory(Ptx *p, char *const *part, int parts, const char *type) {
    const bool load = part[0][0] == 'l';
    bool strong = false;
    for (int i = 1; i < parts - 1; i++) {
        strong |= strstr("volatile relaxed acquire", part[i]) != NULL;
        if (strncmp(part[i], "L1::", 4) != 0 && strncmp(part[i], "L2::", 4) != 0 &&
            !strstr(" volatile relaxed acquire release weak gpu sys cta global local ca cg cs cv lu nc "
                    "wb wt v2 v4 ",
                    format(" %.60s ", part[i])))
            fail_ptx(p);
    }
    const char *values[4], *address = load ? NULL : memory_address(p);
    if (!load)
        expect(p, ',');
    const int count = memory_values(p, load, values);
    if (load) {
        expect(p, ',');
        address = memory_address(p);
    }
    // A loop may wait for a load that is volatile, relaxed or acquire to return another value, so
    // ptx::poll() lets other threads run.
    for (int i = 0; i < count; i++)
        append_filled(&p->out,
                      !load    ? "::cuda_cpu::ptx::store<$T>($address, ($T)$value, $i); "
                      : strong ? "::cuda_cpu::ptx::set($value, ::cuda_cpu::ptx::poll<$T>($address, $i)); "
                               : "::cuda_cpu::ptx::set($value, ::cuda_cpu::ptx::load<$T>($address, $i)); ",
                      "T", type, "address", address, "value", values[i], "i", format("%d", i));
}

// .reg .u32 x, y;  ->  unsigned cu_r_x{}, cu_r_y{};
static void translate_registers(Ptx *p) {
    char type[16];
    p->at += strlen(".reg");
    expect(p, '.');
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789");
    snprintf(type, sizeof type, "%.*s", (int)length, p->at);
    p->at += length;
    const char *word = strcmp(type, "pred") == 0 ? "bool" : ptx_type(type);
    do {
        skip_blanks(p);
        const char *name = p->at;
        const size_t n = register_name(&name);
        if (!word || n == 0 || n >= sizeof p->registers->name || p->register_count == 64 || name[n] == '<')
            fail_ptx(p);
        snprintf(p->registers[p->register_count].name, n + 1, "%s", name);
        append_filled(&p->out, "[[maybe_unused]] $T cu_r_$name{}; ", "T", word, "name",
                      p->registers[p->register_count].name);
        p->registers[p->register_count++].depth = p->depth;
        p->at = name + n;
    } while (accept(p, ','));
}

// setp.lt.s32 p, %0, %1;
static void translate_comparison(Ptx *p, char *const *part, int parts, const char *type) {
    static const char *const signs[][2] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="},
                                           {"gt", ">"},  {"ge", ">="}, {"lo", "<"}, {"ls", "<="},
                                           {"hi", ">"},  {"hs", ">="}};
    const bool real = type && part[parts - 1][0] == 'f';
    for (size_t i = 0; type && parts == 3 && i < sizeof signs / sizeof *signs; i++) {
        if (strcmp(part[1], signs[i][0]) != 0 ||
            (real && (i == 1 || i > 5))) // ne.f32 is false for NaN, unlike !=
            continue;
        const char *target = operand(p, true);
        expect(p, ',');
        const char *a = operand(p, false);
        expect(p, ',');
        append_filled(&p->out, "$target = ($T)$a $sign ($T)$b; ", "target", target, "T", type, "a", a, "sign",
                      signs[i][1], "b", operand(p, false));
        return;
    }
    fail_ptx(p);
}

// Translates mov between one register and a pair of registers of half its width: mov.b64 %0, {%1, %2}; packs,
// and mov.b64 {%0, %1}, %2; unpacks. The first of the pair is the lower half. Returns false if there is no
// pair.
static bool translate_halves(Ptx *p, const char *type) {
    const char *half = strcmp(type, "unsigned long long") == 0 ? "unsigned"
                       : strcmp(type, "unsigned") == 0         ? "unsigned short"
                                                               : NULL;
    if (p->at[strcspn(p->at, "{;")] != '{')
        return false;
    const bool unpacks = accept(p, '{');
    const char *whole = NULL, *halves[2];
    if (!unpacks) {
        whole = operand(p, true);
        expect(p, ',');
        expect(p, '{');
    }
    for (int i = 0; i < 2; i++) {
        halves[i] = operand(p, unpacks);
        expect(p, i ? '}' : ',');
    }
    if (unpacks) {
        expect(p, ',');
        whole = operand(p, false);
    }
    if (!half)
        fail_ptx(p);
    append_filled(&p->out,
                  unpacks ? "{ const auto cu_w = ::cuda_cpu::ptx::bits<$T>($whole); "
                            "::cuda_cpu::ptx::set($low, ($half)cu_w); "
                            "::cuda_cpu::ptx::set($high, ($half)(cu_w >> 4 * sizeof cu_w)); } "
                          : "::cuda_cpu::ptx::set($whole, ($T)(($T)::cuda_cpu::ptx::bits<$half>($low) | "
                            "($T)::cuda_cpu::ptx::bits<$half>($high) << 4 * sizeof($T))); ",
                  "T", type, "half", half, "whole", whole, "low", halves[0], "high", halves[1]);
    return true;
}

static void translate_operation(Ptx *p, char *const *part, int parts, const char *type) {
    // The key of the table: the name without its type suffix and without the modifiers that do not change the
    // result on the CPU (.ftz, .global, .rn, .shared).
    char key[128] = "";
    for (int i = 0; i < parts - 1; i++) {
        if (strcmp(part[i], "ftz") == 0 || strcmp(part[i], "global") == 0 ||
            (i > 0 && strcmp(part[i], "rn") == 0 && strcmp(part[0], "fma") != 0) ||
            (strcmp(part[i], "shared") == 0 && strncmp(part[0], "cvta", 4) == 0))
            continue;
        snprintf(key + strlen(key), sizeof key - strlen(key), "%s%s", *key ? "." : "", part[i]);
    }
    for (size_t n = 0; type && n < sizeof ptx_instructions / sizeof *ptx_instructions; n++) {
        if (strcmp(ptx_instructions[n].name, key) != 0 ||
            !strchr(ptx_instructions[n].types, strcmp(type, "double") == 0 ? 'd' : part[parts - 1][0]))
            continue;
        const char *operands = ptx_instructions[n].operands, *value = ptx_instructions[n].value;
        const char *target = operand(p, true), *values[4] = {"", "", "", ""};
        const char *wide = fill("(typename ::cuda_cpu::ptx::Wide<$T>::type)", "T", type);
        const char *same = fill("($T)", "T", type);
        for (int i = 0; operands[i]; i++) {
            expect(p, ',');
            const bool negated = operands[i] == 'p' && accept(p, '!');
            values[i] = fill("$cast$not$operand", "cast",
                             operands[i] == 'w'   ? wide
                             : operands[i] == 'u' ? "(unsigned)"
                             : operands[i] == 'p' ? "(bool)"
                                                  : same,
                             "not", negated ? "!" : "", "operand", operand(p, false));
        }
        if (strstr(value, "cu_carry, true") && !p->has_carry)
            fail_ptx(p); // the carry flag of an earlier asm statement is not kept
        p->has_carry |= strstr(value, "cu_carry, false") != NULL;
        append_filled(&p->out, "::cuda_cpu::ptx::set($target, $cast($value)); ", "target", target, "cast",
                      strstr(value, "mul_wide") ? wide : same, "value",
                      fill(value, "T", type, "1", values[0], "2", values[1], "3", values[2], "4", values[3],
                           "place", strstr(value, "$place") ? format("%u", place_on_line(p->token)) : ""));
        return;
    }
    fail_ptx(p);
}

static void translate_instruction(Ptx *p) {
    p->instruction = p->at;
    if (strncmp(p->at, ".reg", 4) == 0 && strchr(" \t.", p->at[4])) {
        translate_registers(p);
        return;
    }
    if (accept(p, '@')) { // @p and @!p: a condition
        const bool negated = accept(p, '!');
        append_filled(&p->out, negated ? "if (!$p) { " : "if ($p) { ", "p", operand(p, true));
        skip_blanks(p);
        if (*p->at == '@' || *p->at == '.')
            fail_ptx(p);
        translate_instruction(p);
        append_text(&p->out, "} ");
        return;
    }
    char name[128], *part[16];
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_.:L");
    int parts = 0;
    if (length == 0 || length >= sizeof name)
        fail_ptx(p);
    memcpy(name, p->at, length);
    name[length] = '\0';
    if (strcmp(name, "vabsdiff4.u32.u32.u32.add") == 0) // no type suffix at its end
        name[length - strlen(".add")] = '\0';
    for (char *s = strtok(name, "."); s && parts < 16; s = strtok(NULL, "."))
        part[parts++] = s;
    if (parts == 0) // only dots
        fail_ptx(p);
    p->at += length;
    const char *first = part[0], *type = ptx_type(part[parts - 1]);
    if (strcmp(first, "membar") == 0 || strcmp(first, "fence") == 0) {
        append_text(&p->out, "__threadfence(); ");
    } else if (strncmp(first, "prefetch", strlen("prefetch")) == 0) { // prefetching changes no values
        p->at += strcspn(p->at, ";");
        append_text(&p->out, "(void)0; ");
    } else if (strcmp(first, "trap") == 0 || strcmp(first, "brkpt") == 0) {
        append_filled(&p->out, "__$name(); ", "name", first);
    } else if (strcmp(first, "nanosleep") == 0 && type) {
        append_filled(&p->out, "__nanosleep($time); ", "time", operand(p, false));
    } else if ((strcmp(first, "bar") == 0 || strcmp(first, "barrier") == 0) &&
               strcmp(part[parts - 1], "sync") == 0) {
        if (strcmp(operand(p, false), "0") != 0 || (skip_blanks(p), *p->at == ','))
            fail_ptx(p); // only barrier 0, for all threads of the block, is supported
        append_text(&p->out, "__syncthreads(); ");
    } else if ((strcmp(first, "ld") == 0 || strcmp(first, "st") == 0) && type) {
        translate_memory(p, part, parts, type);
    } else if (strcmp(first, "setp") == 0) {
        translate_comparison(p, part, parts, type);
    } else if (strcmp(first, "mov") != 0 || parts != 2 || !type || !translate_halves(p, type)) {
        translate_operation(p, part, parts, type);
    }
}

// The template string, which may consist of several literals
static const char *template_string(Token **i) {
    Text template = empty_text();
    for (; kind(*i) == STRING; ++*i)
        for (const char *s = (*i)->text + 1; s < end_of(*i) - 1; s++) {
            const char c = *s == '\\' ? *++s : *s;
            append(&template, s[-1] == '\\' && strchr("ntr", c) ? " " : s, 1);
        }
    return template.data;
}

// Declares a variable for each operand "=r"(x) of the asm statement, from token i to `close`. Each operand is
// evaluated once. Input operands are copied before the first instruction, because an instruction may write to
// an output operand that is the same variable.
static void translate_operands(Ptx *p, Token *i, const Token *close) {
    int section = 0;
    while (i < close) {
        if (kind(i) == ':' || kind(i) == SCOPE) {
            section += kind(i) == SCOPE ? 2 : 1;
            i++;
        } else if (kind(i) == STRING && kind(i + 1) == '(' && section < 3 && p->operand_count < 64) {
            append_filled(&p->out,
                          section < 2 ? "[[maybe_unused]] auto &&cu_p$n = ($x); "
                                      : "[[maybe_unused]] const auto cu_p$n = ::cuda_cpu::ptx::input($x); ",
                          "n", format("%d", p->operand_count++), "x", spelling(i + 2, i[1].match));
            i = i[1].match + 1;
        } else if (kind(i) == ',' || kind(i) == STRING) {
            i++;
        } else {
            fail(p->token, "inline PTX is not supported here: an operand with a name");
        }
    }
}

// asm("add.u32 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z));  ->  do { … } while (0);
void translate_asm(Unit *u, Token *word) {
    Ptx p = {.token = word};
    Token *i = word + 1;
    while (is_one_of(i, " volatile __volatile__ __volatile inline "))
        i++;
    if (kind(i) != '(' || kind(i + 1) != STRING)
        fail(word, "inline PTX is not supported here");
    const Token *close = i++->match;
    const char *template = template_string(&i);
    append_text(&p.out, "do { "); // one C++ statement, so that `if (a) asm(…); else …` still compiles
    translate_operands(&p, i, close);
    if (strstr(template, ".cc"))
        append_text(&p.out, "[[maybe_unused]] unsigned cu_carry = 0; ");
    p.at = template;
    for (skip_blanks(&p); *p.at; skip_blanks(&p)) {
        const char *begin = p.instruction = p.at;
        if (*p.at == ';') {
            p.at++;
        } else if (*p.at == '{' || *p.at == '}') {
            p.depth += *p.at == '{' ? 1 : -1;
            while (p.register_count > 0 && p.registers[p.register_count - 1].depth > p.depth)
                p.register_count--;
            if (p.depth < 0)
                fail_ptx(&p);
            append(&p.out, p.at++, 1);
            append_text(&p.out, " ");
        } else {
            translate_instruction(&p);
            skip_blanks(&p);
            p.instruction = begin;
            if (*p.at && *p.at != ';')
                fail_ptx(&p);
        }
    }
    p.instruction = template;
    if (p.depth != 0)
        fail_ptx(&p);
    if (strspn(template, " ") == strlen(template)) // an empty template: a compiler barrier
        append_text(&p.out, "__asm__ volatile(\"\" : : : \"memory\"); ");
    append_text(&p.out, "} while (0)");
    for (Token *t = word; t <= close; t++)
        t->done = true;
    insert_before(u, word, p.out.data);
    delete_tokens(u, word, close);
}
