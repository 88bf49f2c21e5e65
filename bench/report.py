#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows the results that bench/measure.py recorded in RESULTS (bench/results): each RESULTS/<device>.json has the rows of all
ladders on a device.
  report.py           draws RESULTS/<device>/chapterNN/<topic>.svg, and writes RESULTS/<device>.md: all sizes and kinds of data, then
                      each topic with its plot
  report.py --summary the table of docs/performance.md: one row for each topic
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


def summary(found):
    """The table of docs/performance.md."""
    blocks, more = found["programs"], ["its rate", "limit", "of limit", "book as fast up to"]
    rows = [cells(p, blocks[p], name, group, False, blocks[p]["rows"]) for p, name, group in firsts(found)]
    text = compared(rows, more)
    return text and with_legend(f"{found['device']}:\n\n{text}")


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
    """What the plot of README.md shows: [topic, how many times as fast the fastest rung is as the book's kernel or the first rung, as the
    fastest library, and its name; None without a library]."""
    found = [(topic(program), ends(rows)) for program, _, rows in firsts(found)]
    return [
        [name, best["times_book"], best["times_library"], library and library["name"]]
        for name, (_, best, library, _) in found
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
            name + f" {times(value)}" + (f", {times(than)} × {library}" if library else "")
            for name, value, than, library in rows
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
    recorded.run("report", main, __doc__, **parts)
