#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate.py: mutation testing: puts one small mistake at a time into a program, whose own check must notice it. An operator, a
comparison, an index, a constant or the direction of a copy is changed; a barrier, a memory fence, a condition, a wait or a call is left
out; an atomic operation becomes a plain load and store; a stream becomes another one; two calls change places. Mistakes are made in the
lesson of a program, the part above the ruler line, and in the headers of its chapter. One is detected when the program ends with
another status than 0 in one of these runs, on the CPU back end: with the options of `make check`, by default, with `--size 77` and
`--size 1`, and on another device with seven workers; with the race detector of `make check` under each of its schedules; with
CUDA_CPU_CHECK=1 and with the sanitizers of the compiler. What is only printed is left out: arguments of printf, times, rates. Mutants
that compute the same as the program, or are only slower, are listed with the reason in `tests/attacks/equivalent_mutants.txt`; they are
not counted. Each survivor of a sample is examined: either a check is strengthened, or the mutant is listed as equivalent, with the
reason. Then the same sample is run again.

All mutants of a program are compiled at once, for each way of compiling; the environment variable MUTANT chooses one of them
(mutants.h). Results are kept in build/mutate, so a program that has not changed is not run again."""
import argparse
import dataclasses
import fnmatch
import hashlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/attacks"
BUILD = os.environ.get("BUILD", "build")
RULER = "// ---------------------------------------------------------------------------------------- proof"

# ---- Reading a source


@dataclasses.dataclass
class Token:
    text: str
    start: int
    end: int
    line: int
    kind: str  # name, number, text (a string or a character), mark


LEXER = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>^\#(?:[^\n\\]|\\.)*)
  | (?P<text>R"\((?:.|\n)*?\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
  | (?P<number>0[xX][\da-fA-F.]+(?:[pP][-+]?\d+)?\w*|(?:\d[\d']*\.?[\d]*|\.\d+)(?:[eE][-+]?\d+)?\w*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<<|>>>|<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)""",
    re.X | re.S | re.M,
)


def lex(text):
    """The tokens of a source; a preprocessor directive is one of kind `directive`."""
    tokens, line, at = [], 1, 0
    for match in LEXER.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup != "skip":
            tokens.append(Token(match[0], match.start(), match.end(), line, match.lastgroup))
    return tokens


CLOSING = {"(": ")", "[": "]", "{": "}", "<<<": ">>>"}
PRECEDENCE = {
    **dict.fromkeys("*/%", 10),
    **dict.fromkeys("+-", 9),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("<", "<=", ">", ">="), 7),
    **dict.fromkeys(("==", "!="), 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
BINARY = {
    "+": ("add", "-"),
    "-": ("sub", "+"),
    "*": ("mul", "+"),
    "/": ("div", "*"),
    "%": ("mod", "/"),
    "<<": ("left", ">>"),
    ">>": ("right", "<<"),
    "&": ("bit_and", "|"),
    "|": ("bit_or", "&"),
    "^": ("xor", "|"),
    "<": ("less", "<="),
    "<=": ("less_equal", "<"),
    ">": ("greater", ">="),
    ">=": ("greater_equal", ">"),
    "==": ("equal", "!="),
    "!=": ("not_equal", "=="),
}
COMPOUND = {
    "+=": ("add_to", "-="),
    "-=": ("subtract_from", "+="),
    "*=": ("multiply_by", "/="),
    "/=": ("divide_by", "*="),
    "^=": ("xor_to", "|="),
    "|=": ("or_to", "&="),
    "&=": ("and_to", "|="),
    ">>=": ("shift_right_by", "<<="),
    "<<=": ("shift_left_by", ">>="),
}
ATOMICS = {f"atomic{n}" for n in ("Add", "Sub", "Exch", "Min", "Max", "Or", "And", "Xor", "Inc", "CAS")}
BUILTIN = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)$")
OTHER_BUILTIN = {"blockDim": "gridDim", "gridDim": "blockDim"}
FLAGS = {"cudaHostAllocPortable", "cudaHostAllocMapped", "cudaHostRegisterMapped", "cudaHostRegisterPortable"}
DIRECTIONS = {
    "cudaMemcpyHostToDevice": "cudaMemcpyDeviceToHost",
    "cudaMemcpyDeviceToHost": "cudaMemcpyHostToDevice",
}
WORDS = {
    *(
        "if else for while do switch case default return break continue goto throw new delete sizeof using typedef struct class"
    ).split(),
    *(
        "enum static const constexpr extern auto template typename inline namespace volatile operator static_assert asm"
    ).split(),
}
# Calls whose arguments are printed, checked or only reserve memory
NO_RESULT = re.compile(
    r"(f?printf|puts|fputs|putchar|fflush|quit|exit|assert|HANDLE_LAUNCH|static_assert)$"
    r"|(check|print|expected|settings|require|verdict|report|bench|select_device|nvtx)"
)
# Times and rates
TIMES = re.compile(
    r"^(elapsed\w*|ms|\w+_ms|seconds|start\w*|stop\w*|\w*[tT]ime|Clock|steady_clock|rate|bench|busy)$"
)
RATES = ("work", "title", "unit", "limit", "footprint", "host_clock", "data")
BARRIERS = re.compile(r"^(__syncthreads\w*|__syncwarp|\w+sync|sync|barrier\w*)$")
FENCES = re.compile(r"^__threadfence\w*$")
CREATE = re.compile(
    r"(Malloc|Alloc|Create|GetDevicePointer|GetSymbolAddress|host_array|GetDeviceProperties|Query|Register)"
)
DESTROY = re.compile(r"(Free|free|Destroy|delete|Unregister)")
EVENT_TIMES = re.compile(r"cudaEvent(Record|Synchronize|ElapsedTime)")


@dataclasses.dataclass
class Mutant:
    number: int
    line: int
    change: str
    text: str  # the source line
    operator: str
    function: str = ""  # that it is in

    def __str__(self):
        return f"{self.line}: {self.change}: {self.text}"


