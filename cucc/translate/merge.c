// SPDX-License-Identifier: MIT
// Merging the host's and the device's text, as README.md says under __CUDA_ARCH__
#include "translate.h"

typedef struct {
    Token *first, *end; // its tokens
    Token *body;        // the { of a function's body, or null
    int depth;          // number of namespaces and classes around it
    int opens;          // 1: begins a namespace or class, -1: ends one
    bool for_device, for_host, is_constexpr, is_kernel, in_class;
    uint64_t head, whole; // hashes of the tokens; the head ends before the body, the initial value or the ;
} Item;

typedef struct {
    const Unit *unit;
    Item *items;
    int count;
} Side;

typedef struct {
    Token **names;
    int count, types; // the first are those of template parameters
} Names;

// Notes token i if it names a parameter of a function or template. *close: the end of the list.
static bool note_parameter(Names *names, Token *i, const Token **close, bool *is_template) {
    if (i >= *close && kind(i) == '(') {
        *close = i->match;
        *is_template = false;
    } else if (i >= *close && kind(i) == '<' && is(i - 1, "template")) {
        Token *after = skip_angles(i, NULL);
        *close = after ? after : i;
        *is_template = true;
    }
    const int before = kind(i - 1), after = kind(i + 1);
    if (i >= *close || kind(i) != IDENT || is_one_of(i, type_words) || before == '(' || before == ',' ||
        before == '<' || before == SCOPE ||
        (after != ',' && after != '=' && after != '[' && after != (*is_template ? '>' : ')')))
        return false;
    PUSH(names->names, names->count, i);
    names->types += *is_template;
    return true;
}

// `whole`: also attributes and the names of parameters, which do not tell one function from another
static uint64_t hash_tokens(Token *first, const Token *end, bool whole) {
    uint64_t hash = 14695981039346656037u;
    Names names = {0};
    const Token *close = first;
    bool is_template = false;
    for (Token *i = first, *next; i < end; i = next) {
        Token *after = whole ? i : skip_attribute(i);
        next = after > i ? after : i + 1;
        if (after > i || is_one_of(i, " __device__ __global__ ") ||
            (!whole && note_parameter(&names, i, &close, &is_template)))
            continue;
        int number = 0;
        while (number < names.count && !same_word(i, names.names[number]))
            number++;
        for (uint32_t k = 0; number == names.count && k < i->length; k++)
            hash = (hash ^ (unsigned char)i->text[k]) * 1099511628211u;
        hash = (hash ^ (uint64_t)(number < names.count ? number : -1)) * 1099511628211u;
        hash = (hash ^ (whole && i->differs ? '!' : ' ')) * 1099511628211u;
    }
    free(names.names);
    return hash;
}

// Finds the end and the parts of the declaration that begins at item->first.
static void parse_item(Item *item, Token *text_end) {
    Token *i = item->first, *head = NULL;
    bool parameters = false, is_enum = false;
    for (Token *next; i < text_end && kind(i) != ';' && kind(i) != '}'; i = next) {
        next = skip_attribute(i);
        if (next != i)
            continue;
        next = i + 1;
        if (is(i, "template") && kind(i + 1) == '<') {
            next = skip_angles(i + 1, NULL);
            next = next ? next : i + 1;
        } else if (is(i, "requires")) {
            next = skip_requires(i);
        } else if (is(i, "operator")) {
            while (kind(next) != '(' && kind(next) != ';' && kind(next) != END)
                next++;
            next += kind(next) == '(' && kind(next + 1) == ')' && kind(next + 2) == '(' ? 2 : 0;
        } else if (is(i, "enum")) {
            is_enum = true;
        } else if (kind(i) == '=' && !head) {
            head = i;
        } else if (kind(i) == '(' || kind(i) == '[') {
            parameters |= kind(i) == '(';
            next = i->match + 1;
        } else if (kind(i) == '{') {
            next = i->match + 1;
            const ScopeKind brace = head || is_enum ? IN_BLOCK : brace_kind(item->first, i);
            if (brace != IN_BLOCK) {
                item->opens = 1;
                next = i + 1;
            } else if (parameters && !head && kind(next) != ',' && kind(next) != '{') {
                item->body = i; // not the initial value of a member: A() : x{1} { }
            } else {
                head = head || parameters ? head : i;
                continue;
            }
            head = i;
            i = next - (kind(next) != ';' || item->opens);
            break;
        }
    }
    item->end = i + 1 < text_end ? i + 1 : text_end;
    if (kind(i) == '}' && !item->body)
        item->end = i;
    head = head ? head : item->end;
    for (const Token *t = item->first; t < head; t++) {
        item->for_device |= is_one_of(t, " __device__ __constant__ __managed__ ");
        item->is_kernel |= is(t, "__global__");
        item->for_host |= t->host;
        item->is_constexpr |= is(t, "constexpr");
    }
    if (is(item->first, "typedef") && !item->opens)
        head = item->end, item->head = 1;
    item->head += hash_tokens(item->head ? item->end - 2 : item->first, head,
                              false); // not hashed: __launch_bounds__ may differ
    item->whole = hash_tokens(item->first, item->end, true) + item->for_device + 2 * item->for_host +
                  4 * item->is_kernel;
}

