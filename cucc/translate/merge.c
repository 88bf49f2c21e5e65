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

static uint64_t hash_tokens(Token *first, const Token *end, bool attributes) {
    uint64_t hash = 14695981039346656037u;
    for (Token *i = first, *next; i < end; i = next) {
        Token *after = attributes ? i : skip_attribute(i);
        next = after > i ? after : i + 1;
        if (after > i || is_one_of(i, " __device__ __global__ "))
            continue;
        for (uint32_t k = 0; k < i->length; k++)
            hash = (hash ^ (unsigned char)i->text[k]) * 1099511628211u;
        hash = (hash ^ (attributes && i->differs ? '!' : ' ')) * 1099511628211u;
    }
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
            const char brace = head || is_enum ? 'b' : brace_kind(item->first, i);
            if (brace != 'b') {
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
    char *scopes = NULL;
    int depth = 0;
    for (Token *i = unit->begin; i < unit->end;) {
        PUSH(side.items, side.count, (Item){.first = i});
        Item *item = &side.items[side.count - 1];
        if (kind(i) == '}' && depth > 0) {
            item->opens = -1;
            item->end = i + 1;
            depth--;
            while (scopes[depth] == 'c' && item->end < unit->end && kind(item->end - 1) != ';')
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
        item->in_class = depth > 0 && scopes[depth - 1] == 'c';
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

// Marks the names that a constant, enumeration or type of the device's text declares. Returns false if it is
// something else, or more than one declaration.
static bool mark_names(const Unit *device, const Item *item) {
    Token *i = item->first;
    Token *const end = item->end, *name = NULL;
    if (item->for_device || item->body || item->opens)
        return false;
    if (is(i, "enum")) {
        const bool is_class = is_one_of(i + 1, " class struct ");
        i += 1 + is_class;
        if (kind(i) == IDENT)
            mark(device, i);
        while (i < end && kind(i) != '{')
            i++;
        if (i >= end || kind(i->match + 1) != ';')
            return false;
        Token *close = i->match;
        for (i++; !is_class && i < close; i = next_comma(i, close) + 1)
            mark(device, i);
        return true;
    }
    bool constant = is_one_of(i, " typedef using ");
    for (; i < end && kind(i) != '=' && kind(i) != '[' && kind(i) != '{' && kind(i) != ';'; i = skip(i)) {
        constant |= is_one_of(i, " const constexpr ");
        name = i;
    }
    if (!constant || !name || kind(name) != IDENT || next_comma(i, end) < end)
        return false;
    mark(device, name);
    return true;
}

// Appends a declaration that is in both texts.
static void append_pair(Text *text, const Side *host, const Item *h, const Side *device, const Item *d) {
    const bool on_device = h->for_device || d->for_device || h->is_kernel || d->is_kernel;
    const bool on_host = h->for_host || d->for_host || !on_device;
    if (d->body && (d->is_kernel || d->for_host || d->is_constexpr) && any_differs(d->first, d->body))
        fail_both(h); // for example a parameter of a type that differs
    if (on_device && !on_host) {
        append_item(text, device, d);
    } else if (!h->body && !d->body && (is(d->first, "static_assert") || mark_names(device->unit, d))) {
        append_item(text, host, h);
        append_item(text, device, d);
    } else if (!h->body && !d->body && h->in_class && d->in_class && h->for_device == d->for_device) {
        append_item(text, device, d);
    } else if (!h->body || !d->body) {
        if (h->body || d->body || h->for_device != d->for_device || h->whole != d->whole)
            fail_both(h);
        append_item(text, host, h);
    } else if (!on_device && !h->is_constexpr) {
        for (const Token *i = h->body; i < h->end; i++)
            if (is(i, "__device__"))
                fail(i, "__CUDA_ARCH__ in a function with a __device__ lambda is not supported");
        append_item(text, host, h);
    } else { // head { if (on_device()) { … } else { … } }
        if (h->for_device)
            append_piece(text, host->unit, h->first, h->body);
        else
            append_piece(text, device->unit, d->first, d->body);
        append_text(text, h->is_constexpr
                              ? "{ if (!__builtin_is_constant_evaluated() && ::cuda_cpu::on_device())"
                              : "{ if (::cuda_cpu::on_device())");
        append_piece(text, device->unit, d->body, d->body->match + 1);
        append_text(text, " else ");
        append_piece(text, host->unit, h->body, h->body->match + 1);
        append_text(text, " }");
    }
}

// Appends a place where the texts differ: items h to h_end of the host's text correspond to items d to d_end
// of the device's.
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
