#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scaling.py: runs chapter11/dot_mpi and chapter11/heat_mpi with several numbers of ranks, transports and steps per exchange, and
records the times in RESULTS/<device>.json beside the records of the ladders (bench/run.py). On GPUs there are 1, 2, 4 … ranks, one
for each GPU; on the CPU back end up to 8, and the least time of five runs counts, because other processes use the cores too.
  scaling.py --measured | --model | --projection   a part of docs/scaling.md, in Markdown
  scaling.py --plot                                draws the plot of docs/scaling.md

Exit status 1 when a program failed. The environment variables are those of bench/run.py."""
import math
import os
import re
import sys
import tempfile

import results as recorded
import run as bench
from report import RECORDED, conditions, find, markdown
from results import ROOT, Problem, digits, duration, shown, slug

DOT, HEAT = "chapter11/dot_mpi", "chapter11/heat_mpi"
CPU = "intel-r-xeon-r-processor"  # the record of the CPU back end
MOST = 8  # ranks on the CPU back end
DEPTHS = 12, 4, 1  # the steps that a launch of heat_mpi can do
STEPS = 96  # of a run of heat_mpi
NAMES = {"one rank": None, "Rank 0 alone": None}  # the rows without communication

# What is measured: elements of a vector, or width and rows of a plate, and the steps per exchange. In weak scaling they are those
# of a rank, in strong scaling those of all ranks together.
PLAN = {
    "gpu": {
        "dot": {"weak": [1 << 30, 1 << 20], "strong": [1 << 31]},
        "heat": {
            "strong": [(32768, 32768, (12, 1, 4))],
            "weak": [(16384, 16384, (12, 1, 4)), (32768, 64, (12, 1, 4, 24)), (32768, 2048, (12,))],
        },
        "repeat": 1,
    },
    "cpu": {
        "dot": {"weak": [1 << 20], "strong": [1 << 20]},
        "heat": {"strong": [(256, 256, (12, 1, 4))], "weak": [(256, 64, (12, 1, 4))]},
        "repeat": 5,
    },
}

# The lines that are drawn up to 1024 GPUs. Beyond what was measured: the links between two GPUs are taken for those between any two
# GPUs of a node of 8, and between nodes each GPU has a network card of its own.
PROJECTED = [
    ("strong", HEAT, (32768, 32768, 12), "nccl"),
    ("strong", HEAT, (32768, 32768, 1), "nccl"),
    ("strong", HEAT, (32768, 32768, 12), "host"),
    ("strong", DOT, (1 << 31,), "ncclAllReduce"),
    ("strong", DOT, (1 << 31,), "MPI_Allreduce"),
    ("weak", HEAT, (16384, 16384, 12), "nccl"),
    ("weak", HEAT, (16384, 16384, 1), "nccl"),
    ("weak", HEAT, (16384, 16384, 12), "host"),
    ("weak", DOT, (1 << 30,), "ncclAllReduce"),
    ("weak", DOT, (1 << 30,), "MPI_Allreduce"),
]
COUNTS = [1 << i for i in range(11)]
NODE = 8  # GPUs
NETWORK_MS = 0.005  # latency of a message from node to node: an assumption
NETWORK_MS_PER_BYTE = 8e3 / 400e9  # a network card with 400 Gbit/s: an assumption
PLOT = "chapter11/scaling"  # the name of the plot, beside those of the ladders


# ---- recording ----


def devices():
    """The name of the first device, and the number of devices."""
    try:
        lines = bench.printed(DOT, ["--list-devices"], "devices:").splitlines()
        return re.match(r"0: (.*), compute capability", lines[0])[1], len(lines)
    except (bench.Failed, bench.Waived) as why:
        raise Problem(f"{DOT}: {why}") from None
    except (IndexError, TypeError):
        raise Problem(f"{DOT} --list-devices: lists no device") from None


def cases(back_end, devices):
    """The runs, as (program, number of ranks, size). Several kinds of scaling may need the same run, which is then done once."""
    plan, most, found = PLAN[back_end], MOST if back_end == "cpu" else devices, {}
    counts = [1 << i for i in range(10) if 1 << i <= most]
    for kind, sizes in plan["dot"].items():
        for size in sizes:
            for ranks in counts:
                found[DOT, ranks, (size * (ranks if kind == "weak" else 1),)] = None
    for kind, plates in plan["heat"].items():
        for width, rows, every in plates:
            for k in every:
                for ranks in counts:
                    found[HEAT, ranks, (width, rows * (ranks if kind == "weak" else 1), k)] = None
    return list(found)


def options(program, size):
    names = ["--size"] if program == DOT else ["--size", "--rows", "--steps-per-exchange"]
    return [word for name, value in zip(names, size) for word in (name, str(value))]


def read(program, out):
    """The rows that a program prints, as dicts: transport (None for one rank alone) and ms; of heat_mpi the time of a step, the
    time of an exchange, and the share of the exchange during which the interior is computed."""
    rows = []
    if program == DOT:
        for name, ms in re.findall(r"^(Rank 0 alone|MPI_Allreduce|ncclAllReduce): +([\d.]+) ms", out, re.M):
            rows.append({"transport": NAMES.get(name, name), "ms": float(ms)})
    else:
        line = (
            r"^(one rank|host|cuda-aware|nccl|peer) +([\d.]+) ms +[\d.]+ Gcells/s(?: +([\d.]+) ms +(\d+) %)?$"
        )
        for name, ms, exchange, hidden in re.findall(line, out, re.M):
            row = {"transport": NAMES.get(name, name), "ms": float(ms)}
            if exchange:
                row.update(exchange_ms=float(exchange), hidden=float(hidden) / 100)
            rows.append(row)
    if not rows:
        raise bench.Failed("prints no times")
    return rows


def started(program, ranks, size, label, folder):
    """The rows that one run of a program prints."""
    return read(program, bench.printed(program, options(program, size), label, folder, ranks) or "")


def least(runs):
    """Of each transport the run with the least time."""
    best = {}
    for row in (row for rows in runs for row in rows):
        if row["transport"] not in best or row["ms"] < best[row["transport"]]["ms"]:
            best[row["transport"]] = row
    return list(best.values())


def record():
    """Runs all cases. The file is written after each, so an interrupted measurement keeps what it has."""
    recorded.check_writable()
    device, count = devices()
    back_end, results, about = bench.backend(), recorded.load(), bench.machine()
    found = results.setdefault(
        slug(device), {"format": recorded.FORMAT, "device": device, "backend": back_end, "programs": {}}
    )
    before, repeat, rows = bench.clocks().get(device), PLAN[back_end]["repeat"], []
    found["scaling"] = {
        "date": bench.today(),
        **about,
        "driver": before and before["driver"],
        "clocks": bench.speeds(before, {}),
        "devices": count if back_end == "gpu" else 1,  # one process uses all cores of the CPU
        "repeat": repeat,
        "load": [round(os.getloadavg()[0], 1)],  # processes that ran or waited for a core: before, and after
        "rows": rows,
    }
    todo, failed = cases(back_end, count), 0
    with tempfile.TemporaryDirectory() as folder:  # for pictures
        for i, (program, ranks, size) in enumerate(todo, 1):
            try:
                label = f"[{i}/{len(todo)}]"
                runs = [started(program, ranks, size, label, folder) for _ in range(repeat)]
            except (bench.Failed, bench.Waived) as why:
                failed += 1
                print(f"{program}: FAILED: {why}", file=sys.stderr, flush=True)
                continue
            rows += [{"program": program, "ranks": ranks, "size": list(size), **row} for row in least(runs)]
            found["scaling"]["load"][1:] = [round(os.getloadavg()[0], 1)]
            if i == len(todo):
                found["scaling"]["clocks"] = bench.speeds(before, bench.clocks().get(device, {}))
            path = recorded.save(slug(device), found)
    bench.say(
        f"{len(todo) - failed} of {len(todo)} cases measured, {failed} failed"
        + (f"; {shown(path)}" if rows else "")
    )
    return int(failed > 0)


# ---- the model ----

# A round of heat_mpi is k steps and an exchange. The rows at the edges of a strip, which the neighbours need, are computed first;
# while they are sent, the interior is computed:
#
#     round = start of the launches + edges + max(interior, exchange)
#
# A launch of 1, 4 or 12 steps takes a time for its start and a time for each cell and step. If a round has several launches, the
# first ones also compute rows of the halos. An exchange takes a latency, and a time for each byte that a rank sends.
#
# A dot product takes the time of the kernel, which has a start and a time for each byte, and log2(ranks) times the latency of an
# all-reduce, because the ranks are combined in pairs, then the pairs in pairs, and so on.
#
# On the CPU back end all ranks share the cores, so each takes as many times longer as there are ranks.


def line(points):
    """A start and a time for each unit, (a, b) of y = a + b x, neither of them negative: those with the least sum of the squares
    of the relative errors; (0, 0) without points."""
    w = [1 / (y * y) for _, y in points]
    n, sx, sy = sum(w), sum(v * x for v, (x, _) in zip(w, points)), sum(v * y for v, (_, y) in zip(w, points))
    sxx, sxy = sum(v * x * x for v, (x, _) in zip(w, points)), sum(v * x * y for v, (x, y) in zip(w, points))
    if not points:
        return 0, 0
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


def round_ms(model, width, rows, k, sides, exchange, share=1):
    """A round of a rank that has so many rows of a plate, and neighbours on so many sides."""

    def cells(steps, of):
        return share * of * width * steps * model["launch"][steps][1]

    ms, edges = 0, min(sides * k, rows)
    for steps, beyond in launches(k):
        ms += share * model["launch"][steps][0]
        if beyond:
            ms += cells(steps, rows + sides * beyond)
    return ms + cells(steps, edges) + max(cells(steps, rows - edges), exchange)


def dot_ms(model, elements, share=1):
    start, per_byte = model["dot"]
    return start + share * 8 * elements * per_byte


def fit(found):
    """The parameters of the model, from the rows of a record. Launches and the kernel of the dot product come from one rank, an
    exchange from its measured times. During a long interior an exchange takes longer than alone, because it competes with it for
    the multiprocessors, but then it is hidden. So only rows where it is not hidden count, if they have several sizes.
    """
    rows = found["scaling"]["rows"]
    one = [row for row in rows if row["transport"] is None and row["ranks"] == 1]
    model = {"launch": {}, "exchange": {}, "all-reduce": {}}
    for steps in DEPTHS:
        model["launch"][steps] = line(
            [
                (row["size"][0] * row["size"][1] * steps, row["ms"] * steps)
                for row in one
                if row["program"] == HEAT and row["size"][2] == steps
            ]
        )
    model["dot"] = line([(8 * row["size"][0], row["ms"]) for row in one if row["program"] == DOT])
    for row in rows:
        if row["program"] == HEAT and row["transport"]:
            model["exchange"].setdefault(row["transport"], []).append(row)
        elif row["program"] == DOT and row["transport"] and row["ranks"] > 1:
            model["all-reduce"].setdefault(row["transport"], []).append(row)
    for name, rows in model["exchange"].items():
        exposed = [row for row in rows if row["hidden"] < 0.9]
        use = exposed if len({sent(row) for row in exposed}) > 1 else rows
        model["exchange"][name] = line([(sent(row), row["exchange_ms"]) for row in use])
    for name, rows in model["all-reduce"].items():
        rest = [
            (
                math.log2(row["ranks"]),
                row["ms"] - dot_ms(model, part_of(row), share_of(found, row)),
                row["ms"],
            )
            for row in rows
        ]
        latency = sum(n * ms / whole**2 for n, ms, whole in rest) / sum(
            (n / whole) ** 2 for n, _, whole in rest
        )
        model["all-reduce"][name] = max(latency, 0)
    return model


def share_of(found, row):
    """How many ranks share a device."""
    return max(row["ranks"] / found["scaling"]["devices"], 1)


def predicted(model, found, row):
    """What the model says about a row: milliseconds of a dot product or of a step of the heat simulation. After the last round
    nothing is exchanged."""
    share, ranks = share_of(found, row), row["ranks"]
    if row["program"] == DOT:
        latency = model["all-reduce"].get(row["transport"], 0) if ranks > 1 else 0
        return dot_ms(model, part_of(row), share if row["transport"] else 1) + latency * math.log2(ranks)
    width, _, k = row["size"]
    latency, per_byte = model["exchange"].get(row["transport"], (0, 0))
    exchange = latency + per_byte * sent(row)
    rounds = STEPS // k
    each = [round_ms(model, width, part_of(row), k, neighbours(ranks), ms, share) for ms in (exchange, 0)]
    return ((rounds - 1) * each[0] + each[1]) / (rounds * k)


# ---- more GPUs than were measured ----


def projected_ms(model, program, size, transport, ranks):
    """The model's time of a step or of a dot product on so many GPUs, and whether the exchange is hidden. From one node to several,
    the slowest exchange is that of a rank with one neighbour in its own node and one across the network."""
    across = NETWORK_MS if ranks > NODE else 0
    if program == DOT:
        steps = math.log2(ranks)
        far = math.log2(max(ranks / NODE, 1))
        return dot_ms(model, size[0] / ranks) + steps * model["all-reduce"][transport] + far * across, None
    width, height, k = size
    rows, sides, bytes_of_side = height / ranks, neighbours(ranks), k * width * 4
    latency, per_byte = model["exchange"][transport]
    exchange = max(sides * per_byte, NETWORK_MS_PER_BYTE if across else 0) * bytes_of_side
    exchange = latency + across + exchange if ranks > 1 else 0
    ms = round_ms(model, width, rows, k, sides, exchange)
    return ms / k, ms <= round_ms(model, width, rows, k, sides, 0)


def projections(model):
    """The lines of the plot, as (kind, program, size of one rank or of all, transport, points, the most GPUs on which the exchange
    is hidden, milliseconds on the most GPUs)."""
    found = []
    for kind, program, size, transport in PROJECTED:
        key = "all-reduce" if program == DOT else "exchange"
        if transport not in model[key]:
            continue
        points, hidden = [], 0
        alone = projected_ms(model, program, size, transport, 1)[0]
        for ranks in COUNTS:
            whole = size if kind == "strong" else grown(program, size, ranks)
            ms, covered = projected_ms(model, program, whole, transport, ranks)
            points.append((ranks, alone / ms / (ranks if kind == "strong" else 1)))
            hidden = ranks if covered else hidden
        found.append((kind, program, size, transport, points, hidden, ms))
    return found


def grown(program, size, ranks):
    """A size for weak scaling: so many times the elements or rows."""
    return (size[0] * ranks,) if program == DOT else (size[0], size[1] * ranks, size[2])


# ---- the page ----

TITLES = {
    "host": "MPI, host",
    "MPI_Allreduce": "MPI, host",
    "nccl": "NCCL",
    "ncclAllReduce": "NCCL",
    "cuda-aware": "MPI, CUDA",
}


def title(transport):
    return TITLES.get(transport, transport)


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
        if row["transport"] is None and row["ranks"] > 1 or row["transport"] and row["ranks"] == 1:
            continue
        size = list(row["size"])
        tables.setdefault(("strong", row["program"], tuple(size)), {})[
            row["ranks"], title(row["transport"])
        ] = row
        size[0 if row["program"] == DOT else 1] /= row["ranks"]
        if size == [int(number) for number in size]:
            size = tuple(int(number) for number in size)
            tables.setdefault(("weak", row["program"], size), {})[row["ranks"], title(row["transport"])] = row
    return {key: rows for key, rows in tables.items() if {1} < {ranks for ranks, _ in rows}}


def error(model, found, row):
    return predicted(model, found, row) / row["ms"] - 1


def percent(part):
    return f"{100 * part:.{0 if part >= 0.095 else 1}f} %"


def signed(part):
    return f"{100 * part:+.0f} %".replace("+0 %", "0 %").replace("-0 %", "0 %").replace("-", "−")


def scaling_tables(found):
    """What was measured on one machine, the model's error beside each time, and the largest and the median error."""
    model, parts = fit(found), []
    block = found["scaling"]
    busy = f"; the least of {block['repeat']} runs, while other processes used the cores too (load average {' and '.join(map(str, block['load']))})"
    parts.append(f"{conditions(found['device'], [block])}{busy if block['repeat'] > 1 else ''}.")
    for kind, what in ("strong", "speedup"), ("weak", "efficiency"):
        tables = {key[1:]: rows for key, rows in groups(found).items() if key[0] == kind}
        columns = sorted(
            {key for rows in tables.values() for key in rows}, key=lambda key: (key[0], key[1] or "")
        )
        body = []
        for (program, size), rows in sorted(
            tables.items(), key=lambda item: (item[0][0], [-n for n in item[0][1]])
        ):
            cells = []
            for key in columns:
                row = rows.get(key)
                cells.append(f"{duration(row['ms'])} ({signed(error(model, found, row))})" if row else "–")
            most = max(ranks for ranks, _ in rows)
            ms = min(row["ms"] for (ranks, _), row in rows.items() if ranks == most)
            gain = rows[1, None]["ms"] / ms
            cells.append(f"{gain:.2f} on {most}" if kind == "strong" else f"{100 * gain:.0f} % on {most}")
            body.append([work_of(program, size, " a rank" if kind == "weak" else ""), *cells])
        head = [f"{ranks} rank{'s' * (ranks > 1)}{': ' + name if name else ''}" for ranks, name in columns]
        parts.append(
            f"{kind.capitalize()} scaling:\n\n{markdown([kind + ' scaling', *head, what], body)}"
            if body
            else ""
        )
    # Each row once. Most of the parameters come from the rows of one rank, so these do not count.
    several = {
        id(row): row for rows in groups(found).values() for (ranks, _), row in rows.items() if ranks > 1
    }
    errors = sorted(abs(error(model, found, row)) for row in several.values())
    if errors:
        parts.append(
            f"Error of the model over the {len(errors)} times of several ranks: median {percent(errors[len(errors) // 2])}, "
            f"largest {percent(errors[-1])}."
        )
    return "\n\n".join(filter(None, parts))


