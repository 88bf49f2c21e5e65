#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""record.py: keeps the figures of the attacks in tests/attacks/results.json, and writes docs/trust.md's part about them.
  record.py --page    that part, in Markdown: for each attack the first paragraph of its docstring, and its recorded runs

An attack calls record(attack, command, figures) when it got --record. `attack` is the name of its file without .py, `command` is what
a reader types to repeat the run, and `figures` is a dict from what is counted to a number or a word, such as
{"programs": 98, "calls failed": 20114, "seed": 7}. A run of the same attack and command replaces the earlier one."""
import ast
import datetime
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402
from report import markdown  # noqa: E402
from run import machine  # noqa: E402

FILE = HERE / "results.json"


def load():
    try:
        return json.loads(FILE.read_text()) if FILE.exists() else {}
    except ValueError as error:
        raise results.Problem(f"{results.shown(FILE)}: no results ({error}); move it away") from None


def record(attack, command, figures):
    """Writes the figures of a run with its date, machine and commit."""
    about = machine()
    entry = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{about['machine']['cores']} cores of {about['machine']['cpu']}, {about['machine']['os']}",
        "compiler": about["compiler"] or "not known",
        "commit": (about["commit"] or "not known")[:12] + (" with changes" if about["dirty"] else ""),
        "figures": figures,
    }
    found = load()
    found.setdefault(attack, {})[command] = entry
    found = {name: dict(sorted(runs.items())) for name, runs in sorted(found.items())}
    results.write(FILE, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def show(line, defects):
    """Prints how an attack on one program ended, and its defects."""
    print(f"{line}, {len(defects)} defects")
    for defect in defects:
        print(f"    {defect}")
    sys.stdout.flush()


def attacks():
    """A dict from the name of each attack to its path and the first paragraph of its docstring. That on the translator is in cucc."""
    found = {}
    for path in [*sorted(HERE.glob("*.py")), ROOT / "cucc/tests/translator_fuzz.py"]:
        paragraph = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]
        title, colon, text = paragraph.partition(": ")
        if path.name != "record.py" and colon and title == path.name:
            found[path.stem] = path.relative_to(ROOT), text
    return found


def shown(value):
    return f"{value:,}" if isinstance(value, int) else value


def page():
    """The part of docs/trust.md."""
    recorded, parts = load(), []
    for name, (path, text) in attacks().items():
        parts.append(f"### [{name}](../{path})\n\n{text[:1].upper()}{text[1:]}")
        for command, entry in recorded.pop(name, {}).items():
            # A seed or a version is a name, without commas between its digits.
            cells = [str(v) if k == "seed" else shown(v) for k, v in entry["figures"].items()]
            where = ", ".join(entry[key] for key in ("machine", "compiler", "date"))
            parts.append(f"`{command}` ({where}, commit {entry['commit']}):")
            parts.append(markdown(list(entry["figures"]), [cells]))
    if recorded:
        raise results.Problem(f"{results.shown(FILE)}: there is no attack {', '.join(recorded)}")
    return "\n\n".join(parts)


def main():
    if sys.argv[1:] != ["--page"]:
        print("record.py: usage: record.py --page", file=sys.stderr)
        return 64
    print(page())
    return 0


if __name__ == "__main__":
    results.run(main, "record.py")
