#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""then.py [PROGRAM…]: runs the programs of bench/then.ini, all or those that are named, and records the figures that they print
beside the records of the ladders (bench/measure.py), in RESULTS/<device>.json. `make then-and-now` runs it. Each program runs five
times, or until it has run for 20 seconds. The figures of ladders are those of `make bench`; on the CPU back end each
ladder is measured with SIZES=… as bench/then.ini names it.
  then.py --tables        the tables of bench/results/README.md, in Markdown
  then.py --conclusions   the table of docs/book-vs-today.md
  then.py --figures       each figure on the recorded GPU: its name, a tab, and what a document quotes

Exit status 1 when a program failed. The environment variables are those of bench/measure.py."""
import configparser
import functools
import math
import re
import statistics
import tempfile
import time
import types

import results as recorded
import measure as bench
from report import CPU, RECORDED, conditions, markdown
from results import ROOT, Problem, digits, duration, mark, with_legend

RUNS, SECONDS = 5, 20  # a program is repeated until it has run so often, or for so long
DEVICES = "chapter03/enum_gpu"  # prints all limits
MISSING = "not measured"
UNKNOWN = "not known"  # the program ran and could not tell
SAME = 0.05  # two figures are the same if their ratio differs from 1 by less


@functools.lru_cache
def facts():
    """What bench/then.ini lists: figures, claims, limits, devices and cores, each a dict by name."""
    file = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    file.optionxform = str  # names of devices are capitalized
    file.read(ROOT / "bench/then.ini", encoding="utf-8")

    def rows(section, *columns):
        """The rows of a section as dicts from column to text."""
        parts = {name: [" ".join(p.split()) for p in line.split("|")] for name, line in file[section].items()}
        return {name: dict(zip(columns, row)) for name, row in parts.items()}

    columns = "text", "work", "then", "machine", "run", "size", "line", "show", "scale"
    figures = rows("figures", *columns)
    for entry in figures.values():
        if entry["run"].startswith("ladder "):
            ladder = entry.pop("run").removeprefix("ladder ")
            show = entry.pop("line", "")
            entry.update(ladder=ladder, rung=entry["size"], show=show)
            entry["size"] = str(bench.number(ladder.split()[1]))
    limits = {n: {**row, "run": DEVICES} for n, row in rows("limits", "what", "then", "line", "show").items()}
    return types.SimpleNamespace(
        figures=figures,
        claims=rows("claims", "text", "says", "expect", "then", "why"),
        since=rows("since", "work", "then", "now", "slow", "fast", "share", "best"),
        limits=limits,
        devices={name: line.split(" | ") for name, line in file["devices"].items()},
        cores=dict(file["cores"]),
    )


def pattern(line):
    """The regular expression of a line: {} is a number, {_} one that is not wanted, a blank any white space."""
    number = r"-?[\d.]+(?:e[-+]?\d+)?"
    known = {"{}": f"({number})", "{_}": number, " ": r"\s+"}
    return "".join(known.get(word) or re.escape(word) for word in re.split(r"(\{_?\}| )", line))


# ---- recording ----


def commands():
    """A dict from each command to the figures and limits that it prints, as (name, entry)."""
    found = {DEVICES: []}
    for name, entry in [*facts().figures.items(), *facts().limits.items()]:
        if "run" in entry:
            found.setdefault(entry["run"], []).append((name, entry))
    return found


def read(figures, out, size=None):
    """The numbers of each figure in the output of a program, measured at the size of bench/then.ini, if no other is given. A figure that
    is "unknown" there is left out."""
    numbers = {}
    for name, entry in figures:
        wanted = entry.get("size", "none") if size is None else size
        if wanted != "none" and not re.search(rf"^Measured with --size {wanted}: ", out, re.M):
            raise bench.Failed(f"is not measured with --size {wanted}")
        match = re.search(pattern(entry["line"]), out)
        if match:
            numbers[name] = [float(number) for number in match.groups()]
        elif not re.search(pattern(entry["line"].partition("{")[0]) + "unknown", out):
            raise bench.Failed(f"prints no line such as \"{entry['line']}\"")
    return numbers


def run_command(command, figures, label):
    """Runs a program several times. Returns the numbers of each run, for each figure."""
    program, *arguments = command.split()
    values, start = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:  # for pictures
        while True:
            out = bench.printed(program, arguments, label, folder)
            if out is None:
                raise bench.Waived("its data does not fit into the memory here")
            for name, numbers in read(figures, out).items():
                values.setdefault(name, []).append(numbers)
            runs = max(map(len, values.values()), default=RUNS)
            if runs >= RUNS or time.monotonic() - start > SECONDS:
                return values


def device_name():
    try:
        return re.search(r"Name: +(.*)", bench.printed(DEVICES, [], "device:"))[1]
    except (bench.Failed, bench.Waived) as why:
        raise Problem(f"{DEVICES}: {why}") from None


def record(only):
    known, about = commands(), bench.machine()
    recorded.check_writable()
    device = device_name()
    found = recorded.of_device(recorded.load(), device, bench.backend())
    figures = found.setdefault("figures", {})
    for gone in figures.keys() - known.keys():
        del figures[gone]

    def one(command, label):
        started, values = bench.start(), run_command(command, known[command], label)
        figures[command] = {**bench.header(started, about, device, command.split()[0]), "values": values}
        return recorded.save(found)

    todo = [command for command in known if not only or command.split()[0] in only]
    return bench.campaign("programs", todo, one)[0]


# ---- the tables ----


def row_of(entry, found):
    """The recorded row of a ladder."""
    program, size, *data = entry["ladder"].split()
    for row in recorded.rows_of(found, program):
        same = (row["size"], row["name"]) == (bench.number(size), entry["rung"])
        if same and (not data or row.get("data") in data):
            return row if row["median_ms"] else None
    return None


def numbers_of(name, entry, found):
    """The recorded numbers of a figure or limit, from the run with the median of the first one; None if there are none."""
    if "ladder" in entry:
        row = row_of(entry, found)
        return row and [row["median_ms"]]
    runs = found.get("figures", {}).get(entry["run"], {"values": {}})["values"].get(name)
    if not runs:
        return None
    median = statistics.median_low(run[0] for run in runs)
    scale = float(entry.get("scale", 1))
    return [scale * number for number in next(run for run in runs if run[0] == median)]


def number_of(name, found):
    """The first number of a figure; None if it is not recorded."""
    return (numbers_of(name, facts().figures[name], found) or [None])[0]


def changed(entry, found):
    """The mark of a figure or limit whose program has changed since it was recorded; else empty."""
    kind, key = ("programs", entry["ladder"].split()[0]) if "ladder" in entry else ("figures", entry["run"])
    block = found.get(kind, {}).get(key)
    return mark(key.split()[0], block) if block else ""


def text_of(number):
    return f"{number:.0f}" if number == int(number) else digits(number)


def cell(name, entry, found):
    """What a table shows of a figure or limit on one machine."""
    numbers = numbers_of(name, entry, found)
    if not numbers:
        ran = entry.get("run") in found.get("figures", {}) and not changed(entry, found)
        return UNKNOWN if ran else MISSING
    return in_words(entry, numbers, found) + changed(entry, found)


def in_words(entry, numbers, found):
    """The numbers of a figure or limit, with their units."""
    if "ladder" in entry:
        row = row_of(entry, found)
        if entry.get("scale"):
            return duration(row["median_ms"] * float(entry["scale"]))
        both = f"{duration(row['median_ms'])}, {recorded.rate(row)}"
        return entry["show"].format(digits(row["rate"])) or both
    if entry.get("show") == "cores":
        return text_of(numbers[0] * cores(found)) if cores(found) else "–"
    if entry.get("show"):
        return entry["show"].format(*map(text_of, numbers))
    return text_of(numbers[0]) if "what" in entry else duration(numbers[0])


def cores(found):
    """The float cores of a multiprocessor of this device; None for the CPU back end and for devices of other kinds."""
    blocks = [block for block in found["programs"].values() if "compute_capability" in block]
    known = facts().cores.get(blocks[0]["compute_capability"]) if blocks else None
    return int(known) if known and found["backend"] == "gpu" else None


def machines():
    """The records of the two columns; an empty one for a machine that is not recorded."""
    results = recorded.load()
    return [
        results.get(name, {"device": device, "backend": back_end, "programs": {}})
        for name, device, back_end in ((RECORDED, "H200", "gpu"), (CPU, "CPU back end", "cpu"))
    ]


def head_of(gpu):
    return [gpu["device"].replace("NVIDIA ", ""), "CPU back end"]


def where(entry, top="../.."):
    """The program of a figure, as a link, and its options."""
    program, *options = (entry.get("run") or entry["ladder"].partition(" ")[0]).split()
    name = f"{program} {' '.join(options)}".strip()
    return f"[{name}]({top}/{program}.cu)" if (ROOT / f"{program}.cu").exists() else name


def figures_table(gpu, cpu):
    parts = []
    for found in (gpu, cpu):
        device, blocks = found["device"], list(found.get("figures", {}).values())
        parts.append(f"{conditions(device, blocks) if blocks else f'{device}: {MISSING}'}.")
    columns = "text", "work", "size", "then", "machine"
    body = [
        [*map(e.get, columns), cell(name, e, gpu), cell(name, e, cpu), where(e)]
        for name, e in facts().figures.items()
        if e["then"]
    ]
    head = ["text", "work", "`--size`", "then", "machine then", *head_of(gpu), "program"]
    parts.append(markdown(head, body))
    return "\n\n".join(parts)


def terms(claim):
    """What a claim expects: a name, a comparison, and another name or a number."""
    first, relation, second = claim["expect"].split()
    return (first, relation, second if second in facts().figures else float(second))


def ratio_of(claim, value):
    """The ratio of the two figures of a claim, or its one figure; value(name) gives the number of a figure, or None."""
    first, _, second = terms(claim)
    numbers = [value(first), value(second) if isinstance(second, str) else 1]
    return None if None in numbers else numbers[0] / numbers[1]


def ratio_text(ratio):
    return MISSING if ratio is None else f"1/{1 / ratio:.0f}" if 0 < ratio < 0.1 else f"{ratio:.2f}"


def holds(claim, ratio):
    """Whether a ratio is what a claim expects."""
    _, relation, second = terms(claim)
    if not isinstance(second, str):
        return math.isclose(ratio, second)
    return {
        "<": ratio <= 1 - SAME,
        "=": abs(ratio - 1) < SAME,
        ">": ratio >= 1 + SAME,
        ">=": ratio > 1 - SAME,
        "<=": ratio < 1 + SAME,
    }[relation]


def claims_table(gpu, cpu):
    figures, body = facts().figures, []
    then_of = lambda name: float(figures[name]["then"].split()[0])  # noqa: E731
    for claim in facts().claims.values():
        first, _, second = terms(claim)
        then = claim.get("then") or ratio_text(ratio_of(claim, then_of))
        now = ratio_of(claim, lambda name: number_of(name, gpu))
        no = f"**no**: {claim['why']}" if "why" in claim else "**no**"
        verdict = MISSING if now is None else "yes" if holds(claim, now) else no
        shown_now = text_of(now) if now and not isinstance(second, str) else ratio_text(now)
        marks = [changed(figures[name], gpu) for name in (first, second) if isinstance(name, str)]
        shown_now += max(marks) if now is not None else ""
        body.append([claim["text"], claim["says"], then, shown_now, verdict, where(figures[first], "..")])
    head = ["text", "conclusion", "then", head_of(gpu)[0], "holds today", "program"]
    return with_legend(markdown(head, body))


def since_table():
    """The same work in the CUDA of 2010 and in today's, on the GPU whose record has most of the figures, and the fastest program here.
    Work that was not recorded in both ways has no row; the share of the limit is shown if it is known."""
    figures, body, rows = facts().figures, [], facts().since.values()
    gpus = [machines()[0], *(record for record in recorded.load().values() if record["backend"] == "gpu")]
    gpu = min(gpus, key=lambda gpu: [number_of(row["fast"], gpu) for row in rows].count(None))
    for row in rows:
        names = row["slow"], row["fast"]
        numbers = [number_of(name, gpu) for name in names]
        if None in numbers:
            continue
        times = [cell(name, figures[name], gpu) for name in names]
        share, best = row["share"], row["best"]
        if share and number_of(share, gpu) is not None:
            times[1] += f", {cell(share, figures[share], gpu)} of the limit"
        known = best and number_of(best, gpu) is not None
        fastest = f"{where(figures[best], '..')}: {cell(best, figures[best], gpu)}" if known else "–"
        link, ratio = where(figures[row["fast"]], ".."), ratio_text(numbers[0] / numbers[1])
        body.append([row["work"], row["then"], times[0], row["now"], times[1], ratio, link, fastest])
    head = f"work|the older way|{head_of(gpu)[0]}|the newer way|time|ratio|program|the fastest here"
    return with_legend(markdown(head.split("|"), body))


def limits_table(gpu, cpu):
    limits = facts().limits.items()
    body = [[e["what"], e["then"], cell(name, e, gpu), cell(name, e, cpu)] for name, e in limits]
    return markdown(["limit", "then", *head_of(gpu)], body)


def devices_table(gpu, cpu):
    """R's Table 7.1, and the GPU of the records."""
    clocks = [block["clocks"] for block in gpu.get("figures", {}).values() if block["clocks"]]
    clock, watts = (max((c[k] or 0 for c in clocks), default=0) for k in ("sm_max_mhz", "power_limit_w"))
    each, count = cores(gpu), (numbers_of("units", facts().limits["units"], gpu) or [0])[0]
    all_cores = count * (each or 0)
    bandwidth = number_of("bandwidth", gpu) or 0
    values = [count, all_cores, round(all_cores * 2 * clock / 1000), round(bandwidth), watts]
    name = gpu["device"] + changed(facts().limits["units"], gpu)
    own = [name, *(text_of(value) if value else MISSING for value in values)]
    head = ["device", "multiprocessors", "cores", "peak GFLOP/s (float)", "GB/s", "W"]
    return markdown(head, [*([name, *row] for name, row in facts().devices.items()), own])


def tables():
    parts = {"Figures": figures_table, "Limits": limits_table, "Devices": devices_table}
    return with_legend("\n\n".join(f"### {title}\n\n{table(*machines())}" for title, table in parts.items()))


def quoted():
    """What documents quote: their text has each figure between two marks, `figure NAME` and `end`, where `make docs` writes it anew."""
    gpu = machines()[0]
    return "\n".join(f"{name}\t{cell(name, entry, gpu)}" for name, entry in facts().figures.items())


def main(*only):
    programs = {command.split()[0] for command in commands()}
    for program in only:
        if program not in programs:
            raise Problem(f"{program}: is not in bench/then.ini; it has {', '.join(sorted(programs))}")
    return record(only)


if __name__ == "__main__":
    parts = {"tables": tables, "conclusions": lambda: claims_table(*machines()), "since": since_table}
    parts["figures"] = quoted
    recorded.run("then-and-now", main, __doc__, True, **parts)
