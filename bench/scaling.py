#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scaling.py: runs chapter11/dot_mpi and chapter11/heat_mpi with several numbers of ranks, transports and steps per exchange, and
records the times in RESULTS/<device>.json beside the records of the ladders (bench/measure.py). On GPUs there are 1, 2, 4 … ranks, one
for each GPU; on the CPU back end up to 8, and the least time of five runs counts, because other processes use the cores too.
  scaling.py --tables   the tables of bench/results/README.md, in Markdown
  scaling.py --plot     draws the plot of docs/scaling.md

Exit status 1 when a program failed. The environment variables are those of bench/measure.py."""
import itertools
import math
import os
import re
import tempfile

import results as recorded
import measure as bench
from report import CPU, RECORDED, conditions, draw_plot, markdown
from results import digits, duration

DOT, HEAT = "chapter11/dot_mpi", "chapter11/heat_mpi"
MOST = 8  # ranks on the CPU back end
DEPTHS = 12, 4, 1  # the steps that a launch of heat_mpi can do
STEPS = 96  # of a run of heat_mpi

# What is measured: elements of a vector, or width and rows of a plate, and the steps per exchange. In weak scaling they are those
# of a rank, in strong scaling those of all ranks together.
PLAN = {
    "gpu": [
        ("weak", DOT, [(1 << 30,), (1 << 20,)]),
        ("strong", DOT, [(1 << 31,)]),
        ("strong", HEAT, [(32768, 32768, k) for k in (12, 1, 4)]),
        ("weak", HEAT, [(16384, 16384, k) for k in (12, 1, 4)]),
        ("weak", HEAT, [(32768, 64, k) for k in (12, 1, 4, 24)] + [(32768, 2048, 12)]),
    ],
    "cpu": [
        ("weak", DOT, [(1 << 20,)]),
        ("strong", DOT, [(1 << 20,)]),
        ("strong", HEAT, [(256, 256, k) for k in (12, 1, 4)]),
        ("weak", HEAT, [(256, 64, k) for k in (12, 1, 4)]),
    ],
}
REPEAT = {"gpu": 1, "cpu": 5}

# The lines that are drawn up to 1024 GPUs. Beyond what was measured: the links between two GPUs are taken for those between any two
# GPUs of a node of 8, and between nodes each GPU has a network card of its own.
PROJECTED = [
    (kind, *line)
    for kind, side, elements in (("strong", 32768, 1 << 31), ("weak", 16384, 1 << 30))
    for line in (
        (HEAT, (side, side, 12), "nccl"),
        (HEAT, (side, side, 1), "nccl"),
        (HEAT, (side, side, 12), "host"),
        (DOT, (elements,), "ncclAllReduce"),
        (DOT, (elements,), "MPI_Allreduce"),
    )
]
COUNTS = [1 << i for i in range(11)]
NODE = 8  # GPUs
NETWORK_MS = 0.005  # latency of a message from node to node: an assumption
NETWORK_MS_PER_BYTE = 8e3 / 400e9  # a network card with 400 Gbit/s: an assumption
PLOT = "chapter11/scaling"  # the name of the plot, beside those of the ladders


# ---- recording ----


def grown(program, size, ranks):
    """A size for weak scaling: so many times the elements or rows."""
    return (size[0] * ranks,) if program == DOT else (size[0], size[1] * ranks, size[2])


def cases(back_end, devices):
    """The runs, a dict from what each is called to (program, number of ranks, size). Several kinds of scaling may need the same run,
    which is then done once."""
    most = MOST if back_end == "cpu" else devices
    counts, found = [ranks for ranks in COUNTS if ranks <= most], {}
    for kind, program, sizes in PLAN[back_end]:
        for size, ranks in itertools.product(sizes, counts):
            whole = size if kind == "strong" else grown(program, size, ranks)
            found[f"{program} {' x '.join(map(str, whole))}, {ranks} ranks"] = program, ranks, whole
    return found


def options(program, size):
    names = ["--size"] if program == DOT else ["--size", "--rows", "--steps-per-exchange"]
    return [word for name, value in zip(names, size) for word in (name, str(value))]


def read(program, out):
    """The rows that a program prints, as dicts: transport (None for one rank alone) and ms; of heat_mpi the time of a step, the
    time of an exchange, and the share of the exchange during which the interior is computed."""
    line = {
        DOT: r"^(Rank 0 alone|MPI_Allreduce|ncclAllReduce): +([\d.]+) ms()()",
        HEAT: r"^(one rank|host|cuda-aware|nccl|peer) +([\d.]+) ms +[\d.]+ Gcells/s(?: +([\d.]+) ms +(\d+) %)?$",
    }
    rows = []
    for name, ms, exchange, hidden in re.findall(line[program], out, re.M):
        alone = name in ("one rank", "Rank 0 alone")
        rows.append({"transport": None if alone else name, "ms": float(ms)})
        if exchange:
            rows[-1].update(exchange_ms=float(exchange), hidden=float(hidden) / 100)
    if not rows:
        raise bench.Failed("prints no times")
    return rows


def measure(case, repeat, label, folder):
    """Runs a program several times. Returns for each transport the row with the least time."""
    program, ranks, size = case
    best = {}
    for _ in range(repeat):
        out = bench.printed(program, options(program, size), label, folder, ranks)
        for row in read(program, out or ""):
            if row["transport"] not in best or row["ms"] < best[row["transport"]]["ms"]:
                best[row["transport"]] = {"program": program, "ranks": ranks, "size": list(size), **row}
    return list(best.values())


def record():
    """Runs all cases. The file is written after each, so an interrupted measurement keeps what it has."""
    recorded.check_writable()
    listed = bench.asked(DOT, ["--list-devices"], r"(?s)(0: .*, compute capability.*)")
    device, count = re.match("0: (.*), compute", listed)[1], len(listed.splitlines())
    back_end, about, started, load = bench.backend(), bench.machine(), bench.start(), os.getloadavg()[0]
    found, rows = recorded.of_device(recorded.load(), device, back_end), []
    repeat, todo = REPEAT[back_end], cases(back_end, count)

    def one(case, label):
        rows.extend(measure(todo[case], repeat, label, folder))
        found["scaling"] = {
            **bench.header(started, about, device),
            "devices": count if back_end == "gpu" else 1,  # one process uses all cores of the CPU
            "repeat": repeat,
            "load": [round(n, 1) for n in (load, os.getloadavg()[0])],  # processes that want a core
            "rows": rows,
        }
        return recorded.save(found)

    with tempfile.TemporaryDirectory() as folder:  # for pictures
        return bench.campaign("cases", todo, one)[0]


# ---- the model ----

# docs/scaling.md describes it. A launch of 1, 4 or 12 steps takes a time for its start and a time for each cell and step.


def line(points):
    """A start and a time for each unit, (a, b) of y = a + b x, neither of them negative: those with the least sum of the squares
    of the relative errors; (0, 0) without points."""
    # statistics.linear_regression has no weights, and neither it nor numpy.polyfit bounds the parameters at zero.
    if not points:
        return 0, 0
    weighted = [(w, w * x, w * y, w * x * x, w * x * y) for x, y in points for w in (1 / (y * y),)]
    n, sx, sy, sxx, sxy = map(sum, zip(*weighted))
    if len({x for x, _ in points}) == 1:
        return 0, sy / sx
    b = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    a = (sy - b * sx) / n
    return (0, sxy / sxx) if a < 0 else (sy / n, 0) if b < 0 else (a, b)


def launches(k):
    """The launches of a round, as (steps, rows of each halo that it computes too). The last one has no such rows."""
    found = []
    while k > 0:
        steps = next(depth for depth in DEPTHS if k % depth == 0)
        k -= steps
        found.append((steps, k))
    return found


def neighbours(ranks):
    return min(ranks - 1, 2)


def sent(row):
    """The bytes of an exchange: k rows for each neighbour of a rank."""
    width, _, k = row["size"]
    return neighbours(row["ranks"]) * k * ((width + 3) // 4 * 16)


def part_of(row):
    """The elements or rows of the rank that has most."""
    return -(-row["size"][-2 if row["program"] == HEAT else 0] // row["ranks"])


def dot_ms(model, elements, share=1):
    start, per_byte = model["dot"]
    return start + share * 8 * elements * per_byte


def latency_of(model, found, rows):
    """The latency of an all-reduce, from what its times have beyond the kernel's, with the least squares of relative errors."""
    above = below = 0
    for row in rows:
        n, weight = math.log2(row["ranks"]), 1 / row["ms"] ** 2
        above += n * weight * (row["ms"] - dot_ms(model, part_of(row), share_of(found, row)))
        below += n * n * weight
    return max(above / below, 0)


