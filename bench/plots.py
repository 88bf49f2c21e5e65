# SPDX-License-Identifier: MIT
"""Plots of recorded results, with matplotlib: the rate of each rung over the size."""
import html
import io
import logging
import math
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402

from results import duration, ends, largest, rate, times, topic, work  # noqa: E402

PAPER, INK, GRAY, GRID = "#ffffff", "#222222", "#6e6e6e", "#dddddd"
LIBRARIES = ["#c44500", "#a0307f", "#8a6100", "#5c5c5c"]
# The same colours in a dark scheme. In both schemes lines have a contrast of at least 3 to the background, text 4.5.
DARK = {PAPER: "#161618", INK: "#e6e6e6", GRAY: "#a0a0a0", GRID: "#3a3a3c"}
DARK.update(zip(LIBRARIES, ("#ff9a5c", "#f08fd0", "#e0b84c", "#b8b8b8")))
LIMIT, LIMITS = " (limit)", ("limit", "alone")
MARKERS = "osD^vPX*hp"


def rung_color(part):
    """The colour of a rung at this position, from 0 to 1: the last one has the highest contrast. Also stores its colour for
    the dark scheme."""
    level = round(148 * (1 - part))  # of 255; the last colours of the map are too light for white paper
    color, dark = (matplotlib.colors.to_hex(matplotlib.colormaps["viridis"](i)) for i in (level, 250 - level))
    DARK[color] = dark
    return color


def short(size):
    """A size as text: 1048576 is 1M, 4294967295 is 4G − 1, and 3000000 is 3·10⁶."""
    for shift, unit in (30, "G"), (20, "M"), (10, "K"):
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
        if shift == 30 and (size + 1) % (1 << shift) == 0:
            return f"{(size + 1) >> shift}{unit} − 1"
    return f"{size // 10**6}·10⁶" if size and size % 10**6 == 0 else str(size)


def counted(row):
    """The unit of the size, from the title: for "16 ints" it is ints, for "16 x 16 cells" cells a side."""
    found = re.match(rf"{row['size']}( x {row['size']})? (\w+)", row["title"])
    return (found[2] + " a side" if found[1] else found[2]) if found else "size"


def panels(rows):
    """The panels of a plot as (data set, rows): a panel has the sizes of a data set that have the same rungs."""
    names, found = {}, {}
    case = lambda row: (row["data"], row["unit"])  # noqa: E731
    for row in rows:
        if row["kind"] == "rung":
            names.setdefault((case(row), row["size"]), []).append(row["name"])
    for row in rows:
        found.setdefault((case(row), tuple(names.get((case(row), row["size"]), []))), []).append(row)
    return [(data, rows) for ((data, _), _), rows in found.items()]


def lines_of(rows):
    """The lines of a panel: (kind and number, name, rows), rungs first. The name says which one is the limit."""
    counts, lines, found = {}, [], {}
    *_, limit = ends(largest(rows))
    for row in rows:
        found.setdefault((row["kind"], row["number"], row["name"]), []).append(row)
    kinds = ["rung", "library", "inaccurate", "limit", "alone"]
    for (kind, number, name), rows in sorted(found.items(), key=lambda item: kinds.index(item[0][0])):
        if number is None:
            number = counts[kind] = counts.get(kind, -1) + 1
        mark = LIMIT if limit and kind == "limit" and name == limit["name"] else ""
        lines.append((kind, number, f"{number} {name}" if kind == "rung" else name + mark, rows))
    return lines


def styles(lines):
    """The style of each line: rungs have colours from a sequence, libraries have other colours, and each has its own marker."""
    last = max(1, max((number for kind, number, *_ in lines if kind == "rung"), default=1))
    for kind, number, *_ in lines:
        style = {"marker": MARKERS[number % len(MARKERS)], "linewidth": 1.5}
        if kind == "rung":
            style.update(color=rung_color(number / last), linewidth=2.5 if number == last else 1.5)
        elif kind in LIMITS:
            style.update(color=INK, marker="_", linestyle=":")
        else:
            color = LIBRARIES[(number if kind == "library" else -1 - number) % len(LIBRARIES)]
            style.update(color=color, linestyle="--", markerfacecolor=PAPER)
        yield style


