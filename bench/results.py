# SPDX-License-Identifier: MIT
"""Reads and writes recorded results, and formats them as text. RESULTS/<device>.json has, for each program such as
chapter05/add_ladder, the conditions of the measurement and the rows that the program printed (common/bench.h)."""
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / (os.environ.get("RESULTS") or "bench/results")
FORMAT = 2  # the version of the files' format
shown = os.path.relpath  # a path in messages
sys.path.append(str(ROOT / "scripts"))
from tokens import find_functions, without  # noqa: E402


class Problem(Exception):
    """An error that ends the script with one line and status 1."""


def run(name, main, doc="", names=False, **parts):
    """Runs main(*names), if it takes names, else main(), and exits with the status that it returns. With the option of a part, such as
    --tables, prints what its function returns, with other options the doc. Errors are one line."""
    words, part = sys.argv[1:], parts.get("".join(sys.argv[1:]).removeprefix("--"))
    try:
        if part:
            print(part())
        elif words and (words[0].startswith("-") or not names):
            print(doc, file=sys.stderr)
            sys.exit(64)
        sys.exit(0 if part else main(*words))
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {shown(error.filename or '.')}: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(1)


# ---- files ----


def slug(device):
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or "device"


def order(program):
    """A sort key: chapters first, then the appendix."""
    return program.startswith("appendix"), program


def load():
    """A dict from the name of a file to the results of that device; GPUs come first."""
    found = {}
    for path in RESULTS.glob("*.json"):
        try:
            found[path.stem] = json.loads(path.read_text())
            if found[path.stem]["format"] != FORMAT:
                raise ValueError("another format")
            if not {"device", "backend", "programs"} <= found[path.stem].keys():
                raise ValueError("incomplete")
        except (ValueError, KeyError, TypeError) as error:
            raise Problem(f"{shown(path)}: no results ({error}); move it away") from None
    return dict(sorted(found.items(), key=lambda item: (item[1]["backend"] != "gpu", item[0])))


def of_device(results, device, back_end):
    """The results of a device, which are added if there are none."""
    new = {"format": FORMAT, "device": device, "backend": back_end, "programs": {}}
    return results.setdefault(slug(device), new)


def rows_of(found, program):
    return found.get("programs", {}).get(program, {"rows": []})["rows"]