// Splits the text into declarations. Declarations in namespaces and classes are items too.
static Side split(const Unit *unit) {
    Side side = {.unit = unit};
    ScopeKind *scopes = NULL;
    int depth = 0;
    for (Token *i = unit->begin; i < unit->end;) {
        PUSH(side.items, side.count, (Item){.first = i});
        Item *item = &side.items[side.count - 1];
        if (kind(i) == '}' && depth > 0) {
            item->opens = -1;
            item->end = i + 1;
            depth--;
            while (scopes[depth] == IN_CLASS && item->end < unit->end && kind(item->end - 1) != ';')
                item->end = skip(item->end);
            item->whole = item->head = hash_tokens(i, item->end, true);
        } else if (is_one_of(i, " public private protected ") && kind(i + 1) == ':') {
            item->end = i + 2;
            item->whole = item->head = hash_tokens(i, item->end, true);
        } else {
            parse_item(item, unit->end);
        }
        if (item->end <= i)
            item->end = i + 1;
        item->depth = depth;
        item->in_class = depth > 0 && scopes[depth - 1] == IN_CLASS;
        if (item->opens > 0) {
            PUSH(scopes, depth, brace_kind(i, item->end - 1));
        }
        i = item->end;
    }
    return side;
}

// Appends tokens of a text after a linemarker with their place in the source.
static void append_piece(Text *text, const Unit *unit, const Token *first, const Token *end) {
    const File *file = first->file;
    append_text(text, format("\n# %u \"%.*s\"%s\n", (unsigned)first->line,
                             file->is_input ? 0 : (int)file->length, file->name, first->system ? " 3" : ""));
    for (const char *p = first->text; p > unit->source.data && p[-1] != '\n'; p--)
        append(text, " ", 1);
    const char *from = first->text;
    for (const Token *i = first; i < end; i++)
        if (i->differs) {
            append(text, from, (size_t)(end_of(i) - from));
            append_text(text, "_on_device");
            from = end_of(i);
        }
    if (end > first)
        append(text, from, (size_t)(end_of(end - 1) - from));
}

static void append_item(Text *text, const Side *side, const Item *item) {
    append_piece(text, side->unit, item->first, item->end);
}

_Noreturn static void fail_both(const Item *item) {
    fail(item->first,
         "this declaration differs between host and device code, which is not supported (__CUDA_ARCH__)");
}

// Launch bounds may differ.
static bool any_differs(Token *i, const Token *end) {
    for (Token *next; i < end && !i->differs; i = next) {
        next = skip_attribute(i);
        next += next == i;
    }
    return i < end;
}

static bool more_marked; // since the texts were compared

static void mark(const Unit *device, Token *name) { // it is not known before its declaration
    for (Token *i = name; i < device->end; i++)
        if (same_word(i, name) && !i->differs && !i->system && kind(i - 1) != '.' && kind(i - 1) != ARROW)
            i->differs = more_marked = true;
}

// True for a member that is named only in its class and as Class::name. The members of that name in other
// classes would have to be marked too, in templates also those of the C++ library.
static bool may_mark(const Side *device, const Item *item, const Token *name) {
    const Item *class = item;
    while (item->in_class && (class->opens != 1 || class->depth != item->depth - 1))
        class --;
    const Token *open = class->end - 1;
    for (Token *i = device->unit->begin; item->in_class && i < device->unit->end; i++) {
        if (!same_word(i, name) || i->system || (i > open && i < open->match) || kind(i - 1) == '.' ||
            kind(i - 1) == ARROW)
            continue;
        const Token *of = i - 2;
        for (int depth = kind(of) == '>'; depth && of > device->unit->begin; depth += kind(of) == '>')
            depth -= kind(--of) == '<';
        of -= kind(of) == '<';
        const Token *own = class->first;
        while (own < open && !same_word(own, of))
            own++;
        if (kind(i - 1) != SCOPE || own == open)
            return false;
    }
    return true;
}

