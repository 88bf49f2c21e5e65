# SPDX-License-Identifier: MIT
"""The mutants of a CUDA source: the small mistakes that mutate.py puts into it, one at a time. An operator, a comparison, an index, a
constant or the direction of a copy is changed; a barrier, a memory fence, a condition, a wait or a call is left out; an atomic operation
becomes a plain load and store; a stream becomes another one; two calls change places. What is only printed stays. The source is divided
into statements; regular expressions find what can be changed in each. A mutant is a list of replacements of parts of the text."""
import dataclasses
import re

from tokens import code_of  # scripts/, which helpers adds to the path

RULER = "// ---------------------------------------------------------------------------------------- check"
STATEMENT = re.compile(r"[^;{}]*(?:;(?:\s*HANDLE_LAUNCH\(\);)?|[{}])")
# By the CPU back end, on which the mutants run
NOT_COMPILED = re.compile(r"^#ifdef (?:__CUDA_ARCH_\w+|HAVE_CUB|HAVE_NCCL)\b[\s\S]*?(?=^#else|^#endif)", re.M)
# What begins at the beginning of a line is not in a function.
OUTSIDE = re.compile(r"\s*^\S", re.M)
# What is only printed, measured or declared, and what belongs to the check
LEFT_ALONE = re.compile(
    r"\b(\w*printf|f?puts|putchar|quit|exit|settings|verdict|report|require|static_assert|constexpr|case|asm|using|typedef|ok"
    r"|select_device|options\.|double bytes|\w*(check|print|expected|bench|elapsed|nvtx)\w*|ms|\w+_ms|seconds|[sS]tart\w*|[sS]top\w*"
    r"|\w*[tT]ime)\b|\.(work|title|unit|limit|footprint|host_clock|data) = |^\s*(?:[\w:]+ )+\*?\w+\[[^=]*(?:;| = \{)$"
)
SWAPPED = """< <=, > >=, == !=, + -, << >>, & |, && ||, += -=, *= /=, >>= <<=, * +, / *, % /, ^ |, <= <, >= >, != ==, - +, >> <<, | &, || &&,
    -= +=, /= *=, <<= >>=, ^= |=, |= &=, &= |="""
SWAPPED = dict(pair.split() for pair in SWAPPED.split(","))
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
WORDS = """blockDim gridDim, threadIdx.x threadIdx.y, blockIdx.x blockIdx.y, cudaMemcpyHostToDevice cudaMemcpyDeviceToHost,
    stream0 stream1"""
WORDS = dict(pair for words in WORDS.split(",") for pair in (words.split(), words.split()[::-1]))
CHANGED = re.compile(
    r"(?<= )(?P<swapped>[-+*/%&|^<>=!]{1,3})(?= )|(?P<number>(?<![\w.])(?:0x[\da-f]+|\d[\d.]*f?)\b)"
    rf"|\b(?P<word>{'|'.join(WORDS)})\b|\b(?P<atomic>{'|'.join(ATOMICS)})(?=\()|(?<=[\w\])])(?P<index>\[)|\bif (?P<guard>\()"
)
# What a line of its own, such as a condition, says before a statement; a call or an assignment, which can be left out; what cannot be
CONDITION = re.compile(r"\s*(?:[^\n]*\) *\n\s*|else *\n\s*)?")
STEP = re.compile(r"[*\w(].*?(?:\(|<<<| [-+*/^|&]?= |\+\+|--).*;", re.S)
DECLARES = re.compile(r"(?:[\w:]+(?:<[^;(]*?>)? )+[*&]*\w+(?:\[.*\])* ?(?:=|\(|;)|return\b|for\b", re.S)
# Names that two calls may share although they can change places
NO_VARIABLE = re.compile(
    r"cuda[A-Z]|[A-Z_\d]+$|HANDLE|sizeof|\w?n$|bytes|size|blocks|threads|width|height|pitch|int$|float$|\w$"
)
EITHER_ORDER = re.compile(
    "(?P<new>Malloc|Alloc|Create|Get|host_array|Register)|(?P<old>[Ff]ree|Destroy|delete|Unregister)"
)


