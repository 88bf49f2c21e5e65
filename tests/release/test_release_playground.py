# SPDX-License-Identifier: MIT
"""The playground: its compiler under node, and the editor of the pages in a browser, most often with a worker in place of the compiler
that answers as words in the text ask it to."""
import html
import json
import re
import shutil
import subprocess

import pytest

import helpers
from browser import FIREFOX, dumped, needs_browser, visit
from exercise import Exercise  # scripts/, which helpers adds to the path
from trees import ROOT

PLAYGROUND = ROOT / "web/playground"
pytestmark = [
    pytest.mark.skipif(
        not shutil.which("node") or not (PLAYGROUND / "node_modules").exists(),
        reason="needs node and the packages of web/playground: make setup test",
    ),
    pytest.mark.xdist_group("playground"),  # which is built once
]
WORKER = """
const say = what => postMessage(what);
say({progress: {what: "fetches the compiler", done: 5e6, total: 27e6}});
say({progress: {what: "fetches the compiler", done: 27e6, total: 27e6}});
onmessage = ({data: {run}}) => {
    say({progress: {what: "compiles", done: 0, total: 0}});
    const at = run.text.split("\\n").findIndex(line => line.includes("MISTAKE"));
    if (at >= 0) {
        say({diagnostics: [{line: at + 1, column: run.text.includes("FAR") ? 99 : 10, text: "expected ';' <b>", severity: "error"},
            {line: 9999, column: 1, text: "unused", severity: "warning"}]});
        return say({end: {status: 1, times: {}}});
    }
    if (run.text.includes("BROKEN"))
        throw new Error("out of memory");
    say({out: JSON.stringify({...run, text: run.text.length}) + "\\n"});
    while (run.text.includes("ENDLESS")) {}
    const head = new TextEncoder().encode("P6\\n2 1\\n255\\n");
    say({file: {name: "picture.ppm", bytes: Uint8Array.from([...head, 255, 0, 0, 0, 0, 255])}});
    say({err: "in two "});
    say({err: "parts\\n"});
    say({end: {status: 0, times: {translate: 500, compile: 1500, run: 250}}});
};"""
# For the scripts of the tests
KIT = """const content = () => document.querySelector(".cm-content"), shows = text => content()?.innerText.includes(text);
    const button = name => [...document.querySelectorAll("#run button")].find(one => one.textContent === name);
    const begin = async () => { await until(content); content().focus(); };
    const ran = async () => { go.click(); await until(() => !go.disabled); };
    const typed = async text => { type(text); await until(() => shows(text)); };
    const inner = async (src, width = 390) => {
        const frame = Object.assign(document.createElement("iframe"), {src, width, height: 600});
        document.body.append(frame);
        const find = what => frame.contentDocument.querySelector(what);
        await until(() => find("#run button"));
        if (!("open" in find("#run").dataset)) find("#run p :nth-child(3)").click();
        await until(() => find(".cm-content"));
        return [frame.contentWindow, frame.contentDocument, find(".cm-content")];
    };"""
HOSTILE = """</pre><script>document.title = "owned"</script><img src=x onerror="document.title = 'owned'">${alert(1)}"""


@pytest.fixture
def site(once):
    def generate(folder):
        made = helpers.make("site", f"SITE={folder}/site", "RUN=none")
        assert "no playground" not in made, made
        (folder / "site/blank.html").write_text("<!DOCTYPE html><body></body>")
        return folder / "site"

    return once("playground", generate)


needs_firefox = pytest.mark.skipif(not FIREFOX, reason="needs Firefox")
BROWSERS = [pytest.param("chromium", marks=needs_browser), pytest.param("firefox", marks=needs_firefox)]


@pytest.fixture(params=BROWSERS)
def play(site, tmp_path, request):
    def play(page, script, asked=None, profile="profile", instead={"playground/worker.js": WORKER}):
        firefox = request.param == "firefox"
        result = visit(site, page, KIT + script, tmp_path / profile, asked, firefox, instead)
        assert not isinstance(result, str) or "waited in vain" not in result, result
        return result

    return play


