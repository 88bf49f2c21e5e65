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

from programs import ROOT

# kind: word, number, string, character, symbol, comment, directive; unclosed: a comment, a raw string or a quotation mark without its
# end. at: its offset. line: from 0. A symbol is one character, but for -> :: == <= >= <=> <<= >>= and digraphs. A prefix of a literal is
# a word.
Token = collections.namedtuple("Token", "kind text at line")
# declared: the text before the brace; first, open, close: numbers of lines, from 0; text: from the first word to the last brace
Function = collections.namedtuple("Function", "name declared first open close text")


class Problem(Exception):
    """What is wrong with a source."""


@functools.cache
def command():
    """The path of cu2cpp. make compiles it in a few seconds if it is missing or older than its sources."""
    cucc, built = ROOT / "cucc", ROOT / "cucc/build/bin/cu2cpp"
    newest = max(path.stat().st_mtime for path in cucc.glob("translate/**/*.[ch]"))
    if built.exists() and built.stat().st_mtime > newest:
        return built
    make = ["make", "-s", "-C", cucc, "-f", "driver/Makefile", "build/bin/cu2cpp"]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "BUILD"))}
    (cucc / "build").mkdir(exist_ok=True)
    with open(cucc / "build/.lock", "a") as lock:  # the script cucc has the same lock
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(make, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return sys.exit(done.stdout) if done.returncode else built


@functools.lru_cache(32)
def tokens(text):
    """The tokens of a source in order, comments and directives included. A directive ends before a comment, and may go on behind it."""
    # A byte for each character, so that the offsets are those of the text
    source = re.sub(r"[^\0-\x7f]", "\x80", text).encode("latin-1")
    done = subprocess.run([command(), "--tokens", "-"], input=source, stdout=subprocess.PIPE, check=True)
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
    every, code, found, depth, declared, opened = tokens(text), code_of(text), [], 0, [], None
    for token in every:
        if token.kind not in ("word", "number", "symbol"):
            continue
        if token.text == "{":
            opened = opened if depth else token
            depth += 1
        elif token.text == "}" and depth:
            depth -= 1
            if not depth and (name := function_name(declared)):
                first, before = declared[0], code[declared[0].at : opened.at]
                lines = first.line, opened.line, token.line
                found.append(Function(name, before, *lines, text[first.at : token.at + 1]))
        elif not depth and token.text not in ";}":
            declared.append(token)
            continue
        declared = declared if depth else []
    if depth or any(token.kind == "unclosed" and "/*" in token.text for token in every):
        raise Problem("its braces or comments are not balanced")
    return found


def function_name(declared):
    """The name of the function that these tokens declare, or None."""
    words = zip(declared, declared[1:])
    names = [word.text for word, after in words if word.kind == "word" and after.text == "("]
    named = [name for name in names if name != "__launch_bounds__"]
    return named[0] if named and not any("=" in token.text for token in declared) else None
