# SPDX-License-Identifier: MIT
"""Plots of what bench/ recorded, with matplotlib: the rate of each rung over the size, or bars where there is one size."""
import io
import logging
import math
import re

import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402

from results import duration, rate, topic, work  # noqa: E402

INK, PEERS = "#222222", ["#c44500", "#a0307f", "#8a6100", "#5c5c5c"]
MARKERS = "osD^vPX*hp"


def short(size):
    """1048576 is 1M, and 3000000 3·10⁶."""
    for shift, unit in (30, "G"), (20, "M"), (10, "K"):
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return f"{size // 10**6}·10⁶" if size and size % 10**6 == 0 else str(size)


def panels(rows):
    """What belongs into one picture: the sizes of a data set that have the same rungs. (data set, rows)"""
    works, names, found = {}, {}, {}
    for row in rows:
        works.setdefault((row["size"], row["data"]), set()).add(row["title"])

    def case(row):  # a program may do several kinds of work with the same data
        several = len(works[row["size"], row["data"]]) > 1
        return work(row) if several else row["data"], row["unit"]

    for row in rows:
        if row["kind"] == "rung":
            names.setdefault((case(row), row["size"]), []).append(row["name"])
    for row in rows:
        found.setdefault((case(row), tuple(names.get((case(row), row["size"]), []))), []).append(row)
    return [(data, rows) for ((data, _), _), rows in found.items()]


def lines_of(rows):
    """Of one panel: (kind and number, name, its rows), rungs first."""
    found = {}
    for row in rows:
        found.setdefault((row["kind"], row["number"], row["name"]), []).append(row)
    counts, lines = {}, []
    for (kind, number, name), rows in sorted(found.items(), key=lambda item: ["rung", "peer", "limit"].index(item[0][0])):
        if number is None:
            number = counts[kind] = counts.get(kind, -1) + 1
        lines.append((kind, number, f"{number} {name}" if kind == "rung" else name, rows))
    return lines


def styles(lines):
    """Rungs go from light to dark, since they are a sequence; peers have colours of their own. Each has its marker."""
    last = max(1, max((number for kind, number, *_ in lines if kind == "rung"), default=1))
    for kind, number, *_ in lines:
        if kind == "rung":
            yield {"color": matplotlib.colors.to_hex(matplotlib.colormaps["viridis"](0.72 * (1 - number / last))),
                   "marker": MARKERS[number % len(MARKERS)], "linewidth": 2.5 if number == last else 1.5}
        elif kind == "peer":
            yield {"color": PEERS[number % len(PEERS)], "marker": MARKERS[number % len(MARKERS)], "linestyle": "--",
                   "markerfacecolor": "white", "linewidth": 1.5}
        else:
            yield {"color": INK, "linestyle": ":", "marker": "_", "linewidth": 1.5}


def draw_lines(axes, lines, prefix):
    """Rate over size, with the names beside the ends of the lines."""
    drawn = []
    for (kind, number, name, rows), style in zip(lines, styles(lines)):
        points = [(row["size"], row["rate"]) for row in rows if row["rate"]]
        if points:
            axes.plot(*zip(*points), markersize=5, gid=f"{prefix}{kind}-{number}", **style)
            drawn.append((points[-1], name, style["color"], kind == "limit"))
        else:
            drawn.append((None, f"{name}: {rows[0]['skipped'] or 'too fast'}", "#767676", False))
    sizes = {row["size"]: row["in_l2"] for *_, rows in lines for row in rows}
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(sizes) / 1.15, max(sizes) * 1.15)
    axes.set_xticks(list(sizes), [short(size) + ("\nin L2" if in_l2 else "") for size, in_l2 in sizes.items()])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("--size")
    low, high = axes.get_ylim()
    low, high = min(low, high / 2), high
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high / low > 5 else range(1, 10)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda rate, _: f"{rate:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())

    # The labels stand in the order of the lines' ends, as near to them as they can without touching.
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    gap, at = 13 / height, []
    ended = sorted((d for d in drawn if d[0]), key=lambda d: d[0][1])
    for point, *_ in ended:
        wanted = math.log(point[1] / low) / math.log(high / low)
        at.append(max(wanted, at[-1] + gap if at else 0))
    top = 1.0
    for i in reversed(range(len(at))):
        at[i] = min(at[i], top)
        top = at[i] - gap
    for (point, name, color, limit), y in zip(ended, at):
        axes.annotate(f"{name} (limit)" if limit else name, point, (1.06, y), textcoords="axes fraction", color=INK, va="center",
                      annotation_clip=False, arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 4,
                                                             "relpos": (0, 0.5)})
    for i, (_, name, color, _) in enumerate([d for d in drawn if not d[0]]):
        axes.text(1.06, min([*at, 1]) - gap * (i + 1), name, transform=axes.transAxes, color=color, va="center")


