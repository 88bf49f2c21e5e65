# SPDX-License-Identifier: MIT
"""Sources as HTML, highlighted by Pygments, with links to the headers that they include, for site.py."""
import os
import re
from html import unescape

from programs import ROOT


def kernels_and_launches(code):
    """Each declaration of a kernel and each launch in a source without comments, as (kind, name, begin, end)."""
    name = r"(\w[\w.]*(?:\[\w*\])?)(?:<[\w\s,:*&.()]*>)?\s*"
    bounds = r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)"
    for kind, pattern, following in (
        ("Kernel", rf"__global__(?:{bounds}|[^;{{}}()])*?\b(?!__launch_bounds__){name}(?=\()", r"\s*\{"),
        ("Launch", rf"{name}<<<.*?>>>\s*(?=\()", ""),
        ("Launch", r"\b(cudaLaunch\w*Kernel\w*)(?=\()", ""),
    ):
        for found in re.finditer(pattern, code, re.S):
            end, depth = found.end(), 0
            while (end == found.end() or depth) and end < len(code):
                depth += (code[end] == "(") - (code[end] == ")")
                end += 1
            if re.match(following, code[end:]):
                yield kind, found[1], found.start(), end


def highlighted(path, link):
    """The lines of a source as HTML, and the kernels and launches of a program as (kind, name, line). link(file, page) is the relative
    link from a page to a file."""
    from pygments import format, lexers, token
    from pygments.formatters import HtmlFormatter

    cuda, text = path.endswith((".cu", ".h")), (ROOT / path).read_text()
    lexer = lexers.CudaLexer if cuda else lexers.find_lexer_class_for_filename(path) or lexers.TextLexer
    tokens = list(lexer(stripnl=False, ensurenl=False).get_tokens(text))
    hidden = token.Comment, token.String
    code = "".join(" " * len(part) if any(kind in h for h in hidden) else part for kind, part in tokens)
    program = re.match(r"(chapter..|appendix_a)/\w+\.cu$", path)
    marks = sorted(kernels_and_launches(code), key=lambda mark: mark[2]) if program else []

    # In a marked range, Name.Function becomes Name.Function.Kernel, whose class in HTML is "nf nf-Kernel".
    at, marked = 0, []
    for kind, part in tokens:
        mark = next((mark[0] for mark in marks if mark[2] <= at < mark[3]), None)
        marked.append((getattr(kind, mark) if mark else kind, part))
        at += len(part)

    def included(match):
        header = os.path.normpath(os.path.join(os.path.dirname(path), unescape(match[1])))
        exists = not header.startswith("..") and (ROOT / header).is_file()
        return f'<a href="{link(header, path)}">{match[0]}</a>' if exists else match[0]

    lines = format(marked, HtmlFormatter(nowrap=True)).splitlines(keepends=True)
    quote = '(?:&quot;|")'  # Pygments 2.20 does not escape quotation marks
    header_name = f'(?<=<span class="cpf">){quote}([^&<"]+){quote}'
    lines = [re.sub(header_name, included, line) for line in lines]
    lines = [f'<span id="L{number}">{line}</span>' for number, line in enumerate(lines, 1)]
    return lines, [(kind, name, text.count("\n", 0, begin) + 1) for kind, name, begin, _ in marks]
