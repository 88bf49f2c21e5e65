# SPDX-License-Identifier: MIT
"""Plots of recorded results, with matplotlib: the rate of each rung over the size, or bars if there is one size."""
import html
import io
import logging
import math
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402

from results import duration, ends, rate, topic, work  # noqa: E402

PAPER, INK, GRAY, GRID = "#ffffff", "#222222", "#6e6e6e", "#dddddd"
LIBRARIES = ["#c44500", "#a0307f", "#8a6100", "#5c5c5c"]
# The same colours in a dark scheme. In both schemes lines and bars have a contrast of at least 3 to the background, text 4.5.
DARK = {
    PAPER: "#161618",
    INK: "#e6e6e6",
    GRAY: "#a0a0a0",
    GRID: "#3a3a3c",
    **dict(zip(LIBRARIES, ("#ff9a5c", "#f08fd0", "#e0b84c", "#b8b8b8"))),
}
COPY_RATE = " (copy rate)"
MARKERS = "osD^vPX*hp"


def rung_color(part):
    """The colour of a rung at this position, from 0 to 1: the last one has the highest contrast. Also stores its colour for
    the dark scheme."""
    level = round(
        148 * (1 - part)
    )  # an index from 0 to 255 of the colour map; its last colours are too light for white paper
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
    works, names, found = {}, {}, {}
    for row in rows:
        works.setdefault((row["size"], row["data"]), set()).add(row["title"])

    def case(row):  # a program may compute several things from the same data
        several = len(works[row["size"], row["data"]]) > 1
        return work(row) if several else row["data"], row["unit"]

    for row in rows:
        if row["kind"] == "rung":
            names.setdefault((case(row), row["size"]), []).append(row["name"])
    for row in rows:
        found.setdefault((case(row), tuple(names.get((case(row), row["size"]), []))), []).append(row)
    return [(data, rows) for ((data, _), _), rows in found.items()]


def lines_of(rows):
    """The lines of a panel: (kind and number, name, rows), rungs first. The name says which copy has the copy rate."""
    found = {}
    *_, copy = ends([row for row in rows if row["size"] == max(row["size"] for row in rows)])
    for row in rows:
        found.setdefault((row["kind"], row["number"], row["name"]), []).append(row)
    counts, lines = {}, []
    for (kind, number, name), rows in sorted(
        found.items(), key=lambda item: ["rung", "library", "inaccurate", "copy"].index(item[0][0])
    ):
        if number is None:
            number = counts[kind] = counts.get(kind, -1) + 1
        mark = COPY_RATE if copy and kind == "copy" and name == copy["name"] else ""
        lines.append((kind, number, f"{number} {name}" if kind == "rung" else name + mark, rows))
    return lines


def styles(lines):
    """The style of each line: rungs have colours from a sequence, libraries have other colours, and each has its own marker."""
    last = max(1, max((number for kind, number, *_ in lines if kind == "rung"), default=1))
    for kind, number, *_ in lines:
        if kind == "rung":
            yield {
                "color": rung_color(number / last),
                "marker": MARKERS[number % len(MARKERS)],
                "linewidth": 2.5 if number == last else 1.5,
            }
        elif kind in ("library", "inaccurate"):
            yield {
                "color": LIBRARIES[(number if kind == "library" else -1 - number) % len(LIBRARIES)],
                "marker": MARKERS[number % len(MARKERS)],
                "linestyle": "--",
                "markerfacecolor": PAPER,
                "linewidth": 1.5,
            }
        else:
            yield {"color": INK, "linestyle": ":", "marker": "_", "linewidth": 1.5}


def name_ends(axes, ended, low, high):
    """Writes the names of lines, given as (last point, name, colour), beside the axes. Returns the distance of two names and the
    heights of all, in parts of the axes."""
    # The names have the order of the ends of the lines, and are as near to them as possible without overlapping.
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
        axes.annotate(
            name,
            point,
            (1.06, y),
            textcoords="axes fraction",
            color=INK,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )
    return gap, at