def measured_part():
    return "\n\n".join(scaling_tables(found) for found in records())


def rate_of(per_unit, unit, scale):
    return f"{digits(scale / per_unit)} {unit}" if per_unit else "no limit found"


def model_part():
    """The fitted parameters, a column for each machine."""
    columns = [
        ("CPU back end" if found["backend"] == "cpu" else found["device"].replace("NVIDIA ", ""), fit(found))
        for found in records()
    ]
    if not columns:
        return ""
    body = []
    for steps in sorted(DEPTHS):
        cells = [
            f"{duration(model['launch'][steps][0])}, {rate_of(model['launch'][steps][1], 'Gcells/s', 1e-6)}"
            for _, model in columns
        ]
        body.append([f"launch of {steps} step{'s' * (steps > 1)}: overhead, rate", *cells])
    body.append(
        [
            "dot: launch overhead, rate",
            *(
                f"{duration(model['dot'][0])}, {rate_of(model['dot'][1], 'GB/s', 1e-6)}"
                for _, model in columns
            ),
        ]
    )
    for key, what in ("exchange", "exchange: latency, bandwidth"), ("all-reduce", "all-reduce: latency"):
        for name in dict.fromkeys(name for _, model in columns for name in model[key]):
            cells = []
            for _, model in columns:
                value = model[key].get(name)
                if value is None:
                    cells.append("–")
                elif key == "exchange":
                    cells.append(f"{duration(value[0])}, {rate_of(value[1], 'GB/s', 1e-6)}")
                else:
                    cells.append(duration(value))
            body.append([f"{what}, {title(name)}", *cells])
    return markdown(["parameter", *(name for name, _ in columns)], body)