def test_a_program_is_changed_compiled_and_run(site, play):
    """Nothing is fetched before Edit is pressed, and nothing twice. What was printed and drawn is shown."""
    asked = []
    (site / "playground/editor.js").touch()  # the browser takes its copy of a new file to be outdated
    after, state, printed, picture = play(
        "chapter05/dot.cu.html",
        """await fetch("/now"); change.click(); await begin(); await typed("// mine");
        await until(() => state.textContent === ""); const after = content().innerText.slice(0, 20); await ran();
        const pixels = [...canvas.getContext("2d").getImageData(0, 0, 2, 1).data];
        return [after, state.textContent, output.textContent, pixels];""",
        asked,
    )
    assert [path for path in asked[: asked.index("now")] if "playground" in path] == []
    fetched = [path for path in asked if "playground/" in path]
    assert fetched == ["playground/editor.js", "playground/worker.js"]
    assert after.startswith("// mine") and state == "status 0: ended, 0.25 s, compiled in 2.0 s"
    run, rest = printed.split("\n", 1)
    length = len(text_of("chapter05/dot")) + len("// mine")
    expected = {"text": length, "name": "chapter05/dot.cu", "args": [], "check": False, "exercise": False}
    assert json.loads(run) == expected
    assert rest == "in two parts\n" and picture == [255, 0, 0, 255, 0, 0, 255, 255]


def test_pages_have_options(site):
    """A name for the picture, and for an exercise those of a quick run; races are looked for unless it has them on purpose."""
    for name, expected in ("chapter04/julia_gpu", "picture.ppm"), ("chapter05/ripple", "frame-%04d.ppm"):
        options = re.search('data-options="([^"]*)"', (site / f"{name}.cu.html").read_text())[1]
        assert options.endswith(f"--output={expected}")
    exercises = {
        name: re.search(
            'data-options="(.*?)".* data-exercise="(.*?)"', (site / f"my/{name}.html").read_text()
        ).groups()
        for name in ("chapter05/dot", "chapter09/atomics_race")
    }
    assert exercises == {
        "chapter05/dot": ("--size 300", "check"),
        "chapter09/atomics_race": ("--blocks 64", ""),
    }  # which has races
    assert 'id="run"' not in (site / "chapter08/ripple.cu.html").read_text()  # it needs OpenGL
    assert '<a href="../playground.html">' in (site / "chapter08/ripple.cu.html").read_text()


def test_pages_have_the_size_of_what_is_fetched(site):
    """Large files are compressed. Some are fetched only for the search for races and for kernels whose threads wait."""
    sizes = {file.name: file.stat().st_size for file in (site / "playground").rglob("*") if file.is_file()}
    assert max(size for name, size in sizes.items() if not name.endswith(".packed")) < 600_000
    more = "check.ii.packed", "check.macros.packed", "check.pch.packed", "binaryen.js.packed"
    always = sum(size for name, size in sizes.items() if name.endswith(".packed") and name not in more)
    page = (site / "my/chapter05/dot.html").read_text()
    assert f'data-bytes="{always}"' in page and f'data-more="{sum(map(sizes.get, more))}"' in page


def test_errors_are_at_their_lines(play):
    """A list has them too, for the keyboard and for touch; its buttons lead to the line. They leave with the next run. A column beyond the
    line marks all of it."""
    far, state, listed, marked, line, left, options = play(
        "playground.html",
        """await begin(); await typed("    FAR MISTAKE\\n"); await ran();
        const range = () => document.querySelector(".cm-lintRange-error").innerText, far = range();
        button("Reset").click(); content().focus(); await typed("\\n\\n/* ² */ MISTAKE\\n"); await ran();
        const list = [...document.querySelectorAll("#run li button")];
        const said = [far, state.textContent, list.map(one => one.innerText), range()];
        list[0].click(); await until(() => document.activeElement === content());
        const line = getSelection().anchorNode.parentElement.closest(".cm-line").innerText;
        button("Reset").click(); form.querySelector("[type=checkbox]").click();
        form.querySelector("label input").value = '--text "a b" --size=3';
        await ran();
        return [...said, line, document.querySelectorAll("#run li").length, output.textContent.split("\\n")[0]];""",
    )
    assert far == "FAR MISTAKE" and state == "does not compile: 1 error"
    assert listed == ["line 3: expected ';' <b>", "line 9999: unused"]
    assert marked == "MISTAKE" and line == "/* ² */ MISTAKE" and left == 0
    run = json.loads(options)
    assert run["args"] == ["--text", "a b", "--size=3"] and run["check"] and run["name"] == "first.cu"