def draw_lines(axes, lines, prefix):
    """Draws the rate over the size, with the names beside the ends of the lines."""
    sizes = {row["size"]: row["in_l2"] for *_, rows in lines for row in rows}
    drawn, without = [], []
    for (kind, number, name, rows), style in zip(lines, styles(lines)):
        points = [(row["size"], row["rate"]) for row in rows if row["rate"]]
        if points:
            axes.plot(*zip(*points), markersize=5, gid=f"{prefix}{kind}-{number}", **style)
            drawn.append((points[-1], name, style["color"]))
        else:
            without.append(f"{name}: {rows[0]['skipped'] or 'too fast'}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(sizes) / 1.15, max(sizes) * 1.15)
    axes.set_xticks(
        list(sizes), [short(size) + ("\nin L2" if in_l2 else "") for size, in_l2 in sizes.items()]
    )
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(f"{counted(lines[0][3][0])} (--size), log scale")
    axes.set_ylabel(f"{lines[0][3][0]['unit']}, log scale")
    low, high = axes.get_ylim()
    low, high = min(low, high / 2), high
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high / low > 5 else range(1, 10)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda rate, _: f"{rate:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())

    gap, at = name_ends(axes, [d for d in drawn if d[0][0] == max(sizes)], low, high)
    for i, text in enumerate(without):
        axes.text(
            1.06, min([*at, 1]) - gap * (i + 1), text, transform=axes.transAxes, color=GRAY, va="center"
        )
    # The name of a line that ends before the others is at its end, because a long leader would look like a part of the line.
    for point, name, color in drawn:
        if point[0] < max(sizes):
            right = math.log(point[0] / min(sizes)) * 2 > math.log(max(sizes) / min(sizes))
            axes.annotate(
                name,
                point,
                (-4 if right else 4, 5),
                textcoords="offset points",
                color=INK,
                ha="right" if right else "left",
            )


def draw_bars(axes, lines, prefix):
    """Draws a single size as bars. Copies have only an outline, and a dotted line across the rungs shows the copy rate."""
    own = max([rows[0]["rate"] or 0 for kind, *_, rows in lines if kind != "copy"] + [1e-9])
    # If a copy is much faster than the rungs, its bar is cut at the edge; otherwise the other bars would be too short.
    longest = max(rows[0]["rate"] or 0 for *_, rows in lines if (rows[0]["rate"] or 0) <= 4 * own) or own
    edge = longest * 1.35
    for y, ((kind, number, name, rows), style) in enumerate(zip(lines, styles(lines))):
        row = rows[0]
        text = f"{rate(row)}, {duration(row['median_ms'])}" if row["rate"] else row["skipped"] or "too fast"
        end = row["rate"] or 0
        far = end > 4 * own
        if end:
            filled = {"rung": style["color"], "copy": "none"}.get(kind, PAPER)
            bar = axes.barh(
                y,
                min(end, edge),
                height=0.62,
                color=filled,
                edgecolor=style["color"],
                hatch="////" if kind in ("library", "inaccurate") else None,
                linestyle=":" if kind == "copy" else "-",
            )
            bar[0].set_gid(f"{prefix}{kind}-{number}")
        if name.endswith(COPY_RATE) and end and not far:
            axes.plot([end, end], [-0.6, y - 0.31], color=INK, linestyle=":", linewidth=1.5, zorder=0.5)
        axes.text(
            edge - longest * 0.01 if far else end + longest * 0.01,
            y,
            text + " →" if far else text,
            ha="right" if far else "left",
            va="center",
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
        )
    axes.set_yticks(range(len(lines)), [name for _, _, name, _ in lines])
    axes.set_ylim(len(lines) - 0.4, -0.7)
    axes.set_xlim(0, edge)
    axes.set_xlabel(lines[0][3][0]["unit"])
    axes.tick_params(axis="y", length=0)


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
    known = sorted(DARK.items())
    rules = "".join(
        f'[style*="{what}: {color}"] {{{what}: {dark} !important}} '
        for color, dark in known
        for what in ("fill", "stroke")
        if f"{what}: {color}" in svg
    )
    rules += "".join(
        f'[fill="{color}"] {{fill: {dark}}} ' for color, dark in known if f'fill="{color}"' in svg
    )
    svg = svg.replace(
        "</style>", f"</style>\n  <style>@media (prefers-color-scheme: dark) {{ {rules}}}</style>", 1
    )
    words = f"<title>{html.escape(title)}</title>\n <desc>{html.escape(description)}</desc>\n"
    return re.sub(r"<svg ([^>]*)>\n", rf'<svg role="img" \1>\n ' + words.replace("\\", r"\\"), svg, count=1)


def prepare(salt):
    """The settings of a plot."""
    # Text stays text in the SVG, with room for the widest of these fonts. The same results give the same file.
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": salt,
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#888888",
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.grid": True,
            "grid.color": GRID,
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "hatch.linewidth": 0.6,
        }
    )
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
    parts = []
    for data, panel in panels(rows):
        lines = lines_of(panel)
        longest = 0.0085 * max(len(name) for _, _, name, _ in lines)
        if len({row["size"] for row in panel}) > 1:
            parts.append(
                (
                    topic(program) + (f": {data}" if data else ""),
                    lines,
                    draw_lines,
                    max(3.0, 0.19 * len(lines) + 0.6),
                    0.09,
                    0.85 - longest,
                )
            )
        else:
            left = max(0.12, 0.02 + longest)
            parts.append(
                (
                    f"{topic(program)}: {work(panel[0])}",
                    lines,
                    draw_bars,
                    0.28 * len(lines) + 0.2,
                    left,
                    0.97 - left,
                )
            )
    total = sum(part[3] + 0.9 for part in parts)
    figure = pyplot.figure(figsize=(8, total))
    top = total
    for i, (title, lines, drawing, height, left, width) in enumerate(parts):
        axes = figure.add_axes((left, (top - 0.3 - height) / total, width, height / total))
        top -= height + 0.9
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(drawing is draw_lines, axis="y")
        drawing(axes, lines, f"p{i}-" if len(parts) > 1 else "")
    return finish(figure, f"{topic(program)}: rate of each rung", " ".join(described(parts)))


