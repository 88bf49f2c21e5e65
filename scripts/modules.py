# SPDX-License-Identifier: MIT
"""The programs as WebAssembly, for the pages of make site: cucc compiles them with em++, in the folder `wasm` of BUILD. A program is
compiled again when a file of common/, of cucc or of its chapter is newer."""
import base64
import concurrent.futures
import gzip
import os
import re
import shutil
import subprocess

from programs import ROOT, libraries

NEEDED = {name.lower(): name for name in "MPI NPP OpenCL Thrust Vulkan cuBLAS cuFFT".split()}
NEEDED["gl"] = "OpenGL"
ABSENT = {
    r"this_grid|cudaLaunchCooperativeKernel": "a host thread for each block, since its blocks wait for each other",
    r"\n    continue_in_child": "a process that may be ended when it hangs",
    r"\(unsigned long long\)&": "pointers of 64 bits",
}
missing = [tool for tool in ("em++", "emar", "node") if not shutil.which(tool)]


def why_not(program):
    """What a program needs that a page does not have; "" if nothing."""
    text = (ROOT / f"{program.name}.cu").read_text()
    reasons = [NEEDED[library] for library in libraries(program) if library in NEEDED]
    return ", ".join([*reasons, *(reason for code, reason in ABSENT.items() if re.search(code, text))])


def newest(*folders):
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if "build" not in path.parts]
    return max(path.stat().st_mtime for path in files)


def compile_all(programs, folder):
    """Compiles these programs. Returns the file of each one by its name, and the error of each one that does not compile."""
    base = newest("common", *(f"cucc/{part}" for part in ("runtime", "include", "translate")))
    library = folder / "libcommon.a"

    def cucc(output, *inputs):
        output.parent.mkdir(parents=True, exist_ok=True)
        command = ["cucc/cucc", "-ccbin", "em++", "-w", "-o", output, *inputs]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        lines = [line for line in done.stderr.splitlines() if re.search("error|undefined", line)]
        return (
            ""
            if done.returncode == 0
            else (lines or done.stderr.splitlines() or [f"status {done.returncode}"])[0]
        )

    def compiled(program):
        file = folder / f"{program.name}.js"
        fresh = file.exists() and file.stat().st_mtime > max(base, newest(program.name.split("/")[0]))
        return program.name, file, "" if fresh else cucc(file, f"{program.name}.cu", library)

    if not library.exists() or library.stat().st_mtime < base:
        objects = [folder / f"common/{path.stem}.o" for path in (ROOT / "common/lib").glob("*.c")]
        for file in objects:
            cucc(file, "-c", f"common/lib/{file.stem}.c")
        library.unlink(missing_ok=True)
        subprocess.run(["emar", "rcs", library, *objects], check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(compiled, programs))
    return {name: file for name, file, error in done if not error}, {
        name: error for name, _, error in done if error
    }


def packed(file):
    """The script of a page's module: it passes the program's JavaScript and its WebAssembly, both compressed, to site.js."""
    script = file.read_text()
    wasm = re.search('octet-stream;base64,([^"]{1000,})"', script)[1]
    parts = script.replace(wasm, "").encode(), base64.b64decode(wasm)
    packed = [base64.b64encode(gzip.compress(part, mtime=0)).decode() for part in parts]
    return "receive({!r}, {!r})\n".format(*packed)