def test_what_does_not_end_is_stopped(play):
    """By Stop, or after 60 s. A compiler that fails says so. The next run works."""
    got = play(
        "playground.html",
        """await begin(); const said = [], wait = setTimeout;
        for (const word of ["ENDLESS", "BROKEN", "LATE ENDLESS"]) {
            if (word.startsWith("LATE")) window.setTimeout = (call, ms) => wait(call, ms === 60000 ? 500 : ms);
            await typed(word); go.click();
            if (word === "ENDLESS") { await until(() => output.textContent); form.requestSubmit(); stop.click(); }
            await until(() => !go.disabled); said.push([state.textContent, output.textContent.length]);
            button("Reset").click(); content().focus(); window.setTimeout = wait;
        }
        await ran(); return [...said, state.textContent];""",
    )
    assert got[0][0] == "stopped"
    assert got[1][0].startswith("the compiler failed: ") and "out of memory" in got[1][0]
    assert got[2][0] == "stopped after 60 s" and got[3].startswith("status 0")


def test_a_link_shows_its_text_and_does_nothing_else(play):
    """In a browser that has not been here. Its text does not replace what the reader wrote, even if it is changed."""
    text = f"// {HOSTILE}\nint main() {{}} // ² MISTAKE\n"
    link = play(
        "playground.html",
        f"""await begin(); return playground.fragment({json.dumps(text)}, '--size "<b>"');""",
    )
    assert re.fullmatch(r"#code=[\w-]+", link)
    asked = []
    look = """await begin(); await new Promise(next => setTimeout(next, 300));
        return [content().innerText, form.querySelector("label input").value, document.title, output.hidden];"""
    for page in "playground.html", "chapter05/dot.cu.html":
        shown, options, title, hidden = play(page + link, look, asked, profile=f"new {page[:4]}")
        assert shown.split("\n")[:2] == text.split("\n")[:2]
        assert options == '--size "<b>"' and title in ("Playground", "chapter05/dot.cu") and hidden
    assert not [path for path in asked if "worker" in path] and "x" not in asked


def test_the_browser_keeps_the_text(play):
    """A text of the reader's own stays in the browser, and that of a link in the link, which replaces nothing."""
    mine, note, start, href, same = play(
        "blank.html",
        """const [, own, text] = await inner("playground.html");
        text.focus(); own.execCommand("insertText", false, "// my own "); await until(() => localStorage.length);
        const [frame, page, editor] = await inner("playground.html" + await frames[0].playground.fragment("// linked", ""));
        const before = frame.location.hash;
        editor.focus(); page.execCommand("insertText", false, "// more ");
        await until(() => frame.location.hash !== before);
        [...page.querySelectorAll("#run button")].find(one => one.textContent === "Link").click();
        await until(() => page.querySelector("#run [role=status] a"));
        const [, again] = await inner("playground.html"), [, , changed] = await inner("playground.html" + frame.location.hash);
        return [again.querySelector(".cm-line").innerText, again.querySelector("#run [role=status]").innerText, changed.innerText,
            page.querySelector("#run [role=status] a").hash, frame.location.hash];""",
    )
    assert mine.startswith("// my own") and note.startswith("as you left it")
    assert start == "// more // linked" and href == same


@pytest.mark.parametrize("link", ["#code=!!", "#code=AAAA", "#code=", "bomb"])
def test_a_link_that_is_wrong(play, link):
    make = """await begin(); return playground.fragment("0".repeat(3e6), "");"""
    says = "its text is longer than 1000000 bytes" if link == "bomb" else ""
    link = play("playground.html", make) if link == "bomb" else link
    assert len(link) < 10_000
    look = "await begin(); return [content().innerText, state.textContent];"
    shown, state = play("playground.html" + link, look)
    assert "mandelbrot" in shown and state.startswith(f"the link cannot be read: {says}")


def test_on_a_phone(play):
    """At 390 pixels nothing is wider than the screen, numbers stand beside their lines, the buttons are 40 pixels high and stay on the
    screen, and after a run the picture is there."""
    wide, apart, top, code, high, low = play(
        "blank.html",
        """const [, page] = await inner("chapter05/dot.cu.html"), all = what => [...page.querySelectorAll(what)];
        page.querySelector(".cm-editor").scrollIntoView(); // it measures only lines on the screen
        await new Promise(next => setTimeout(next, 500));
        page.querySelector(".cm-content").scrollIntoView({block: "end"});
        const tops = what => all(what).filter(one => one.offsetHeight).map(one => one.getBoundingClientRect().top);
        const lines = tops(".cm-line"), numbers = tops(".cm-lineNumbers .cm-gutterElement");
        const first = [page.documentElement.scrollWidth, Math.max(...lines.slice(0, 9).map((at, i) => Math.abs(at - numbers[i]))),
            page.querySelector("#run form > p button").getBoundingClientRect().top, page.querySelector(".cm-editor").offsetWidth,
            Math.min(...all("#run form button").map(one => one.offsetHeight || 40))];
        all("#run form")[0].requestSubmit(); await until(() => all("#run [role=status]")[0].textContent.startsWith("status"));
        return [...first, all("canvas")[0].getBoundingClientRect().bottom];""",
    )
    assert wide <= 390 and apart < 3 and 0 <= top < 600 and 300 < code <= 390 and high >= 40 and 0 < low < 601


