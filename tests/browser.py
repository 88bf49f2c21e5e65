# SPDX-License-Identifier: MIT
"""A headless browser."""
import html
import http.server
import json
import os
import queue
import re
import shutil
import subprocess
import threading

import pytest


BROWSER = next(filter(None, map(shutil.which, ["chromium", "google-chrome", "chromium-browser"])), None)
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
# In CI a missing browser is a mistake in setup, so the tests fail there and are not skipped.
needs_browser = pytest.mark.skipif(not BROWSER and "CI" not in os.environ, reason="needs Chromium")
HEADLESS = [BROWSER, *"--headless --no-sandbox --disable-gpu --no-first-run".split()]
QUIET = """--disable-quic --disable-background-networking --disable-sync --disable-component-update
    --virtual-time-budget=60000 --dump-dom""".split()


def dumped(tmp_path, page):
    """The values that a page writes as JSON into elements <pre>."""
    command = [*HEADLESS, *QUIET, f"--user-data-dir={tmp_path}/profile", page.as_uri()]
    out = subprocess.run(command, text=True, timeout=400, capture_output=True).stdout
    return [json.loads(html.unescape(text)) for text in re.findall("<pre>(.*?)</pre>", out, re.S)]


def press_run(pages, tmp_path):
    """Opens pages in a browser, one after the other, and presses Run; then runs the script that belongs to the page. Yields what each
    page has in the end: "state", "output" and "picture" (a data URL)."""
    said = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            said.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Tests run at the same time, so the copies have a name of their own.
    copies = [page.with_name(f"pressed-{server.server_port}-{page.name}") for page in pages]
    for (page, after), copy, following in zip(pages.items(), copies, [*copies[1:], None]):
        script = f"""<script>addEventListener("load", async () => {{
            const ended = async () => {{
                for (const begin = Date.now(); go.disabled && Date.now() - begin < 200000;) await new Promise(next => setTimeout(next, 20));
            }};
            go.click(); await ended(); {after};
            await fetch("http://127.0.0.1:{server.server_port}", {{method: "POST", mode: "no-cors", body: JSON.stringify({{
                state: state.textContent, output: output.textContent, picture: canvas.hidden ? "" : canvas.toDataURL()}})}});
            {f'location = "{following.as_uri()}"' if following else ""}
        }});</script>"""
        copy.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    command = [*HEADLESS, f"--user-data-dir={tmp_path}/profile", copies[0].as_uri()]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in pages:
            yield said.get(timeout=300)
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        for copy in copies:
            copy.unlink()


def visit(folder, page, script, profile, asked=None, firefox=False, instead={}):
    """Opens a page of a folder, as a server at localhost sends it, and runs a script in it: the body of an async function, with
    until(condition) and type(text). Returns what the script returns. The paths of the requests are added to the list `asked`;
    `instead` has texts of scripts that are sent in place of files. After a request for `offline` the server answers none.
    """
    said = queue.Queue()
    script = f"""const until = async (condition, what = condition) => {{
            for (const begin = Date.now(); !condition(); await new Promise(next => setTimeout(next, 10)))
                if (Date.now() - begin > 60000) throw new Error(`waited in vain for ${{what}}`);
        }};
        const type = text => document.execCommand("insertText", false, text);
        (async () => {{ {script} }})().catch(error => `${{error.stack}}; ${{document.body.innerText}}`)
            .then(result => fetch("/said", {{method: "POST", body: JSON.stringify(result ?? null)}}));"""

    sent, lost = {"visit.js": script, **instead}, threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self):
            path = self.path.partition("?")[0][1:]
            if asked is not None:
                asked.append(path)
            if path == "offline":
                lost.set()
            if lost.is_set():
                self.connection.close()
            elif path in sent:
                self.answer("text/javascript", sent[path])
            elif path == page.partition("#")[0]:
                text, own = (folder / path).read_text(), '<script src="/visit.js" defer></script></body>'
                self.answer("text/html", text.replace("</body>", own))
            else:
                super().do_GET()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer("text/plain", "")
            said.put(json.loads(body))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile.mkdir(exist_ok=True)
    command = [*HEADLESS, f"--user-data-dir={profile}"]
    if firefox:
        command = [FIREFOX, "--headless", "--no-remote", "--profile", profile]
    command.append(f"http://127.0.0.1:{server.server_port}/{page}")
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        return said.get(timeout=120)
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        server.server_close()
