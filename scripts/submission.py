# SPDX-License-Identifier: MIT
"""The functions of a submission, cut out for make grade and put into the program, as text that can only compute.

A function is taken from its first word to its closing brace, without comments, and with lines joined as a compiler joins them. It has
words, numbers, characters and operators: no directive, no backslash, no string that the program lacks. A word stays if CUDA has it
(WORDS) or if it occurs in the lesson where this function can mean nothing of the harness by it; any other word gets the prefix student_.
So a variable of the submission is never one of the harness, and exit(), asm or __attribute__ do not compile. A value is never called:
there are no types of its own and no lambdas, so a submission cannot make a pointer to a function from a number."""
import re

from programs import ROOT
from tokens import Problem, find_functions, tokens, without

OWN = "student_"  # before the words of a submission
# The tokens of a submission; strings and further directives are those of the lesson
ACCEPTED = {
    "word": r"[A-Za-z_]\w*",
    "number": r"[\w.'+-]+",
    "character": r"'(\\\w+|\\.|[^'\\])'",
    "symbol": r"->|::|[-+<>=]{1,3}|[][(){};,.:?~!&|^*/%]",
    "directive": r"# *pragma +unroll\b *\(?\w*\)? *",
}
ACCEPTED = {kind: re.compile(form, re.A) for kind, form in ACCEPTED.items()}
NO_PAIRS = "%:", "??", ".*", "->*", "::*"  # digraphs, trigraphs, pointers to members
JOINED = "<<", "<<<", ">>", ">>>", "++", "--"
WORDS = re.compile(
    r"""if|else|for|while|do|switch|case|default|break|continue|return|sizeof|(static|reinterpret|const)_cast|const|constexpr|volatile
    |static|inline|extern|signed|unsigned|char|short|int|long|float|double|bool|void|auto|true|false|nullptr|NULL|INFINITY|NAN|M_PI
    |__(device|host|global|shared|restrict|forceinline|noinline)__|(thread|block)Idx|(block|grid)Dim|warpSize|clock(64)?|dim3|size_t
    |u?int(8|16|32|64)_t|uint|(make_)?(u?(char|short|int|long|longlong)|float|double)[1-4]|[A-Z]+_(MAX|MIN|EPSILON)|atomic[A-Z]\w*
    |__(syncthreads|shfl|popc|clz|ffs|brev|ldg|threadfence|reduce|f(add|mul|div|ma|sqrt|rcp)|u?mul)\w*
    |__(syncwarp|activemask|(any|all|ballot|match_any)_sync|(float|double|u?int)(2|_as_)\w+|(exp|log|sin|cos|pow)f|nanosleep)
    |(min|max|abs|(fmin|fmax|fabs|fma|fmod|r?sqrt|cbrt|hypot|exp2?|log2?|pow|a?(sin|cos|tan)h?|floor|ceil|round|trunc)f?|isnan|isinf|printf)""",
    re.X,
)
NUMBER = re.compile(
    "unsigned|bool|size_t|dim3|u?int(8|16|32|64)_t|uint|u?(char|short|int|long|float|double)[1-4]?"
)  # no pointer
SAID = re.compile(r'"([^"\\]|\\[nt"\\])*"')  # a string that printf() gets
LIBRARY = re.compile(
    r"cuda(?!Launch|StreamAdd|User|Graph)[A-Z]\w*|(cu(blas|fft|solver|rand)|CU[A-Z]+_)\w+|HANDLE_\w+"
)
# In a lesson's main: what `make exercise` takes out
CALL = re.compile(
    r'(?<=[;{}):] )printf \( (?:"(?:[^"\\]|\\.)*"|[^;{}"])*\) ;|'
    r"(?<=[;{}):] )(?:(?:HANDLE_|cuda)\w+ \(|\w+ (?:< [\w ,]+ > )?<<<)[^;{}]*;|\( void \) 0 ;"
)
HEAD = r"(?!.*\bauto\b)(template\s*<(\s*,?\s*(int|unsigned|bool|size_t)\s+\w+)+\s*>)?[\w\s*&]*\b__device__\b[\w\s*&]*\w\s*\([\w\s*&,:<>[\]]*\)\s*"
NO_VARIABLE = r"__\w+__|\b(const|constexpr|struct|class|enum|typedef|using|namespace)\b"


