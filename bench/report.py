#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows the results that bench/measure.py recorded in RESULTS (bench/results): each RESULTS/<device>.json has the rows of all
ladders on a device.
  report.py           draws RESULTS/<device>/chapterNN/<topic>.svg, and writes report.html beside RESULTS
  report.py --summary the table of docs/performance.md, in Markdown: one row for each topic
  report.py --results the tables of bench/results/README.md, in Markdown: all sizes and kinds of data, then each topic with its plot
The last two show one machine, RECORDED below. Plots need matplotlib."""
import html
import importlib
import os
import re
import subprocess
import sys

import results as recorded
from results import RESULTS, duration, ends, groups, largest, plot, plot_path, rate, share, shown, slug
from results import times, topic, write

RECORDED = "nvidia-h200"
SPEEDUPS = "speedup"  # the name of the plot of README.md, beside the folders of the ladders' plots
COPY_RATE = (
    "The copy rate is the rate of a copy, or of another part of the work that every solution must do, measured in the same run; if "
    "there are several, the slowest counts. Reads alone are faster than a copy, and a kernel that computes several steps for each "
    "read moves fewer bytes, so more than 100 % of the copy rate is possible."
)


def table(rows):
    """The table of one group: the names of the columns, and the cells."""
    *_, copy = ends(rows)
    cold = any(row["cold_ms"] for row in rows)
    shares = any(row["of_copy_rate"] is not None for row in rows)  # not on the CPU back end
    errors = [key for key in ("max_error", "rms_error") if any(row[key] is not None for row in rows)]
    head = ["#", "name", "what is new", "median", "min", "max", *["cold"] * cold, "rate"]
    head += [*["of copy rate"] * shares, "× book", "× library", "verified"]
    head += [key.replace("_", " ").replace("rms", "RMS") for key in errors]
    body = []
    for row in rows:
        own = {
            "rung": str(row["number"]),
            "library": "library",
            "inaccurate": "less accurate library",
            "copy": "copy rate" if row is copy else "other rate",
        }[row["kind"]]
        cells = [own, row["name"], row["idea"]]
        if row["median_ms"] is None:
            body.append(cells + [row["skipped"] or "–"] + [""] * (len(head) - 4))
            continue
        cells += [duration(row[k]) for k in ("median_ms", "min_ms", "max_ms")]
        cells += [duration(row["cold_ms"]) if row["cold_ms"] else "–"] * cold + [rate(row)]
        cells += [share(None if own == "other rate" else row["of_copy_rate"])] * shares
        cells += [times(row["times_book"]), times(row["times_library"]), "yes" if row["verified"] else "–"]
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


def cells(program, name, group, whole):
    """The cells of a group, by column: for the whole table in bench/results, or for docs/performance.md. None if no rung was run."""
    book, best, library, copy = ends(group)
    return best and {
        "topic": f"[{topic(program)}]({'../../' if whole else '../'}{program}.cu)",
        "work": name + (" (in L2)" if whole and best["in_l2"] else ""),
        "the book's kernel": duration(book["median_ms"]) if book else "–",
        "fastest rung": f"{best['number']} {best['name']} {duration(best['median_ms'])}"
        + (f", {rate(best)}" if whole else ""),
        "× book": times(best["times_book"]),
        "fastest library": f"{library['name']} {duration(library['median_ms'])}" if library else "–",
        "× library": times(best["times_library"]),
        "copy rate": f"{copy['name']} {rate(copy)}" if copy else "–",
        "of copy rate": share(best["of_copy_rate"]),
        "its rate": rate(best),
    }


def compared(rows, columns):
    """The table of some rows that cells() returned; empty if there are none."""
    head = ["topic", "work", "the book's kernel", "fastest rung", "× book", "fastest library", *columns]
    body = [[row[column] for column in head] for row in rows if row]
    return markdown(head, body) if body else ""


def performance(results):
    """The table of all sizes; empty without records."""
    programs = results[RECORDED]["programs"] if RECORDED in results else {}
    every = [(p, name, rows) for p, b in programs.items() for name, rows in groups(b["rows"]).items()]
    text = compared([cells(*group, True) for group in every], ["× library", "copy rate", "of copy rate"])
    measured_on = text and conditions(results[RECORDED]["device"], programs.values())
    return text and f"{measured_on}.\n\n{COPY_RATE}\n\n{text}"


def firsts(results):
    """For each program its largest size, and if there are several kinds of data, the first one: (program, work, rows)."""
    programs = results.get(RECORDED, {"programs": {}})["programs"]
    return [(p, *next(iter(groups(largest(b["rows"])).items()))) for p, b in programs.items()]


def summary(results):
    """The table of docs/performance.md."""
    text = compared([cells(*group, False) for group in firsts(results)], ["its rate", "copy rate"])
    return text and f"{results[RECORDED]['device']}:\n\n{text}"


def details(results):
    """A plot and the table of the largest size for each topic; empty without records."""
    programs = results.get(RECORDED, {"programs": {}})["programs"]
    parts = ["## By topic"] if programs else []
    for program, block in programs.items():
        measured_on = conditions(results[RECORDED]["device"], [block])
        parts.append(f"### {topic(program)}\n\n[{program}](../../{program}.cu); {measured_on}.")
        if plot(RECORDED, program, block["rows"]):
            path = plot_path(RECORDED, program).relative_to(RESULTS)
            parts.append(f"![{topic(program)}: rate of each rung]({path})")
        for name, group in groups(largest(block["rows"])).items():
            parts.append(f"{name}:\n\n{markdown(*table(group))}")
    return "\n\n".join(parts)


# ---- the page ----

STYLE = """:root { color-scheme: light dark; --ink: #222; --paper: #fff; --soft: #595959; --line: #ccc; --link: #0b57a4 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161618; --soft: #b0b0b0; --line: #4a4a4c; --link: #8ab8f0 } }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
a { color: var(--link) } nav { line-height: 2 }
h1, h2, h3 { line-height: 1.2 } h2 { border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2.5rem }
.machine { color: var(--soft); font-size: 0.9em; overflow-wrap: anywhere }
figure, .table { margin: 1rem 0; overflow-x: auto } svg { display: block; max-width: 100%; min-width: 40rem; height: auto }
table { border-collapse: collapse; font-size: 0.85em } caption, summary { text-align: left; font-weight: 600; padding: 0.4rem 0 }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap } tbody th { font-weight: normal }
th:nth-child(2), th:nth-child(3), td:nth-child(3) { text-align: left }
@media (max-width: 40rem) { body { margin: 1rem auto } caption { white-space: normal } }"""


def scrolled(element, label, content, attributes=""):
    """A region for content that may be wider than the screen. With tabindex the arrow keys scroll it; then it needs a name."""
    return f'<{element}{attributes} tabindex="0" role="group" aria-label="{html.escape(label)}">{content}</{element}>'


def inlined(svg, prefix, device):
    """Prepares an SVG for a page with several SVGs: removes its prolog and makes its ids unique."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    return svg.replace("</title>", f" on {html.escape(device)}</title>", 1)


