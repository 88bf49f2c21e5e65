#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws a launch of a program that cucc has compiled, as SVG: blocks, barriers, lanes of a warp, memory accesses.

    trace.py FILE.svg[,kernel=NAME][,launch=N][,block=N][,warp=N][,line=N] PROGRAM [ARGUMENT…]
    trace.py FILE.svg[,warp=N][,line=N] DATA.json

The first runs the program, which writes the data into FILE.json (CUDA_CPU_TRACE), and draws them. The second draws
data that are there. With FILE.json in place of FILE.svg the program only writes the data. Lanes and accesses need a
program compiled with cucc --check.
"""
import collections
import itertools
import json
import math
import os
import re
import subprocess
import sys
import textwrap
from xml.sax.saxutils import escape

LEFT, PLOT = 100, 840  # of 960
ONE_OF = {"shared": "turn", "global": "sector", "constant": "word"}
STEPS = "steps: a step is a source line that lanes of a warp execute together"
STYLE = """<style>svg { color-scheme: light dark; --paper: #fff; --ink: #222; --soft: #595959; --grid: #ccc; --a: #0b57a4; --b: #c44500 }
@media (prefers-color-scheme: dark) { svg { --paper: #161618; --ink: #e6e6e6; --soft: #b0b0b0; --grid: #4a4a4c; --a: #8ab8f0; --b: #ff9a5c } }
text { font: 11px system-ui, sans-serif; fill: var(--ink) } .h { font-size: 15px; font-weight: 600 }
.title { font-size: 20px; font-weight: 600 } .c { font-size: 12px } .v { font-size: 12px; font-weight: 700 }
.s { font-size: 12px; fill: var(--soft) } .i { fill: var(--paper); font-size: 10px; pointer-events: none }
.m { text-anchor: middle } .e { text-anchor: end } .a { fill: var(--a) } .b { fill: var(--b) } .k { fill: var(--ink) }
.w { fill: url(#waits); stroke: var(--soft); stroke-width: 0.5 }
.n { fill: none; stroke: var(--soft); stroke-width: 0.7; stroke-dasharray: 2 3 }
.g { stroke: var(--grid); stroke-width: 0.7 } .l { stroke: var(--ink); stroke-width: 1.2 }</style>
<defs><pattern id="waits" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<path d="M0 0V4" stroke="var(--soft)" stroke-width="1.6"/></pattern></defs>
<rect width="100%" height="100%" fill="var(--paper)"/>
"""
# Headings and explanations
TEXTS = {
    "blocks": """Blocks, on the workers that ran them
        A worker is a host thread of the CPU back end. It runs one block after the other, as a multiprocessor of a
        GPU does; a multiprocessor also runs several blocks at the same time.""",
    "waits": """Barriers of block {block}: when its {things} run and wait
        The block passes {passed}. On the CPU back end one worker runs the threads of a block in turn, each up to
        the barrier, where it waits for the others.{more}""",
    "warps": """Warps of block {block}: active lanes in each step
        The height of a bar is the number of active lanes, of 32. Every warp is counted as if it had a scheduler of
        its own: at a barrier it waits for the warp with the most steps.{cut}""",
    "lanes": """Lanes of warp {warp}
        A column is a step. {when}{cut}""",
    "apart": "In {apart} of {steps} steps some of the {lanes} lanes are inactive: they wait while the others execute a "
    "branch or a loop, or they have returned.",
    "shared": """{line}, {what} of {object} in shared memory: {conflicts}
        The access with the most turns: {who}. Word w of 4 bytes is in bank w mod 32, and a bank serves one word in a
        turn{atomic}. All {warp_accesses} accesses of warps in this block need {turns} turns.""",
    "global": """{line}, {what} of global memory: {sectors}
        {allocated}The access with the most sectors: {who}. Memory moves in sectors of 32 bytes; a cache line, a row
        here, has four. All {warp_accesses} accesses of warps in this block move {turns} sectors.""",
    "table": """Memory accesses of block {block}, by source line
        Turns: how often the banks of shared memory serve a word. Sectors: pieces of 32 bytes of global memory.
        Words: different words of constant memory, served one after the other.""",
}


# A mark of a row; the height is the row's if it is 0.
Mark = collections.namedtuple("Mark", "x width css tip words height", defaults=("", "", 0))


def refuse(why):
    print(f"trace.py: {why}", file=sys.stderr)
    sys.exit(64)


def count_of(n, thing):
    return f"{n} {thing}{'s' * (n != 1)}"


class Drawing:
    def __init__(self):
        self.out, self.y = [], 36

    def text(self, x, y, css, words):
        self.out.append(f'<text x="{x:.4g}" y="{y:.5g}" class="{css}">{escape(str(words))}</text>')

    def line(self, x1, y1, x2, y2, css):
        self.out.append(f'<path d="M{x1:.5g} {y1:.5g}L{x2:.5g} {y2:.5g}" class="{css}"/>')

    def rect(self, x, y, width, height, css, tip=""):
        area = f'x="{x:.5g}" y="{y:.5g}" width="{width:.4g}" height="{height:.4g}" class="{css}"'
        self.out.append(f"<rect {area}><title>{escape(tip)}</title></rect>" if tip else f"<rect {area}/>")

    def heading(self, name, **values):
        words, explanation = TEXTS[name].format(**values).split("\n", 1)
        self.y += 44
        self.text(LEFT, self.y, "h", words)
        for line in textwrap.wrap(" ".join(explanation.split()), 128):
            self.y += 16
            self.text(LEFT, self.y, "s", line)
        self.y += 12

    def panel(self, rows, height, gap, ticks=(), label="", barriers=()):
        """Rows are pairs of a name and marks; ticks are pairs of a coordinate and a word."""
        top, bottom = self.y, self.y + height * len(rows)
        for x, words in ticks:
            self.line(x, top, x, bottom + 4 * bool(label), "g")
            self.text(x, bottom + 17, "t m", words)
        for name, marks in rows:
            self.text(LEFT - 8, self.y + height / 2 + 3, "t e", name)
            for x, width, css, tip, words, tall in marks:
                # bars stand on the ground of the row
                y = self.y + (height - gap - tall) * (0 < tall < height)
                self.rect(x, y, width, tall or height - gap, css, tip)
                if words != "":
                    self.text(x + width / 2, self.y + height / 2 + 3, "i m", words)
            self.y += height
        for x in barriers:
            self.line(x, top - 4, x, bottom, "l")
        if label:
            self.y += 34
            self.text(LEFT + PLOT / 2, self.y, "s m", label)

    def legend(self, **marks):
        x = LEFT
        self.y += 6
        for css, words in marks.items():
            self.rect(x, self.y, 14, 11, css)
            self.text(x + 19, self.y + 10, "s", words)
            x += 40 + 6.4 * len(words)
        self.y += 16


class Times:
    """A time axis, of microseconds since the first block began"""

    def __init__(self, begin, end):
        self.begin, self.length = begin, max(end - begin, 0.1)
        names = (1, "microseconds"), (1e3, "milliseconds"), (1e6, "seconds")
        self.unit, name = names[(self.length >= 1e3) + (self.length >= 1e6)]
        self.name, self.label = name, f"time since the first block began, in {name}"
        length = self.length / self.unit
        step = 10 ** math.floor(math.log10(length))
        while length / step < 5:
            step /= 5 if length / step < 2.5 else 2
        first, last = begin / self.unit / step, (begin / self.unit + length) / step
        ticks = range(math.ceil(first), math.floor(last) + 1)
        self.ticks = [(self.x(n * step * self.unit), f"{n * step:.6g}") for n in ticks]

    def x(self, time):
        return LEFT + (time - self.begin) / self.length * PLOT

    def mark(self, begin, end, css, tip, words=""):
        tip = tip.format(f"{(end - begin) / self.unit:.4g} {self.name}")
        width = max(self.x(end) - self.x(begin), 0.6)
        return Mark(self.x(begin), width, css, tip, words if width > 8 + 6.5 * len(words) else "")


class Picture:
    def __init__(self, data, warp, line):
        self.d, self.launch, self.warp = Drawing(), data["launch"], warp
        self.grid, self.accesses = self.launch["grid"], self.launch.get("accesses", [])
        self.block = self.block_name(self.launch["recorded_block"])
        events = [event for event in data["traceEvents"] if event["ph"] == "X"]
        first = min((event["ts"] for event in events if event["pid"] == 1), default=0)
        self.rows = {1: collections.defaultdict(list), 2: collections.defaultdict(list)}
        for e in events:
            begin = e["ts"] - first
            self.rows[e["pid"]][e["tid"]].append((begin, begin + e["dur"], e["name"], e["args"]))
        self.line = self.choose_line(line)
        if "steps" in self.launch:
            self.find_columns()

    def block_name(self, i):
        x, y, _ = self.grid
        return f"({i % x},{i // x % y},{i // x // y})"

    def choose_line(self, wanted):
        """The line whose accesses are drawn: the one asked for, or the one with the most turns and sectors"""
        turns = collections.Counter()
        for a in self.accesses:
            turns[a["line"]] += a["turns"]
        if not wanted:
            return max(turns, key=turns.get, default=None)
        own = f"{self.launch['launched_at'].rpartition(':')[0]}:{wanted}"
        meant = [at for at in turns if wanted in (at, at.rpartition(":")[2])]
        if not meant:
            where = f"block {self.launch['recorded_block']} of {self.launch['kernel']}"
            refuse(f"line={wanted}: {where} accesses memory at {', '.join(turns) or 'no line'}")
        return own if own in meant else meant[0]

    def find_columns(self):
        """The column of each step. All warps begin a phase, from one barrier to the next, together."""
        self.warps = [[] for _ in self.launch["warp_barriers"]]
        lengths = [0] * (max(self.launch["warp_barriers"]) + 1)  # of the phases
        for step in self.launch["steps"]:
            steps, phase = self.warps[step["warp"]], step["phase"]
            step["number"] = steps[-1]["number"] + 1 if steps and steps[-1]["phase"] == phase else 0
            lengths[phase] = max(lengths[phase], step["number"] + 1)
            steps.append(step)
        self.starts = list(itertools.accumulate(lengths, initial=0))
        count = self.starts[-1]
        self.shown = min(max(count, 1), 240)
        self.each = min(24, PLOT / self.shown)
        self.wide = self.each - (self.each > 3)
        self.cut = f" The first {self.shown} of {count} steps are drawn." * (count > self.shown)
        self.barriers = [self.x(start) for start in self.starts[1:-1] if start <= self.shown]
        every = 5 if self.shown <= 40 else 10 if self.shown <= 100 else 20
        self.ticks = [(self.x(column), column) for column in range(0, self.shown + 1, every)]

    def x(self, column):
        return LEFT + self.each * min(column, self.shown)

    def shown_steps(self, warp):
        columns = ((self.starts[step["phase"]] + step["number"], step) for step in self.warps[warp])
        return [(column, step) for column, step in columns if column < self.shown]

    def draw_blocks(self):
        times = Times(0, max((end for row in self.rows[1].values() for _, end, _, _ in row), default=0))
        rows = []
        for worker in range(self.launch["workers"]):
            together, marks = [], []  # blocks that are narrower than a pixel are drawn together
            for begin, end, _, blocks in self.rows[1][worker]:
                if together and times.x(together[-1][1]) - times.x(together[-1][0]) < 1.5:
                    together[-1] = together[-1][0], end, together[-1][2], blocks["last"]
                else:
                    together.append((begin, end, blocks["first"], blocks["last"]))
            for number, (begin, end, one, last) in enumerate(together):
                words, tip = str(one), f"block {self.block_name(one)}"
                if one != last:
                    words, tip = f"{one}–{last}", f"blocks {self.block_name(one)} to {self.block_name(last)}"
                marks.append(times.mark(begin, end, "ab"[number % 2], tip + ": {}", words))
            rows.append((f"worker {worker}", marks))
        self.d.heading("blocks")
        self.d.panel(rows, 26 if len(rows) <= 16 else 17, 6, times.ticks, times.label)
        if math.prod(self.grid) > 1:
            short = "a block, or several that are too short to draw"
            self.d.legend(a=short, b="the next one; the label is its number")

    def draw_waits(self):
        """A thread has in each phase an event in which it runs, and one in which it waits for the barrier at its end."""
        barriers, many = self.launch["barriers"][:24], len(self.rows[2]) > 32
        phases, ends = collections.defaultdict(list), {}  # runs by row and phase; times of the barriers
        for thread, row in self.rows[2].items():
            for begin, end, name, at in row:
                if name == "run":
                    phases[thread // 32 if many else thread, at["phase"]].append((begin, end))
                else:
                    ends[at["phase"]] = end
        shown = {key: runs for key, runs in phases.items() if key[1] < 24}
        every = [time for runs in shown.values() for run in runs for time in run]
        times = Times(min(every), max(every))
        rows = [(f"{'warp' if many else 'thread'} {n}", []) for n in range(max(shown)[0] + 1)]
        for (row, phase), runs in shown.items():
            begin, end = min(runs)[0], max(end for _, end in runs)
            if phase in ends:
                tip = f"waits {{}} at the barrier {barriers[phase]}"
                rows[row][1].append(times.mark(end, min(ends[phase], max(every)), "w", tip))
            rows[row][1].append(times.mark(begin, end, "a", "runs {}"))
        passed = self.launch["barriers_passed"]
        more = " A warp begins with its first lane and waits from the arrival of its last lane." * many
        more += " The first 24 are drawn." * (passed > 23)
        things, passed = "warps" if many else "threads", count_of(passed, "barrier")
        self.d.heading("waits", block=self.block, things=things, passed=passed, more=more)
        lines = [times.x(end) for end in ends.values() if end <= max(every)]
        self.d.panel(rows, 18 if len(rows) <= 16 else 13, 4, times.ticks, times.label, lines)
        self.d.legend(a="runs", w="waits at a barrier", k="the barrier is passed")

    def draw_warps(self):
        height, rows = 26 if len(self.warps) <= 8 else 17, []
        for warp, barriers in enumerate(self.launch["warp_barriers"]):
            marks = []
            for at, step in self.shown_steps(warp):
                marks.append(Mark(self.x(at), self.wide, "a", height=(height - 4) * step["active"] / 32))
            used = collections.Counter(step["phase"] for step in self.warps[warp])
            for phase in range(barriers):
                begin, end = self.starts[phase] + used[phase], self.starts[phase + 1]
                if self.x(end) > self.x(begin):
                    width = self.x(end) - self.x(begin)
                    marks.append(Mark(self.x(begin), width, "w", f"waits {count_of(end - begin, 'step')}"))
            rows.append((f"warp {warp}", marks))
        self.d.heading("warps", block=self.block, cut=self.cut)
        self.d.panel(rows, height, 4, self.ticks, STEPS, self.barriers)
        self.d.legend(a="active lanes", w="waits at a barrier", k="the barrier is passed")

    def draw_lanes(self):
        steps, lanes = self.warps[self.warp], min(32, math.prod(self.launch["block"]) - 32 * self.warp)
        rows = [(f"lane {lane}" if lane % 4 == 0 else "", []) for lane in range(lanes)]
        numbers, label_end = [], 0
        for column, step in self.shown_steps(self.warp):
            tip = f"step {column}, {step['line']}: {step['active']} of {lanes} lanes{', memory' * step['memory']}"
            for run in re.finditer("1+", f"{int(step['lanes'], 16):032b}"[::-1]):  # of neighbouring lanes
                mark = Mark(self.x(column), self.wide, "ab"[step["memory"]], tip, "", 8 * len(run[0]) - 1)
                rows[run.start()][1].append(mark)
            number = step["line"].rpartition(":")[2]
            x, half = self.x(column) + self.each / 2, 3.4 * len(number)
            if x - half > label_end:  # there is space for it
                numbers.append((x, number))
                label_end = x + half + 3
        apart = sum(step["active"] < lanes for step in steps)
        when = f"All {lanes} lanes are active in every step." if lanes > 1 else "The warp has one lane."
        when = TEXTS["apart"].format(apart=apart, steps=len(steps), lanes=lanes) if apart else when
        self.d.heading("lanes", warp=self.warp, when=when, cut=self.cut)
        self.d.panel(rows, 8, 1, barriers=self.barriers)
        self.d.y += 14
        for x, number in [(LEFT - 8, "source line"), *numbers]:
            self.d.text(x, self.d.y - 2, "t e" if x < LEFT else "t m", number)
        self.d.panel([], 0, 0, self.ticks, STEPS)
        self.d.legend(a="lane is active", b="lane is active, and the line accesses memory", k="barrier")

    def draw_line(self):
        for a in [a for a in self.accesses if a["line"] == self.line and a["memory"] != "constant"][:4]:
            lanes_of = collections.defaultdict(list)  # by 4-byte word
            for lane, address in a["addresses"].items():
                for word in range(address // 4, (address + a["bytes"] - 1) // 4 + 1):
                    lanes_of[word].append(int(lane))
            atomic, lanes = a["kind"] == "atomic", count_of(len(a["addresses"]), "lane")
            what = "atomic operation" if atomic else a["kind"]
            words = dict(a, what=what, object=a["object"] or "an array")
            words["who"] = f"warp {a['warp']}, {lanes} of {count_of(a['bytes'], 'byte')} each"
            words["allocated"] = f"The memory was {a['object']}. " if a["object"] else ""
            words["conflicts"] = "no bank conflict" if a["most"] == 1 else f"{a['most']} turns of the banks"
            words["atomic"] = ", for one lane's atomic operation" * atomic
            self.d.heading(a["memory"], sectors=count_of(a["most"], "sector"), **words)
            self.d.y += 14
            (self.draw_banks if a["memory"] == "shared" else self.draw_sectors)(lanes_of, atomic)

    def head(self, name, words):
        for x, word in [(LEFT - 8, name), *words]:
            self.d.text(x, self.d.y - 4, "t e" if x < LEFT else "t m" if len(words) > 4 else "t", word)

    def word(self, x, width, lanes, tip=""):
        tip += f"lane{'s' * (len(lanes) > 1)} {', '.join(map(str, lanes))}"
        return Mark(x, width, "a", tip, lanes[0] if len(lanes) == 1 else f"×{len(lanes)}")

    def draw_banks(self, lanes_of, atomic):
        column, turns = PLOT / 32, collections.defaultdict(list)
        for word, lanes in sorted(lanes_of.items()):
            for some in [[lane] for lane in lanes] if atomic else [lanes]:
                turns[word % 32].append((some, f"bank {word % 32}, word {word}: "))
        self.head("bank", [(LEFT + column * (bank + 0.5), bank) for bank in range(32)])
        rows = [(f"turn {n + 1}", []) for n in range(max(map(len, turns.values())))]
        for bank, served in turns.items():
            for (_, marks), (lanes, tip) in zip(rows, served):
                marks.append(self.word(LEFT + column * bank + 0.5, column - 1, lanes, tip))
        self.d.panel(rows, 16, 1, [(LEFT + column * bank, "") for bank in range(33)])
        self.d.legend(a="a word; the number is the lane that accesses it (×32: so many lanes, a broadcast)")

    def draw_sectors(self, lanes_of, _):
        column, lines, rows = PLOT / 32, sorted({word // 32 for word in lanes_of}), []
        bytes_at = [(LEFT + column * b / 4, f"byte {b}") for b in range(0, 128, 32)]
        bytes_at[0] = (LEFT, "byte 0 of the cache line")
        self.head("offset", bytes_at)
        for line in lines[:32]:
            marks = []
            for sector in range(line * 4, line * 4 + 4):
                words, x = range(sector * 8, sector * 8 + 8), LEFT + column * 8 * (sector % 4)
                if not lanes_of.keys() & set(words):
                    marks.append(Mark(x + 2, column * 8 - 4, "n"))
                    continue
                for i, word in enumerate(words):
                    at, width = x + column * i + 2 * (i == 0), column - 2 * (i in (0, 7))
                    lanes = lanes_of.get(word)
                    marks.append(self.word(at, width - 0.7, lanes) if lanes else Mark(at, width, "w"))
            rows.append((f"+{(line - lines[0]) * 128}", marks))
        self.d.panel(rows, 16, 2)
        if len(lines) > 32:
            self.d.y += 12
            self.d.text(LEFT, self.d.y, "s", f"and {len(lines) - 32} more cache lines")
        used = "4 bytes and the lane that accesses them (×4: so many lanes)"
        self.d.legend(a=used, w="moved with the sector, not used", n="sector that is not moved")

    def draw_table(self):
        def short(text):
            return text if len(text) <= 31 else "…" + text[-30:]

        def row(css, cells):
            for i, (x, cell) in enumerate(zip(columns, cells)):
                self.d.text(x, self.d.y, css[i > 0] + " e" * (i > 2), cell)

        self.d.heading("table", block=self.block)
        second = LEFT + max(110, 12 + 7.6 * max(len(short(a["line"])) for a in self.accesses))
        columns = LEFT, second, second + 190, LEFT + 570, LEFT + 650, LEFT + 780, LEFT + PLOT
        self.d.y += 6
        row("tt", "source line,memory,access,by warps,lanes each,turns or sectors each,most".split(","))
        self.d.y += 5
        self.d.line(LEFT, self.d.y, LEFT + PLOT, self.d.y, "l")
        for a in self.accesses[:40]:
            memory, times = a["memory"], a["warp_accesses"]
            place, _, at = a["object"].partition("allocated at ")
            if at:  # in the same file "allocated in line 62", else "lock.h:16"
                file, _, line = at.rpartition(":")
                place = f"allocated in line {line}" if a["line"].startswith(file + ":") else short(at)
            each = f"{a['turns'] / times:.3g} {ONE_OF[memory]}{'s' * (a['turns'] != times)}"
            access, lanes = f"{a['kind']} of {count_of(a['bytes'], 'byte')}", f"{a['lanes'] / times:.3g}"
            self.d.y += 17
            where = memory + f" ({place})" * bool(place)
            cells = short(a["line"]), where, access, times, lanes, each, a["most"]
            row("vc" if a["line"] == self.line else "cc", cells)
        if len(self.accesses) > 40:
            self.d.y += 17
            self.d.text(LEFT, self.d.y, "s", f"and {len(self.accesses) - 40} more")

    def svg(self):
        launch, d, passed = self.launch, self.d, self.launch["barriers_passed"]

        def size(of, thing):
            numbers = of[: 3 if of[2] > 1 else 2 if of[1] > 1 else 1]
            return f"{' × '.join(map(str, numbers))} {thing}{'s' * (math.prod(of) > 1)}"

        title, threads = f"A launch of the kernel {launch['kernel']}", size(launch["block"], "thread")
        what = f"At {launch['launched_at']}, {size(self.grid, 'block')} of {threads}, "
        what += f"on {count_of(launch['workers'], 'worker')} of the CPU back end"
        d.text(LEFT, d.y, "title", title)
        d.y += 20
        d.text(LEFT, d.y, "s", what)
        self.draw_blocks()
        if passed:
            self.draw_waits()
        if "steps" in launch:
            self.draw_warps()
            self.draw_lanes()
            self.draw_line()
            if self.accesses:
                self.draw_table()
        else:
            d.y += 40
            need = "Active lanes, bank conflicts and sectors need a program built for checking: cucc --check"
            d.text(LEFT, d.y, "s", need)
        d.y += 24
        said = f"{what}. Block {self.block} passes {count_of(passed, 'barrier')}."
        for a in self.accesses:
            if a["line"] == self.line:
                most = count_of(a["most"], ONE_OF[a["memory"]])
                said += f" {a['line']} {a['kind']}s {a['memory']} memory in {most} at most for a warp."
        area = f'width="960" height="{d.y:.0f}" viewBox="0 0 960 {d.y:.0f}"'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {area} role="img" aria-labelledby="title desc">'
        said = f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(said)}</desc>'
        return "\n".join([svg, said, STYLE, *d.out, "</svg>\n"])


def main():
    form = "FILE.svg or FILE.json, optionally followed by ,kernel=NAME ,launch=N ,block=N ,warp=N ,line=N"
    if len(sys.argv) < 3:
        refuse(f"arguments: {form}; a program and its arguments, or the data")
    words, chosen = sys.argv[1].split(","), {"warp": "0"}
    while re.fullmatch("(warp|line|kernel|launch|block)=.+", words[-1]):
        key, _, value = words.pop().partition("=")
        chosen[key] = value
    file, program = ",".join(words), sys.argv[2:]
    warp, line = chosen.pop("warp"), chosen.pop("line", None)
    good = re.fullmatch(r".+\.(svg|json)", file) and warp.isdecimal()
    if not good or not re.fullmatch("(.+:)?[1-9][0-9]*", line or "1"):
        refuse(f"{sys.argv[1]}: must be {form}, such as dot.svg,line=41")
    data, status = program[0], 0
    if not data.endswith(".json"):
        data = os.path.splitext(file)[0] + ".json"
        setting = ",".join([data, *(f"{key}={value}" for key, value in chosen.items())])
        if os.path.isfile(data):
            os.remove(data)
        status = subprocess.run(program, env={**os.environ, "CUDA_CPU_TRACE": setting}).returncode
        if file == data or not os.path.exists(data):
            sys.exit(status)
    with open(data) as recorded:
        recorded = json.load(recorded)
    launch = recorded["launch"]
    warps = (math.prod(launch["block"]) + 31) // 32
    if int(warp) >= warps:
        refuse(f"{sys.argv[1]}: a block of {launch['kernel']} has the warps 0 to {warps - 1}")
    if (warp != "0" or line) and "steps" not in launch:
        refuse(f"{sys.argv[1]}: lanes and accesses need a program built for checking: cucc --check")
    picture = Picture(recorded, int(warp), line).svg()
    try:
        with open(file, "w") as out:
            out.write(picture)
    except OSError as error:
        sys.exit(f"trace.py: cannot write {file}: {error.strerror}")
    print(f"{file} shows it", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