def test_on_a_wide_screen(play):
    """Picture and output are beside the editor and begin where it does, before and after a run."""
    before, after = play(
        "blank.html",
        """const [, page] = await inner("chapter04/julia_gpu.cu.html", 1300), find = what => page.querySelector(what);
        const box = what => find(what).getBoundingClientRect(), said = find("#run [role=status]");
        const apart = what => [box(what).top - box(".cm-editor").top, box(what).left > box(".cm-editor").right];
        const before = apart("#run > img");
        find("#run form").requestSubmit(); await until(() => said.textContent.startsWith("status"));
        return [before, [...apart("#run > pre"), box("canvas").top - box("#run > pre").bottom]];""",
    )
    assert abs(before[0]) < 5 and before[1] and abs(after[0]) < 5 and after[1] and after[2] < 20


def test_the_keyboard_reaches_everything(play):
    """The editor has a name, Control and Enter runs, and what has the focus comes in the order of the page."""
    label, order, state = play(
        "chapter05/dot.cu.html",
        """change.click(); await begin();
        content().dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, bubbles: true, cancelable: true}));
        await until(() => output.textContent.includes("parts") && !go.disabled);
        const stops = [...panel.querySelectorAll("button, input, [tabindex='0']")].filter(one => one.offsetHeight && !one.disabled);
        return [content().ariaLabel, stops.map(one => one.ariaLabel ?? one.textContent), state.role ?? state.getAttribute("role")];""",
    )
    assert label.startswith("text of the program") and state == "status"
    assert order[:5] == ["Run", "Reset", "Link", "Download", "Open"] and order[-2:] == [label, "output"]


def test_exercises_are_listed(play):
    """With what the browser has seen of them, and what others need that a page does not have"""
    state, count, listed, without = play(
        "blank.html",
        """const [, page] = await inner("my/chapter05/dot.html"), said = page.querySelector("#run [role=status]");
        page.querySelector("#run form").requestSubmit(); await until(() => said.textContent.startsWith("status"));
        const list = Object.assign(document.createElement("iframe"), {src: "exercises.html"}), find = what =>
            list.contentDocument?.querySelector(what)?.textContent;
        document.body.append(list); await until(() => find("#count"));
        return [said.textContent, find("#count"), find("[data-exercise='my/chapter05/dot']"),
            find("li:has([href='chapter08/ripple.cu.html'])")];""",
    )
    assert state.startswith("status 0: result verified")
    assert count.startswith("1 of ") and listed.endswith(": done")
    assert without.endswith("not in a page, it needs OpenGL")


def test_a_second_visit_needs_no_network(play):
    state = play(
        "blank.html",
        """const address = "chapter05/dot.cu.html", run = async page => {
            page.querySelector("#run form").requestSubmit(); const said = page.querySelector("#run [role=status]");
            await until(() => said.textContent.startsWith("status")); return said.textContent;
        };
        await run((await inner(address))[1]);
        for (const one of [address, "site.js", "site.css", "playground/editor.js"])
            while (!await caches.match("/" + one)) await new Promise(next => setTimeout(next, 50));
        await fetch("/offline").catch(() => {});
        return run((await inner(address))[1]);""",
    )
    assert state.startswith("status 0")


@needs_browser
def test_a_page_from_the_disk_says_what_it_needs(site, tmp_path):
    """Browsers start no worker there."""
    script = "<script>addEventListener('load', async () => {change.click(); while (!document.querySelector('.cm-content'))"
    script += " await new Promise(next => setTimeout(next, 20)); go.click(); await new Promise(next => setTimeout(next, 200));"
    script += " document.body.innerHTML = `<pre>${JSON.stringify(state.textContent)}</pre>`;})</script>"
    page = site / "chapter05/dot.cu.html"
    copy = page.with_name("disk.html")
    copy.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    (said,) = dumped(tmp_path, copy)
    assert html.unescape(said).endswith("make serve")