def write(path, text):
    """Writes a file completely, or fails and leaves the old file unchanged."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
            new = pathlib.Path(folder) / path.name
            new.write_text(text)
            os.replace(new, path)
    except OSError as error:
        raise Problem(f"{shown(path)}: cannot be written: {error.strerror}") from None


def check_writable():
    """Checks that results can be written. Called before the measurements, which may take an hour."""
    try:
        RESULTS.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=RESULTS).close()
    except OSError as error:
        raise Problem(f"{shown(RESULTS)}: cannot be written: {error.strerror}") from None


def as_json(value, indent=""):
    """JSON with one row or list of numbers in a line, so that a diff is readable."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = (f"{inner}{json.dumps(key)}: {as_json(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        rows = (inner + json.dumps(row, ensure_ascii=False) for row in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def save(found):
    """Writes the results of a device. Returns the path."""
    programs = {program: found["programs"][program] for program in sorted(found["programs"], key=order)}
    path = RESULTS / f"{slug(found['device'])}.json"
    write(path, as_json({**found, "programs": programs}) + "\n")
    return path


# ---- the program that printed a record ----

RULER = re.compile(r"^// -+ check$", re.M)
DEVICE = re.compile(r"\b__(?:global|device)__\b")
TIMERS = re.compile(r"\b(?:median_\w+|host_ms|cudaEventElapsedTime|clock\w*)\b")
CHANGED = "†"  # beside a figure of an older version of the program
LEGEND = f"{CHANGED} The program has changed since this was measured."


def essence(text):
    """Code without comments, blanks, includes and the formats that it prints."""
    code = re.sub(r"^[ \t]*#[ \t]*(?:include|pragma once).*", "", without(text, "comment"), flags=re.M)
    code = re.sub(r'\bprintf\s*\((?:\s*"(?:[^"\\\n]|\\.)*")+', "printf(", code)
    return re.sub(r"\s", "", code)


def source_of(program, read):
    """The code that the figures of a program depend on: its lesson, which ends at the ruler, with the headers of its folder that the
    lesson includes, and the functions of the device in headers of common/; of what is below the ruler, and of the headers that are
    included there, only the functions that take times. A change of a check, of a comment or of a message leaves it as it is. read():
    the text of a file, empty if there is none."""
    parts, todo, seen = [], [(f"{program}.cu", True)], set()
    for path, lesson in todo:
        if path in seen:
            continue
        seen.add(path)
        text, common = read(path), path.startswith("common/")
        end = match.start() if (match := RULER.search(text)) else len(text)
        cut = end if lesson and not common else 0
        wanted = TIMERS if not common else DEVICE if lesson else re.compile("$^")
        functions = [function.text for function in find_functions(text[cut:])]
        parts += [
            text[:cut],
            *(text for text in functions if wanted.search(without(text, "comment", "string"))),
        ]
        for include in re.finditer(r'^#include "(.*)"', text, re.M):
            header = os.path.normpath(os.path.join(os.path.dirname(path), include[1]))
            todo.append((header, lesson and include.start() < end))
    return "\n".join(filter(None, map(essence, parts)))


@functools.cache
def source_hash(program):
    """The hash of source_of(), which a record keeps."""
    read = lambda path: (ROOT / path).read_text() if (ROOT / path).exists() else ""  # noqa: E731
    return hashlib.sha256(source_of(program, read).encode()).hexdigest()[:16]


def mark(program, block):
    """What stands behind a recorded figure of a program."""
    return "" if block.get("source") == source_hash(program) else f" {CHANGED}"


def with_legend(text):
    return f"{LEGEND}\n\n{text}" if CHANGED in text else text


# ---- in words ----


def base(program):
    return re.sub(r".*/|_ladder$", "", program)


def topic(program):
    """The name of a ladder in tables: dot. If an earlier chapter has a ladder of the same name: dot (chapter 11)."""
    folder, _, file = program.rpartition("/")
    same = [path.parent.name for path in ROOT.glob(f"*/{file}.cu")]
    first = not same or folder == min(same, key=order)
    return base(program) + ("" if first else f" ({folder.replace('chapter', 'chapter ')})")


def work(row):
    return row["title"] + (f", {row['data']}" if row["data"] else "")


def digits(value):
    """A number with at least three significant digits."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def duration(ms):
    value, unit = (ms / 1000, "s") if ms >= 1000 else (ms, "ms") if ms >= 1 else (ms * 1000, "µs")
    return f"{digits(value)} {unit}" if ms > 0 else "0 µs"


def rate(row):
    return f"{digits(row['rate'])} {row['unit']}" if row["rate"] else "–"  # no time, no rate


def times(value):
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def share(value):
    return "–" if value is None else f"{100 * value:.1f} %" if value < 9.995 else f"{100 * value:.0f} %"


def groups(rows):
    """The rows grouped by size and data set, as a dict from the work to its rows."""
    found = {}
    for row in rows:
        found.setdefault((row["size"], work(row)), []).append(row)
    return {name: rows for (_, name), rows in found.items()}


def largest(rows):
    """The rows of the largest size."""
    most = max(row["size"] for row in rows)
    return [row for row in rows if row["size"] == most]


def ends(rows):
    """The rows of a group that are compared: the book's kernel (of the rungs whose names begin with "book" the first, if none does
    rung 0), the fastest rung, the fastest library, the limit; None for a row that was not run. (Kind "limit": a part of
    the work that every solution must do, timed alone; the slowest one is the limit.)"""
    named = [row for row in rows if row["kind"] == "rung" and row["name"].startswith("book")]
    book = next((row for row in named or rows if named or row["number"] == 0), None)
    run = [row for row in rows if row["median_ms"]]
    kinds = "rung", "library", "limit"
    rungs, libraries, limits = ([row for row in run if row["kind"] == kind] for kind in kinds)
    return (
        book if book and book["median_ms"] else None,
        min(rungs, key=lambda row: row["median_ms"], default=None),
        min(libraries, key=lambda row: row["median_ms"], default=None),
        min((row for row in limits if row["rate"]), key=lambda row: row["rate"], default=None),
    )


def crossover(rows):
    """The largest size up to which, at all measured sizes, the first data set takes with the fastest rung at least 0.9 of the time of
    the book's kernel; None if there is none."""
    found = None
    for group in groups([row for row in rows if row["data"] == rows[0]["data"]]).values():
        *_, best, _, _ = ends(group)
        if not best or not best["times_book"] or best["times_book"] > 1 / 0.9:
            return found
        found = best["size"]
    return found


# ---- plots ----


def plot_path(name, program):
    return RESULTS / name / program.rpartition("/")[0] / f"{base(program)}.svg"


def origin(rows):
    """The last line of a plot: a hash of plots.py and of its rows. A plot with the same hash is not drawn again, because another
    version of matplotlib would write a different file."""
    drawing = (ROOT / "bench/plots.py").read_text()
    return f"<!-- of {hashlib.sha256((drawing + json.dumps(rows)).encode()).hexdigest()[:16]} -->\n"


def plot(name, program, rows):
    """The SVG that shows these rows; None if there is none, or if it shows other rows."""
    path = plot_path(name, program)
    svg = path.read_text() if path.exists() else ""
    return svg if svg.endswith(origin(rows)) else None