def words_of(text):
    return {*re.findall(r"[A-Za-z_]\w*", text, re.A)}


def tokens_of(text):
    """The tokens of a text. Those of JOINED, which the lexer leaves apart, are one."""
    found = []
    for token in tokens(text):
        last = found[-1].text if found and found[-1].at + len(found[-1].text) == token.at else ""
        if last == "-" and token.text == "->":  # -->
            found[-1], token = found[-1]._replace(text="--"), token._replace(text=">", at=token.at + 1)
        if last + token.text in JOINED:
            found[-1] = found[-1]._replace(text=last + token.text)
        else:
            found.append(token)
    return found


def texts_of(text):
    return [token.text for token in tokens_of(text)]


def cleaned(text):
    """A source without comments, with lines joined."""
    text = re.sub(r"\\[ \t]*\n", "", text.removeprefix("\ufeff").replace("\r\n", "\n"))
    return without(text, "comment")


def names_of_the_host(text):
    """The variables and functions of the host in a file: a kernel on the CPU could reach them."""
    names, outside, depth = set(), "", 0
    text = re.sub(r"(?m)^[ \t]*#.*|\btypedef\b[^{};]*{[^{}]*}\s*\w+", "", cleaned(text))
    for part in re.split("([{}])", text):
        depth += (part == "{") - (part == "}")
        outside += "" if depth else part.replace("}", ";")
    # A pointer to const is no constant.
    outside = re.sub(r"\bconst\b[^;=*]*\*(?!\s*const)", "", outside.replace("{", ""))
    for statement in re.sub("=[^;,]*", " ", outside).split(";"):
        if "(" in statement and not re.search("__(device|global)__", statement):
            names |= {*re.findall(r"(\w+)\s*\(", statement)[:1]}
        elif not re.search(NO_VARIABLE, statement):
            names |= {*re.findall(r"(\w+)(?:\s*\[[^]]*\])*\s*(?=,|$)", statement)}
    return names