// Marks the names that a single constant, enumeration or type of the device declares. False for others.
static bool mark_names(const Side *side, const Item *item) {
    const Unit *device = side->unit;
    Token *i = item->first;
    Token *const end = item->end, *name = NULL;
    if (item->for_device || item->body || item->opens)
        return false;
    if (is(i, "enum")) {
        const bool is_class = is_one_of(i + 1, " class struct ");
        i += 1 + is_class;
        name = i;
        while (i < end && kind(i) != '{')
            i++;
        if (i >= end || kind(i->match + 1) != ';' || (kind(name) == IDENT && !may_mark(side, item, name)))
            return false;
        Token *close = i->match;
        for (Token *t = i + 1; !is_class && t < close; t = next_comma(t, close) + 1)
            if (!may_mark(side, item, t))
                return false;
        if (kind(name) == IDENT)
            mark(device, name);
        for (i++; !is_class && i < close; i = next_comma(i, close) + 1)
            mark(device, i);
        return true;
    }
    bool constant = is_one_of(i, " typedef using ");
    for (; i < end && kind(i) != '=' && kind(i) != '[' && kind(i) != '{' && kind(i) != ';'; i = skip(i)) {
        constant |= is_one_of(i, " const constexpr ");
        name = i;
    }
    if (!constant || !name || kind(name) != IDENT || next_comma(i, end) < end || !may_mark(side, item, name))
        return false;
    mark(device, name);
    return true;
}

static Names find_names(const Item *item) {
    Names names = {0};
    const Token *close = item->first;
    bool is_template = false;
    for (Token *i = item->first; i < item->body; i++)
        note_parameter(&names, i, &close, &is_template);
    return names;
}

// Appends the body of a function whose head is that of `head`, which may have other names of parameters.
static void append_body(Text *text, const Side *side, const Item *item, const Item *head) {
    const Names own = find_names(item), other = find_names(head);
    append_text(text, "{ ");
    for (int i = 0; i < own.count || i < other.count; i++) {
        if (own.count != other.count || (i < own.types && !same_word(own.names[i], other.names[i])))
            fail_both(head);
        if (!same_word(own.names[i], other.names[i]))
            append_text(text, format("auto &%.*s = %.*s; ", (int)own.names[i]->length, own.names[i]->text,
                                     (int)other.names[i]->length, other.names[i]->text));
    }
    append_piece(text, side->unit, item->body, item->body->match + 1);
    append_text(text, " }");
    free(own.names);
    free(other.names);
}

// Appends a host function, in which each __device__ lambda has the body of the device's text.
static void append_lambdas(Text *text, const Side *host, const Item *h, const Side *device, const Item *d) {
    const Token *done = h->first;
    Token *j = d->body;
    for (Token *i = h->body; i < h->end; i++) {
        if (!is(i, "__device__"))
            continue;
        while (j < d->end && !is(j, "__device__"))
            j++;
        Token *const word = i;
        for (; i < h->end && kind(i) != '{' && kind(i) != ';'; i = skip(i)) {
        }
        for (; j < d->end && kind(j) != '{' && kind(j) != ';'; j = skip(j)) {
        }
        if (kind(i) != '{' || kind(j) != '{')
            fail(word, "__CUDA_ARCH__ in a function with a __device__ lambda is not supported");
        append_piece(text, host->unit, done, i);
        if (word->host) { // the lambda is for both
            append_text(text, "{ if (::cuda_cpu::on_device())");
            append_piece(text, device->unit, j, j->match + 1);
            append_text(text, " else ");
            append_piece(text, host->unit, i, i->match + 1);
            append_text(text, " }");
        } else {
            append_piece(text, device->unit, j, j->match + 1);
        }
        i = i->match;
        j = j->match;
        done = i + 1;
    }
    append_piece(text, host->unit, done, h->end);
}