def gpu_model():
    found = next((found for found in records() if found["backend"] == "gpu"), None)
    return found, found and fit(found)


def name_of(program, size, transport):
    return f"dot, {title(transport)}" if program == DOT else f"heat, k = {size[2]}, {title(transport)}"


def projection_part():
    found, model = gpu_model()
    if not found:
        return ""
    path, body = os.path.relpath(recorded.plot_path(RECORDED, PLOT), ROOT), []
    for kind, program, size, transport, points, hidden, last in projections(model):
        at = dict(points)
        more = " a GPU" if kind == "weak" else ""
        body.append(
            [
                kind,
                f"{work_of(program, size, more)}, {title(transport)}",
                *(percent(at[count]) for count in (2, 8, 64, 1024)),
                duration(last),
                f"{hidden} GPUs" if program == HEAT else "–",
            ]
        )
    head = ["scaling", "work", "2 GPUs", "8", "64", "1024", "time on 1024", "exchange hidden up to"]
    return f"![Efficiency on 1 to 1024 GPUs](../{path})\n\n{markdown(head, body)}"


def plotted():
    """What the plot shows: the panels of plots.draw_scaling(), and the largest number of GPUs that was measured."""
    found, model = gpu_model()
    if not found:
        return None
    rows, panels = groups(found), []
    for kind in "strong", "weak":
        lines = []
        for which, program, size, transport, points, *_ in projections(model):
            if which != kind:
                continue
            marks = []
            for (ranks, name), row in rows.get((kind, program, size), {}).items():
                if name in (None, title(transport)):
                    gain = rows[kind, program, size][1, None]["ms"] / row["ms"]
                    marks.append((ranks, gain / (ranks if kind == "strong" else 1)))
            # Rounded, because another version of Python may compute other last digits.
            rounded = [[(ranks, float(f"{part:.5g}")) for ranks, part in pairs] for pairs in (points, marks)]
            lines.append((name_of(program, size, transport), *rounded))
        panels.append((f"{kind.capitalize()} scaling", lines))
    return panels, max(row["ranks"] for row in found["scaling"]["rows"])


def draw():
    shown_data = plotted()
    if not shown_data or recorded.plot(RECORDED, PLOT, shown_data):
        return
    if not find("matplotlib"):
        print("plots are off: no python3 here has matplotlib: make setup bench installs it")
        return
    import plots

    panels, most = shown_data
    words = [
        f"{title}, on {COUNTS[-1]} GPUs: "
        + ", ".join(f"{name} {percent(points[-1][1])}" for name, points, _ in lines)
        for title, lines in panels
    ]
    text = f"Efficiency; measured up to {most} GPUs, the rest is a model. " + "; ".join(words) + "."
    svg = plots.draw_scaling("Efficiency on 1 to 1024 GPUs", panels, most, text)
    recorded.write(recorded.plot_path(RECORDED, PLOT), svg + recorded.origin(shown_data))


def main():
    parts = {"--measured": measured_part, "--model": model_part, "--projection": projection_part}
    if len(sys.argv) == 2 and sys.argv[1] in parts:
        print(parts[sys.argv[1]]())
        return 0
    if sys.argv[1:] == ["--plot"]:
        return draw()
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 64
    return record()


if __name__ == "__main__":
    recorded.run(main, "scaling")
