#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""measure.py PROGRAM…: measures ladders, such as chapter05/add_ladder, and records what they print. `make bench` runs it.

Each program runs with the sizes that its header lists (Bench:). They are chosen for a large GPU, so on the CPU back end it
runs with its default size, and with the listed sizes that are smaller. The rows are written to RESULTS/<device>.json, where
they replace the older rows of the same program. A program that fails is not recorded; the others are.

Exit status 1 when a program failed. BACKEND and BIN are those of `make`. Other environment variables:
  SIZES="1M 16M"  measures these sizes           TIME_LIMIT  seconds for one run
  COMPARE=1       records nothing; lists the rows whose times differ from the record; status 1 if there are any
  RESULTS=DIR     instead of bench/results       COMMIT      the commit that is measured, if there is no git"""
import datetime
import json
import math
import operator
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import results as recorded
from report import cells
from results import ROOT, Problem, check_writable, groups, shown, slug, work

from programs import read_programs  # noqa: E402
from run import BIN, execute, reason_of  # noqa: E402

LIMIT = float(os.environ.get("TIME_LIMIT") or 600)
MOVED = 0.03  # a row has moved if its time differs from the record by more than this part …
LONG = 0.02  # … and it takes more than this many milliseconds
COMPILERS = {"NVCC": "nvcc", "CXX": "g++"}  # by the variable that names another one


class Failed(Exception):
    """The program printed no results that can be recorded."""


class Waived(Exception):
    """This machine lacks what the program needs."""


def output(*command):
    """The output of a tool; None if the tool is missing or fails."""
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 60}
    try:
        return subprocess.check_output(command, cwd=ROOT, text=True, **quiet).strip("\n")
    except (OSError, subprocess.SubprocessError):
        return None


def backend():
    if os.environ.get("BACKEND") in ("cpu", "gpu"):
        return os.environ["BACKEND"]
    try:
        return re.search(r"^CHOSEN := (\w+)", (BIN / ".config.mk").read_text(), re.M)[1]
    except (OSError, TypeError):
        raise Problem(f"{BIN}: nothing is built here: make bench") from None


def ladders():
    """A dict from each ladder to the sizes in its header."""
    return {program.name: program.bench.split() for program in read_programs() if program.bench}


def number(size):
    """A size as a number: 1M is 1048576."""
    return int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)


# ---- what is measured ----


def machine():
    """The host and the commit. "dirty": whether files other than results differ from the commit; None with COMMIT."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    try:
        cpu = re.search(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1]
    except (OSError, TypeError):
        cpu = platform.processor() or platform.machine()
    nvcc, compiler = (output(*(os.environ.get(n) or d).split(), "--version") for n, d in COMPILERS.items())
    release = re.search(r"release .*, V([\d.]+)", nvcc or "") if backend() == "gpu" else None
    given = os.environ.get("COMMIT")
    changed = None if given else output("git", "status", "--porcelain", "--", ".", ":!bench/results")
    return {
        "machine": {
            "cpu": cpu,
            "cores": os.cpu_count(),
            "os": f"{system}, {platform.system()} {platform.release()}",
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        },
        "toolkit": release[1] if release else None,
        "compiler": (compiler or "").partition("\n")[0] or None,
        "commit": given or output("git", "rev-parse", "HEAD"),
        "dirty": None if changed is None else changed != "",
    }


