# SPDX-License-Identifier: MIT
"""A drawing: its style, and the shapes that draw.py and figures.py draw with. They are narrow, so that they can be read on a phone."""
import html
import inspect
import textwrap

# The kinds of boxes differ in fill and in frame: a (blue, thin), b (orange, thick), i (dashed), w (hatched), n (plain).
STYLE = """
svg { color-scheme: light dark; --paper: #fff; --ink: #222; --soft: #595959;
    --a: #d3e5f8; --a2: #0b57a4; --b: #ffe3c8; --b2: #b34400 }
@media (prefers-color-scheme: dark) { svg { --paper: #161618; --ink: #eee; --soft: #b4b4b4;
    --a: #173a60; --a2: #8ab8f0; --b: #5a2e0c; --b2: #ff9a5c } }
text { font-family: sans-serif; fill: var(--ink) } .m { text-anchor: middle } .e { text-anchor: end }
.h { font-weight: 600 } .c { font-family: monospace } .s { fill: var(--soft) }
rect, path { fill: none; stroke: var(--soft) } path.l { stroke: var(--ink); stroke-width: 1.5 }
.a { fill: var(--a); stroke: var(--a2) } .b { fill: var(--b); stroke: var(--b2); stroke-width: 3 }
.i { stroke-dasharray: 3 3 } .w { fill: url(#hatch) } .paper { fill: var(--paper); stroke: none }
marker path { fill: var(--ink) }"""
DEFS = """<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"
markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z"/></marker><pattern id="hatch" width="6" height="6"
patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke-width="2"/></pattern></defs>
<rect width="100%" height="100%" class="paper"/>"""
WIDTH, EDGE = 480, 16
LAYOUT = 92, 48, 40  # of eight boxes in a row: where they begin, their distance, their width


class Drawing:
    def __init__(self, draw):
        self.name, self.height, self.parts = draw.__name__, 0, []
        self.title, self.desc = (" ".join(part.split()) for part in inspect.getdoc(draw).split("\n\n"))
        draw(self)

    def text(self, x, y, words, kind="", size=13):
        place = f'x="{x:g}" y="{y:g}" font-size="{size}" class="{kind}"'
        self.parts.append(["", f"<text {place}>{html.escape(words)}</text>", []])
        self.height = max(self.height, y + EDGE)

    def head(self, y, words, x=EDGE):
        self.text(x, y, words, "h", 15)

    def note(self, y, words, x=EDGE, width=57):
        """Lines of at most `width` letters. Returns the y of the line after the last one."""
        for i, line in enumerate(textwrap.wrap(words, width)):
            self.text(x, y + 18 * i, line, "s")
        return y + 18 * i + 18

    def box(self, x, y, w, h, words="", kind="n", text="m"):
        self.outline(kind, f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z", (x, y, x + w, y + h))
        self.height = max(self.height, y + h + EDGE)
        for i, line in enumerate(words.split("\n") if words else []):
            self.text(x + w / 2, y + h / 2 + 5 + 17 * (i - words.count("\n") / 2), line, text)

    def grid(self, x, y, rows, cols, cell, kind, words=lambda r, c: ""):
        for r in range(rows):
            for c in range(cols):
                self.box(x + cell * c, y + cell * r, cell, cell, words(r, c), kind(r, c))

    def arrow(self, *points, tip=' marker-end="url(#tip)"'):
        x, y = zip(*points)
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(["", f'<path d="{path}" class="l"{tip}/>', [(min(x), min(y), max(x), max(y))]])

    def outline(self, kind, path, area):
        """Adds a box to the path of earlier ones of its kind, unless something that was drawn in between lies under it."""
        for part in reversed(self.parts):
            if part[0] == kind:
                part[1] += path
                return part[2].append(area)
            if any(a[0] < area[2] and area[0] < a[2] and a[1] < area[3] and area[1] < a[3] for a in part[2]):
                break
        self.parts.append([kind, path, [area]])

    def svg(self):
        size = f'width="{WIDTH}" height="{self.height:g}" viewBox="0 0 {WIDTH} {self.height:g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">'
        about = f'<title id="title">{html.escape(self.title)}</title>\n<desc id="desc">{html.escape(self.desc)}</desc>'
        parts = [f'<path d="{what}" class="{kind}"/>' if kind else what for kind, what, _ in self.parts]
        return "\n".join([head, about, f"<style>{STYLE}</style>", DEFS, *parts, "</svg>\n"])