@dataclasses.dataclass
class Mutant:
    line: int
    change: str
    text: str  # the source line
    replacements: list  # of (start, end, text)
    file: str = ""
    by: str = ""  # what must notice it, for a permanent mutant

    def __str__(self):
        return f"{self.file}:{self.line}: {self.change}: {self.text}"

    def applied(self, text):
        for start, end, new in sorted(self.replacements, reverse=True):
            lines = text.count("\n", start, end) - new.count("\n")  # messages name the same line
            text = text[:start] + new + "\n" * lines + text[end:]
        return text


def closing(code, opening):
    """The place behind the bracket that closes the one at `opening`."""
    depth = 0
    for bracket in re.compile(r"[][()]").finditer(code, opening):
        depth += 1 if bracket[0] in "([" else -1
        if depth == 0:
            return bracket.end()
    return len(code)


def mutants(text, file=""):
    """The mutants of what stands above the ruler line."""
    code = NOT_COMPILED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text.partition(RULER)[0])
    code = code_of(code)
    lines, found, last = text.split("\n"), [], None

    def add(change, start, *replacements):
        line = text.count("\n", 0, start) + 1
        found.append(Mutant(line, change, lines[line - 1].strip(), list(replacements), file))

    for statement in STATEMENT.finditer(code):
        if OUTSIDE.match(statement[0]) or LEFT_ALONE.search(statement[0]):
            last = None
            continue
        for match in CHANGED.finditer(code, statement.start(), statement.end()):
            kind, old, (start, end) = match.lastgroup, match[match.lastgroup], match.span(match.lastgroup)
            if kind in ("index", "guard"):
                end = closing(code, start)
                inside = text[start + 1 : end - 1]
            if kind == "number":
                add(f"{old} + 1 for {old}", start, (start, end, f"({old} + 1)"))
            elif kind == "index" and not re.fullmatch(r"\d*", inside):
                add("index + 1", start, (start + 1, end - 1, f"({inside}) + 1"))
            elif kind == "guard" and ";" not in inside and " = " not in inside:
                for when, value in ("never", "false"), ("always", "true"):
                    add(f"condition {when} true", start, (start + 1, end - 1, value))
            elif kind == "atomic":
                parameters = "auto *p, auto c, auto v" if old == "atomicCAS" else "auto *p, auto v"
                plain = f"[]({parameters}) {{ auto old = *p; *p = {ATOMICS[old]}; return old; }}"
                add(f"plain load and store for {old}", start, (start, end, plain))
            elif new := {"swapped": SWAPPED, "word": WORDS}.get(kind, {}).get(old):
                add(f"{new} for {old}", start, (start, end, new))
        start, end = CONDITION.match(code, statement.start()).end(), statement.end()
        step = code[start:end]
        if not STEP.fullmatch(step) or DECLARES.match(step) or step.count("(") != step.count(")"):
            last = None
            continue
        shown = re.sub(r"\s+", " ", text[start:end].partition("HANDLE_LAUNCH")[0]).strip()
        add(f"without {shown if len(shown) < 60 else shown[:57] + '...'}", start, (start, end, ";"))
        call = re.match(r"(?:HANDLE_ERROR\(\s*)?([\w.>:-]+)(?:\(|<<<)", step)
        names = {name for name in re.findall(r"\b\w+\b(?!\(|<<<|::)", step) if not NO_VARIABLE.match(name)}
        if last and call and names & last[2]:
            kinds = [m.lastgroup if (m := EITHER_ORDER.search(name)) else name for name in (last[3], call[1])]
            if kinds[0] != kinds[1]:
                places = [last[:2], (start, end)]
                swapped = [(*place, text[slice(*other)]) for place, other in zip(places, reversed(places))]
                add(f"{call[1]} before {last[3]}", last[0], *swapped)
        last = (start, end, names, call[1]) if call and statement[0].lstrip() == step else None
    return found
