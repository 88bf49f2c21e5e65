#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows what bench/run.py recorded in RESULTS (bench/results): each RESULTS/<device>.json has the rows of every ladder.
  report.py           draws RESULTS/<device>/chapterNN/<topic>.svg, and writes report.html beside RESULTS
  report.py --table   the performance table of README.md, in Markdown
  report.py --plots   the plots and tables of docs/performance.md, in Markdown
Both are about one machine, the one below. Plots need matplotlib."""
import html
import os
import re
import subprocess
import sys

from results import (RESULTS, ROOT, duration, ends, groups, load, order, origin, plot, plot_path, rate, run, share, shown, slug, times, topic,
                     write)

RECORDED = "nvidia-h200"


def table(rows):
    """Of one group: the names of the columns and the cells."""
    cold = any(row["cold_ms"] for row in rows)
    errors = [key for key in ("max_error", "rms_error") if any(row[key] is not None for row in rows)]
    head = ["#", "name", "what changed", "median", "min", "max", *(["cold"] if cold else []), "rate", "of limit", "× book", "× peer",
            "verified", *(key.replace("_", " ").replace("rms", "RMS") for key in errors)]
    body = []
    for row in rows:
        cells = [str(row["number"]) if row["kind"] == "rung" else row["kind"], row["name"], row["idea"]]
        if row["skipped"]:
            body.append(cells + [row["skipped"]] + [""] * (len(head) - 4))
            continue
        cells += [duration(row[k]) for k in ("median_ms", "min_ms", "max_ms")]
        cells += [duration(row["cold_ms"]) if row["cold_ms"] else "–"] if cold else []
        cells += [rate(row), share(row["of_limit"]), times(row["times_book"]), times(row["times_peer"]), "yes" if row["verified"] else "–"]
        cells += ["–" if row[key] is None else f"{row[key]:.2g}" for key in errors]
        body.append(cells)
    return head, body


def conditions(device, blocks):
    """The line above a table: what these were measured with. What differs between programs is all named."""
    def all_of(text):
        return " and ".join(sorted({text(block) for block in blocks} - {""}))

    def clock(block):
        speed = block["clocks"]
        if not speed:
            return ""
        now = [f"{speed[when]['sm_mhz']:.0f}" for when in ("before", "after") if speed[when]["sm_mhz"] is not None]
        return ", ".join(filter(None, [
            f"SM clock at most {speed['sm_max_mhz']:.0f} MHz" if speed["sm_max_mhz"] else "",
            f"{' and '.join(now)} MHz before and after" if len(blocks) == 1 and len(now) == 2 else "",
            f"memory {speed['memory_max_mhz']:.0f} MHz" if speed["memory_max_mhz"] else "",
            f"{speed['power_limit_w']:.0f} W" if speed["power_limit_w"] else ""]))

    gpu = all_of(lambda b: b["toolkit"] or "")
    parts = [device, all_of(lambda b: f"driver {b['driver']}" if b["driver"] else ""), f"CUDA {gpu}" if gpu else "",
             "" if gpu else all_of(lambda b: b["compiler"] or ""), all_of(clock),
             all_of(lambda b: f"{b['machine']['cores']} cores of {b['machine']['cpu']}"), all_of(lambda b: b["machine"]["os"]),
             all_of(lambda b: b["date"][:10]),
             all_of(lambda b: "commit " + (b["commit"] or "not known")[:12] + (" with changes" if b["dirty"] else ""))]
    return "; ".join(filter(None, parts))


def markdown(head, body):
    rows = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def performance(results):
    """The section of README.md; nothing where nothing is recorded."""
    if RECORDED not in results:
        return ""
    device, programs = results[RECORDED]["device"], results[RECORDED]["programs"]
    body = []
    for program, block in programs.items():
        for name, group in groups(block["rows"]).items():
            book, last, peer, limit = ends(group)
            if not last:
                continue
            body.append([f"[{topic(program)}]({program}.cu)", name + (" (in L2)" if last["in_l2"] else ""),
                         duration(book["median_ms"]) if book else "–", f"{duration(last['median_ms'])}, {rate(last)}",
                         times(last["times_book"]), f"{peer['name']} {duration(peer['median_ms'])}" if peer else "–",
                         times(last["times_peer"]), f"{limit['name']} {rate(limit)}" if limit else "–", share(last["of_limit"])])
    head = ["topic", "work", "the book's kernel", "last rung", "× book", "best library", "× library", "limit", "of limit"]
    return f"{conditions(device, programs.values())}.\n\n{markdown(head, body)}" if body else ""


def details(results):
    """The section of docs/performance.md: a plot and the table of the largest size for each topic."""
    parts = []
    for program, block in results.get(RECORDED, {"programs": {}})["programs"].items():
        parts.append(f"### {topic(program)}\n\n[{program}](../{program}.cu); "
                     f"{conditions(results[RECORDED]['device'], [block])}.")
        if plot(RECORDED, program, block["rows"]):
            path = os.path.relpath(plot_path(RECORDED, program), ROOT)
            parts.append(f"![{topic(program)}: rate of each rung](../{path})")
        largest = [row for row in block["rows"] if row["size"] == max(r["size"] for r in block["rows"])]
        for name, group in groups(largest).items():
            parts.append(f"{name}:\n\n{markdown(*table(group))}")
    return "\n\n".join(parts)


# ---- the page ----

STYLE = """body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: #222; background: #fff }
h1, h2, h3 { line-height: 1.2 } h2 { border-top: 1px solid #ccc; padding-top: 1rem; margin-top: 2.5rem }
.machine { color: #555; font-size: 0.9em } figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: 0.85em } caption, summary { text-align: left; font-weight: 600; padding: 0.4rem 0 }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:nth-child(2), th:nth-child(3), td:nth-child(2), td:nth-child(3) { text-align: left } div { overflow-x: auto }"""


def inlined(svg, prefix, label):
    """An SVG for a page that has several: without its prolog, and with names that no other one has."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def html_table(name, rows):
    head, body = table(rows)
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in body)
    return (f"<div><table><caption>{html.escape(name)}</caption><thead><tr>" + "".join(f"<th>{cell}</th>" for cell in head)
            + f"</tr></thead><tbody>\n{cells}</tbody></table></div>")


def page(results):
    """A page that needs no other file: a section a topic, in it every machine."""
    programs = sorted({program for found in results.values() for program in found["programs"]}, key=order)
    parts = ["<h1>From the book's kernels to the limit of the hardware</h1>",
             "<p>The median of at least 11 runs (fewer when one takes over 100 ms), each result verified before and after. "
             "× book and × peer: how many times as fast as the book's kernel and as the best library. "
             "The limit is measured in the same run.</p>",
             "<p>" + " · ".join(f'<a href="#{slug(p)}">{topic(p)}</a>' for p in programs) + "</p>"]
    for program in programs:
        parts.append(f'<section id="{slug(program)}"><h2>{topic(program)}</h2><p>{program}.cu</p>')
        for name, found in results.items():
            block = found["programs"].get(program)
            if not block:
                continue
            parts += [f"<h3>{html.escape(found['device'])}</h3>",
                      f'<p class="machine">{html.escape(conditions("", [block]))}</p>']
            svg = plot(name, program, block["rows"])
            if svg:
                label = f"{topic(program)} on {found['device']}: rate of each rung"
                parts.append(f"<figure>{inlined(svg, f'{name}-{slug(program)}', label)}</figure>")
            largest = max(row["size"] for row in block["rows"])
            for rest in False, True:
                tables = [html_table(work_name, rows) for work_name, rows in groups(block["rows"]).items()
                          if (rows[0]["size"] != largest) == rest]
                parts += ["<details><summary>smaller sizes</summary>", *tables, "</details>"] if rest and tables else tables
        parts.append("</section>")
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Performance</title>\n'
            f"<style>\n{STYLE}\n</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n")


def find_matplotlib():
    """Whether it is there. Another python3 may stand in front of the distribution's, without its packages."""
    try:
        import matplotlib  # noqa: F401
        return True
    except ImportError:
        other = "/usr/bin/python3"
        if os.path.realpath(sys.executable) != os.path.realpath(other) and os.access(other, os.X_OK) \
                and subprocess.run([other, "-c", "import matplotlib"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            os.execv(other, [other, *sys.argv])
        return False


def main():
    results = load()
    if sys.argv[1:] in (["--table"], ["--plots"]):
        text = performance(results) if sys.argv[1] == "--table" else details(results)
        print(text, end="\n" if text else "")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 64
    due = [(name, program, block["rows"]) for name, found in results.items() for program, block in found["programs"].items()
           if not plot(name, program, block["rows"])]
    if due and find_matplotlib():
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
