#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""then.py [PROGRAM…]: runs the programs of bench/then.ini, all or those that are named, and records the figures that they print
beside the records of the ladders (bench/run.py), in RESULTS/<device>.json. A ladder whose rows are not recorded yet is
measured. `make then-and-now` runs it. Each program runs five times, or until it has run for 20 seconds.
  then.py --figures | --claims | --limits | --devices   a table of docs/then-and-now.md, in Markdown

Exit status 1 when a program failed. The environment variables are those of bench/run.py."""
import configparser
import math
import re
import statistics
import sys
import tempfile
import time

import results as recorded
import run as bench
from report import RECORDED, conditions, markdown
from results import ROOT, Problem, digits, duration, shown, slug

CPU = "intel-r-xeon-r-processor"  # the record of the column "CPU back end"
RUNS, SECONDS = 5, 20  # a program is repeated until it has run so often, or for so long
DEVICES = "chapter03/enum_gpu"
MISSING = "not measured"
UNKNOWN = "not known"  # the program ran and could not tell
SAME = 0.05  # two figures are the same if their ratio differs from 1 by less


def entries(kind=None):
    """The entries of bench/then.ini as dicts by name: those of one kind, or all."""
    facts = configparser.ConfigParser(interpolation=None)
    facts.read(ROOT / "bench/then.ini", encoding="utf-8")
    found = {}
    for section in facts.sections():
        which, _, name = section.partition(" ")
        if kind in (which, None):
            found[name or which] = dict(facts[section])
    if kind in ("limit", None):  # enum_gpu prints all limits
        for entry in found.values():
            if "what" in entry:
                entry["run"] = DEVICES
    return found


def pattern(line):
    """The regular expression of a `line`: {} is a number, {_} one that is not wanted, a blank any white space."""
    number = r"-?[\d.]+(?:e[-+]?\d+)?"
    words = [re.escape(word) for word in re.split(r"(\{_?\}|\s+)", line)]
    return "".join(
        {"\\{\\}": f"({number})", "\\{_\\}": number}.get(
            word, r"\s+" if re.fullmatch(r"(\\\s)+", word) else word
        )
        for word in words
    )


# ---- recording ----


def commands():
    """A dict from each command to the figures and limits that it prints, as (name, entry)."""
    found = {DEVICES: []}
    for name, entry in entries().items():
        if "run" in entry:
            found.setdefault(entry["run"], []).append((name, entry))
    return found


def read(figures, out):
    """The numbers of each figure in the output of a program. A figure that is "unknown" there is left out."""
    numbers = {}
    for name, entry in figures:
        match = re.search(pattern(entry["line"]), out)
        if match:
            numbers[name] = [float(number) for number in match.groups()]
        elif not re.search(pattern(entry["line"].partition("{")[0]) + "unknown", out):
            raise bench.Failed(f"prints no line such as \"{entry['line']}\"")
    return numbers


def run_command(command, figures, label):
    """Runs a program several times. Returns its last output, and for each figure the numbers of each run."""
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
                return out, values


def ladders_to_measure(found):
    """A dict from each ladder, of which a record lacks a row that bench/then.ini names, to the sizes to be measured."""
    listed, wanted = bench.ladders(), {}
    for entry in entries("figure").values():
        if "ladder" in entry and row_of(entry, found) is None:
            program, size = entry["ladder"].split()
            if program in listed:
                rows = found["programs"].get(program, {"rows": []})["rows"]
                sizes = {row["size"] for row in rows} | {bench.number(size) or int(size)}
                if found["backend"] == "gpu":
                    sizes |= {bench.number(s) or int(s) for s in listed[program]}
                wanted[program] = sorted(map(str, sizes), key=int)
    return wanted


def record(only):
    known, results, about, failed = commands(), recorded.load(), bench.machine(), 0
    recorded.check_writable()
    try:
        device = re.search(r"Name: +(.*)", bench.printed(DEVICES, [], "device:"))[1]
    except (bench.Failed, bench.Waived) as why:
        raise Problem(f"{DEVICES}: {why}") from None
    found = results.setdefault(
        slug(device),
        {"format": recorded.FORMAT, "device": device, "backend": bench.backend(), "programs": {}},
    )
    figures = found.setdefault("figures", {})
    for gone in figures.keys() - known.keys():
        del figures[gone]
    todo = {c: f for c, f in known.items() if not only or c.split()[0] in only}
    measure = {p: sizes for p, sizes in ladders_to_measure(found).items() if not only or p in only}
    count, done, path = len(todo) + len(measure), 0, None
    for i, what in enumerate([*todo, *measure], 1):
        try:
            label, clocks = f"[{i}/{count}]", bench.clocks().get(device)
            if what in measure:
                device, back_end, block = bench.measure(what, [], label, about, measure[what])
                path = bench.record(results, device, back_end, what, block, bench.ladders())
            else:
                date = bench.today()
                _, values = run_command(what, todo[what], label)
                now = bench.speeds(clocks, bench.clocks().get(device, {}))
                figures[what] = {
                    "date": date,
                    **about,
                    "driver": clocks and clocks["driver"],
                    "clocks": now,
                    "values": values,
                }
                path = recorded.save(slug(device), found)
            done += 1
        except bench.Waived as why:
            bench.say(f"{what}: waived: {why}")
        except bench.Failed as why:
            failed += 1
            print(f"{what}: FAILED: {why}", file=sys.stderr, flush=True)
    bench.say(f"{done} of {count} programs measured, {failed} failed" + (f"; {shown(path)}" if path else ""))
    return int(failed > 0)


# ---- the tables ----


def row_of(entry, found):
    """The recorded row of a ladder."""
    program, size = entry["ladder"].split()
    for row in found.get("programs", {}).get(program, {"rows": []})["rows"]:
        if row["size"] == (bench.number(size) or int(size)) and row["name"] == entry["rung"]:
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


def text_of(number):
    return f"{number:.0f}" if number == int(number) else digits(number)


def cell(name, entry, found):
    """What a table shows of a figure or limit on one machine."""
    numbers = numbers_of(name, entry, found)
    if not numbers:
        return UNKNOWN if entry.get("run") in found.get("figures", {}) else MISSING
    if "ladder" in entry:
        row = row_of(entry, found)
        return f"{duration(row['median_ms'])}, {recorded.rate(row)}"
    if "cores" in entry:
        each = cores(found)
        return text_of(numbers[0] * each) if each else "–"
    if "show" in entry:
        return entry["show"].format(*map(text_of, numbers))
    return text_of(numbers[0]) if "what" in entry else duration(numbers[0])


def cores(found):
    """The float cores of a multiprocessor of this device; None for the CPU back end and for devices of other kinds."""
    blocks = found.get("programs", {}).values()
    capability = next(
        (block["compute_capability"] for block in blocks if "compute_capability" in block), None
    )
    known = entries("cores").get("cores", {}).get(capability)
    return int(known) if known and found["backend"] == "gpu" else None


def machines():
    """The records of the two columns; an empty one for a machine that is not recorded."""
    results = recorded.load()
    return [
        results.get(name, {"device": device, "backend": back_end, "programs": {}})
        for name, device, back_end in ((RECORDED, "H200", "gpu"), (CPU, "CPU back end", "cpu"))
    ]


def head_of(gpu, cpu):
    return [gpu["device"].replace("NVIDIA ", ""), "CPU back end"]


def where(entry):
    """The program of a figure, as a link, and its options."""
    program, *options = (entry.get("run") or entry["ladder"].partition(" ")[0]).split()
    name = f"{program} {' '.join(options)}".strip()
    return f"[{name}](../{program}.cu)" if (ROOT / f"{program}.cu").exists() else name


def figures_table(gpu, cpu):
    lines = []
    for found in (gpu, cpu):
        blocks = list(found.get("figures", {}).values())
        lines.append(
            f"{conditions(found['device'], blocks)}." if blocks else f"{found['device']}: {MISSING}."
        )
    body = [
        [e["text"], e["work"], e["then"], e["machine"], cell(name, e, gpu), cell(name, e, cpu), where(e)]
        for name, e in entries("figure").items()
        if "then" in e
    ]
    head = ["text", "work", "then", "machine then", *head_of(gpu, cpu), "program"]
    return "\n\n".join([*lines, markdown(head, body)])


def ratio_of(claim, figures, value):
    """The ratio of the two figures of a claim, or its one figure; value(name) gives the number of a figure, or None."""
    numbers = [value(name) for name in claim["ratio"].split(" / ")]
    if None in numbers:
        return None
    return numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]


def ratio_text(ratio):
    return MISSING if ratio is None else f"1/{1 / ratio:.0f}" if 0 < ratio < 0.1 else f"{ratio:.2f}"


def holds(expect, ratio):
    """Whether a ratio is what a claim expects."""
    verdict = {
        "less": ratio <= 1 - SAME,
        "same": abs(ratio - 1) < SAME,
        "more": ratio >= 1 + SAME,
        "not less": ratio > 1 - SAME,
        "not more": ratio < 1 + SAME,
    }
    return verdict[expect] if expect in verdict else math.isclose(ratio, float(expect))


def claims_table(gpu, cpu):
    figures, body, reasons = entries("figure"), [], []
    for name, claim in entries("claim").items():
        first = figures[claim["ratio"].split(" / ")[0]]
        then = claim.get("then") or ratio_text(
            ratio_of(claim, figures, lambda n: float(figures[n]["then"].split()[0]))
        )
        now = ratio_of(claim, figures, lambda n: (numbers_of(n, figures[n], gpu) or [None])[0])
        verdict = MISSING if now is None else "yes" if holds(claim["expect"], now) else "**no**"
        shown_now = text_of(now) if now and " / " not in claim["ratio"] else ratio_text(now)
        body.append([claim["text"], claim["says"], then, shown_now, verdict, where(first)])
        if verdict == "**no**" and "why" in claim:
            reasons.append(f"- {claim['text']}: {claim['says']} Today: {claim['why']}")
    head = ["text", "conclusion", "then", head_of(gpu, cpu)[0], "holds", "program"]
    return "\n\n".join([markdown(head, body), *(["\n".join(reasons)] if reasons else [])])


def limits_table(gpu, cpu):
    body = [
        [entry["what"], entry["then"], cell(name, entry, gpu), cell(name, entry, cpu)]
        for name, entry in entries("limit").items()
    ]
    return markdown(["limit", "then", *head_of(gpu, cpu)], body)


def devices_table(gpu, cpu):
    """R's Table 7.1, and the GPU of the records."""
    names = ["multiprocessors", "cores", "gflops", "bandwidth", "watts"]
    body = [[device, *(entry[name] for name in names)] for device, entry in entries("device").items()]
    blocks = [block for block in gpu.get("figures", {}).values() if block["clocks"]]
    clock = max((block["clocks"]["sm_max_mhz"] or 0 for block in blocks), default=0)
    watts = max((block["clocks"]["power_limit_w"] or 0 for block in blocks), default=0)
    limits, each = entries("limit"), cores(gpu)
    count = (numbers_of("units", limits["units"], gpu) or [None])[0]
    body.append(
        [
            gpu["device"],
            text_of(count) if count else MISSING,
            text_of(count * each) if count and each else MISSING,
            text_of(round(count * each * 2 * clock / 1000)) if count and each and clock else MISSING,
            text_of(round(numbers_of("bandwidth", entries("figure")["bandwidth"], gpu)[0]))
            if numbers_of("bandwidth", entries("figure")["bandwidth"], gpu)
            else MISSING,
            text_of(watts) if watts else MISSING,
        ]
    )
    return markdown(["device", "multiprocessors", "cores", "peak GFLOP/s (float)", "GB/s", "W"], body)


def main():
    tables = {
        "--figures": figures_table,
        "--claims": claims_table,
        "--limits": limits_table,
        "--devices": devices_table,
    }
    if len(sys.argv) == 2 and sys.argv[1] in tables:
        print(tables[sys.argv[1]](*machines()))
        return 0
    programs = {command.split()[0] for command in commands()} | {
        entry["ladder"].split()[0] for entry in entries("figure").values() if "ladder" in entry
    }
    for program in sys.argv[1:]:
        if program not in programs:
            raise Problem(f"{program}: is not in bench/then.ini; it has {', '.join(sorted(programs))}")
    return record(sys.argv[1:])


if __name__ == "__main__":
    recorded.run(main, "then-and-now")