# ---- the compiler ----

PROGRAMS = """chapter04/add_loop_gpu chapter04/julia_gpu chapter05/dot chapter05/matmul_shared chapter05/reduction
    chapter09/hist_gpu_shmem_atomics appendix_a/hashtable_gpu""".split()


@pytest.fixture
def compiled(site):
    """Compiles and runs texts one after the other. Returns the messages of each."""

    def run(*runs):
        lines = "".join(json.dumps({"run": one}) + "\n" for one in runs)
        command = ["node", PLAYGROUND / "run.mjs", site / "playground"]
        how = dict(capture_output=True, text=True, check=True, timeout=1800)
        out = subprocess.run(command, input=lines, **how).stdout
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


def test_programs_run(compiled):
    """They print that their results are right, line by line, and end with status 0; julia_gpu hands out its picture."""
    presets = {program.name: program.check.split(" | ")[0].split() for program in helpers.programs()}
    runs = ({"text": text_of(name), "name": f"{name}.cu", "args": presets[name]} for name in PROGRAMS)
    answers = compiled(*runs)
    for name, messages in zip(PROGRAMS, answers):
        assert told(messages, "end")[0]["status"] == 0, (name, messages)
    assert told(answers[1], "file") and any(
        re.fullmatch("wrote .*\n", text) for text in told(answers[1], "out")
    )
    assert "Does GPU value" in "".join(told(answers[2], "out"))


def test_an_exercise_is_judged(compiled):
    """A wrong, a racy and a right solution; races are looked for where the box is ticked, and named with the line."""
    dot = text_of("chapter05/dot").replace('"../common/', '"../../common/')
    barrier = "__syncthreads();"
    last = dot.rindex(barrier, 0, dot.index("int main("))
    racy = dot[:last] + dot[last + len(barrier) :]
    given = {"name": "my/chapter05/dot.cu", "args": ["--size", "300"], "check": True}
    some = dot.replace(barrier, f"if (threadIdx.x < 16) {barrier}", 1)
    table = Exercise("appendix_a/hashtable_gpu")  # whose check needs more than 1 GB
    large = "\n".join(table.with_includes(line, "../../") for line in table.lines)
    streams = Exercise("chapter10/basic_double_stream")
    lines = (streams.with_includes(line, "../../") for line in streams.lines)
    unset = "\n".join(line for line in lines if "cudaGetDeviceProperties(" not in line)
    wrong, race, right, bounds, divergent, early, unchecked, unset, large = compiled(
        {**given, "text": dot.replace("cache[cacheIndex] += ", "cache[cacheIndex] -= ")},
        {**given, "text": racy},
        {**given, "text": dot},
        {**given, "text": dot.replace("cache[cacheIndex + i]", "cache[cacheIndex + 2 * i]")},
        {**given, "text": some, "exercise": True},
        {**given, "text": re.sub(r"(?m)^int main\(.*\{", r"\g<0> exit(0);", dot), "exercise": True},
        {**given, "text": dot, "exercise": True, "check": False},
        {"name": f"my/{streams.name}.cu", "args": streams.options.split(), "text": unset, "exercise": True},
        {
            **given,
            "text": large,
            "name": "my/appendix_a/hashtable_gpu.cu",
            "args": ["--size", "20000"],
            "exercise": True,
        },
    )
    ends = wrong, race, right, bounds, early, unchecked, unset, large
    states = [told(one, "end")[0]["status"] for one in ends]
    assert states == [1, 1, 0, 1, "ended before its check", 0, 0, 0]
    assert "divergent barrier" in "".join(told(divergent, "err")) and told(divergent, "end")[0]["status"]
    line = racy[: racy.index("cache[cacheIndex] += ")].count("\n") + 1
    assert re.search(rf"race in kernel dot, .* at dot.cu:{line}", "".join(told(race, "err")), re.S)
    assert "race in" not in "".join(told(wrong, "err")) and "make check" not in "".join(told(wrong, "err"))
    assert "shared memory cache" in "".join(told(bounds, "err"))