def html_table(name, rows, where):
    head, body = table(rows)
    text = f"<table><caption>{html.escape(name)}</caption><thead><tr>"
    text += "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr></thead><tbody>\n"
    for number, what, *values in body:
        cells = "".join(f"<td>{html.escape(value)}</td>" for value in values)
        text += f'<tr><td>{number}</td><th scope="row">{html.escape(what)}</th>{cells}</tr>\n'
    return scrolled("div", f"{where}: {name}", f"{text}</tbody></table>", ' class="table"')


def measured(program, name, found):
    """The results of a program on one machine as HTML: conditions, plot and tables. Tables of smaller sizes are collapsed."""
    rows, where = found["programs"][program]["rows"], f"{topic(program)} on {found['device']}"
    facts = conditions("", [found["programs"][program]])
    parts = [f"<h3>{html.escape(found['device'])}</h3>", f'<p class="machine">{html.escape(facts)}</p>']
    svg = plot(name, program, rows)
    if svg:
        picture = inlined(svg, f"{name}-{slug(program)}", found["device"])
        parts.append(scrolled("figure", f"{where}: plot", picture))
    last = groups(largest(rows))
    parts += [html_table(*group, where) for group in last.items()]
    rest = [html_table(work, own, where) for work, own in groups(rows).items() if work not in last]
    return parts + (["<details><summary>smaller sizes</summary>", *rest, "</details>"] if rest else [])


def page(results):
    """A page that needs no other file: one section for each topic, with all machines."""
    programs = {program for found in results.values() for program in found["programs"]}
    links, parts = [], []
    for program in sorted(programs, key=recorded.order):
        links.append(f'<a href="#{slug(program)}">{topic(program)}</a>')
        parts.append(f'<section id="{slug(program)}"><h2>{topic(program)}</h2><p>{program}.cu</p>')
        for name, found in results.items():
            if program in found["programs"]:
                parts += measured(program, name, found)
        parts.append("</section>")
    sections = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Performance</title>
<style>
{STYLE}
</style></head><body><main>
<h1>From the book's kernels to the limit of the hardware</h1>
<p>The median of at least 11 runs (fewer when one takes over 100 ms), each result verified before and after.
× book and × library: how many times as fast as the book's kernel and as the fastest library. {COPY_RATE}</p>
<nav aria-label="topics">{" · ".join(links)}</nav>
{sections}
</main></body></html>
"""


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


def speedups(results):
    """What the plot of README.md shows: [topic, how many times as fast the fastest rung is as the book's kernel or the first rung]."""
    found = [(topic(program), ends(rows)[1]) for program, _, rows in firsts(results)]
    return [[name, best["times_book"]] for name, best in found if best and best["times_book"]]


def draw(results):
    """Draws the plots that are missing or show other rows."""
    for name, found in results.items():
        for program, block in found["programs"].items():
            if not draw_plot(name, program, block["rows"], "draw", program, block["rows"]):
                return
    rows = speedups(results)
    if rows:
        title = f"The fastest rung of each ladder, {results[RECORDED]['device']}"
        words = ", ".join(f"{name} {times(value)}" for name, value in rows)
        draw_plot(RECORDED, SPEEDUPS, rows, "draw_speedups", title, rows, f"Times as fast: {words}.")


def main():
    results = recorded.load()
    parts = {"--summary": [summary], "--results": [performance, details]}
    if len(sys.argv) == 2 and sys.argv[1] in parts:
        texts = [part(results) for part in parts[sys.argv[1]]]
        print("\n\n".join(filter(None, texts)))
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 64
    draw(results)
    if results:
        write(RESULTS.parent / "report.html", page(results))
        print(f"{shown(RESULTS.parent / 'report.html')}: {len(results)} machine{'s' * (len(results) > 1)}")
    return 0


if __name__ == "__main__":
    recorded.run(main, "report")