def log_axes(axes, ticks, low, high, text):
    """Makes both axes logarithmic: ticks is a dict from value to label of the x axis, text() gives the labels of the y axis."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(ticks) / 1.15, max(ticks) * 1.15)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high / low > 5 else range(1, 10)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text(value)))
    for axis in axes.xaxis, axes.yaxis:
        axis.set_minor_locator(ticker.NullLocator())


def name_ends(axes, ended, low, high):
    """Writes the names of lines, given as (last point, name, colour), beside the axes. Returns the distance of two names and the
    heights of all, in parts of the axes."""
    # The names have the order of the ends of the lines, and are as near to them as possible without overlapping. A legend would
    # have another order than the lines, and the colours of neighbouring rungs are hard to tell apart there.
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    gap, at = 13 / height, []
    ended = sorted(ended, key=lambda d: d[0][1])
    for point, *_ in ended:
        wanted = math.log(point[1] / low) / math.log(high / low)
        at.append(max(wanted, at[-1] + gap if at else 0))
    top = 1.0
    for i in reversed(range(len(at))):
        at[i] = min(at[i], top)
        top = at[i] - gap
    for (point, name, color), y in zip(ended, at):
        arrow = {"arrowstyle": "-", "color": color, "linewidth": 0.8, "relpos": (0, 0.5)}
        arrow.update(shrinkA=1, shrinkB=4)
        place = {"textcoords": "axes fraction", "va": "center", "annotation_clip": False}
        axes.annotate(name, point, (1.06, y), color=INK, arrowprops=arrow, **place)
    return gap, at


def why_not(name, rows):
    """The name of a line, and why it has no points if it has none."""
    return name if any(row["rate"] for row in rows) else f"{name}: {rows[0]['skipped'] or 'too fast'}"


def draw_lines(axes, lines, prefix):
    """Draws the rate over the size, with the names beside the ends of the lines."""
    sizes = {row["size"]: row["in_l2"] for *_, rows in lines for row in rows}
    first, last, drawn, without = min(sizes), max(sizes), [], []
    own = [row["rate"] for kind, *_, rows in lines for row in rows if row["rate"] and kind not in LIMITS]
    for (kind, number, name, rows), style in zip(lines, styles(lines)):
        points = [(row["size"], row["rate"]) for row in rows if row["rate"]]
        if kind in LIMITS and not name.endswith(LIMIT) and points and own:
            points = [point for point in points if point[1] <= 4 * max(own)]  # beyond, it limits nothing
            if not points:
                continue
        if points:
            axes.plot(*zip(*points), markersize=5, gid=f"{prefix}{kind}-{number}", **style)
            drawn.append((points[-1], name, style["color"]))
        else:
            without.append(why_not(name, rows))
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    low = min(low, high / 2)
    ticks = {size: short(size) + ("\nin L2" if in_l2 else "") for size, in_l2 in sizes.items()}
    log_axes(axes, ticks, low, high, lambda rate: f"{rate:g}")
    axes.set_xlabel(f"{counted(lines[0][3][0])} (--size), log scale")
    axes.set_ylabel(f"{lines[0][3][0]['unit']}, log scale")

    gap, at = name_ends(axes, [d for d in drawn if d[0][0] == last], low, high)
    for i, text in enumerate(without):
        y = min([*at, 1]) - gap * (i + 1)
        axes.text(1.06, y, text, transform=axes.transAxes, color=GRAY, va="center")
    # The name of a line that ends before the others is at its end, because a long leader would look like a part of the line.
    for point, name, color in drawn:
        if point[0] < last:
            right = math.log(point[0] / first) * 2 > math.log(last / first)
            x, side = (-4, "right") if right else (4, "left")
            axes.annotate(name, point, (x, 5), textcoords="offset points", color=INK, ha=side)


def draw_errors(axes, lines, prefix):
    """Draws the error of the largest size over its time: the nearer to the lower left corner, the better."""
    points = []
    for (kind, number, name, rows), style in zip(lines, styles(lines)):
        row = rows[-1]
        axes.plot(row["median_ms"], row["rms_error"], markersize=6, gid=f"{prefix}{kind}-{number}", **style)
        points.append(((row["median_ms"], row["rms_error"]), name, style["color"]))
    low, high = (f(row[-1]["rms_error"] for *_, row in lines) for f in (min, max))
    log_axes(axes, {t: duration(t) for (t, _), *_ in points}, low / 2, high * 2, lambda error: f"{error:.0e}")
    least, most = (f(t for (t, _), *_ in points) for f in (min, max))
    ticks = [10**i for i in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]
    axes.set_xticks(ticks, [duration(t) for t in ticks])
    axes.set_xlim(ticks[0], ticks[-1])
    axes.set_xlabel("median time, log scale")
    axes.set_ylabel("RMS error, log scale")
    name_ends(axes, points, low / 2, high * 2)


def described(parts):
    """The plot in words, for readers who cannot see it: each panel at its largest size."""
    for title, lines, *_ in parts:
        last = [(name, rows[-1]) for *_, name, rows in lines]
        size = max(row["size"] for _, row in last)
        values = [
            f"{name} {rate(row) if row['rate'] else row['skipped'] or 'too fast'}"
            for name, row in last
            if row["size"] == size
        ]
        yield f"{title}, at --size {size}: {', '.join(values)}."


def with_text_and_dark(svg, title, description):
    """Adds a title, a description, and the colours of the dark scheme to an SVG."""
    rules = ""
    for color, dark in sorted(DARK.items()):
        for what in "fill", "stroke":
            if f"{what}: {color}" in svg:
                rules += f'[style*="{what}: {color}"] {{{what}: {dark} !important}} '
    for color, dark in sorted(DARK.items()):
        if f'fill="{color}"' in svg:
            rules += f'[fill="{color}"] {{fill: {dark}}} '
    dark = f"</style>\n  <style>@media (prefers-color-scheme: dark) {{ {rules}}}</style>"
    words = f"<title>{html.escape(title)}</title>\n <desc>{html.escape(description)}</desc>\n"
    svg = svg.replace("</style>", dark, 1)
    return re.sub(r"<svg ([^>]*)>\n", lambda m: f'<svg role="img" {m[1]}>\n {words}', svg, count=1)


def prepare(salt):
    """The settings of a plot. Text stays text in the SVG, with room for the widest of these fonts. The same results give the same
    file."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 9})
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans", "Verdana", "Arial", "Helvetica"]
    matplotlib.rc("axes", edgecolor="#888888", labelcolor=INK, grid=True, axisbelow=True)
    matplotlib.rc("axes.spines", top=False, right=False)
    for what in "text", "xtick", "ytick":
        matplotlib.rc(what, color=INK)
    matplotlib.rc("grid", color=GRID, linewidth=0.6)
    matplotlib.rc("hatch", linewidth=0.6)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # no warnings about missing fonts


