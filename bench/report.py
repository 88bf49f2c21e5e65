#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows the results that bench/run.py recorded in RESULTS (bench/results): each RESULTS/<device>.json has the rows of all
ladders on a device.
  report.py           draws RESULTS/<device>/chapterNN/<topic>.svg, and writes report.html beside RESULTS
  report.py --summary the performance table of README.md, in Markdown: one row for each topic
  report.py --table   the performance table of docs/performance.md, in Markdown: a row for each size and kind of data
  report.py --plots   the plots and tables of docs/performance.md, in Markdown
The last three show one machine, RECORDED below. Plots need matplotlib."""
import html
import importlib
import os
import re
import subprocess
import sys

from results import (
    RESULTS,
    ROOT,
    duration,
    ends,
    groups,
    load,
    order,
    origin,
    plot,
    plot_path,
    rate,
    run,
    share,
    shown,
    slug,
    times,
    topic,
    write,
)

RECORDED = "nvidia-h200"
COPY_RATE = (
    "The copy rate is the rate of a copy, or of another part of the work that every solution must do, measured in the same run; if "
    "there are several, the slowest counts. Reads alone are faster than a copy, and a kernel that computes several steps for each "
    "read moves fewer bytes, so more than 100 % of the copy rate is possible."
)


def table(rows):
    """The table of one group: the names of the columns, and the cells."""
    cold = any(row["cold_ms"] for row in rows)
    shares = any(row["of_copy_rate"] is not None for row in rows)  # not on the CPU back end
    *_, copy = ends(rows)
    errors = [key for key in ("max_error", "rms_error") if any(row[key] is not None for row in rows)]
    head = [
        "#",
        "name",
        "what is new",
        "median",
        "min",
        "max",
        *(["cold"] if cold else []),
        "rate",
        *(["of copy rate"] if shares else []),
        "× book",
        "× library",
        "verified",
        *(key.replace("_", " ").replace("rms", "RMS") for key in errors),
    ]
    body = []
    for row in rows:
        kind = {
            "rung": str(row["number"]),
            "library": "library",
            "inaccurate": "less accurate library",
            "copy": "copy rate" if row is copy else "other rate",
        }[row["kind"]]
        cells = [kind, row["name"], row["idea"]]
        if row["median_ms"] is None:
            body.append(cells + [row["skipped"] or "–"] + [""] * (len(head) - 4))
            continue
        cells += [duration(row[k]) for k in ("median_ms", "min_ms", "max_ms")]
        cells += [duration(row["cold_ms"]) if row["cold_ms"] else "–"] if cold else []
        cells += [
            rate(row),
            *([share(None if kind == "other rate" else row["of_copy_rate"])] if shares else []),
        ]
        cells += [times(row["times_book"]), times(row["times_library"]), "yes" if row["verified"] else "–"]
        cells += ["–" if row[key] is None else f"{row[key]:.2g}" for key in errors]
        body.append(cells)
    return head, body


def conditions(device, blocks):
    """The line above a table: the hardware and software of the measurements. If they differ between programs, all are listed."""

    def all_of(text):
        return " and ".join(sorted({text(block) for block in blocks} - {""}))

    def clock(block):
        speed = block["clocks"]
        if not speed:
            return ""
        now = [
            f"{speed[when]['sm_mhz']:.0f}"
            for when in ("before", "after")
            if speed[when]["sm_mhz"] is not None
        ]
        return ", ".join(
            filter(
                None,
                [
                    f"SM clock at most {speed['sm_max_mhz']:.0f} MHz" if speed["sm_max_mhz"] else "",
                    f"{' and '.join(now)} MHz before and after" if len(blocks) == 1 and len(now) == 2 else "",
                    f"memory {speed['memory_max_mhz']:.0f} MHz" if speed["memory_max_mhz"] else "",
                    f"{speed['power_limit_w']:.0f} W" if speed["power_limit_w"] else "",
                ],
            )
        )

    gpu = all_of(lambda b: b["toolkit"] or "")
    parts = [
        device,
        all_of(lambda b: f"driver {b['driver']}" if b["driver"] else ""),
        f"CUDA {gpu}" if gpu else "",
        "" if gpu else all_of(lambda b: b["compiler"] or ""),
        all_of(clock),
        all_of(lambda b: f"{b['machine']['cores']} cores of {b['machine']['cpu']}"),
        all_of(lambda b: b["machine"]["os"]),
        all_of(lambda b: b["date"][:10]),
        all_of(
            lambda b: "commit " + (b["commit"] or "not known")[:12] + (" with changes" if b["dirty"] else "")
        ),
    ]
    return "; ".join(filter(None, parts))


def markdown(head, body):
    rows = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def performance(results):
    """The table of all sizes in docs/performance.md; empty without records."""
    if RECORDED not in results:
        return ""
    device, programs = results[RECORDED]["device"], results[RECORDED]["programs"]
    body = []
    for program, block in programs.items():
        for name, group in groups(block["rows"]).items():
            book, last, library, copy = ends(group)
            if not last:
                continue
            body.append(
                [
                    f"[{topic(program)}](../{program}.cu)",
                    name + (" (in L2)" if last["in_l2"] else ""),
                    duration(book["median_ms"]) if book else "–",
                    f"{duration(last['median_ms'])}, {rate(last)}",
                    times(last["times_book"]),
                    f"{library['name']} {duration(library['median_ms'])}" if library else "–",
                    times(last["times_library"]),
                    f"{copy['name']} {rate(copy)}" if copy else "–",
                    share(last["of_copy_rate"]),
                ]
            )
    head = [
        "topic",
        "work",
        "the book's kernel",
        "last rung",
        "× book",
        "fastest library",
        "× library",
        "copy rate",
        "of copy rate",
    ]
    return (
        f"{conditions(device, programs.values())}.\n\n{COPY_RATE}\n\n{markdown(head, body)}" if body else ""
    )


def summary(results):
    """The table of README.md: for each topic the largest size, and if there are several kinds of data, the first one."""
    if RECORDED not in results:
        return ""
    body = []
    for program, block in results[RECORDED]["programs"].items():
        largest = [row for row in block["rows"] if row["size"] == max(r["size"] for r in block["rows"])]
        name, group = next(iter(groups(largest).items()))
        book, last, library, copy = ends(group)
        if last:
            body.append(
                [
                    f"[{topic(program)}]({program}.cu)",
                    name,
                    duration(book["median_ms"]) if book else "–",
                    duration(last["median_ms"]),
                    times(last["times_book"]),
                    f"{library['name']} {duration(library['median_ms'])}" if library else "–",
                    rate(last),
                    rate(copy) if copy else "–",
                ]
            )
    head = [
        "topic",
        "work",
        "the book's kernel",
        "last rung",
        "× book",
        "fastest library",
        "rate of the last rung",
        "of a copy",
    ]
    return f"{results[RECORDED]['device']}:\n\n{markdown(head, body)}" if body else ""


def details(results):
    """The section of docs/performance.md: a plot and the table of the largest size for each topic."""
    programs = results.get(RECORDED, {"programs": {}})["programs"]
    parts = [COPY_RATE] if programs else []
    for program, block in programs.items():
        parts.append(
            f"### {topic(program)}\n\n[{program}](../{program}.cu); "
            f"{conditions(results[RECORDED]['device'], [block])}."
        )
        if plot(RECORDED, program, block["rows"]):
            path = os.path.relpath(plot_path(RECORDED, program), ROOT)
            parts.append(f"![{topic(program)}: rate of each rung](../{path})")
        largest = [row for row in block["rows"] if row["size"] == max(r["size"] for r in block["rows"])]
        for name, group in groups(largest).items():
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
    cells = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{html.escape(cell)}</th>' if i == 1 else f"<td>{html.escape(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>\n"
        for row in body
    )
    return scrolled(
        "div",
        f"{where}: {name}",
        f"<table><caption>{html.escape(name)}</caption><thead><tr>"
        + "".join(f'<th scope="col">{cell}</th>' for cell in head)
        + f"</tr></thead><tbody>\n{cells}</tbody></table>",
        ' class="table"',
    )


def measured(program, name, found):
    """The results of a program on one machine as HTML: conditions, plot and tables. Tables of smaller sizes are collapsed."""
    block = found["programs"][program]
    parts = [
        f"<h3>{html.escape(found['device'])}</h3>",
        f'<p class="machine">{html.escape(conditions("", [block]))}</p>',
    ]
    svg, where = plot(name, program, block["rows"]), f"{topic(program)} on {found['device']}"
    if svg:
        parts.append(
            scrolled("figure", f"{where}: plot", inlined(svg, f"{name}-{slug(program)}", found["device"]))
        )
    largest = max(row["size"] for row in block["rows"])
    for rest in False, True:
        tables = [
            html_table(work_name, rows, where)
            for work_name, rows in groups(block["rows"]).items()
            if (rows[0]["size"] != largest) == rest
        ]
        parts += (
            ["<details><summary>smaller sizes</summary>", *tables, "</details>"]
            if rest and tables
            else tables
        )
    return parts


def page(results):
    """A page that needs no other file: one section for each topic, with all machines."""
    programs = sorted({program for found in results.values() for program in found["programs"]}, key=order)
    parts = [
        "<h1>From the book's kernels to the limit of the hardware</h1>",
        "<p>The median of at least 11 runs (fewer when one takes over 100 ms), each result verified before and after. "
        "× book and × library: how many times as fast as the book's kernel and as the fastest library. "
        f"{COPY_RATE}</p>",
        '<nav aria-label="topics">'
        + " · ".join(f'<a href="#{slug(p)}">{topic(p)}</a>' for p in programs)
        + "</nav>",
    ]
    for program in programs:
        parts.append(f'<section id="{slug(program)}"><h2>{topic(program)}</h2><p>{program}.cu</p>')
        for name, found in results.items():
            if program in found["programs"]:
                parts += measured(program, name, found)
        parts.append("</section>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Performance</title>\n<style>\n{STYLE}\n</style></head><body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def find(*packages):
    """Returns whether this python3 has these packages. If only /usr/bin/python3 has them, as with another python3 first on PATH, that
    one runs the script again."""
    try:
        for package in packages:
            importlib.import_module(package)
        return True
    except ImportError:
        other = "/usr/bin/python3"
        if (
            os.path.realpath(sys.executable) != os.path.realpath(other)
            and os.access(other, os.X_OK)
            and subprocess.run(
                [other, "-c", f"import {', '.join(packages)}"], stderr=subprocess.DEVNULL, check=False
            ).returncode
            == 0
        ):
            os.execv(other, [other, *sys.argv])
        return False


def main():
    results = load()
    tables = {"--summary": summary, "--table": performance, "--plots": details}
    if len(sys.argv) == 2 and sys.argv[1] in tables:
        text = tables[sys.argv[1]](results)
        print(text, end="\n" if text else "")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 64
    due = [
        (name, program, block["rows"])
        for name, found in results.items()
        for program, block in found["programs"].items()
        if not plot(name, program, block["rows"])
    ]
    if due and find("matplotlib"):
        import plots

        for name, program, rows in due:
            write(plot_path(name, program), plots.draw(program, rows) + origin(rows))
    elif due:
        print("plots are off: no python3 here has matplotlib: make setup bench installs it")
    if results:
        write(RESULTS.parent / "report.html", page(results))
        print(f"{shown(RESULTS.parent / 'report.html')}: {len(results)} machine{'s' * (len(results) > 1)}")
    return 0


if __name__ == "__main__":
    run(main, "report")