class Source:
    """A source and its mutants. `text` is the whole file; only functions above the ruler line are changed."""

    def __init__(self, text, first=0):
        self.original = text
        self.lines = text.split("\n")
        self.tokens = lex(text)
        self.partner = self.match_brackets()
        self.edits = []  # (start, end, prefix, suffix, outer, mutants)
        self.swaps = []  # (start, end, text, mutant)
        self.mutants = []
        self.first = first
        ruler = text.find(RULER)
        self.device = False
        self.name = ""  # of the function
        self.limit = ruler if ruler >= 0 else len(text)
        proof = text[self.limit :]
        self.proof_functions = {
            m[1]
            for m in re.finditer(
                r"^(?:static |template [^;{]*?)*[\w:<>*& ]+?\b(\w+)\([^;{]*\) \{", proof, re.M
            )
        }
        self.skipped = set()  # numbers of mutants that do not compile
        self.find_functions()

    def match_brackets(self):
        partner, stack = {}, []
        for i, t in enumerate(self.tokens):
            if t.kind != "mark":
                continue
            if t.text in CLOSING:
                stack.append(i)
            elif t.text in CLOSING.values() and stack:
                # ">>>" may also close templates
                if CLOSING[self.tokens[stack[-1]].text] == t.text:
                    partner[i] = stack.pop()
                    partner[partner[i]] = i
        return partner

    # -- functions

    def find_functions(self):
        i, tokens = 0, self.tokens
        begin = 0  # of the declaration
        self.scopes = []
        while i < len(tokens):
            t = tokens[i]
            if t.start >= self.limit:
                break
            if t.text in (";", "}") or t.kind == "directive":
                begin = i + 1
            elif t.text == "(" and i in self.partner:
                i = self.partner[i]
            elif t.text == "{":
                before = [u.text for u in tokens[begin:i]]
                end = self.partner.get(i, len(tokens) - 1)
                if re.search(r"\b(print\w*|yes_no|\w+_operations) \(", " ".join(before)):
                    i = end
                    begin = i + 1
                elif tokens[i - 1].text in (")", "const", "noexcept") or "->" in before:
                    device = any(w in before for w in ("__global__", "__device__"))
                    host = not device
                    named = re.search(r"\b(?!__launch_bounds__)(\w+) \(", " ".join(before))
                    self.name = named[1] if named else ""
                    self.function(i, end, device, host)
                    i = end
                    begin = i + 1
                elif any(w in before for w in ("struct", "class", "namespace")) and "=" not in before:
                    begin = i + 1
                else:
                    i = end
            i += 1

    def add(self, operator, change, token):
        mutant = Mutant(
            self.first + len(self.mutants),
            token.line,
            change,
            self.lines[token.line - 1].strip(),
            operator,
            self.name,
        )
        self.mutants.append(mutant)
        return mutant.number

    def wrap(self, start, end, prefix, suffix, *ids, outer=0):
        """Text around a part of the source, for the mutants `ids`. `outer` is 1 around a statement, 2 around a row of them."""
        self.edits.append((start, end, prefix, suffix, outer, {i for i in ids if i >= 0}))

    def function(self, opening, closing, device, host):
        self.device = device
        inside = range(opening + 1, closing)
        excluded = self.excluded(inside)
        self.streams = sorted(
            {
                self.tokens[i].text
                for i in inside
                if self.tokens[i].kind == "name"
                and re.match(r"stream\w*$", self.tokens[i].text, re.I)
                and self.tokens[i + 1].text in (",", ")", ">>>")
            }
        )
        for i in inside:
            if i in excluded:
                continue
            self.expression(i)
        self.statements(opening, closing, excluded)

    def statement_of(self, i):
        """The first and the last token of the statement of token i."""
        first = i
        while (
            first > 0
            and self.tokens[first - 1].text not in (";", "{", "}")
            and self.tokens[first - 1].kind != "directive"
        ):
            first -= 1
            if self.tokens[first].text in (")", "]") and first in self.partner:
                first = self.partner[first]
        last = i
        while last < len(self.tokens) - 1 and self.tokens[last].text not in (";", "{", "}"):
            last = (
                self.partner[last]
                if self.tokens[last].text in ("(", "[", "<<<") and last in self.partner
                else last
            )
            last += 1
        return first, last

    def excluded(self, inside):
        """The indices of tokens that are not changed: what is only printed or belongs to the check; declarations."""
        out = set()
        for i in inside:
            t = self.tokens[i]
            if t.kind == "directive":
                out.add(i)
            if t.kind != "name":
                continue
            following = self.tokens[i + 1].text
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
            if t.text in RATES and self.tokens[i - 1].text == "." and following == "=":  # members of Bench
                out.update(range(i - 2, self.statement_of(i)[1] + 1))
            if TIMES.match(t.text) and not self.device:
                first, last = self.statement_of(i)
                if not any(u.text == "{" for u in self.tokens[first:last]):
                    out.update(j for j in range(first, last + 1) if self.tokens[j].text not in WORDS)
            if t.text == "bytes" and self.tokens[i - 1].text == "double":  # for a rate; a size is a size_t
                j = i
                while self.tokens[j].text not in (",", ";"):
                    out.add(j)
                    j = self.partner[j] if self.tokens[j].text == "(" else j + 1
            # the bounds of an array that is declared
            if following == "[" and self.declares(i):
                j = i + 1
                while self.tokens[j].text == "[":
                    out.update(range(j, self.partner[j] + 1))
                    j = self.partner[j] + 1
        return out

    def declares(self, i):
        """Whether the name at i is being declared: a type stands before it."""
        j = i - 1
        while self.tokens[j].text in ("*", "&") or self.tokens[j].text == ",":
            if self.tokens[j].text == ",":
                return "__shared__" in (u.text for u in self.tokens[self.statement_of(i)[0] : i])
            j -= 1
        before = self.tokens[j]
        return (before.kind == "name" and before.text not in ("return", "else", "case")) or before.text == ">"

    # -- expressions

    def spaced(self, i):
        """Whether a binary operator stands at i: clang-format puts blanks around it."""
        t, before, after = self.tokens[i], self.tokens[i - 1], self.tokens[i + 1]
        return (
            before.end < t.start
            and t.end < after.start
            and (before.kind in ("name", "number", "text") or before.text in (")", "]", "}", "++", "--"))
            and before.text not in WORDS - {"sizeof"}
        )

    def left_end(self, i, precedence):
        """The first token of the left operand of the operator at i."""
        j = i - 1
        while True:
            t = self.tokens[j]
            if t.text in (")", "]"):
                j = self.partner[j]
                if t.text == ")" and self.tokens[j - 1].text in ("if", "for", "while", "switch"):
                    return self.partner[j] + 1
                j -= 1
                continue
            if t.text == ">" and not self.spaced(j):  # the end of template arguments
                depth = 1
                while depth:
                    j -= 1
                    depth += {">": 1, "<": -1}.get(self.tokens[j].text, 0)
                j -= 1
                continue
            stops = (
                t.text in CLOSING
                or t.text in (";", ",", "}", ">>>", "?", ":")
                or t.text in ASSIGNMENTS
                or t.text in WORDS - {"sizeof"}
                or t.kind == "directive"
                or (t.text in PRECEDENCE and self.spaced(j) and PRECEDENCE[t.text] < precedence)
            )
            if stops:
                return j + 1
            j -= 1

    def right_end(self, i, precedence):
        """The last token of the right operand of the operator at i."""
        j = i + 1
        while True:
            t = self.tokens[j]
            if t.text in CLOSING and t.text != "<<<" and j in self.partner:
                j = self.partner[j] + 1
                continue
            if t.text == "<" and not self.spaced(j):
                depth = 1
                while depth:
                    j += 1
                    depth += {"<": 1, ">": -1}.get(self.tokens[j].text, 0)
                j += 1
                continue
            stops = (
                t.text in (")", "]", "}", ">>>", ";", ",", "?", ":", "<<<")
                or t.text in ASSIGNMENTS
                or (t.text in PRECEDENCE and self.spaced(j) and PRECEDENCE[t.text] <= precedence)
            )
            if stops:
                return j - 1
            j += 1

    def operands(self, i, precedence):
        if precedence == 0:  # of an assignment
            last = i + 1
            while self.tokens[last].text not in (";", ",", ")", "]", "}"):
                last = self.partner.get(last, last) if self.tokens[last].text in CLOSING else last
                last += 1
            return self.tokens[self.left_end(i, 0)].start, self.tokens[last - 1].end
        return self.tokens[self.left_end(i, precedence)].start, self.tokens[self.right_end(i, precedence)].end

    def expression(self, i):
        t, following = self.tokens[i], self.tokens[i + 1]
        text = t.text
        if t.kind == "mark" and text in "+-" and following.text == "0" and self.spaced(i):
            pass  # x + 0 and x - 0 are the same
        elif t.kind == "mark" and text in BINARY and self.spaced(i):
            name, other = BINARY[text]
            start, end = self.operands(i, PRECEDENCE[text])
            n = self.add("comparison" if PRECEDENCE[text] in (6, 7) else "operator", f"{other} for {text}", t)
            self.wrap(start, end, f"mutant_{name}<{n}>(", ")", n)
            self.swaps.append((t.start, t.end, ",", n))
        elif t.kind == "mark" and text in ("&&", "||") and self.spaced(i):
            start, end = self.operands(i, PRECEDENCE[text])
            n = self.add("operator", f"{'||' if text == '&&' else '&&'} for {text}", t)
            # By the law of De Morgan: l || r is !(!l && !r).
            flip = f"mutant<{n}>()"
            self.wrap(start, t.start, f"((({flip} != (bool)(", ")) ", n)
            self.wrap(following.start, end, f"({flip} != (bool)(", f"))) != {flip})", n)
        elif t.kind == "mark" and text in COMPOUND:
            name, other = COMPOUND[text]
            start, end = self.operands(i, 0)
            n = self.add("operator", f"{other} for {text}", t)
            self.wrap(start, end, f"mutant_{name}<{n}>(", ")", n)
            self.swaps.append((t.start, t.end, ",", n))
        elif t.kind == "number":
            n = self.add("constant", f"{text} + 1 for {text}", t)
            self.wrap(t.start, t.end, f"mutant_constant<{n}>(", ")", n)
        elif text == "[" and i in self.partner and self.indexes(i):
            close = self.partner[i]
            if close > i + 1 and not (close == i + 2 and self.tokens[i + 1].kind == "number"):
                n = self.add("index", "index + 1", t)
                self.wrap(
                    self.tokens[i + 1].start, self.tokens[close - 1].end, f"mutant_constant<{n}>(", ")", n
                )
        elif text == "if" and following.text == "(":
            self.condition(i)
        elif text in ATOMICS and following.text == "(":
            n = self.add("atomic", f"plain load and store for {text}", t)
            self.swaps.append((t.start, t.end, f"mutant_{text}<{n}>", n))
        elif BUILTIN.match(text) and following.text == ".":
            last = self.tokens[i + 2]
            if text in OTHER_BUILTIN:
                other = f"{OTHER_BUILTIN[text]}.{last.text}"
            else:
                other = f"{text}.{'y' if last.text == 'x' else 'x'}"
            n = self.add("index", f"{other} for {text}.{last.text}", t)
            self.wrap(t.start, last.end, f"mutant_either<{n}>(", f", {other})", n)
        elif text in DIRECTIONS:
            n = self.add("direction", f"{DIRECTIONS[text]} for {text}", t)
            self.wrap(t.start, t.end, f"mutant_either<{n}>(", f", {DIRECTIONS[text]})", n)
        elif text in FLAGS:
            n = self.add("flag", f"no {text}", t)
            self.wrap(t.start, t.end, f"mutant_either<{n}>(", ", 0)", n)
        elif text in self.streams and following.text in (",", ")", ">>>") and len(self.streams) > 1:
            before = self.tokens[i - 1].text
            if before in (",", "("):
                other = self.streams[(self.streams.index(text) + 1) % len(self.streams)]
                n = self.add("stream", f"{other} for {text}", t)
                self.wrap(t.start, t.end, f"mutant_either<{n}>(", f", {other})", n)

    def indexes(self, i):
        before = self.tokens[i - 1]
        return (before.kind == "name" and before.text not in WORDS) or before.text in ("]", ")")

    def condition(self, i):
        close = self.partner[i + 1]
        inside = self.tokens[i + 2 : close]
        if any(u.text in ("=", ";") for u in inside) or self.tokens[i - 1].text == "#":
            return
        body = self.tokens[close + 1]
        if body.text == "{":
            body = self.tokens[close + 2]
        if NO_RESULT.search(body.text) or inside[-1].text == "ok":
            return
        t = self.tokens[i]
        never = self.add("guard", "condition never true", t)
        if body.text == "return":
            always = -1
        else:
            always = self.add("guard", "condition always true", t)
        self.wrap(inside[0].start, inside[-1].end, f"mutant_if<{always}, {never}>(", ")", always, never)

    # -- statements

    def statements(self, opening, closing, excluded):
        """Leaves statements out, and swaps calls that follow each other, in a block and the blocks in it."""
        row = []  # of calls: (first token, last token)
        controlled = False  # whether the next statement is that of an "if" or a loop without braces
        i = opening + 1
        while i < closing:
            t = self.tokens[i]
            first = i
            if t.kind == "directive":
                self.order(row)
                row, i = [], i + 1
                continue
            if t.text == "{":
                # a block: its own function call continues with the statements in it
                self.order(row)
                row, controlled = [], False
                self.statements(i, self.partner[i], excluded)
                i = self.partner[i] + 1
                continue
            if t.text in ("if", "for", "while", "switch"):
                self.order(row)
                row, controlled = [], True
                j = i + 1
                while self.tokens[j].text != "(":
                    j += 1
                i = self.partner[j] + 1
                continue
            if t.text in ("else", "do"):
                self.order(row)
                row, i, controlled = [], i + 1, True
                continue
            # a simple statement, up to its semicolon; lambdas in it are blocks of their own
            lambdas = []
            while self.tokens[i].text != ";" and i < closing:
                u = self.tokens[i]
                if u.text == "{" and i in self.partner:
                    if self.tokens[i - 1].text in (")", "]") or self.tokens[i - 1].kind == "name":
                        lambdas.append(i)
                    i = self.partner[i]
                i += 1
                # into parentheses, for the lambdas in them
            for j in range(first, i):
                if self.tokens[j].text == "{" and j in self.partner and self.tokens[j - 1].text in (")", "]"):
                    if not any(a < j < self.partner[a] for a in lambdas if a != j):
                        self.statements(j, self.partner[j], excluded)
            if self.statement(first, i, excluded):
                if self.calls(first) and not controlled:
                    row.append((first, i))
                else:
                    self.order(row)
                    row = []
            elif self.tokens[first].text == "HANDLE_LAUNCH" and row:
                row[-1] = (row[-1][0], i)
            else:
                self.order(row)
                row = []
            controlled = False
            i += 1
        self.order(row)

    def calls(self, first):
        return not self.device and self.tokens[first].kind == "name" and self.call_name(first) != ""

    def call_name(self, first):
        """The function that a statement calls: that in HANDLE_ERROR(), or its own. Empty if it calls none."""
        t = self.tokens[first]
        if t.text == "HANDLE_ERROR":
            return self.tokens[first + 2].text
        j = first + 1
        while self.tokens[j].text in (".", "->", "::"):
            j += 2
        if self.tokens[j].text == "<" and not self.spaced(j):
            depth = 1
            while depth and self.tokens[j].text not in (";", "{"):
                j += 1
                depth += {"<": 1, ">": -1}.get(self.tokens[j].text, 0)
            j += 1
            return t.text if self.tokens[j].text in ("(", "<<<") else ""
        return self.tokens[j - 1].text if self.tokens[j].text in ("(", "<<<") else ""

    def statement(self, first, last, excluded):
        """Adds the mutant in which a statement, a call or an assignment, is left out. Returns whether it can be left out."""
        t = self.tokens[first]
        inside = self.tokens[first:last]
        if first in excluded or not inside or t.text in WORDS or t.kind not in ("name", "mark"):
            return False
        if t.kind == "mark" and t.text not in ("*", "(", "++", "--"):
            return False
        texts = [u.text for u in inside]
        name = self.call_name(first) if t.kind == "name" else ""
        assigns = False
        j = first
        while j < last:
            if self.tokens[j].text in ASSIGNMENTS or self.tokens[j].text in ("++", "--"):
                assigns = True
                break
            if self.tokens[j].text in CLOSING and j in self.partner:
                j = self.partner[j]
            j += 1
        if not name and not assigns:
            return False
        # a declaration: two names beside each other, or a type with * before the name
        if assigns and t.kind == "name" and not name:
            k = first + 1
            while self.tokens[k].text in ("::", "*", "&") or self.tokens[k].text == "<":
                if self.tokens[k].text == "::":
                    k += 2
                    continue
                if self.tokens[k].text == "<":
                    return False
                k += 1
            if self.tokens[k].kind == "name" and self.tokens[k - 1].text not in (".", "->"):
                return False
        if name and (NO_RESULT.search(name) or name in self.proof_functions):
            return False
        if name and not assigns and re.search(r"\b(check|ok)\b", " ".join(texts)):
            return False
        if assigns and texts[0] in ("ok",):
            return False
        shown = self.original[t.start : self.tokens[last].end]
        shown = re.sub(r"\s+", " ", shown)
        kind = "call" if name else "assignment"
        if BARRIERS.match(name):
            kind = "barrier"
        elif FENCES.match(name):
            kind = "fence"
        elif "Synchronize" in name or "WaitEvent" in name:
            kind = "wait"
        n = self.add(kind, f"without {shown if len(shown) < 60 else shown[:57] + '...'}", t)
        self.wrap(t.start, self.tokens[last].end, f"{{ if (!mutant<{n}>()) ", " }", n, outer=1)
        return True

    def order(self, row):
        """Swaps neighbours in a row of calls that use the same variable."""
        pairs = []
        for (a, a_end), (b, b_end) in zip(row, row[1:]):
            names = []
            for first, last in ((a, a_end), (b, b_end)):
                names.append(
                    {
                        u.text
                        for k, u in enumerate(self.tokens[first:last], first)
                        if u.kind == "name"
                        and self.tokens[k + 1].text not in ("(", "<<<", "::")
                        and not re.match(
                            r"cuda[A-Z]|[A-Z_\d]+$|sizeof|n$|bytes|size|blocks|threads|width|height|pitch|int$|float$|\w$",
                            u.text,
                        )
                    }
                )
            one, two = self.call_name(a), self.call_name(b)
            both = lambda pattern: pattern.search(one) and pattern.search(two)
            either = EVENT_TIMES.search(one) or EVENT_TIMES.search(two)
            waits = "WaitEvent" in self.original
            if (
                not names[0] & names[1]
                or both(CREATE)
                or both(DESTROY)
                or (either and not (both(EVENT_TIMES) or waits))
            ):
                pairs.append(-1)
                continue
            pairs.append(self.add("order", f"{two} before {one}", self.tokens[a]))
        if not any(p >= 0 for p in pairs):
            return
        ids = ", ".join(map(str, pairs))
        loop = f"for (int mutant_i = 0; mutant_i < {len(row)}; mutant_i++) switch (mutant_order<{ids}>(mutant_i)) {{ "
        for k, (first, last) in enumerate(row):
            self.wrap(
                self.tokens[first].start,
                self.tokens[last].end,
                (loop if k == 0 else "") + f"case {k}: ",
                " break;" + (" }" if k == len(row) - 1 else ""),
                *pairs,
                outer=2,
            )

    def replace(self, old, new):
        """A mutant in which an expression is replaced by another one, at the first place where it stands."""
        at = self.original.find(old)
        if at < 0:
            sys.exit(f"mutate.py: permanent_mutants.txt: no source has {old!r}")
        keyword = re.match(r"return ", old)
        if keyword:
            at, old, new = at + keyword.end(), old[keyword.end() :], new[keyword.end() :]
        token = next(t for t in self.tokens if t.start >= at)
        n = self.add("replaced", f"{old} => {new}", token)
        self.swaps.append((at, at + len(old), f"(mutant<{n}>() ? ({new}) : ({old}))", n))
        # What the expression contains has no mutants of its own.
        self.skipped |= {
            i
            for start, end, *_, ids in self.edits
            if start < at + len(old) and end > at and start >= at - 9
            for i in ids
        }
        self.skipped |= {n2 for start, _, _, n2 in self.swaps[:-1] if at <= start < at + len(old)}

    # -- the text with all mutants

    def mutated(self):
        """The source with its mutants, but those of `skipped`. Line numbers stay."""
        points = []  # (position, order among those of one position, text, end of what it replaces)
        for number, (start, end, prefix, suffix, outer, ids) in enumerate(self.edits):
            if ids & self.skipped and (outer == 2 or ids <= self.skipped):
                continue
            points.append(((start, 1, -outer, -end, number), prefix, start))
            points.append(((end, 0, outer, -start, -number), suffix, end))
        for start, end, new, number in self.swaps:
            if number not in self.skipped:
                points.append(((start, 2), new, end))
        out, at = [], 0
        for key, new, end in sorted(points, key=lambda p: p[0]):
            out += [self.original[at : key[0]], new]
            at = end
        return "".join(out) + self.original[at:]