def finish(figure, title, description):
    """The SVG of a figure, which is closed."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    pyplot.close(figure)
    return with_text_and_dark(re.sub(r"[ \t]+$", "", file.getvalue(), flags=re.M), title, description)


def draw(program, rows):
    """The plot of a program, as SVG: one panel for each data set, one above the other."""
    prepare(program)
    parts = []  # (title, lines, function, height, width)
    for data, panel in panels(rows):
        lines = lines_of(panel)
        width = 0.84 - 0.0085 * max(len(why_not(name, rows)) for _, _, name, rows in lines)
        title = topic(program) + (f": {data}" if data else "")
        parts.append((title, lines, draw_lines, max(3.0, 0.19 * len(lines) + 0.6), width))
    inexact = [line for line in lines_of(panels(largest(rows))[0][1]) if line[3][-1]["rms_error"]]
    if any(kind == "inaccurate" for kind, *_ in inexact):
        longest = 0.0085 * max(len(name) for _, _, name, _ in inexact)
        title = f"{topic(program)}, error and time: {work(inexact[0][3][-1])}"
        parts.append((title, inexact, draw_errors, 3.0, 0.84 - longest))
    top = total = sum(part[3] + 0.9 for part in parts)
    figure = pyplot.figure(figsize=(8, total))
    for i, (title, lines, drawing, height, width) in enumerate(parts):
        axes = figure.add_axes((0.1, (top - 0.3 - height) / total, width, height / total))
        top -= height + 0.9
        axes.set_title(title, loc="left", fontsize=min(10, 700 / len(title)))
        axes.grid(drawing is draw_lines, axis="y")
        drawing(axes, lines, f"p{i}-" if len(parts) > 1 else "")
    return finish(figure, f"{topic(program)}: rate of each rung", " ".join(described(parts)))


def draw_speedups(title, rows, description):
    """The plot of README.md, as SVG: a bar for each topic. A row is one of report.speedups()."""
    prepare("speedup")
    total = 0.24 * len(rows) + 0.9
    figure = pyplot.figure(figsize=(8, total))
    axes = figure.add_axes((0.17, 0.55 / total, 0.57, (total - 0.9) / total))
    axes.set_title(title, loc="left", fontsize=10)
    axes.barh(range(len(rows)), [row[1] for row in rows], left=0, height=0.62, color=rung_color(1))
    axes.set_xscale("log")
    axes.set_xlim(1, 7 * max(row[1] for row in rows))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("times as fast as the book's kernel, or as the first rung; log scale")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.text(1.02, 1.01, "× best library", transform=axes.transAxes, color=INK)
    for y, (_, value, start, than, library) in enumerate(rows):
        axes.text(value * 1.04, y, f"{times(value)} × {start}", va="center", color=INK)
        beside = f"{times(than)} × {library}" if library else "–"
        axes.text(1.02, y, beside, va="center", color=INK, transform=axes.get_yaxis_transform())
    return finish(figure, title, description)
