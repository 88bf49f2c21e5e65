# SPDX-License-Identifier: MIT
"""C++ as tokens. The lexer is that of cucc's translator: `cu2cpp --tokens` (cucc/translate/lex.c). Whatever reads the code of a source,
here and in tests/, does so by these functions; a regular expression sees what they return."""
import collections
import fcntl
import functools
import os
import re
import subprocess
import sys

from programs import BUILD, ROOT

# kind: word, number, string, character, symbol, comment, directive; unclosed: a comment, a raw string or a quotation mark without its
# end. at: its offset. line: from 0. A symbol is one character, but for -> :: == <= >= <=> <<= >>= and digraphs. Prefixes of literals are words.
Token = collections.namedtuple("Token", "kind text at line")
# declared: the text before the brace; first, open, close: numbers of lines, from 0; text: from the first word to the last brace
Function = collections.namedtuple("Function", "name declared first open close text")


class Problem(Exception):
    """What is wrong with a source."""


@functools.cache
def command():
    """The path of cu2cpp. make compiles it in a second if none is here that is newer than its sources."""
    cucc, own = ROOT / "cucc", ROOT / BUILD / "tokens"
    newest = max(path.stat().st_mtime for path in cucc.glob("translate/**/*.[ch]"))
    for built in sorted(cucc.glob("build/*/bin/cu2cpp")):
        if built.stat().st_mtime > newest:
            return built
    goal = os.path.relpath(own, cucc)
    make = ["make", "-C", cucc, f"TOOLKIT={goal}", f"{goal}/bin/cu2cpp"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    own.mkdir(parents=True, exist_ok=True)
    with open(own / "lock", "w") as lock:  # two processes may want it
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(make, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return sys.exit(done.stdout) if done.returncode else own / "bin/cu2cpp"


@functools.lru_cache(32)
def tokens(text):
    """The tokens of a source in order, comments and directives included. A directive ends before a comment, and may go on behind it."""
    bytes_ = re.sub(r"[^\0-\x7f]", "\x80", text).encode(
        "latin-1"
    )  # one a character, so offsets are those of the text
    done = subprocess.run([command(), "--tokens", "-"], input=bytes_, stdout=subprocess.PIPE, check=True)
    found, line, last = [], 0, 0
    for row in done.stdout.split(b"\n")[:-1]:
        kind, at, length, _ = row.split(b" ", 3)
        line, last = line + text.count("\n", last, int(at)), int(at)
        found.append(Token(kind.decode(), text[last : last + int(length)], last, line))
    return found


def without(text, *kinds):
    """A source with blanks in place of the tokens of these kinds. The others stay where they are."""
    parts, end = [], 0
    for token in tokens(text):
        if token.kind in kinds and token.at >= end:
            parts += text[end : token.at], re.sub(r"\S", " ", token.text)
            end = token.at + len(token.text)
    return "".join([*parts, text[end:]])


def code_of(text):
    """Nothing but code."""
    return without(text, "comment", "directive", "string", "character")


def find_functions(text):
    """The functions of a source. Braces in a class or a namespace are skipped."""
    code, found, depth, begin, function = code_of(text), [], 0, [], None
    for token in tokens(text):
        if token.kind == "unclosed" and "/*" in token.text:
            depth = -1
            break
        if token.kind not in ("word", "number", "symbol"):
            continue
        if token.text == "{":
            if not depth:
                pairs = zip(begin, [*begin[1:], token])
                names = [t.text for t, next_one in pairs if t.kind == "word" and next_one.text == "("]
                name = next((name for name in names if name != "__launch_bounds__"), None)
                defines = name and not any("=" in t.text for t in begin)
                function = defines and (name, code[begin[0].at : token.at], begin[0], token.line)
            depth += 1
        elif token.text == "}" and depth:
            depth -= 1
            if not depth and function:
                name, declared, first, opened = function
                body = text[first.at : token.at + 1]
                found.append(Function(name, declared, first.line, opened, token.line, body))
        if depth or token.text in "{};":
            begin = []
        else:
            begin.append(token)
    if depth:
        raise Problem("its braces or comments are not balanced")
    return found