def clocks():
    """A dict from each device to its driver and its present clocks. Not called while a kernel is timed, because it would
    disturb the measurement."""
    names = ["driver", "sm_mhz", "memory_mhz", "sm_max_mhz", "memory_max_mhz", "power_limit_w"]
    fields = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
    tool = shutil.which("nvidia-smi") or "/usr/lib/wsl/lib/nvidia-smi"
    devices = {}
    for line in (output(tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits") or "").splitlines():
        device, *values = [value.strip() for value in line.split(",")]
        known = [float(v) if re.fullmatch(r"\d+(\.\d+)?", v) else None for v in values[1:]]
        devices.setdefault(device, dict(zip(names, [*values[:1], *known])))
    return devices


def start():
    """The date and the clocks before a measurement."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), clocks()


def header(started, about, device, program):
    """The first fields of a record of a program, after a measurement that began when start() was called."""
    date, before = started
    then, now = before.get(device), clocks().get(device, {})
    fixed, moving = ("sm_max_mhz", "memory_max_mhz", "power_limit_w"), ("sm_mhz", "memory_mhz")
    speeds = then and {
        **{key: then[key] for key in fixed},
        "before": {key: then[key] for key in moving},
        "after": {key: now.get(key) for key in moving},
    }
    source = recorded.source_hash(program)
    return {"date": date, **about, "source": source, "driver": then and then["driver"], "clocks": speeds}


def say(text):
    print(text, flush=True)


def printed(program, arguments, label, folder=ROOT):
    """What a successful run prints; None if its data does not fit into the memory of this machine."""
    if not os.access(BIN / program, os.X_OK):
        raise Waived("not built")
    words = " ".join([program, *(word for word in arguments if word != "--json")])
    print(f"{label} {words}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch) / "run"
        status, lines = execute([BIN / program, *arguments], base, LIMIT, cwd=folder)
        out = base.with_suffix(".txt").read_text(errors="replace")
    reason = "".join([line for line in lines if line.strip()][-1:])
    if status == 2:
        raise Waived(reason)
    if status == 1 and "out of memory: needs" in reason:
        say(f"{words}: left out, {reason.split(': ', 1)[-1]}")
        return None
    if status != 0:
        how = f"ended by signal {status - 128}" if status > 128 else f"exit status {status}"
        raise Failed(reason_of(status, [f"{how}: {reason}" if reason else how], LIMIT))
    return out


def measured(program, size, label):
    """The JSON that a run of a ladder prints; None if the size does not fit into the memory of this machine."""
    out = printed(program, ["--json", *(["--size", size] if size else [])], label)
    if out is None:
        return None
    try:
        found = json.loads(out)
        for row in found["rows"]:
            if row["kind"] not in ("limit", "alone") and not row["skipped"] and row["verified"] is not True:
                raise Failed(f"{row['name']} is not verified")
            if not row["skipped"] and not 0 <= row["min_ms"] <= row["median_ms"] <= row["max_ms"] < math.inf:
                raise Failed(f"{row['name']} has no times")
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"what it printed is not the JSON of a ladder ({error!r})") from None


def measure(program, listed, label, about):
    """Runs one ladder with all its sizes, or those of SIZES. Returns the device and the record of the program."""
    only = os.environ.get("SIZES", "").split()
    on_cpu = backend() == "cpu" and not only
    started, found = start(), []
    todo = [None] if on_cpu else only or listed
    for size in todo:
        result = measured(program, size, label)
        if result:
            found.append(result)
        if result and on_cpu and size is None:
            default = max(row["size"] for row in result["rows"])
            todo += [size for size in listed if number(size) < default]
    if not found:
        raise Waived("no size fits into the memory here")
    device, back_end = found[0]["device"], found[0]["backend"]
    rows = sorted((row for result in found for row in result.pop("rows")), key=lambda row: row["size"])
    facts = {key: value for key, value in found[0].items() if key not in ("program", "device", "backend")}
    return device, back_end, {**header(started, about, device, program), **facts, "rows": rows}


# ---- what was recorded ----


def compare(program, old, new):
    """Prints the rows that moved. Returns the number of rows compared and of rows that moved."""
    key = operator.itemgetter("size", "title", "data", "kind", "name")
    was = {key(row): row["median_ms"] for row in old}
    both = [(row, was[key(row)]) for row in new if was.get(key(row)) and row["median_ms"]]
    both = [(row, ms) for row, ms in both if max(ms, row["median_ms"]) > LONG]
    moved = [(row, ms) for row, ms in both if not abs(row["median_ms"] / ms - 1) <= MOVED]
    for row, ms in moved:
        change = f"{row['median_ms']:.5g} ms, was {ms:.5g} ({row['median_ms'] / ms - 1:+.1%})"
        say(f"{program}: {work(row)}: {row['name']}: {change}")
    return len(both), len(moved)


def summarize(program, block):
    """Prints one line for each group."""
    for name, group in groups(block["rows"]).items():
        if row := cells(program, block, name, group, True):
            factors = [f"{row[key]} {key}" for key in ("× book", "× library", "of limit") if row[key] != "–"]
            say(f"{program}: {name}: " + ", ".join([row["fastest rung"], *factors]))


def record(results, device, back_end, program, block, known):
    """Adds the record of a program to the results of the device, or replaces the older one. Removes the records of programs
    that no longer exist."""
    found = recorded.of_device(results, device, back_end)
    found["programs"][program] = block
    found["programs"] = {name: b for name, b in found["programs"].items() if name in known}
    return recorded.save(found)


def campaign(kind, items, one):
    """Calls one(item, label) for each item, which returns the file with its record, or None. Says why an item is waived or has failed.
    Returns the exit status, and whether there is a file."""
    done, status, failed, paths = 0, 0, 0, set()
    try:
        for i, item in enumerate(items, 1):
            try:
                paths.add(one(item, f"[{i}/{len(items)}]"))
                done += 1
            except Waived as why:
                say(f"{item}: waived: {why}")
            except Failed as why:
                failed += 1
                print(f"{item}: FAILED: {why}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        status = 130
        say("interrupted; what was measured before is kept")
    files = "".join(f"; {shown(path)}" for path in sorted(paths - {None}))
    say(f"{done} of {len(items)} {kind} measured, {failed} failed{files}")
    return status or int(failed > 0), files != ""


def main(*programs):
    known = ladders()
    for program in programs:
        if program not in known:
            raise Problem(f"{program}: is no ladder; there are {', '.join(known)}")
    results, comparing = recorded.load(), os.environ.get("COMPARE", "") not in ("", "0")
    if not comparing:
        check_writable()
    about, rows, moved = machine(), 0, 0

    def one(program, label):
        nonlocal rows, moved
        device, back_end, block = measure(program, known[program], label, about)
        path = None
        if comparing:
            here = compare(program, recorded.rows_of(results.get(slug(device), {}), program), block["rows"])
            rows, moved = rows + here[0], moved + here[1]
        else:
            path = record(results, device, back_end, program, block, known)
        summarize(program, block)
        return path

    status, recording = campaign("ladders", programs, one)
    if comparing:
        say(f"{rows} rows over {LONG * 1000:g} µs compared, {moved} moved by more than {MOVED:.0%}")
    drawn = not recording or subprocess.call([sys.executable, ROOT / "bench/report.py"]) == 0
    return status or int(not drawn or comparing and (moved > 0 or rows == 0))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if its parent ignores it
    recorded.run("bench", main, __doc__, True)