# ---- Building


def settings_of(folder):
    """The values of config.mk: FLAGS_…, LIBS_… and what they refer to."""
    values = {}
    for line in (folder / "config.mk").read_text().splitlines():
        match = re.match(r"(\S+) [?:]?\+?= ?(.*)", line)
        if match:
            values[match[1]] = re.sub(r"\$\((\w+)\)", lambda m: values.get(m[1], ""), match[2])
    return values


class Build:
    """How the programs of a variant are compiled and linked: `plain`, `check` or `sanitize`."""

    MAKE = {
        "plain": [],
        "check": ["RACES=1"],
        "sanitize": ["SANITIZE=address,undefined"],
    }
    optimise = "-O1"

    def __init__(self, name):
        self.name = name

    def prepare(self, programs):
        """Builds the programs with make, and so the libraries."""
        folder = {"plain": os.environ.get("BIN", "bin")}.get(self.name, f"{BUILD}/{self.name}")
        stamp = ROOT / folder / ".variant"
        if self.name == "plain" and stamp.exists() and not stamp.read_text().split()[0].endswith("/cpu"):
            folder = f"{BUILD}/mutate/bin"  # there are programs of another back end in BIN
            stamp = ROOT / folder / ".variant"
        if self.name != "plain" or not all((stamp.parent / p).exists() for p in programs):
            settings = [*self.MAKE[self.name], f"BIN={folder}", f"BUILD={BUILD}", "CHAPTER=", "PROGRAM="]
            command = ["make", "BACKEND=cpu", *settings, *programs]
            done = subprocess.run(
                command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if done.returncode:
                sys.exit(f"mutate.py: {' '.join(command)} failed:\n{done.stdout}")
        words = stamp.read_text().split()
        self.folder, self.link = ROOT / words[0], words[1:]
        self.compile = (self.folder / "flags-cu").read_text().split()
        self.values = settings_of(self.folder)

    def flags(self, program):
        return (
            self.values.get("MPI_FLAGS", "").split()
            if program in ("chapter11/dot_mpi", "chapter11/heat_mpi")
            else []
        )

    def object(self, program, source, out):
        """Compiles a mutated source. Returns the messages of the compiler, or None if there are none."""
        command = [w for w in self.compile if not re.match(r"-(O\d|g|gdwarf.*|Wall|Wextra)$", w)]
        most = "-ferror-limit=40" if "clang" in " ".join(self.compile[:2]) else "-fmax-errors=40"
        command += [self.optimise, "-w", most, "-iquote", str(ROOT / program.split("/")[0])]
        if self.name != "plain":
            command += ["-g1", "-gdwarf-4"]
        command += self.flags(program)
        for step in (
            [*command, "-include", HERE / "mutants.h", "-x", "c++", "-E", "-o", f"{out}.ii", source],
            [self.folder / "cu2cpp", f"{out}.ii", "-o", f"{out}.cpp.ii"],
            [*command, "-c", "-o", f"{out}.o", f"{out}.cpp.ii"],
        ):
            step = [w for w in step if not (str(step[0]).endswith("cu2cpp") and w == "-w")]
            done = subprocess.run(step, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                return done.stdout
        return None

    def program(self, program, out):
        libraries = [self.folder / "libcommon.a", self.folder / "libcudacpu.a"]
        own = self.values.get(f"LIBS_{program}", "").split()
        command = [
            self.compile[0],
            *self.link_flags(),
            "-o",
            out,
            f"{out}.o",
            *libraries,
            *own,
            *self.link_libraries(),
        ]
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise RuntimeError(f"cannot link: {done.stdout}")

    def link_flags(self):
        return [w for w in self.link if not w.startswith("-l")]

    def link_libraries(self):
        return [w for w in self.link if w.startswith("-l")]


def compile_mutants(build, program, sources, folder):
    """Compiles all mutants of a program into folder/BUILD. What does not compile is left out; returns the number of attempts."""
    out = folder / build.name
    for attempt in range(1, 30):
        for path, source in sources.items():
            text = f'#line 1 "{path}"\n' + source.mutated()
            (folder / pathlib.Path(path).name).write_text(text)
        messages = build.object(program, folder / (program.split("/")[1] + ".cu"), out)
        if messages is None:
            build.program(program, out)
            return attempt
        found = False
        lines = set()
        for path, line in re.findall(r"(\S+?):(\d+)(?::\d+)?:(?: \w+:)? ", messages):
            for known, source in sources.items():
                if path.endswith(known):
                    lines.add((known, int(line)))
        if os.environ.get("MUTATE_DEBUG"):
            print(messages[:1500], lines)
        for known, line in lines:
            ids = {m.number for m in sources[known].mutants if m.line == line}
            new = ids - sources[known].skipped
            sources[known].skipped |= ids
            found |= bool(new)
        if not found:
            # A constant expression elsewhere: leave out what changes the value of a constant near by.
            for known, line in lines:
                near = [m for m in sources[known].mutants if m.number not in sources[known].skipped]
                near = sorted(near, key=lambda m: abs(m.line - line))[:10]
                sources[known].skipped |= {m.number for m in near}
                found |= bool(near)
        if not found:
            raise RuntimeError(f"{program}: {messages[:3000]}")
    raise RuntimeError(f"{program}: still does not compile after {attempt} attempts\n{messages[:2000]}")


# ---- Running


@dataclasses.dataclass
class Stage:
    name: str
    build: str
    options: list
    environment: dict
    seconds: float = 0  # CPU time without a mistake
    wall: float = 0


def run_once(binary, stage, mutant, limit, ranks=None):
    """Runs one mutant. Returns (exit status or None for too long, CPU seconds, wall seconds, last line of stderr)."""
    environment = {
        k: v
        for k, v in os.environ.items()
        if not re.match(r"(CUDA_|MUTANT|DISPLAY|WAYLAND|ASAN|UBSAN|LSAN)", k)
    }
    environment.update(stage.environment, CUDA_CPU_WATCHDOG="4", OMPI_MCA_pml="ob1")
    if mutant is not None:
        environment["MUTANT"] = str(mutant)

    def before():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryDirectory() as cwd, open(f"{cwd}/.err", "w+b") as err:
        begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            [binary, *stage.options],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            preexec_fn=before,
            start_new_session=True,
        )
        try:
            status = process.wait(limit * 4 + 20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        err.seek(0)
        text = err.read()[-3000:].decode(errors="replace")
        return status, seconds, time.monotonic() - begin, text


def header_fields(program):
    text = (ROOT / f"{program}.cu").read_text()
    field = re.search(r"^ \* Check: +(.*)$", text, re.M)
    runs = [r.strip() for r in field[1].split("|")] if field else [""]
    return text, [r.split() for r in runs if "(race)" not in r] or [[]]


def stages_of(program):
    """The runs of a program, the cheapest first: its own check, then make check, then the sanitizers."""
    text, checks = header_fields(program)
    size = 'OPTION_SIZE("size"' in text or re.search(r"_OPTIONS\b|heat_settings", text)
    rest = ["--runs", "1"] if '"../common/bench.h"' in text else []
    stages = []
    for options in checks:
        stages.append(Stage(f"check: {' '.join(options)}", "plain", options + rest, {}))
    stages.append(Stage("default", "plain", rest, {}))
    if size:
        for value in ("77", "1"):
            odd = list(checks[0])
            if "--size" in odd:
                odd[odd.index("--size") + 1] = value
            else:
                odd += ["--size", value]
            stages.append(Stage(f"--size {value}", "plain", odd + rest, {}))
    if "HOST_ONLY" not in text and "gpus=" not in text:
        device = [*checks[0], *rest, "--device", "1"]
        stages.append(Stage("--device 1", "plain", device, {"CUDA_CPU_WORKERS": "7"}))
    ways = ["forward/late", "reverse/late", "random:1/random:1", "random:2/random:2", "random:3/random:3"]
    races = []
    for way in ways:
        order, streams = way.split("/")
        environment = {"CUDA_CPU_SCHEDULE": order, "CUDA_CPU_STREAMS": streams, "CUDA_CPU_STRICT": "1"}
        if way == "reverse/late":
            environment["CUDA_CPU_FILL"] = "zero"
        races += [Stage(f"make check, {way}", "check", options + rest, environment) for options in checks]
    stages += races[: len(checks)]
    for options in checks:
        stages.append(Stage("CUDA_CPU_CHECK=1", "plain", options + rest, {"CUDA_CPU_CHECK": "1"}))
        stages.append(Stage("sanitizers", "sanitize", options + rest, {}))
    stages += races[len(checks) :]
    return stages


def rows_of(name, fields):
    """The rows of a list beside this file: fields with " | " between them."""
    rows = []
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            rows.append([field.strip() for field in line.split(" | ")])
            if len(rows[-1]) != fields or not all(rows[-1]):
                sys.exit(f"tests/attacks/{name}:{number}: must have {fields} fields with ' | ' between them")
    return rows


def matches(pattern, text):
    """Whether text is the pattern, in which * stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def headers_of(program):
    """The headers of its chapter that a program includes, also those that they include in turn."""
    folder, paths = program.split("/")[0], [f"{program}.cu"]
    for path in paths:
        for header in re.findall(r'^#include "(\w+\.h)"', (ROOT / path).read_text(), re.M):
            name = f"{folder}/{header}"
            if (ROOT / name).exists() and name not in paths:
                paths.append(name)
    return paths[1:]


def sources_of(program, headers):
    """The files of a program that are mutated: its own source, and `headers`."""
    sources, first = {}, 2
    for path in [f"{program}.cu", *headers]:
        sources[path] = Source((ROOT / path).read_text(), first)
        first += len(sources[path].mutants)
    return sources


def attack(program, options, builds, users, equal):
    """Runs the mutants of one program and of its headers. `users` has, for each header, the other programs that include it: a
    mutant that survives in the first program is run in the next one. Returns a dictionary with the results, which is also kept
    in build/mutate."""
    sources = sources_of(program, users)
    others = list(dict.fromkeys(p for programs in users.values() for p in programs))
    kept = ROOT / BUILD / "mutate" / f"{program.replace('/', '-')}.json"
    digest = hashlib.sha256(
        repr([(t.options, t.environment) for p in [program, *others] for t in stages_of(p)]).encode()
    )
    for source in sources.values():
        digest.update(source.mutated().encode())
    headers = [*sorted((ROOT / program).parent.glob("*.h")), *sorted((ROOT / "common").rglob("*.h"))]
    for path in [*headers, *(ROOT / f"{p}.cu" for p in others)]:
        digest.update(path.read_bytes())
    key = f"{digest.hexdigest()} {options.own_check} {options.sample} {options.seed if options.sample else 0}"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    if before.get("key") == key and not options.again:
        result = before
    else:
        mutants = [(path, m) for path, source in sources.items() for m in source.mutants]
        by = run_mutants(program, options, builds, sources, mutants, equal, options.sample)
        for other in others:
            alive = [(file, m) for file, m in mutants if by.get(m.number) == ("", 0)]
            alive = [
                (file, m)
                for file, m in alive
                if other in users.get(file, []) and not reason_of(file, m, equal)
            ]
            if alive:
                by.update(run_in_another(other, options, builds, sources, alive, equal))
        found = [
            dict(
                file=file,
                line=m.line,
                change=m.change,
                text=m.text,
                operator=m.operator,
                function=m.function,
                stage=by[m.number][0],
                status=by[m.number][1],
            )
            for file, m in mutants
            if m.number in by
        ]
        result = {"key": key, "program": program, "mutants": found}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(result, indent=1))
    for m in result["mutants"]:
        mutant = Mutant(0, m["line"], m["change"], m["text"], "", m.get("function", ""))
        m["equivalent"] = reason_of(m["file"], mutant, equal)
    return result


def run_in_another(other, options, builds, sources, alive, equal):
    """Runs mutants of headers in another program that includes them. Returns the same as run_mutants()."""
    theirs = sources_of(other, headers_of(other))
    numbers, chosen = {}, []  # a mutant has another number in the other program
    for file, m in alive:
        same = theirs[file].mutants[m.number - sources[file].first]
        numbers[same.number] = m.number
        chosen.append((file, same))
    for source in theirs.values():
        source.skipped |= {m.number for m in source.mutants} - set(numbers)
    try:
        by = run_mutants(other, options, builds, theirs, chosen, equal)
    except RuntimeError as error:
        if options.verbose:
            print(f"  {other}: not used: {str(error)[:200]}", flush=True)
        return {}
    # What does not compile in the other program stays as it was.
    return {numbers[number]: result for number, result in by.items()}


def reason_of(file, mutant, equal):
    """Why a mutant is equivalent, or nothing."""
    for row in equal:
        path, _, function = row[0].partition("@")
        where = matches(path, file) and (not function or matches(function, mutant.function))
        if where and matches(row[1], mutant.change) and matches(row[2], mutant.text):
            return row[3]
    return ""


def run_mutants(program, options, builds, sources, mutants, equal, sample=0):
    """Runs mutants of a program, or `sample` random ones of them. Returns the name of the run that noticed a mutant and its exit
    status, for the number of each mutant: ("", 0) for one that no run noticed. Those that do not compile are missing.
    """
    stages = stages_of(program)
    if options.own_check:
        stages = [s for s in stages if s.build == "plain" and not s.environment]
    # The object files of mutants are compiled once for all of them.
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        folder = pathlib.Path(temporary)
        binaries = {}

        def binary(name):
            if name not in binaries:
                compile_mutants(builds[name], program, sources, folder)
                binaries[name] = folder / name
            return binaries[name]

        binary("plain")
        mutants = [(file, m) for file, m in mutants if m.number not in sources[file].skipped]
        if sample:
            mutants = random.Random(f"{options.seed} {program}").sample(mutants, min(sample, len(mutants)))
        certain = [row for row in equal if row[1] != "*"]  # rows that name the change
        alive, by, used = mutants, {}, 0
        for stage in stages:
            if not alive:
                break
            path = binary(stage.build)
            status, stage.seconds, stage.wall, text = run_once(path, stage, None, 120)
            if status != 0:
                if options.verbose:
                    print(
                        f"  {program}: {stage.name}: not used, ends with {status}: {text.splitlines()[-1:]}",
                        flush=True,
                    )
                continue
            if stage.seconds > options.longest and stage.name != "check: ":
                continue
            used += 1
            survivors = []
            for file, m in alive:
                if used > 2 and m.operator != "call" and reason_of(file, m, certain):
                    # Enough runs have confirmed that it computes the same. A missing call may be a leak, which only the
                    # sanitizers report.
                    survivors.append((file, m))
                    continue
                if m.number in sources[file].skipped:
                    continue
                limit = max(1, 8 * stage.seconds)
                status, seconds, wall, text = run_once(path, stage, m.number, limit)
                if status == 0:
                    survivors.append((file, m))
                else:
                    by[m.number] = (stage.name, "too long" if status is None else status)
            if options.verbose:
                print(
                    f"  {program}: {stage.name}: {len(survivors)} of {len(alive)} survive ({stage.seconds:.2f} s)",
                    flush=True,
                )
            alive = survivors
    if not used:
        raise RuntimeError("without a mistake it ends with an error")
    left = {m.number: ("", 0) for file, m in mutants if m.number not in sources[file].skipped}
    return {**left, **by}


def permanent(builds):
    """Runs the mutants of permanent_mutants.txt, whose programs must notice them by themselves. Returns how many do not."""
    rows = rows_of("permanent_mutants.txt", 3)
    files, missed, count = {}, 0, 0
    for file, change, text in rows:
        files.setdefault(file, []).append((change, text))
    headers = {"appendix_a/hashtable.h": "appendix_a/hashtable_cpu"}
    programs = {}
    for file, wanted in files.items():
        programs.setdefault(headers.get(file, file.removesuffix(".cu")), []).append((file, wanted))
    builds["plain"].prepare(list(programs)[:1])
    builds["plain"].optimise = "-O0"  # these are compiled for a few runs only
    for program, parts in programs.items():
        sources, chosen, first = {}, [], 2
        for file, wanted in parts:
            source = sources[file] = Source((ROOT / file).read_text(), first)
            for change, text in wanted:
                if " => " in change:
                    source.replace(*change.split(" => "))
                    chosen.append((file, source.mutants[-1]))
                    continue
                found = [m for m in source.mutants if matches(change, m.change) and matches(text, m.text)]
                if not found:
                    sys.exit(f"mutate.py: permanent_mutants.txt: {file} has no mutant {change!r} at {text!r}")
                chosen += [(file, m) for m in found]
            source.skipped |= {m.number for m in source.mutants} - {m.number for _, m in chosen}
            first += len(source.mutants)
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            compile_mutants(builds["plain"], program, sources, pathlib.Path(folder))
            stage = next(s for s in stages_of(program) if s.build == "plain")
            for file, m in [("", None), *chosen]:
                status, *_ = run_once(pathlib.Path(folder) / "plain", stage, m and m.number, 20)
                count += m is not None
                if (status == 0) != (m is None) or (m and m.number in sources[file].skipped):
                    missed += 1
                    print(f"{file or program}:{m or ''}: ends with status {status}", flush=True)
    print(f"permanent mutants: {count} in {len(programs)} programs, {count - missed} noticed, {missed} not")
    return missed


def attack_one(work):
    """attack() for a process of the pool: (program, result or the reason why there is none, seconds)."""
    program, options, builds, users, equal = work
    begin = time.monotonic()
    try:
        result = attack(program, options, builds, users, equal)
    except RuntimeError as error:
        result = str(error)
    return program, result, time.monotonic() - begin


def share_cores(numbers, jobs):
    """Gives a process of the pool its share of the cores: a program on the CPU back end uses all that it may run on."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[numbers.get() % len(cores) :: jobs])


def counted_as(program, result, seconds, counts):
    """Adds a program's results to the counts, and prints them with the mutants that survived."""
    if isinstance(result, str):
        counts["not run"] += 1
        print(f"{program}: not run: {result}", flush=True)
        return
    mine = dict.fromkeys(counts, 0)
    for m in result["mutants"]:
        mine["mutants"] += 1
        if not m["stage"] and m["equivalent"]:
            mine["equivalent"] += 1
        elif not m["stage"]:
            mine["survived"] += 1
        elif m["stage"].startswith("make check"):
            mine["check"] += 1
        elif m["stage"] in ("sanitizers", "CUDA_CPU_CHECK=1"):
            mine["sanitizers"] += 1
        else:
            mine["own"] += 1
    for name in counts:
        counts[name] += mine[name]
    print(
        f"{program}: {mine['mutants']} mutants: {mine['own']} by its own check, {mine['check']} by make check, "
        f"{mine['sanitizers']} by sanitizers; {mine['equivalent']} equivalent; {mine['survived']} survived "
        f"({seconds:.0f} s)",
        flush=True,
    )
    for m in result["mutants"]:
        if not m["stage"] and not m["equivalent"]:
            print(f"    {m['file']}:{m['line']}: {m['change']}: {m['text']}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="chapter05/dot, or chapter05; default: all programs"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="N random mutants of each program (default: all)"
    )
    parser.add_argument(
        "--own-check",
        action="store_true",
        help="only the program's own check, no make check and no sanitizers",
    )
    parser.add_argument(
        "--longest",
        type=float,
        default=4,
        metavar="S",
        help="leave out runs that take more CPU seconds (default 4)",
    )
    parser.add_argument(
        "--again", action="store_true", help="run also what has not changed since its results in build/mutate"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument(
        "--record", action="store_true", help="write the figures into tests/attacks/results.json"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="programs at the same time, each on its share of the cores (default 1)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print each run of a program")
    parser.add_argument(
        "--permanent",
        action="store_true",
        help="run the mutants of permanent_mutants.txt, by own checks only",
    )
    options = parser.parse_args()
    builds = {name: Build(name) for name in Build.MAKE}
    if options.permanent:
        return min(permanent(builds), 1)
    listed = subprocess.run(
        [ROOT / "scripts/programs.py", "--list"], cwd=ROOT, text=True, check=True, stdout=subprocess.PIPE
    ).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    every = [r[0] for r in rows if not r[8] and not re.search(r"libs=(mpi|opencl|npp)", r[6])]
    wanted = options.programs or [p for p in every]
    every = [p for p in every if (ROOT / f"{p}.cu").exists()]
    chosen = [p for p in every if p in wanted or p.split("/")[0] in wanted]
    unknown = [w for w in wanted if w not in every and not any(p.startswith(f"{w}/") for p in every)]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}")
    # A header belongs to the first program that includes it, whichever programs are chosen. The other ones run what survives there.
    included, users = {}, {program: {} for program in every}
    for program in every:
        for header in headers_of(program):
            if header in included:
                included[header].append(program)
            else:
                users[program][header] = included[header] = []
    if options.list:
        for program in chosen:
            for path, source in sources_of(program, users[program]).items():
                for m in source.mutants:
                    print(f"{path}:{m}")
        return 0
    for name, build in builds.items():
        if name == "plain" or not options.own_check:
            build.prepare(chosen[:1])
    equal = rows_of("equivalent_mutants.txt", 4)
    counts = dict.fromkeys(("mutants", "equivalent", "own", "check", "sanitizers", "survived", "not run"), 0)
    work = [(program, options, builds, users[program], equal) for program in chosen]
    numbers = multiprocessing.Queue()
    for number in range(options.jobs):
        numbers.put(number)
    if options.jobs > 1:  # programs with many mutants first, so that all end at about the same time
        work.sort(key=lambda w: -sum(len(s.mutants) for s in sources_of(w[0], w[3]).values()))
    with multiprocessing.Pool(options.jobs, share_cores, (numbers, options.jobs)) as pool:
        results = pool.imap_unordered(attack_one, work) if options.jobs > 1 else map(attack_one, work)
        for program, result, seconds in results:
            counted_as(program, result, seconds, counts)
    counted = counts["mutants"] - counts["equivalent"]
    killed = counted - counts["survived"]
    rate = f"{100 * killed / counted:.1f} %" if counted else "none"
    if options.record:
        sys.path.insert(0, str(HERE))
        from record import record

        arguments = [f"--sample {options.sample} --seed {options.seed}"] if options.sample else []
        arguments += ["--own-check"] if options.own_check else []
        arguments += options.programs if len(options.programs) > 1 else []
        what = " ".join(f"PROGRAM={p}" for p in options.programs[:1]) if len(options.programs) < 2 else ""
        what += f" ARGS='{' '.join(arguments)}'" if arguments else ""
        figures = {
            "programs": len(chosen) - counts["not run"],
            "mutants": counts["mutants"],
            "equivalent": counts["equivalent"],
            "detected": f"{killed:,} of {counted:,}, {rate}",
            "by the program's own check": counts["own"],
            "by make check": counts["check"],
            "by sanitizers, CUDA_CPU_CHECK": counts["sanitizers"],
            "survived": counts["survived"],
            "seed": options.seed,
        }
        record("mutate", f"make mutate {what.strip()}".strip(), figures)
    print(
        f"mutate: {len(chosen)} programs, {counts['mutants']} mutants, {counts['equivalent']} of them equivalent; {killed} of {counted} "
        f"detected, {rate}: {counts['own']} by the program's own check, {counts['check']} by make check, {counts['sanitizers']} "
        f"by sanitizers and CUDA_CPU_CHECK=1; {counts['survived']} survived; {counts['not run']} programs were not run (seed {options.seed})"
    )
    return min(counts["not run"], 1)


if __name__ == "__main__":
    sys.exit(main())