def fit(found):
    """The parameters of the model, from the rows of a record. Launches and the kernel of the dot product come from one rank, an
    exchange from its measured times. During a long interior an exchange takes longer than alone, because it competes with it for
    the multiprocessors, but then it is hidden. So only rows where it is not hidden count, if they have several sizes.
    """
    alone, several = {DOT: [], HEAT: []}, {DOT: {}, HEAT: {}}
    for row in found["scaling"]["rows"]:
        if row["transport"] is None and row["ranks"] == 1:
            alone[row["program"]].append(row)
        elif row["transport"] and (row["ranks"] > 1 or row["program"] == HEAT):
            several[row["program"]].setdefault(row["transport"], []).append(row)
    model = {"launch": {}, "exchange": {}}
    for steps in DEPTHS:
        rows = [row for row in alone[HEAT] if row["size"][2] == steps]
        model["launch"][steps] = line([(math.prod(row["size"]), row["ms"] * steps) for row in rows])
    for name, rows in several[HEAT].items():
        exposed = [row for row in rows if row["hidden"] < 0.9]
        use = exposed if len({sent(row) for row in exposed}) > 1 else rows
        model["exchange"][name] = line([(sent(row), row["exchange_ms"]) for row in use])
    model["dot"] = line([(8 * row["size"][0], row["ms"]) for row in alone[DOT]])
    model["all-reduce"] = {name: latency_of(model, found, rows) for name, rows in several[DOT].items()}
    return model


