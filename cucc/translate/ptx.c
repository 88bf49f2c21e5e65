// SPDX-License-Identifier: MIT
// Inline PTX (cuda_cpu/ptx.h). The template string of an asm statement in device code contains PTX
// instructions. Those that programs use most are translated to C++ statements; any other instruction or
// register is an error that names it.
#include "ptx_table.h"
#include "translate.h"
#include <ctype.h>

typedef struct {
    const Token *token;      // the word asm
    const char *at;          // the next character of the template string
    const char *instruction; // the current one, for error messages
    Text out;                // the C++ statements
    int operand_count;       // %0, %1 … in the template string
    struct {
        char name[32];
        int depth;   // number of PTX braces { } around the declaration
    } registers[64]; // the PTX registers that the template declares: .reg .u32 x;
    int register_count, depth;
    bool in_kernel; // in the kernel itself, where `exit` is `return`
} Ptx;

_Noreturn static void fail_ptx(const Ptx *p) {
    const int length = (int)strcspn(p->instruction, ";\n");
    fail(p->token, "inline PTX is not supported here: '%.*s'", length, p->instruction);
}

static void skip_blanks(Ptx *p) { // and comments
    for (p->at += strspn(p->at, " \t\n\r"); p->at[0] == '/' && p->at[1] && strchr("/*", p->at[1]);
         p->at += strspn(p->at, " \t\n\r")) {
        const char *end = p->at[1] == '/' ? strchr(p->at, '\n') : strstr(p->at + 2, "*/");
        p->at = !end ? strchr(p->at, '\0') : p->at[1] == '/' ? end : end + 2;
    }
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

// The length of the register name at s, or 0. Skips % and %%: s becomes the first character of the name.
static size_t register_name(const char **s) {
    if (**s == '%')
        *s += (*s)[1] == '%' ? 2 : 1;
    const size_t length = strspn(*s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$");
    return length > 0 && !isdigit((unsigned char)**s) ? length : 0;
}

// The C++ expression for a PTX operand: an operand of the asm statement (%0), a register that the template
// declares (x), a special register (%%laneid) or a constant (12, 0x96). Only the first two are targets.
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
    if (s[0] == '0' && s[1] && strchr("fFdD", s[1])) { // 0f3F800000 is 1.0f, by its bits
        p->at = s + length;
        return format("::cuda_cpu::ptx::bits<%s>(0x%.*s%s)", length == 10 ? "float" : "double",
                      (int)length - 2, s + 2, length == 10 ? "u" : "ull");
    }
    if (length == 0 || strchr("abcdefxABCDEFX", *s))
        fail_ptx(p);
    p->at = s + length;
    return format("%.*s", (int)length, s);
}

static const char *ptx_type(const char *name) {
    static const char *const types[][2] = {
        {"u8", "unsigned char"},   {"s8", "signed char"},
        {"b8", "unsigned char"},   {"u16", "unsigned short"},
        {"s16", "short"},          {"b16", "unsigned short"},
        {"u32", "unsigned"},       {"s32", "int"},
        {"b32", "unsigned"},       {"u64", "unsigned long long"},
        {"s64", "long long"},      {"b64", "unsigned long long"},
        {"f32", "float"},          {"f64", "double"},
        {"f16", "unsigned short"}, {"bf16", "unsigned short"},
        {"f16x2", "unsigned"},     {"bf16x2", "unsigned"},
        {"pred", "bool"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i][0], name) == 0)
            return types[i][1];
    return NULL;
}

// The letter of a type in the table of instructions; h for half and bfloat16, with which nothing is computed
static char type_letter(const char *name) {
    return strcmp(name, "f64") == 0 ? 'd' : strstr(name, "f16") ? 'h' : name[0];
}

static bool is_shared(const char *part) {
    return strcmp(part, "shared") == 0 || strcmp(part, "shared::cta") == 0;
}