def constants_and_types(text):
    """The macros, enumerators, constants and types that a file defines. Its headers' types are not among them: one may be a pointer
    to a function, of which a kernel could make a variable with the name of a function."""
    names = {*re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)|\b(?:struct|class)\s+(\w+)", text)}
    names = {word for pair in names for word in pair}
    names |= words_of(" ".join(re.findall(r"\benum\b[^{};]*{[^{}]*}", text)))
    names |= {*re.findall(r"\btypedef\b[^;(]*?(\w+)(?:\s*\[[^]]*\])*\s*;", text)}
    for defined in re.findall(r"\b(?:const|constexpr|__constant__|__device__)\b[^;{}()]*[;{]", text):
        names |= {*re.findall(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?=[=,;{])", defined)}
    return names


class Names:
    """What the functions of a submission may mean by their words."""

    def __init__(self, exercise):
        functions, lesson = find_functions(exercise.text), exercise.text.split("\n")[: exercise.ruler]
        for f in functions:
            if not re.search("__(device|global)__", f.declared):
                lesson[f.first : f.close + 1] = [""] * len(lesson[f.first : f.close + 1])
        own = {f.name for f in exercise.asked}
        of_host = {f.name for f in exercise.asked if not re.search("__(device|global)__", f.declared)}
        asked = cleaned(" ".join(f.text for f in functions if f.name in own))
        headers = re.findall(r'^#include "([^/"]+)"', exercise.text, re.M)
        files = [f"{exercise.name}.cu", *(f"{exercise.name.split('/')[0]}/{name}" for name in headers)]
        host = set().union(*(names_of_the_host((ROOT / name).read_text()) for name in files))
        lesson = cleaned("\n".join(lesson))
        on_device = " ".join(f.text for f in functions if re.search("__(device|global)__", f.declared))
        known = words_of(cleaned(on_device)) | constants_and_types(lesson)
        self.device = (known - host | own) - of_host
        self.host = self.device | words_of(asked)
        # A variable is not called: a pointer to a function may have been made from a number.
        called = re.findall(r"\b(?:class|typename|struct)\s+\w+|\w+(?=\s*\()", lesson + asked)
        self.functions = words_of(" ".join(called))
        self.given = {token.text for token in tokens(asked) if token.kind in ("string", "directive")}
        self.calls_values = bool(re.search(r"\[[&=]?\]\s*[({]|\]\s*\(", asked))  # it is about them

    def has(self, word, host):
        known = self.host if host else self.device
        return word in known or WORDS.fullmatch(word) or (host and LIBRARY.fullmatch(word))


def only_computes(text, line, kept, host, names, helpers):
    """A function with the prefix student_ before its words, as tokens and spaces."""
    functions = names.functions | {OWN + name for name in helpers}

    def refuse(what):
        what = "a preprocessor directive" if what[0] == "#" or what == "%:" else what[:40]
        raise Problem(f"line {line + found.line}: {what} is not accepted in what is graded")

    def named(word):
        is_own = word in always or not (word in kept or names.has(word, host))
        return OWN + word if is_own else word

    written, seen, opened, begin_of, auto, end, numbers = [], ["", ""], [], {}, None, 0, set()
    # A variable of unknown type is never called, so its name must be no function's.
    of_auto = re.findall(r"\bauto\b(?:[\s*&]|const\b)*(\w+)\s*[=:]", text)
    autos, always = len(re.findall(r"\bauto\b", text)), helpers | {*of_auto}
    for found in tokens_of(text):
        kind, token, last, before = found.kind, found.text, seen[-1], seen[-2]
        written.append(re.sub(r"[^\n]", " ", text[end : found.at]))
        end = found.at + len(token)
        if kind in ("word", "number") and (strange := re.search(r"[^\w.'+-]", token, re.A)):
            refuse(strange[0])
        if last + token in NO_PAIRS:
            refuse(last + token)
        form = ACCEPTED.get(kind)
        said = "printf" in [seen[begin - 1] for _, begin in opened] and SAID.fullmatch(token)
        if not (said or token in names.given or form and form.fullmatch(token)):
            refuse("'" if kind == "character" else token)
        if last == "extern" and token != "__shared__":
            refuse("extern")
        if last == "static" and opened and not host and token not in ("constexpr", "__shared__"):
            refuse("static")  # on the CPU a variable of the program, which the search for races does not see
        if token == "<<<" and not host:
            refuse("a launch in a kernel")
        if opened and token in ("__device__", "__global__", "__host__"):
            refuse(token)
        if kind == "directive":
            token = re.sub(r"(unroll[ (]+)([A-Za-z_]\w*)", lambda m: m[1] + named(m[2]), token)
        if kind == "word":
            member = last in (".", "->") and re.match("[A-Za-z]", token) and re.search("[a-z]", token)
            if not member and before + last != "thrust::":
                token = named(token)
            if token == "auto":
                auto = len(opened)
                if autos != len(of_auto):
                    refuse("auto other than as in auto x = …")
        elif token in ("(", "[", "{"):
            group = begin_of.get(len(seen) - 1)  # of the parentheses before
            control = group and seen[group - 1] in ("if", "for", "while", "switch")
            if token == "(" and not names.calls_values:
                inside = " ".join(seen[group + 1 : -1]) if last == ")" and not control else "T"
                strange = not host and re.fullmatch(r"\w+", last) and not WORDS.fullmatch(last)
                # float t(0), u(1) are variables; numbers: the depths of declarations
                variable = NUMBER.fullmatch(before) or (before == "," and len(opened) in numbers)
                called = (strange or last.startswith(OWN)) and last not in functions and not variable
                if called or last == "]" or not re.fullmatch(rf"(?!.*{OWN})[A-Za-z_][\w *:<>,]*", inside):
                    hint = " (write a variable with =)" if re.fullmatch(r"\w+", before) else ""
                    refuse(f"a call of {last.removeprefix(OWN)}{hint}" if called else "a call of a value")
            if token == "[" and not names.calls_values:
                variable = re.fullmatch(r"\w+", last) and not WORDS.fullmatch(last)
                if not (variable or last == "]" or (last == ")" and not control)):
                    refuse("an attribute or a lambda")
            opened.append((token, len(seen)))
        elif token in (")", "]", "}"):
            kind, begin = opened.pop() if opened else ("", 0)
            last_one = not opened and token == "}"
            if kind + token not in ("()", "[]", "{}") or (last_one and end < len(text)):
                refuse(token)
            begin_of[len(seen)] = begin
            auto = None if auto and auto > len(opened) else auto
            numbers = {depth for depth in numbers if depth <= len(opened)}
        elif token == ";" or (token == "," and auto == len(opened)):
            if token == ",":
                refuse("auto for two variables")
            auto = None
        if NUMBER.fullmatch(token):
            numbers.add(len(opened))
        elif token == ";":
            numbers.discard(len(opened))
        seen.append(token)
        written.append(token)
    if opened or seen[-1] != "}":
        raise Problem("its braces are not balanced")
    return "".join(written)


def check_main(given, own):
    """Refuses a main that differs from the program's in more than the calls of CUDA."""
    given, own = (" ".join(texts_of(text)) for text in (given, own))
    if CALL.sub("", given).split() != CALL.sub("", own).split():
        raise Problem("main() has been changed outside of the calls of CUDA")
    # No run shows that streams or asynchronous copies are missing: the result is right without them.
    for needed in re.findall(r"\bcuda\w+Async\b|\bstream\w* >>>", own):
        if needed not in given:
            raise Problem(f"main() has no {needed.replace(' >>>', ' in a launch')}")
    known, of_main = words_of(" ".join(CALL.findall(own))), words_of(own)
    for call in {*CALL.findall(given)} - {*CALL.findall(own)}:
        text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', call)
        values = of_main - {*re.findall(r"(\w+) \(", text)} if text.startswith("printf") else set()
        words = words_of(text) - known - values
        strange = [word for word in words if not LIBRARY.fullmatch(word) and not WORDS.fullmatch(word)]
        if strange or re.search(r"=|\+\+|--|\?", text):
            raise Problem(f"main(): not a call of CUDA as the program has them: {call[:80]}")


def functions_of(exercise, submission):
    """The functions of a submission as pairs of their line and text: those asked for, by name, and a list of further ones."""
    asked, known = {f.name: f for f in exercise.asked}, {f.name for f in exercise.functions}
    found, names, given, further = find_functions(cleaned(submission)), Names(exercise), {}, []
    helpers = {f.name for f in found if "__device__" in f.declared} - known
    for f in found:
        own = asked.get(f.name)
        if not own and f.name not in helpers:
            continue
        if own and texts_of(f.declared) != texts_of(cleaned(own.declared)):
            raise Problem(f"the declaration of {f.name}() has been changed")
        if f.name in given:
            raise Problem(f"{f.name}() is defined twice")
        if not own and not re.fullmatch(HEAD, f.declared.strip()):
            raise Problem(f"{f.name}(): declare a further function as in C, or with template <int N>")
        host = own and not re.search("__(device|global)__", f.declared)
        kept = words_of(re.match(r"(template\s*<[^>]*>)?", f.text)[0]) if own else {"template"}
        text = only_computes(f.text, f.first + 1, kept, host, names, helpers)
        if f.name == "main":
            check_main(text, cleaned(own.text))
        if own:
            given[f.name] = f.first + 1, text
        else:
            further.append((f.first + 1, text))
    for name in sorted(asked.keys() - given):
        raise Problem(f"it has no function {name}()")
    return given, further


def with_functions(exercise, given, further, up, path=None):
    """The program with these functions in place of its own. With a path, messages about them have their lines in path/submission.cu."""

    def placed(functions, after):
        for line, text in functions:
            yield from (f'#line {line} "{path}/submission.cu"', text) if path else (text, "")
        yield from [f'#line {after} "{path}.cu"'] if path else []

    result = [exercise.with_includes(line, up) for line in exercise.lines]
    for f in reversed(exercise.asked):
        result[f.first : f.close + 1] = placed([given[f.name]], f.close + 2)
    first = exercise.asked[0].first
    result[first:first] = placed(further, first + 1)
    return "\n".join(result) + "\n"