def draw_scaling(title, panels, measured, description):
    """The plot of docs/scaling.md, as SVG: the efficiency over the number of GPUs. A panel is (title, lines), a line (name, points
    of the model, measured points). Up to `measured` GPUs a line is solid, beyond dashed."""
    prepare("scaling")
    height, total = 2.6, 3.5 * len(panels)
    figure = pyplot.figure(figsize=(8, total))
    for i, (name, lines) in enumerate(panels):
        axes = figure.add_axes((0.09, (total - 3.5 * i - 0.3 - height) / total, 0.56, height / total))
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ended = []
        for j, (name, points, marks) in enumerate(lines):
            color = (LIBRARIES[:3] + [rung_color(0), rung_color(0.5), rung_color(1)])[j % 6]
            style = {"color": color, "linewidth": 1.5}
            axes.plot(*zip(*[p for p in points if p[0] <= measured]), gid=f"p{i}-line-{j}", **style)
            axes.plot(*zip(*[p for p in points if p[0] >= measured]), linestyle="--", **style)
            if marks:
                axes.plot(*zip(*marks), linestyle="", marker=MARKERS[j], markersize=5, color=color)
            ended.append((points[-1], name, color))
        counts = [point[0] for point in lines[0][1]]
        axes.set_xlim(min(counts) / 1.15, max(counts) * 1.15)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        low, high = axes.get_ylim()
        low, high = min(low, 0.65), max(high, 1.1)
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high / low > 5 else range(1, 10)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda part, _: f"{100 * part:g} %"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("GPUs, log scale")
        axes.set_ylabel("efficiency, log scale")
        name_ends(axes, ended, low, high)
    return finish(figure, title, description)
