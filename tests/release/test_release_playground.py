# SPDX-License-Identifier: MIT
"""The playground's compiler under node: programs are compiled and run as in a page."""
import json
import shutil
import subprocess

import pytest

import helpers
from trees import ROOT

PLAYGROUND = ROOT / "web/playground"
pytestmark = pytest.mark.skipif(
    not shutil.which("node") or not (PLAYGROUND / "node_modules").exists(),
    reason="needs node and `npm ci` in web/playground",
)
PROGRAMS = """chapter04/add_loop_gpu chapter04/julia_gpu chapter05/dot chapter05/matmul_shared chapter05/reduction
    chapter09/hist_gpu_shmem_atomics""".split()


@pytest.fixture(scope="module")
def playground(tmp_path_factory):
    """Runs texts one after the other. Returns the messages of each."""
    folder = tmp_path_factory.mktemp("playground")
    subprocess.run(
        ["node", PLAYGROUND / "build.mjs", folder, ROOT / helpers.BUILD / "playground"],
        check=True,
        capture_output=True,
    )

    def run(*runs):
        lines = "".join(json.dumps({"run": one}) + "\n" for one in runs)
        command = ["node", PLAYGROUND / "run.mjs", folder]
        out = subprocess.run(
            command, input=lines, capture_output=True, text=True, check=True, timeout=1800
        ).stdout
        answers = [[]]
        for message in map(json.loads, out.splitlines()):
            answers[-1].append(message)
            if "end" in message:
                answers.append([])
        assert len(answers) == len(runs) + 1
        return answers[:-1]

    return run


def told(messages, kind):
    return [message[kind] for message in messages if kind in message]


def text_of(name):
    return (ROOT / f"{name}.cu").read_text()


def test_programs_run(playground):
    """They print that their results are right, and end with status 0; julia_gpu hands out its picture."""
    presets = {program.name: program.check.split(" | ")[0].split() for program in helpers.programs()}
    answers = playground(
        *({"text": text_of(name), "name": f"{name}.cu", "args": presets[name]} for name in PROGRAMS)
    )
    for name, messages in zip(PROGRAMS, answers):
        assert told(messages, "end")[0]["status"] == 0, (name, messages)
    assert told(answers[1], "file")
    assert "Does GPU value" in "".join(told(answers[2], "out"))


def test_errors_name_the_line(playground):
    """A missing `;` is reported at its line; endless output is cut; a trap is an end with a reason."""
    dot = text_of("chapter05/dot")
    line = dot[: dot.index("HANDLE_LAUNCH();")].count("\n") + 1
    endless = '#include <stdio.h>\nint main() { for (;;) puts("0123456789"); }\n'
    missing, output, trap = playground(
        {"text": dot.replace("HANDLE_LAUNCH();", "HANDLE_LAUNCH()", 1), "name": "chapter05/dot.cu"},
        {"text": endless},
        {"text": "int main() { __builtin_trap(); }\n"},
    )
    assert [(d["line"], d["severity"]) for d in told(missing, "diagnostics")[0]] == [(line, "error")]
    assert told(output, "end")[0]["status"] == "more than 1 MB of output"
    assert "unreachable" in told(trap, "end")[0]["status"]