// Appends a declaration that is in both texts.
static void append_pair(Text *text, const Side *host, const Item *h, const Side *device, const Item *d) {
    const bool on_device = h->for_device || d->for_device || h->is_kernel || d->is_kernel;
    const bool on_host = h->for_host || d->for_host || !on_device;
    if (d->body && (d->is_kernel || d->for_host || d->is_constexpr) && any_differs(d->first, d->body))
        fail_both(h); // for example a parameter of a type that differs
    if (on_device && !on_host) {
        append_item(text, device, d);
    } else if (!h->body && !d->body && (is(d->first, "static_assert") || mark_names(device, d))) {
        append_item(text, host, h);
        append_item(text, device, d);
    } else if (!h->body && !d->body && h->in_class && d->in_class && h->for_device == d->for_device) {
        append_item(text, device, d);
    } else if (!h->body || !d->body) {
        if (h->body || d->body || h->for_device != d->for_device || h->whole != d->whole)
            fail_both(h);
        append_item(text, host, h);
    } else if (!on_device && !h->is_constexpr) {
        append_lambdas(text, host, h, device, d);
    } else { // head { if (on_device()) { … } else { … } }
        if (h->for_device)
            append_piece(text, host->unit, h->first, h->body);
        else
            append_piece(text, device->unit, d->first, d->body);
        append_text(text, h->is_constexpr
                              ? "{ if (!__builtin_is_constant_evaluated() && ::cuda_cpu::on_device())"
                              : "{ if (::cuda_cpu::on_device())");
        append_body(text, device, d, h->for_device ? h : d);
        append_text(text, " else ");
        append_body(text, host, h, h->for_device ? h : d);
        append_text(text, " }");
    }
}

// Appends a difference of the texts: items h to h_end of the host, items d to d_end of the device.
static void append_difference(Text *text, const Side *host, int h, int h_end, const Side *device, int d,
                              int d_end) {
    int open = 0;
    if (h < h_end && d < d_end && host->items[h].first->system) {
        append_piece(text, host->unit, host->items[h].first, host->items[h_end - 1].end);
        return;
    }
    for (; h < h_end || d < d_end; d++) {
        int pair = h;
        while (d < d_end && pair < h_end &&
               (host->items[pair].head != device->items[d].head ||
                host->items[pair].depth != device->items[d].depth))
            pair++;
        const bool found = d < d_end && pair < h_end;
        // An item only in the host's text: left out if it is for the device only.
        for (const int end = d >= d_end ? h_end : found ? pair : h; h < end; h++) {
            const Item *item = &host->items[h];
            open += item->opens;
            if (!item->for_device || item->for_host)
                append_item(text, host, item);
        }
        if (d >= d_end)
            break;
        if (found) {
            append_pair(text, host, &host->items[h++], device, &device->items[d]);
        } else {
            open += device->items[d].opens;
            append_item(text, device, &device->items[d]);
        }
    }
    if (open)
        fail_both(&host->items[h ? h - 1 : 0]);
}

static bool same(const Side *a, int i, const Side *b, int j) {
    return i < a->count && j < b->count && a->items[i].whole == b->items[j].whole &&
           a->items[i].depth == b->items[j].depth;
}

// Finds the nearest declarations from h and d on that are the same in both texts: sets a and b to their
// distances. A lone } or public: is too common to be used for this.
static void find_same(const Side *host, int h, const Side *device, int d, int *a, int *b) {
    for (int sum = 1;; sum++)
        for (*a = 0; *a <= sum; ++*a) {
            *b = sum - *a;
            if (h + *a == host->count && d + *b == device->count)
                return;
            if (same(host, h + *a, device, d + *b) &&
                (host->items[h + *a].end - host->items[h + *a].first > 2 || h + *a + 1 == host->count ||
                 same(host, h + *a + 1, device, d + *b + 1)))
                return;
        }
}

Text merge(Unit *host_unit, Unit *device_unit) {
    const Side host = split(host_unit), device = split(device_unit);
    const char *done = device_unit->source.data, *end = done + device_unit->source.length;
    Text text = {0};
    more_marked = false;
    for (int h = 0, d = 0; h < host.count || d < device.count;) {
        if (same(&host, h, &device, d)) {
            h++;
            d++;
            continue;
        }
        int a, b;
        find_same(&host, h, &device, d, &a, &b);
        const char *start = d < device.count ? device.items[d].first->text : end;
        append(&text, done, (size_t)(start - done));
        append_difference(&text, &host, h, h + a, &device, d, d + b);
        h += a;
        d += b;
        done = end;
        if (d < device.count) { // the next declaration is in both texts
            const Token *first = device.items[d].first;
            append_piece(&text, device_unit, first, first + 1);
            done = end_of(first);
        }
    }
    append(&text, done, (size_t)(end - done));
    return more_marked ? merge(host_unit, device_unit) : text;
}