def share_of(found, row):
    """How many ranks share a device."""
    return max(row["ranks"] / found["scaling"]["devices"], 1)


def modelled(model, row, share=1):
    """What the model says about a row: milliseconds of a dot product, or of a step of the heat simulation in a round, and these without
    an exchange. Among several nodes the slowest exchange is that of a rank with one neighbour in its own node and one across the network.
    """
    transport, ranks, rows = row["transport"], row["ranks"], part_of(row)
    if row["program"] == DOT:
        latency = model["all-reduce"].get(transport, 0) if ranks > 1 else 0
        across = NETWORK_MS * math.log2(max(ranks / NODE, 1))
        ms = dot_ms(model, rows, share if transport else 1) + latency * math.log2(ranks) + across
        return ms, ms
    width, _, k = row["size"]
    sides = neighbours(ranks)
    latency, per_byte = model["exchange"].get(transport, (0, 0))
    if ranks > NODE:  # half of the bytes cross the network
        latency, per_byte = latency + NETWORK_MS, max(per_byte, NETWORK_MS_PER_BYTE / 2)

    def cells(steps, of):
        return share * of * width * steps * model["launch"][steps][1]

    ms, edges = 0, min(sides * k, rows)
    for steps, beyond in launches(k):
        ms += share * model["launch"][steps][0]
        if beyond:
            ms += cells(steps, rows + sides * beyond)
    ms, interior = ms + cells(steps, edges), cells(steps, rows - edges)
    return (ms + max(interior, latency + per_byte * sent(row))) / k, (ms + interior) / k


def predicted(model, found, row):
    """The model's time of a row that was measured. After the last round nothing is exchanged."""
    within, last = modelled(model, row, share_of(found, row))
    rounds = STEPS // row["size"][2] if row["program"] == HEAT else 1
    return ((rounds - 1) * within + last) / rounds


# ---- more GPUs than were measured ----


def projections(model):
    """The lines of the plot, as (kind, program, size of one rank or of all, transport, points, the most GPUs on which the exchange
    is hidden, milliseconds on the most GPUs)."""
    found = []
    for kind, program, size, transport in PROJECTED:
        if transport not in model["all-reduce" if program == DOT else "exchange"]:
            continue
        points, hidden = [], 0
        for ranks in COUNTS:
            whole = size if kind == "strong" else grown(program, size, ranks)
            row = {
                "program": program,
                "ranks": ranks,
                "size": whole,
                "transport": transport if ranks > 1 else None,
            }
            ms, least = modelled(model, row)
            alone = ms if ranks == 1 else alone
            points.append((ranks, alone / ms / (ranks if kind == "strong" else 1)))
            hidden = ranks if ms <= least else hidden
        found.append((kind, program, size, transport, points, hidden, ms))
    return found


