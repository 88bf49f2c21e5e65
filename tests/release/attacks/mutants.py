# SPDX-License-Identifier: MIT
"""The mutants of a CUDA source: reads its tokens, and finds the small mistakes that mutate.py puts into it, one at a time. A mutant
is a list of replacements of parts of the text."""
import dataclasses
import re

RULER = "// ---------------------------------------------------------------------------------------- proof"

LEXER = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>^\#(?:[^\n\\]|\\.)*)
  | (?P<text>R"\((?:.|\n)*?\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
  | (?P<number>0[xX][\da-fA-F.]+(?:[pP][-+]?\d+)?\w*|(?:\d[\d']*\.?[\d]*|\.\d+)(?:[eE][-+]?\d+)?\w*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<<|>>>|<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)""",
    re.X | re.S | re.M,
)
CLOSING = {"(": ")", "[": "]", "{": "}", "<<<": ">>>"}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "%": "/",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "|",
}
OPERATORS |= {"&&": "||", "||": "&&"}
COMPOUND = {
    "+=": "-=",
    "-=": "+=",
    "*=": "/=",
    "/=": "*=",
    "^=": "|=",
    "|=": "&=",
    "&=": "|=",
    ">>=": "<<=",
    "<<=": ">>=",
}
ASSIGNMENTS = {"=", "%=", *COMPOUND}
# The value that a plain store writes in the place of an atomic operation
ATOMICS = {
    "atomicAdd": "old + v",
    "atomicSub": "old - v",
    "atomicExch": "v",
    "atomicMin": "old < v ? old : v",
    "atomicMax": "old > v ? old : v",
    "atomicOr": "old | v",
    "atomicAnd": "old & v",
    "atomicXor": "old ^ v",
    "atomicInc": "old >= v ? 0 : old + 1",
    "atomicCAS": "old == c ? v : old",
}
OTHER_BUILTIN = {"blockDim": "gridDim", "gridDim": "blockDim", "threadIdx": None, "blockIdx": None}
FLAGS = {"cudaHostAllocPortable", "cudaHostAllocMapped", "cudaHostRegisterMapped", "cudaHostRegisterPortable"}
DIRECTIONS = {
    "cudaMemcpyHostToDevice": "cudaMemcpyDeviceToHost",
    "cudaMemcpyDeviceToHost": "cudaMemcpyHostToDevice",
}
WORDS = set(
    """if else for while do switch case default return break continue goto throw new delete sizeof using typedef struct class enum
    static const constexpr extern auto template typename inline namespace volatile operator static_assert asm""".split()
)
# Calls whose arguments are printed, checked or only reserve memory
NO_RESULT = re.compile(
    r"(f?printf|puts|fputs|putchar|fflush|quit|exit|assert|HANDLE_LAUNCH|static_assert)$"
    r"|(check|print|expected|settings|require|verdict|report|bench|select_device|nvtx)"
)
# Times and rates
TIMES = re.compile(
    r"^(elapsed\w*|ms|\w+_ms|seconds|start\w*|stop\w*|\w*[tT]ime|Clock|steady_clock|rate|bench|busy)$"
)
RATES = ("work", "title", "unit", "limit", "footprint", "host_clock", "data")  # members of Bench
BARRIERS = re.compile(r"^(__syncthreads\w*|__syncwarp|\w+sync|sync|barrier\w*)$")
CREATE = re.compile(
    r"(Malloc|Alloc|Create|GetDevicePointer|GetSymbolAddress|host_array|GetDeviceProperties|Query|Register)"
)
DESTROY = re.compile(r"(Free|free|Destroy|delete|Unregister)")
EVENT_TIMES = re.compile(r"cudaEvent(Record|Synchronize|ElapsedTime)")
# Names that two calls may share although they can change places
NO_VARIABLE = re.compile(
    r"cuda[A-Z]|[A-Z_\d]+$|sizeof|n$|bytes|size|blocks|threads|width|height|pitch|int$|float$|\w$"
)


@dataclasses.dataclass
class Token:
    text: str
    start: int
    end: int
    line: int
    kind: str  # name, number, text (a string or a character), mark, directive


@dataclasses.dataclass
class Mutant:
    line: int
    change: str
    text: str  # the source line
    operator: str
    function: str  # that it is in
    replacements: list  # of (start, end, text)
    file: str = ""

    def __str__(self):
        return f"{self.file}:{self.line}: {self.change}: {self.text}"

    def applied(self, text):
        for start, end, new in sorted(self.replacements, reverse=True):
            text = text[:start] + new + text[end:]
        return text


def lex(text):
    """The tokens of a source."""
    tokens, line, at = [], 1, 0
    for match in LEXER.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup != "skip":
            tokens.append(Token(match[0], match.start(), match.end(), line, match.lastgroup))
    return tokens


class Source:
    """A source and its mutants. Only functions above the ruler line are changed."""

    def __init__(self, text, file=""):
        self.original, self.file = text, file
        self.lines, self.tokens, self.mutants = text.split("\n"), lex(text), []
        self.match_brackets()
        ruler = text.find(RULER)
        self.limit = ruler if ruler >= 0 else len(text)
        declared = r"^(?:static |template [^;{]*?)*[\w:<>*& ]+?\b(\w+)\([^;{]*\) \{"
        self.proof_functions = set(re.findall(declared, text[self.limit :], re.M))
        self.device, self.name = False, ""  # of the function
        self.find_functions()

    def match_brackets(self):
        """`partner` has for each bracket the index of the other one."""
        self.partner, stack = {}, []
        for i, t in enumerate(self.tokens):
            if t.kind != "mark":
                continue
            if t.text in CLOSING:
                stack.append(i)
            # ">>>" may also close templates.
            elif t.text in CLOSING.values() and stack and CLOSING[self.tokens[stack[-1]].text] == t.text:
                self.partner[i] = stack.pop()
                self.partner[self.partner[i]] = i

    def words(self, first, last):
        return [t.text for t in self.tokens[first:last]]

    def add(self, operator, change, token, *replacements):
        text = self.lines[token.line - 1].strip()
        self.mutants.append(
            Mutant(token.line, change, text, operator, self.name, list(replacements), self.file)
        )

    def other(self, operator, token, new, end=None):
        """A mutant with `new` in the place of a token, or of the text up to `end`."""
        end = end or token.end
        self.add(operator, f"{new} for {self.original[token.start:end]}", token, (token.start, end, new))

    # -- functions

    def find_functions(self):
        i = begin = 0  # begin: of the declaration
        while i < len(self.tokens) and self.tokens[i].start < self.limit:
            t = self.tokens[i]
            if t.text in (";", "}") or t.kind == "directive":
                begin = i + 1
            elif t.text == "(" and i in self.partner:
                i = self.partner[i]
            elif t.text == "{":
                before, end = self.words(begin, i), self.partner.get(i, len(self.tokens) - 1)
                printed = re.search(r"\b(print\w*|yes_no|\w+_operations) \(", " ".join(before))
                type_ = not {"struct", "class", "namespace"}.isdisjoint(before) and "=" not in before
                if not printed and (self.tokens[i - 1].text in (")", "const", "noexcept") or "->" in before):
                    named = re.search(r"\b(?!__launch_bounds__)(\w+) \(", " ".join(before))
                    self.name = named[1] if named else ""
                    self.device = "__global__" in before or "__device__" in before
                    self.function(i, end)
                    type_ = False
                if printed or not type_:
                    i = end
                begin = i + 1
            i += 1

    def function(self, opening, closing):
        inside = range(opening + 1, closing)
        excluded = self.excluded(inside)
        streams = {
            t.text
            for i, t in enumerate(self.tokens[opening:closing], opening)
            if re.match(r"stream\w*$", t.text, re.I) and self.tokens[i + 1].text in (",", ")", ">>>")
        }
        self.streams = sorted(streams)
        for i in inside:
            if i not in excluded:
                self.expression(i)
        self.statements(opening, closing, excluded)

    def statement_of(self, i):
        """The first and the last token of the statement of token i."""
        first = last = i
        while (
            self.tokens[first - 1].text not in (";", "{", "}") and self.tokens[first - 1].kind != "directive"
        ):
            first -= 1
            if self.tokens[first].text in (")", "]") and first in self.partner:
                first = self.partner[first]
        while self.tokens[last].text not in (";", "{", "}") and last < len(self.tokens) - 1:
            if self.tokens[last].text in ("(", "[", "<<<"):
                last = self.partner.get(last, last)
            last += 1
        return first, last

    def excluded(self, inside):
        """The indices of tokens that are not changed: what is only printed or belongs to the check; declarations."""
        out = set()
        for i in inside:
            t, before, following = self.tokens[i], self.tokens[i - 1].text, self.tokens[i + 1].text
            if t.kind == "directive":
                out.add(i)
            if t.kind != "name":
                continue
            if following == "(" and (NO_RESULT.search(t.text) or t.text in self.proof_functions):
                out.update(range(i, self.partner.get(i + 1, i) + 1))
            if t.text in ("static_assert", "constexpr", "case", "asm", "using", "typedef"):
                out.update(range(i, self.statement_of(i)[1]))
            if t.text == "for" and following == "(":  # a loop that only prints
                close = self.partner[i + 1]
                if re.search("printf|puts|putchar", self.tokens[close + 1].text):
                    out.update(range(i, close + 1))
            if t.text == "ok" or (t.text == "options" and following == "."):
                first, last = self.statement_of(i)
                out.update(range(first, last + 1))
            if t.text in RATES and before == "." and following == "=":
                out.update(range(i - 2, self.statement_of(i)[1] + 1))
            if TIMES.match(t.text) and not self.device:
                first, last = self.statement_of(i)
                if "{" not in self.words(first, last):
                    out.update(j for j in range(first, last + 1) if self.tokens[j].text not in WORDS)
            if t.text == "bytes" and before == "double":  # for a rate; a size is a size_t
                j = i
                while self.tokens[j].text not in (",", ";"):
                    out.add(j)
                    j = self.partner[j] if self.tokens[j].text == "(" else j + 1
            if following == "[" and self.declares(i):  # the bounds of an array
                j = i + 1
                while self.tokens[j].text == "[":
                    out.update(range(j, self.partner[j] + 1))
                    j = self.partner[j] + 1
        return out

    def declares(self, i):
        """Whether the name at i is being declared: a type stands before it."""
        j = i - 1
        while self.tokens[j].text in ("*", "&"):
            j -= 1
        before = self.tokens[j]
        if before.text == ",":
            return "__shared__" in self.words(self.statement_of(i)[0], i)
        return (before.kind == "name" and before.text not in ("return", "else", "case")) or before.text == ">"

    # -- expressions

    def spaced(self, i):
        """Whether a binary operator stands at i: clang-format puts blanks around it."""
        t, before, after = self.tokens[i], self.tokens[i - 1], self.tokens[i + 1]
        operand = before.kind in ("name", "number", "text") or before.text in (")", "]", "}", "++", "--")
        return (
            before.end < t.start and t.end < after.start and operand and before.text not in WORDS - {"sizeof"}
        )

    def expression(self, i):
        t, before, following = self.tokens[i], self.tokens[i - 1].text, self.tokens[i + 1]
        text = t.text
        if t.kind == "number":
            self.add("constant", f"{text} + 1 for {text}", t, (t.start, t.end, f"({text} + 1)"))
        elif text in COMPARISONS and self.spaced(i):
            self.other("comparison", t, COMPARISONS[text])
        elif text in OPERATORS and self.spaced(i) and (text not in "+-" or following.text != "0"):
            self.other("operator", t, OPERATORS[text])
        elif text in COMPOUND:
            self.other("operator", t, COMPOUND[text])
        elif text == "[" and i in self.partner and self.indexes(i):
            close = self.partner[i]
            if close > i + 2 or self.tokens[i + 1].kind != "number" and close > i + 1:
                old = self.original[t.end : self.tokens[close].start]
                self.add("index", "index + 1", t, (t.end, self.tokens[close].start, f"({old}) + 1"))
        elif text == "if" and following.text == "(":
            self.condition(i)
        elif text in ATOMICS and following.text == "(":
            parameters = "auto *p, auto c, auto v" if text == "atomicCAS" else "auto *p, auto v"
            plain = f"[]({parameters}) {{ auto old = *p; *p = {ATOMICS[text]}; return old; }}"
            self.add("atomic", f"plain load and store for {text}", t, (t.start, t.end, plain))
        elif text in OTHER_BUILTIN and following.text == ".":
            last = self.tokens[i + 2]
            new = OTHER_BUILTIN[text]
            new = f"{new}.{last.text}" if new else f"{text}.{'y' if last.text == 'x' else 'x'}"
            self.other("index", t, new, last.end)
        elif text in DIRECTIONS:
            self.other("direction", t, DIRECTIONS[text])
        elif text in FLAGS:
            self.add("flag", f"no {text}", t, (t.start, t.end, "0"))
        elif text in self.streams and following.text in (",", ")", ">>>") and before in (",", "("):
            if len(self.streams) > 1:
                self.other("stream", t, self.streams[(self.streams.index(text) + 1) % len(self.streams)])

    def indexes(self, i):
        before = self.tokens[i - 1]
        return (before.kind == "name" and before.text not in WORDS) or before.text in ("]", ")")

    def condition(self, i):
        close = self.partner[i + 1]
        inside = self.tokens[i + 2 : close]
        body = self.tokens[close + (2 if self.tokens[close + 1].text == "{" else 1)].text
        declares = any(u.text in ("=", ";") for u in inside)
        if declares or NO_RESULT.search(body) or inside[-1].text == "ok":
            return
        for when, value in ("never", "false"), ("always", "true"):
            if value == "false" or body != "return":
                change = f"condition {when} true"
                self.add("guard", change, self.tokens[i], (inside[0].start, inside[-1].end, value))

    # -- statements

    def statements(self, opening, closing, excluded):
        """Leaves statements out, and swaps calls that follow each other, in a block and the blocks in it."""
        row = []  # of calls: (first token, last token)
        controlled = False  # whether the next statement is that of an "if" or a loop without braces
        i = opening + 1
        while i < closing:
            t = self.tokens[i]
            if t.text in ("if", "for", "while", "switch", "else", "do", "{") or t.kind == "directive":
                self.order(row)
                row, controlled = [], t.text not in "{" and t.kind != "directive"
                if t.text == "{":
                    self.statements(i, self.partner[i], excluded)
                    i = self.partner[i]
                elif t.text in ("if", "for", "while", "switch"):
                    while self.tokens[i].text != "(":
                        i += 1
                    i = self.partner[i]
                i += 1
                continue
            # a simple statement, up to its semicolon; lambdas in it are blocks of their own
            first, inner = i, 0
            while self.tokens[i].text != ";" and i < closing:
                i = self.partner[i] + 1 if self.tokens[i].text == "{" and i in self.partner else i + 1
            for j in range(first, i):
                if j > inner and self.tokens[j].text == "{" and self.tokens[j - 1].text in (")", "]"):
                    inner = self.partner[j]
                    self.statements(j, inner, excluded)
            called = self.statement(first, i, excluded)
            if called and not controlled and not self.device:
                row.append((first, i))
            elif t.text == "HANDLE_LAUNCH" and row:
                row[-1] = (row[-1][0], i)
            else:
                self.order(row)
                row = []
            controlled = False
            i += 1
        self.order(row)

    def call_name(self, first):
        """The function that a statement calls: that in HANDLE_ERROR(), or its own. Empty if it calls none."""
        t = self.tokens[first]
        if t.kind != "name":
            return ""
        if t.text == "HANDLE_ERROR":
            return self.tokens[first + 2].text
        j = first + 1
        while self.tokens[j].text in (".", "->", "::"):
            j += 2
        name = self.tokens[j - 1].text
        if self.tokens[j].text == "<" and not self.spaced(j):
            name, depth = t.text, 1
            while depth and self.tokens[j].text not in (";", "{"):
                j += 1
                depth += {"<": 1, ">": -1}.get(self.tokens[j].text, 0)
            j += 1
        return name if self.tokens[j].text in ("(", "<<<") else ""

    def statement(self, first, last, excluded):
        """Adds the mutant in which a statement, a call or an assignment, is left out. Returns whether it is a call."""
        t, texts = self.tokens[first], self.words(first, last)
        if first in excluded or not texts or t.text in WORDS:
            return False
        if t.kind != "name" and t.text not in ("*", "(", "++", "--"):
            return False
        name, assigns, j = self.call_name(first), False, first
        while j < last and not assigns:
            assigns = self.tokens[j].text in ASSIGNMENTS or self.tokens[j].text in ("++", "--")
            j = (self.partner.get(j, j) if self.tokens[j].text in CLOSING else j) + 1
        if not name and not assigns:
            return False
        # a declaration: two names beside each other, or a type with template arguments or * before the name
        if t.kind == "name" and not name:
            k = first + 1
            while self.tokens[k].text in ("::", "*", "&"):
                k += 2 if self.tokens[k].text == "::" else 1
            if self.tokens[k].text == "<" or self.tokens[k].kind == "name":
                return False
        if name and (NO_RESULT.search(name) or name in self.proof_functions):
            return False
        if name and not assigns and re.search(r"\b(check|ok)\b", " ".join(texts)):
            return False
        shown = re.sub(r"\s+", " ", self.original[t.start : self.tokens[last].end])
        operator = "call" if name else "assignment"
        if BARRIERS.match(name):
            operator = "barrier"
        elif name.startswith("__threadfence"):
            operator = "fence"
        elif "Synchronize" in name or "WaitEvent" in name:
            operator = "wait"
        change = f"without {shown if len(shown) < 60 else shown[:57] + '...'}"
        self.add(operator, change, t, (t.start, self.tokens[last].end, ";"))
        return bool(name)

    def order(self, row):
        """Swaps neighbours in a row of calls that use the same variable."""
        for (a, a_end), (b, b_end) in zip(row, row[1:]):
            names = [
                {
                    u.text
                    for k, u in enumerate(self.tokens[first:last], first)
                    if u.kind == "name"
                    and self.tokens[k + 1].text not in ("(", "<<<", "::")
                    and not NO_VARIABLE.match(u.text)
                }
                for first, last in ((a, a_end), (b, b_end))
            ]
            one, two = self.call_name(a), self.call_name(b)
            timed = [bool(EVENT_TIMES.search(name)) for name in (one, two)]
            if (
                not names[0] & names[1]
                or (CREATE.search(one) and CREATE.search(two))
                or (DESTROY.search(one) and DESTROY.search(two))
                or (any(timed) and not all(timed) and "WaitEvent" not in self.original)
            ):
                continue
            places = [(self.tokens[x].start, self.tokens[y].end) for x, y in ((a, a_end), (b, b_end))]
            texts = [self.original[start:end] for start, end in places]
            swapped = [(*place, text) for place, text in zip(places, reversed(texts))]
            self.add("order", f"{two} before {one}", self.tokens[a], *swapped)