// One operand or a vector {%0, %1}. Returns their number.
static int vector(Ptx *p, bool load, const char *values[4]) {
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

// [%2 + 4]
static const char *memory_address(Ptx *p, bool shared) {
    expect(p, '[');
    const char *address = fill("(unsigned long long)$base", "base", operand(p, false));
    if (accept(p, '+') || *p->at == '-')
        address = fill("$address + $offset", "address", address, "offset", operand(p, false));
    expect(p, ']');
    return shared ? fill("::cuda_cpu::ptx::from_shared($address)", "address", address) : address;
}

// ld.u32 %0, [%1]; and st.u32 [%1], %0; with the parts of the instruction's name
static void translate_memory(Ptx *p, char *const *part, int parts, const char *type) {
    const bool load = part[0][0] == 'l';
    bool strong = false, shared = false;
    for (int i = 1; i < parts - 1; i++) {
        shared |= is_shared(part[i]);
        strong |= strstr("volatile relaxed acquire", part[i]) != NULL;
        if (strncmp(part[i], "L1::", 4) != 0 && strncmp(part[i], "L2::", 4) != 0 &&
            !strstr(" volatile relaxed acquire release weak gpu sys cta global local ca cg cs cv lu nc "
                    "wb wt v2 v4 shared shared::cta ",
                    format(" %.60s ", part[i])))
            fail_ptx(p);
    }
    const char *values[4], *address = load ? NULL : memory_address(p, shared);
    if (!load)
        expect(p, ',');
    const int count = vector(p, load, values);
    if (load) {
        expect(p, ',');
        address = memory_address(p, shared);
    }
    // A loop may wait until a volatile, relaxed or acquire load changes: ptx::poll() lets others run.
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
    const char *word = ptx_type(type);
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
    const char letter = type_letter(part[parts - 1]);
    const bool real = letter == 'f' || letter == 'd';
    for (size_t i = 0; type && letter != 'h' && parts == 3 && i < sizeof signs / sizeof *signs; i++) {
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

// Translates mov between a register and a pair of half its width: mov.b64 %0, {%1, %2}; packs, and mov.b64
// {%0, %1}, %2; unpacks. The first of the pair is the lower half. Returns false if there is no pair.
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

static bool has_part(char *const *part, int parts, const char *name) {
    while (--parts > 0 && strcmp(part[parts], name) != 0)
        continue;
    return parts > 0;
}

// The name of an instruction in the table: without its type suffix and modifiers that change nothing here.
static const char *key_of(char *const *part, int parts) {
    static const char ignored[] =
        " ftz rn global shared shared::cta cta gpu sys relaxed acquire release acq_rel"
        " noftz aligned approx full ca cg cc m8n8 row col satfinite ";
    Text key = empty_text();
    append_text(&key, strcmp(part[0], "red") == 0       ? "atom"
                      : strcmp(part[0], "barrier") == 0 ? "bar"
                      : strcmp(part[0], "addc") == 0    ? "add"
                      : strcmp(part[0], "subc") == 0    ? "sub"
                      : strcmp(part[0], "madc") == 0    ? "mad"
                                                        : part[0]);
    for (int i = 1; i < parts; i++)
        if (strncmp(part[i], "L2::", 4) != 0 && (!strstr(ignored, format(" %.60s ", part[i])) ||
                                                 (is_shared(part[i]) && strcmp(part[0], "cvta") == 0)))
            append_filled(&key, ".$part", "part", part[i]);
    return key.data;
}

// Writes the functions of cuda_cpu::ptx in full: @add
static const char *in_full(const char *value) {
    Text text = empty_text();
    for (; *value; value++)
        *value == '@' ? append_text(&text, "::cuda_cpu::ptx::") : append(&text, value, 1);
    return text.data;
}

static void translate_operation(Ptx *p, char *const *part, int parts, const char *type) {
    const char *const suffix = part[parts - 1], letter = type_letter(suffix);
    type = ptx_type(suffix);
    const char *const key = key_of(part, parts - (type != NULL));
    // addc.cc reads and writes the carry flag.
    const bool carry_in = strstr(" addc subc madc ", format(" %.60s ", part[0])),
               carry = carry_in || has_part(part, parts, "cc");
    const bool shared = has_part(part, parts, "shared") || has_part(part, parts, "shared::cta");
    size_t n = 0;
    while (n < sizeof ptx_instructions / sizeof *ptx_instructions &&
           (strcmp(ptx_instructions[n].name, key) != 0 ||
            (type ? !strchr(ptx_instructions[n].types, letter) : *ptx_instructions[n].types)))
        n++;
    if (n == sizeof ptx_instructions / sizeof *ptx_instructions)
        fail_ptx(p);
    const char *operands = ptx_instructions[n].operands, *value = ptx_instructions[n].value;
    if (carry && (*value != '@' || strncmp(value + 4, "<$T>", 4) != 0 || !strchr("us", letter)))
        fail_ptx(p);
    if (carry)
        value =
            format("%.4s_carry<$T>(%s, %s", value, carry_in ? "true" : "false", value + strlen("@add<$T>("));
    int targets = strcmp(part[0], "red") == 0 || *operands == '-' ? 0
                  : *operands == '='                              ? operands[1] - '0'
                                                                  : 1;
    const char *target[4], *values[4] = {"0", "0", "0", "0"}, *pred = "nullptr";
    if (targets > 0 && vector(p, true, target) != targets)
        fail_ptx(p);
    if (strstr(value, "$pred") && accept(p, '|'))
        pred = fill("&$p", "p", operand(p, true));
    operands += *operands == '=' ? 2 : *operands == '-';
    for (int i = 0; operands[i]; i++) {
        const char o = operands[i], *x[4];
        if ((i > 0 || targets > 0) && !accept(p, ',')) {
            if (o != 'o')
                fail_ptx(p);
            values[i] = "~0u";
        } else if (isdigit((unsigned char)o)) {
            Text list = empty_text();
            if (vector(p, false, x) != o - '0')
                fail_ptx(p);
            for (int j = 0; j < o - '0'; j++)
                append_filled(&list, "$comma::cuda_cpu::ptx::bits<unsigned>($x)", "comma", j ? ", " : "{",
                              "x", x[j]);
            values[i] = format("%s}", list.data);
        } else if (strchr("asg", o)) {
            values[i] = format("(%s)", memory_address(p, o == 's' || (o == 'a' && shared)));
        } else {
            const bool negated = o == 'p' && accept(p, '!');
            values[i] = fill(o == 'w'               ? "(typename ::cuda_cpu::ptx::Wide<$T>::type)$x"
                             : o == 'u' || o == 'o' ? "(unsigned)$x"
                             : o == 'p'             ? "(bool)$not$x"
                             : letter == 'b'        ? "::cuda_cpu::ptx::bits<$T>($x)"
                                                    : "($T)$x",
                             "T", type ? type : "", "not", negated ? "!" : "", "x", operand(p, false));
        }
    }
    const char *filled =
        fill(in_full(value), "T", type ? type : "", "1", values[0], "2", values[1], "3", values[2], "4",
             values[3], "pred", pred, "sat", has_part(part, parts, "satfinite") ? "true" : "false", "place",
             strstr(value, "$place") ? format("%u", place_on_line(p->token)) : "");
    const bool is_vector = *ptx_instructions[n].operands == '=';
    append_filled(&p->out,
                  is_vector       ? "{ const auto cu_m = $value; "
                  : targets == 0  ? "(void)($value); "
                  : *value == '@' ? "::cuda_cpu::ptx::set($target, $value); "
                                  : "::cuda_cpu::ptx::set($target, ($T)($value)); ",
                  "value", filled, "target", targets ? target[0] : "", "T", type ? type : "");
    for (int i = 0; is_vector && i < targets; i++)
        append_filled(&p->out, "::cuda_cpu::ptx::set($x, cu_m.x[$i]); ", "x", target[i], "i",
                      format("%d", i));
    if (is_vector)
        append_text(&p->out, "} ");
}

// cvt.rni.s32.f32 %0, %1;
static void translate_conversion(Ptx *p, char *const *part, int parts) {
    static const char *const modes[] = {"nearest", "zero", "down", "up"};
    const char *types[2], *mode = "nearest", *saturate = "false", *integral = "false";
    for (int i = 0; i < 2; i++) {
        const char *name = part[parts - 2 + i];
        types[i] = strcmp(name, "f16") == 0    ? "::cuda_cpu::ptx::Short<10>"
                   : strcmp(name, "bf16") == 0 ? "::cuda_cpu::ptx::Short<7>"
                                               : ptx_type(name);
        if (!types[i] || name[0] == 'p' || strchr(name, 'x') || (name[0] == 'b' && name[1] != 'f'))
            fail_ptx(p);
    }
    for (int i = 1; i < parts - 2; i++) {
        const char *at = strlen(part[i]) < 2 ? NULL : strchr("nzmp", part[i][1]);
        if (strcmp(part[i], "sat") == 0)
            saturate = "true";
        else if (part[i][0] == 'r' && at && (!part[i][2] || strcmp(part[i] + 2, "i") == 0)) {
            mode = modes[at - strchr("nzmp", 'n')];
            integral = part[i][2] ? "true" : "false";
        } else if (strcmp(part[i], "ftz") != 0)
            fail_ptx(p);
    }
    const char *target = operand(p, true);
    expect(p, ',');
    append_filled(&p->out,
                  "::cuda_cpu::ptx::set($target, ::cuda_cpu::ptx::convert<$D>(::cuda_cpu::ptx::bits<$A>($x), "
                  "::cuda_cpu::Rounding::$mode, $saturate, $integral)); ",
                  "target", target, "D", types[0], "A", types[1], "x", operand(p, false), "mode", mode,
                  "saturate", saturate, "integral", integral);
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
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_.:LB");
    int parts = 0;
    if (length == 0 || length >= sizeof name)
        fail_ptx(p);
    memcpy(name, p->at, length);
    name[length] = '\0';
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
    } else if (strcmp(first, "exit") == 0 && parts == 1 && p->in_kernel) {
        append_text(&p->out, "return; ");
    } else if (strcmp(first, "cvt") == 0 && type && parts > 2 && !strchr(part[parts - 2], 'x') &&
               part[parts - 2][0] != 't') { // not to .f16x2 or .tf32
        translate_conversion(p, part, parts);
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
            append(&template, s[-1] != '\\' ? s : c == 'n' ? "\n" : strchr("tr", c) ? " " : s, 1);
        }
    return template.data;
}

// Declares a variable for each operand "=r"(x) of the asm statement, from token i to `close`, evaluated once.
// Input operands are copied first, because an output operand may be the same variable.
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

// True in the body of a kernel, but not in a lambda or class in it.
static bool is_in_kernel(const Unit *u) {
    int depth = u->depth;
    for (; depth > 0 && u->scopes[depth].open != u->kernel_body; depth--) {
        const Token *before = u->scopes[depth].open - 1;
        if (kind(before) == ')')
            before = before->match - 1;
        if (!is_one_of(before, " if else for while do switch constexpr ") && !strchr("{};:", kind(before)))
            return false;
    }
    return depth > 0;
}

// asm("add.u32 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z));  ->  do { … } while (0);
void translate_asm(Unit *u, Token *word) {
    Ptx p = {.token = word, .in_kernel = is_in_kernel(u)};
    Token *i = word + 1;
    while (is_one_of(i, " volatile __volatile__ __volatile inline "))
        i++;
    if (kind(i) != '(' || kind(i + 1) != STRING)
        fail(word, "inline PTX is not supported here");
    const Token *close = i++->match;
    const char *template = template_string(&i);
    append_text(&p.out, "do { "); // one C++ statement, so that `if (a) asm(…); else …` still compiles
    translate_operands(&p, i, close);
    const size_t empty = p.out.length;
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
    if (p.out.length == empty) // an empty template, or a comment: a compiler barrier
        append_text(&p.out, "__asm__ volatile(\"\" : : : \"memory\"); ");
    append_text(&p.out, "} while (0)");
    for (Token *t = word; t <= close; t++)
        t->done = true;
    insert_before(u, word, p.out.data);
    delete_tokens(u, word, close);
}