def draw_bars(axes, lines, prefix):
    """For a single size: a bar a rung."""
    limits = [(number, name, rows[0]) for kind, number, name, rows in lines if kind == "limit" and rows[0]["rate"]]
    bars = [(line, style) for line, style in zip(lines, styles(lines)) if line[0] != "limit"]
    longest = max([rows[0]["rate"] or 0 for (*_, rows), _ in bars] + [1e-9])
    # A limit that is far away would leave nothing of the bars to see, and stands at the edge.
    far = [limit for limit in limits if limit[2]["rate"] > 4 * longest]
    longest = max([longest] + [row["rate"] for *_, row in limits if row["rate"] <= 4 * longest])
    for y, ((kind, number, name, rows), style) in enumerate(bars):
        row = rows[0]
        if row["rate"]:
            bar = axes.barh(y, row["rate"], height=0.62, color="white" if kind == "peer" else style["color"],
                            edgecolor=style["color"], hatch="////" if kind == "peer" else None)
            bar[0].set_gid(f"{prefix}{kind}-{number}")
        text = f"{rate(row)}, {duration(row['median_ms'])}" if row["rate"] else row["skipped"] or "too fast"
        axes.text((row["rate"] or 0) + longest * 0.01, y, text, va="center", color=INK,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    axes.set_yticks(range(len(bars)), [name for (_, _, name, _), _ in bars])
    axes.set_ylim(len(bars) - 0.4, -1)
    axes.set_xlim(0, longest * 1.3)
    for limit in limits:
        number, name, row = limit
        if limit not in far:
            axes.axvline(row["rate"], color=INK, linestyle=":", linewidth=1.5, gid=f"{prefix}limit-{number}", zorder=0.5)
        axes.text(longest * 1.3 if limit in far else row["rate"], -0.72, f"{name} (limit)" + (f": {rate(row)} →" if limit in far else " "),
                  ha="right", va="center", color=INK)
    axes.tick_params(axis="y", length=0)


def draw(program, rows):
    """The plot of a program, as SVG: a panel a data set, one above the other."""
    # Text is text, laid out for the widest of these fonts; and the file is the same every time.
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": program, "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#888888",
        "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.grid": True,
        "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "hatch.linewidth": 0.6})
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # not every machine has all of them
    parts = []
    for data, panel in panels(rows):
        lines = lines_of(panel)
        longest = 0.0085 * max(len(name) + (9 if kind == "limit" else 0) for kind, _, name, _ in lines)
        if len({row["size"] for row in panel}) > 1:
            parts.append((data or topic(program), lines, draw_lines, max(3.0, 0.19 * len(lines) + 0.6), 0.09, 0.85 - longest))
        else:
            left = max(0.12, 0.01 + longest)
            parts.append((work(panel[0]), lines, draw_bars, 0.28 * len(lines) + 0.5, left, 0.97 - left))
    total = sum(part[3] + 0.9 for part in parts)
    figure = pyplot.figure(figsize=(8, total))
    top = total
    for i, (title, lines, drawing, height, left, width) in enumerate(parts):
        axes = figure.add_axes((left, (top - 0.3 - height) / total, width, height / total))
        top -= height + 0.9
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(drawing is draw_lines, axis="y")
        (axes.set_ylabel if drawing is draw_lines else axes.set_xlabel)(lines[0][3][0]["unit"])
        drawing(axes, lines, f"p{i}-" if len(parts) > 1 else "")
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    pyplot.close(figure)
    return re.sub(r"[ \t]+$", "", file.getvalue(), flags=re.M)
