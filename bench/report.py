#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows the results that bench/measure.py recorded in RESULTS (bench/results): each RESULTS/<device>.json has the rows of all
ladders on a device.
  report.py           draws RESULTS/<device>/chapterNN/<topic>.svg, and writes RESULTS/<device>.md: all sizes and kinds of data, then
                      each topic with its plot
  report.py --summary the table of docs/performance.md: one row for each topic, and what its large factors contain
  report.py --factors the latter, for README.md
  report.py --predictions the table of other GPUs in docs/performance.md
  report.py --results what bench/results/README.md has of RECORDED below, which is also in RESULTS/<device>.md
Plots need matplotlib."""
import importlib
import os
import subprocess
import sys

import results as recorded
from results import RESULTS, crossover, duration, ends, groups, largest, plot, plot_path, rate
from results import mark, share, shown, slug, times, topic, with_legend, write

RECORDED = "nvidia-h200"  # the machine that the documents show
CPU = "intel-r-xeon-r-processor"  # that of the CPU back end
# Published figures of GPUs: GB/s, TFLOP/s in float, and GHz of instructions issued, which is multiprocessors times clock
PUBLISHED = {
    "H200": {"memory": 4800, "arithmetic": 67, "instructions": 261},
    "A100 (80 GB)": {"memory": 2039, "arithmetic": 19.5, "instructions": 152},
    "RTX 4090": {"memory": 1008, "arithmetic": 82.6, "instructions": 323},
    "Jetson AGX Orin": {"memory": 205, "arithmetic": 5.3, "instructions": 21},
}
# The rungs whose times on these GPUs are predicted, and what limits them
PREDICTED = {
    "chapter04/julia_ladder": ("symmetry", ["arithmetic"]),
    "chapter05/add_ladder": ("streaming stores", ["memory"]),
    "chapter05/dot_ladder": ("single launch", ["memory"]),
    "chapter05/matmul_ladder": ("asynchronous copies", ["arithmetic"]),
    "chapter07/heat_ladder": ("temporal blocking", ["arithmetic", "memory"]),
    "chapter09/hist_ladder": ("single launch", ["memory"]),
    "chapter12/sort_ladder": ("single pass", ["instructions", "memory"]),
    "chapter12/transpose_ladder": ("column by column", ["memory"]),
}
SPEEDUPS = "speedup"  # the name of the plot of README.md, beside the folders of the ladders' plots
LIMIT = (
    "The limit is a part of the work that every solution must do (a read, a copy, arithmetic, the launch of a kernel), timed alone at "
    "the same size in the same run; if there are several, the slowest counts."
)


def table(rows):
    """The table of one group: the names of the columns, and the cells."""
    *_, limit = ends(rows)
    cold = any(row["cold_ms"] for row in rows)
    # Neither of these is there on the CPU back end.
    shares = any(row["of_limit"] is not None for row in rows)
    books = any(row["times_book"] is not None for row in rows)
    errors = [key for key in ("max_error", "rms_error") if any(row[key] is not None for row in rows)]
    head = ["#", "name", "what is new", "median", "min", "max", *["cold"] * cold, "rate"]
    head += [*["of limit"] * shares, *["× book"] * books, "× library", "verified"]
    head += [key.replace("_", " ").replace("rms", "RMS") for key in errors]
    body = []
    for row in rows:
        own = {
            "rung": str(row["number"]),
            "library": "library",
            "inaccurate": "less accurate library",
            "limit": "limit" if row is limit else "alone",
            "alone": "alone",
        }[row["kind"]]
        cells = [own, row["name"], row["idea"]]
        if row["median_ms"] is None:
            body.append(cells + [row["skipped"] or "–"] + [""] * (len(head) - 4))
            continue
        cells += [duration(row[k]) for k in ("median_ms", "min_ms", "max_ms")]
        cells += [duration(row["cold_ms"]) if row["cold_ms"] else "–"] * cold + [rate(row)]
        cells += [share(None if own == "alone" else row["of_limit"])] * shares
        cells += [times(row["times_book"])] * books + [times(row["times_library"])]
        cells += ["yes" if row["verified"] else "–"]
        cells += ["–" if row[key] is None else f"{row[key]:.2g}" for key in errors]
        body.append(cells)
    return head, body


def clock(block, alone):
    """The clocks of a record, with those before and after if it stands alone."""
    speed = block["clocks"]
    if not speed:
        return ""
    now = [speed[when]["sm_mhz"] for when in ("before", "after")]
    parts = [f"SM clock at most {speed['sm_max_mhz']:.0f} MHz"] if speed["sm_max_mhz"] else []
    parts += [f"{now[0]:.0f} and {now[1]:.0f} MHz before and after"] if alone and None not in now else []
    parts += [f"memory {speed['memory_max_mhz']:.0f} MHz"] if speed["memory_max_mhz"] else []
    parts += [f"{speed['power_limit_w']:.0f} W"] if speed["power_limit_w"] else []
    return ", ".join(parts)


def conditions(device, blocks):
    """The line above a table: the hardware and software of the measurements. If they differ between programs, all are listed."""
    rows, toolkit = [], any(block["toolkit"] for block in blocks)
    for block in blocks:
        driver = f"driver {block['driver']}" if block["driver"] else ""
        compiler = (block["toolkit"] if toolkit else block["compiler"]) or ""
        host = [f"{block['machine']['cores']} cores of {block['machine']['cpu']}", block["machine"]["os"]]
        commit = f"commit {(block['commit'] or 'not known')[:12]}{' with changes' if block['dirty'] else ''}"
        speed = clock(block, len(blocks) == 1)
        rows.append([device, driver, compiler, speed, *host, block["date"][:10], commit])
    every = [" and ".join(sorted({*column} - {""})) for column in zip(*rows)]
    every[2] = f"CUDA {every[2]}" if toolkit else every[2]
    return "; ".join(filter(None, every))


def markdown(head, body):
    rows = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def cells(program, block, name, group, whole, rows=()):
    """The cells of a group of a record, by column: for the whole table in bench/results, or for docs/performance.md. None if no rung was
    run."""
    book, best, library, limit = ends(group)
    return best and {
        "topic": f"[{topic(program)}]({'../../' if whole else '../'}{program}.cu){mark(program, block)}",
        "work": name + (" (in L2)" if whole and best["in_l2"] else ""),
        "the book's kernel": duration(book["median_ms"]) if book else "–",
        "fastest rung": f"{best['number']} {best['name']} {duration(best['median_ms'])}"
        + (f", {rate(best)}" if whole else ""),
        "× book": times(best["times_book"]),
        "fastest library": f"{library['name']} {duration(library['median_ms'])}" if library else "–",
        "× library": times(best["times_library"]),
        "limit": f"{limit['name']} {rate(limit)}" if limit else "–",
        "of limit": share(best["of_limit"]),
        "its rate": rate(best),
        "book as fast up to": str(crossover(rows) or "–") if rows else "",
    }


def compared(rows, columns):
    """The table of some rows that cells() returned; empty if there are none."""
    head = ["topic", "work", "the book's kernel", "fastest rung", "× book", "fastest library", *columns]
    rows = [row for row in rows if row]
    if all(row["× book"] == "–" for row in rows):
        head.remove("× book")
    body = [[row[column] for column in head] for row in rows]
    return markdown(head, body) if body else ""


def all_sizes(programs):
    every = [(p, b, name, rows) for p, b in programs.items() for name, rows in groups(b["rows"]).items()]
    return compared([cells(*group, True) for group in every], ["× library", "limit", "of limit"])


def opening(found):
    """What a page begins with: the device, and the topic that was measured last."""
    text = f"# Results on {found['device']}"
    for date, program in sorted((block["date"], name) for name, block in found["programs"].items())[-1:]:
        table = all_sizes({program: found["programs"][program]})
        text += f"\n\nMeasured last, {date[:10]}: {topic(program)}.\n\n{table}"
    return text


def performance(found):
    """The table of all sizes."""
    text = all_sizes(found["programs"])
    measured_on = conditions(found["device"], found["programs"].values())
    return text and with_legend(f"{measured_on}.\n\n{LIMIT}\n\n{text}")


def firsts(found):
    """For each program its largest size, and if there are several kinds of data, the first one: (program, work, rows)."""
    return [(p, *next(iter(groups(largest(b["rows"])).items()))) for p, b in found["programs"].items()]


def factors(found):
    """For each topic whose fastest rung is at least 100 times as fast as the book's kernel: how many times as fast each rung is as the
    fastest one before it."""
    lines = []
    for program, _, rows in firsts(found):
        book, best, *_ = ends(rows)
        if best and (best["times_book"] or 0) >= 100:
            fastest, parts = book["median_ms"], []
            for row in rows[rows.index(book) + 1 : rows.index(best) + 1]:
                if row["median_ms"] and row["median_ms"] < fastest:
                    parts.append(f"{times(fastest / row['median_ms'])} ({row['name']})")
                    fastest = row["median_ms"]
            product = " × ".join(part for part in parts if not part.startswith("1.00 "))
            lines.append(f"- {topic(program)}: {times(best['times_book'])} = {product}")
    return "\n".join(lines)


def above(found):
    """What shares of a limit above 100 % are, and the highest ones at the largest size of each topic and at the others."""
    most = [0, 0]
    for block in found["programs"].values():
        last = max(row["size"] for row in block["rows"])
        for row in block["rows"]:
            if row["kind"] == "rung":
                most[row["size"] < last] = max(most[row["size"] < last], row["of_limit"] or 0)
    return (
        "A limit is the measured time of a simple kernel or copy, so a rung can be faster and have more than 100 % of it: "
        f"up to {share(most[0])} in this table, and up to {share(most[1])} at smaller sizes, whose data stay in the L2 cache."
    )


def summary(found):
    """The table of docs/performance.md."""
    blocks = found["programs"]
    text = compared(
        [cells(p, blocks[p], name, rows, False, blocks[p]["rows"]) for p, name, rows in firsts(found)],
        ["× library", "its rate", "limit", "of limit", "book as fast up to"],
    )
    parts = (
        f"{found['device']}:",
        text,
        above(found),
        "The factors from 100 on, rung by rung:",
        factors(found),
    )
    return text and with_legend("\n\n".join(parts))


def predictions(found):
    """The times of PREDICTED on the GPUs of PUBLISHED: those of RECORDED, multiplied by the largest ratio of what may limit a rung."""
    own, *others = PUBLISHED.values()
    body = []
    for program, work, rows in firsts(found):
        rung, limits = PREDICTED.get(program, ("", []))
        for row in rows:
            if row["name"] == rung and row["median_ms"]:
                ratios = [max(own[what] / gpu[what] for what in limits) for gpu in others]
                ms = [row["median_ms"] * ratio for ratio in (1, *ratios)]
                name = f"{row['number']} {rung}"
                body.append([topic(program), work, name, " or ".join(limits), *map(duration, ms)])
    published = "{memory} GB/s, {arithmetic} TFLOP/s, {instructions} GHz"
    gpus = [f"{name}: {published.format(**figures)}" for name, figures in PUBLISHED.items()]
    return markdown(["topic", "work", "rung", "limited by", *gpus], body)


def details(found):
    """A plot and the table of the largest size for each topic."""
    parts, name = [f"## By topic: {found['device']}"], slug(found["device"])
    for program, block in found["programs"].items():
        measured_on = conditions(found["device"], [block])
        measured_on += "; the program has changed since" * bool(mark(program, block))
        parts.append(f"### {topic(program)}\n\n[{program}](../../{program}.cu); {measured_on}.")
        if plot(name, program, block["rows"]):
            path = plot_path(name, program).relative_to(RESULTS)
            parts.append(f"![{topic(program)}: rate of each rung]({path})")
        for work, group in groups(largest(block["rows"])).items():
            parts.append(f"{work}:\n\n{markdown(*table(group))}")
    return "\n\n".join(parts)


# ---- plots ----


def find(*packages):
    """Returns whether this python3 has these packages. If only /usr/bin/python3 has them, as with another python3 first on PATH, that
    one runs the script again."""
    try:
        for package in packages:
            importlib.import_module(package)
        return True
    except ImportError:
        other, test = "/usr/bin/python3", f"import {', '.join(packages)}"
        if os.path.realpath(sys.executable) != os.path.realpath(other) and os.access(other, os.X_OK):
            if subprocess.run([other, "-c", test], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                os.execv(other, [other, *sys.argv])
        return False


def draw_plot(name, program, data, function, *arguments):
    """Draws a plot with a function of plots.py, unless it shows this data already. Returns whether that is possible."""
    if not plot(name, program, data):
        if not find("matplotlib"):
            print("plots are off: no python3 here has matplotlib: make setup bench installs it")
            return False
        import plots

        svg = getattr(plots, function)(*arguments)
        write(plot_path(name, program), svg + recorded.origin(data))
    return True


def speedups(found):
    """What the plot of README.md shows: [topic, how many times as fast the fastest rung is as the book's kernel or the first rung, which
    of them, how many times as fast as the fastest library, and its name; None without a library]."""
    found = [(topic(program), ends(rows)) for program, _, rows in firsts(found)]
    return [
        [
            name,
            best["times_book"],
            "book" if book["name"].startswith("book") else "first rung",
            best["times_library"],
            library and library["name"],
        ]
        for name, (book, best, library, _) in found
        if best and best["times_book"]
    ]


def draw(results):
    """Draws the plots that are missing or show other rows."""
    for name, found in results.items():
        for program, block in found["programs"].items():
            if not draw_plot(name, program, block["rows"], "draw", program, block["rows"]):
                return
    rows = speedups(results[RECORDED]) if RECORDED in results else []
    if rows:
        title = f"The fastest rung of each ladder, {results[RECORDED]['device']}"
        words = ", ".join(
            f"{name} {times(value)} × {start}" + (f", {times(than)} × {library}" if library else "")
            for name, value, start, than, library in rows
        )
        draw_plot(RECORDED, SPEEDUPS, rows, "draw_speedups", title, rows, f"Times as fast: {words}.")


def recorded_part(*parts):
    """A function that returns these parts of the record of RECORDED."""

    def text():
        found = recorded.load().get(RECORDED)
        return "\n\n".join(filter(None, (part(found) for part in parts))) if found else ""

    return text


def main():
    results = recorded.load()
    draw(results)
    for name, found in results.items():
        page = RESULTS / f"{name}.md"
        write(page, f"{opening(found)}\n\n## All topics\n\n{performance(found)}\n\n{details(found)}\n")
        print(f"{shown(page)}: written from the records")


if __name__ == "__main__":
    parts = {"summary": recorded_part(summary), "results": recorded_part(performance, details)}
    parts |= {"factors": recorded_part(factors), "predictions": recorded_part(predictions)}
    recorded.run("report", main, __doc__, **parts)