# ---- the page ----


def title(transport):
    known = {"host": "MPI, host", "MPI_Allreduce": "MPI, host", "cuda-aware": "MPI, CUDA"}
    return {**known, "nccl": "NCCL", "ncclAllReduce": "NCCL"}.get(transport, transport)


def work_of(program, size, more=""):
    if program == DOT:
        power = math.log2(size[0])
        return f"dot, {f'2^{power:.0f}' if power == int(power) else size[0]} elements{more}"
    return f"heat, {size[1]} rows of {size[0]}{more}, k = {size[2]}"


def records():
    results = recorded.load()
    return [results[name] for name in (RECORDED, CPU) if "scaling" in results.get(name, {})]


def groups(found):
    """The rows with which several numbers of ranks are compared: (kind, program, size of all or of a rank) to a dict from
    (ranks, transport) to the row."""
    tables = {}
    for row in found["scaling"]["rows"]:
        if (row["transport"] is None) != (row["ranks"] == 1):
            continue
        size, scaled = row["size"], 0 if row["program"] == DOT else 1
        keys = [("strong", row["program"], tuple(size))]
        if size[scaled] % row["ranks"] == 0:
            part = [*size[:scaled], size[scaled] // row["ranks"], *size[scaled + 1 :]]
            keys.append(("weak", row["program"], tuple(part)))
        for key in keys:
            tables.setdefault(key, {})[row["ranks"], title(row["transport"])] = row
    return {key: rows for key, rows in tables.items() if {1} < {ranks for ranks, _ in rows}}


def error(model, found, row):
    return predicted(model, found, row) / row["ms"] - 1


def percent(part):
    return f"{100 * part:.{0 if part >= 0.095 else 1}f} %"


def signed(part):
    return f"{100 * part:+.0f} %".replace("+0 %", "0 %").replace("-0 %", "0 %").replace("-", "−")


def scaling_table(kind, found, model):
    """What was measured in one kind of scaling, with the model's error beside each time; empty if nothing was."""
    tables = {key[1:]: rows for key, rows in groups(found).items() if key[0] == kind}
    columns = {key for rows in tables.values() for key in rows}
    columns = sorted(columns, key=lambda key: (key[0], key[1] or ""))
    body = []
    for program, size in sorted(tables, key=lambda key: (key[0], [-n for n in key[1]])):
        rows, cells = tables[program, size], [work_of(program, size, " a rank" if kind == "weak" else "")]
        for key in columns:
            row = rows.get(key)
            cells.append(f"{duration(row['ms'])} ({signed(error(model, found, row))})" if row else "–")
        most = max(ranks for ranks, _ in rows)
        gain = rows[1, None]["ms"] / min(row["ms"] for (ranks, _), row in rows.items() if ranks == most)
        cells.append(f"{gain:.2f} on {most}" if kind == "strong" else f"{100 * gain:.0f} % on {most}")
        body.append(cells)
    head = [f"{ranks} rank{'s' * (ranks > 1)}{': ' + name if name else ''}" for ranks, name in columns]
    gained = "speedup" if kind == "strong" else "efficiency"
    table = markdown([kind + " scaling", *head, gained], body)
    return f"{kind.capitalize()} scaling:\n\n{table}" if body else ""


def scaling_tables(found):
    """What was measured on one machine, the model's error beside each time, and the largest and the median error."""
    model, block, first = fit(found), found["scaling"], conditions(found["device"], [found["scaling"]])
    if block["repeat"] > 1:
        first += f"; the least of {block['repeat']} runs, while other processes used the cores too "
        first += f"(load average {' and '.join(map(str, block['load']))})"
    parts = [first + ".", *(scaling_table(kind, found, model) for kind in ("strong", "weak"))]
    # Each row once. Most of the parameters come from the rows of one rank, so these do not count.
    several = {id(row): row for rows in groups(found).values() for row in rows.values() if row["ranks"] > 1}
    errors = sorted(abs(error(model, found, row)) for row in several.values())
    if errors:
        middle, last = percent(errors[len(errors) // 2]), percent(errors[-1])
        what = f"Error of the model over the {len(errors)} times of several ranks"
        parts.append(f"{what}: median {middle}, largest {last}.")
    return "\n\n".join(filter(None, parts))


def pair(start, per_unit, unit):
    """A start and a rate. A time for each unit is in ms, a rate in 10^9 units a second."""
    return f"{duration(start)}, {digits(1e-6 / per_unit) + ' ' + unit if per_unit else 'no limit found'}"


def model_table():
    """The fitted parameters, a column for each machine."""
    heads, columns = ["parameter"], []
    for found in records():
        model, cells = fit(found), {}
        heads.append("CPU back end" if found["backend"] == "cpu" else found["device"].replace("NVIDIA ", ""))
        for steps in sorted(DEPTHS):
            what = f"launch of {steps} step{'s' * (steps > 1)}: overhead, rate"
            cells[0, what] = pair(*model["launch"][steps], "Gcells/s")
        cells[1, "dot: launch overhead, rate"] = pair(*model["dot"], "GB/s")
        for name, value in model["exchange"].items():
            cells[2, f"exchange: latency, bandwidth, {title(name)}"] = pair(*value, "GB/s")
        for name, value in model["all-reduce"].items():
            cells[3, f"all-reduce: latency, {title(name)}"] = duration(value)
        columns.append(cells)
    keys = sorted(dict.fromkeys(key for cells in columns for key in cells), key=lambda key: key[0])
    body = [[key[1], *(cells.get(key, "–") for cells in columns)] for key in keys]
    return markdown(heads, body)


def gpu_model():
    found = next((found for found in records() if found["backend"] == "gpu"), None)
    return found, found and fit(found)


def projection_table():
    body = []
    for kind, program, size, transport, points, hidden, last in projections(gpu_model()[1]):
        work = f"{work_of(program, size, ' a GPU' if kind == 'weak' else '')}, {title(transport)}"
        parts = [percent(dict(points)[count]) for count in (2, 8, 64, 1024)]
        body.append([kind, work, *parts, duration(last), f"{hidden} GPUs" if program == HEAT else "–"])
    head = ["scaling", "work", "2 GPUs", "8", "64", "1024", "time on 1024", "exchange hidden up to"]
    return markdown(head, body)


def tables():
    parts = [scaling_tables(found) for found in records()]
    parts += ["### Model", model_table()] if parts else []
    return "\n\n".join(parts + (["### Up to 1024 GPUs", projection_table()] if gpu_model()[0] else []))


def plotted():
    """What the plot shows: the panels of plots.draw_scaling(), and the largest number of GPUs that was measured."""
    found, model = gpu_model()
    if not found:
        return None
    panels = {"strong": [], "weak": []}
    for kind, program, size, transport, points, *_ in projections(model):
        rows, marks = groups(found).get((kind, program, size), {}), []
        for (ranks, name), row in rows.items():
            if name in (None, title(transport)):
                gain = rows[1, None]["ms"] / row["ms"]
                marks.append((ranks, gain / (ranks if kind == "strong" else 1)))
        name = f"dot, {title(transport)}" if program == DOT else f"heat, k = {size[2]}, {title(transport)}"
        # Rounded, because another version of Python may compute other last digits.
        rounded = [[(ranks, float(f"{part:.5g}")) for ranks, part in pairs] for pairs in (points, marks)]
        panels[kind].append((name, *rounded))
    titled = [(f"{kind.capitalize()} scaling", lines) for kind, lines in panels.items()]
    return titled, max(row["ranks"] for row in found["scaling"]["rows"])


def draw():
    shown_data = plotted()
    if not shown_data:
        return
    panels, most = shown_data
    words = []
    for name, lines in panels:
        last = ", ".join(f"{line} {percent(points[-1][1])}" for line, points, _ in lines)
        words.append(f"{name}, on {COUNTS[-1]} GPUs: {last}")
    text = f"Efficiency; measured up to {most} GPUs, the rest is a model. {'; '.join(words)}."
    title = "Efficiency on 1 to 1024 GPUs"
    draw_plot(RECORDED, PLOT, shown_data, "draw_scaling", title, panels, most, text)


if __name__ == "__main__":
    recorded.run("scaling", record, __doc__, tables=tables, plot=lambda: draw() or "")