def test_errors_name_the_line(compiled):
    """A missing `;` is reported at its line; a trap is an end with a reason; output, memory and files are limited."""
    dot = text_of("chapter05/dot")
    line = dot[: dot.index("HANDLE_LAUNCH();")].count("\n") + 1
    endless = '#include <stdio.h>\nint main() { for (;;) puts("0123456789"); }\n'
    memory = """#include <stdlib.h>
        int main() { int mb = 0; for (char *volatile p; (p = (char *)malloc(1 << 20)); mb++) *p = 1; return mb / 100; }"""
    files = """#include <stdio.h>
        char block[1 << 20];
        int main() { FILE *f = fopen("x", "wb"); for (;;) { fwrite(block, 1, sizeof block, f); rewind(f); } }"""
    signs = (
        "__global__ void f(int *a, size_t n) { int i = threadIdx.x; if (i < n) a[i] = i; }\nint main() {}\n"
    )
    missing, output, trap, silent, *limits = compiled(
        {"text": dot.replace("HANDLE_LAUNCH();", "HANDLE_LAUNCH()", 1), "name": "chapter05/dot.cu"},
        {"text": endless},
        {"text": "int main() { __builtin_trap(); }\n"},
        {"text": signs},
        {"text": memory},
        {"text": files},
    )
    assert [(d["line"], d["severity"]) for d in told(missing, "diagnostics")[0]] == [(line, "error")]
    assert told(output, "end")[0]["status"] == "more than 1 MB of output"
    assert "unreachable" in told(trap, "end")[0]["status"]
    assert told(silent, "diagnostics") == [
        []
    ], "nvcc does not warn of it, and clang would name a type of cucc"
    assert [told(one, "end")[0]["status"] for one in limits] == [10, "more than 1 GB of files"]


def test_the_pages_compile(play):
    """Loops that do not end, in main, in a kernel and in one whose threads wait, are stopped, after which the compiler need not be fetched
    again; a mistake is at its line."""
    asked, dot = [], "// again\n" + text_of("chapter05/dot")
    endless = """// %s
        #include <stdio.h>
        __global__ void kernel(volatile int *p) { for (;;) { %s } }
        int main() { int *p; cudaMallocManaged(&p, 4); puts("begins"); %s; cudaDeviceSynchronize(); }"""
    loops = [
        endless % ("main", "", "for (;;) {}"),
        endless % ("kernel", "", "kernel<<<1, 32>>>(p)"),
        endless % ("fibers", "if (!*p) __syncthreads();", "kernel<<<1, 32>>>(p)"),
    ]
    right, printed, stopped, wrong, lines = play(
        "chapter05/dot.cu.html",
        f"""change.click(); await begin(); await ran(); const right = [state.textContent, output.textContent];
        const load = async text => {{
            location.hash = await playground.fragment(text, ""); await until(() => shows(text.split("\\n")[0])); }};
        const stopped = [];
        for (const text of {json.dumps(loops)}) {{
            await load(text); go.click(); await until(() => output.textContent.includes("begins")); stop.click();
            await until(() => !go.disabled); stopped.push(state.textContent);
        }}
        await load({json.dumps(dot.replace("HANDLE_LAUNCH();", "HANDLE_LAUNCH()", 1))}); await ran();
        return [...right, stopped, state.textContent, [...document.querySelectorAll("#run li")].map(one => one.innerText)];""",
        asked,
        instead={},
    )
    assert right.startswith("status 0: ended") and "Does GPU value" in printed
    assert [state.partition(",")[0] for state in stopped] == ["stopped"] * 3
    assert wrong.startswith("does not compile: 1 error")
    line = dot[: dot.index("HANDLE_LAUNCH();")].count("\n") + 1
    assert lines == [f"line {line}: expected ';' after expression"]
    assert sum("llvm.core.wasm" in path for path in asked) == 1


def test_the_pages_draw(play):
    """The picture and the frames of programs that are changed, through a link."""
    centre = "// changed\n" + text_of("chapter05/ripple").replace("size / 2", "size / 4")
    frames, state, size, output = play(
        "chapter05/ripple.cu.html",
        f"""change.click(); await begin(); let frames = 0; const put = CanvasRenderingContext2D.prototype.putImageData;
        CanvasRenderingContext2D.prototype.putImageData = function(...all) {{ frames++; return put.apply(this, all); }};
        location.hash = await playground.fragment({json.dumps(centre)}, "--size 64 --frames 3 --output=frame-%04d.ppm");
        await until(() => shows("// changed")); await ran(); return [frames, state.textContent, canvas.width, output.textContent];""",
        instead={},
    )
    assert frames == 3 and size == 64 and state.startswith("status 0") and "is right" in output
