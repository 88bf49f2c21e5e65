# SPDX-License-Identifier: MIT
"""Precompiled headers (driver/precompiled.c): the same object and the same messages as without them, whatever their files have."""
import os
import subprocess
from pathlib import Path

import pytest

import tools

SOURCE = """#include <stdio.h>
__global__ void add(int a, int b, int *c) { *c = a + b; }
int main() {
    int c, unused, *d;
    cudaMalloc(&d, sizeof c);
    add<<<1, 1>>>(2, 7, d);
    cudaMemcpy(&c, d, sizeof c, cudaMemcpyDeviceToHost);
    printf("%d\\n", c);
    cudaFree(d);
}
"""

pytestmark = pytest.mark.skipif(tools.CLANG, reason="they are for g++")


def test_the_second_compilation_uses_them(tmp_path):
    """Options that no other test has, so that the first compilation is the first with them"""
    folder = Path(tools.cucc("--toolkit").out.strip()) / "precompiled"
    options = (
        "-Xcompiler",
        f"-ftabstop=3,-fmessage-length=0,-frandom-seed={os.getpid()}",
        "-Wall",
        "-o",
        "a.out",
    )
    marker = f"-frandom-seed={os.getpid()}"

    def stored():
        mine = [path for path in folder.glob("*.ii") if marker in path.open(errors="replace").readline()]
        return [path.with_suffix(".gch") for path in mine if path.with_suffix(".gch").exists()]

    found = [(tools.compiled(tmp_path, SOURCE, *options), bool(stored())) for _ in range(3)]
    if not os.access(folder, os.W_OK):
        pytest.skip("the toolkit belongs to another user")
    assert [there for _, there in found] == [False, True, True]
    assert (
        len({done.err for done, _ in found}) == 1
        and "main.cu:4:12: warning: unused variable" in found[0][0].err
    )
    assert tools.execute(tmp_path / "a.out").out == "9\n"
    [kept] = stored()
    os.utime(kept, (0, kept.stat().st_mtime))
    tools.compiled(tmp_path, SOURCE, *options)
    assert kept.stat().st_atime > 0 or os.statvfs(folder).f_flag & os.ST_NOATIME, "it was not read"
    # A mistake has the messages of the whole text; a macro that changes the headers gets headers of its own.
    wrong = tools.compiled(tmp_path, SOURCE.replace("a + b", "a + x"), *options, status=1).err
    assert "main.cu:2:54: error: " in wrong and wrong.count("error:") == 1
    tools.compiled(tmp_path, SOURCE, "-DCUDA_CPU_MINE", *options)
    # Without the file, or with a damaged one, the whole text is compiled.
    kept.write_bytes(kept.read_bytes()[: 1 << 20])
    assert tools.compiled(tmp_path, SOURCE, *options).err == found[0][0].err
    assert tools.execute(tmp_path / "a.out").out == "9\n"
    kept.unlink()
    kept.with_suffix(".ii").unlink()


def test_a_named_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "main.cu")
    command = [tools.CUCC, "-c", tmp_path / "main.cu", "-o", tmp_path / "main.o"]
    with subprocess.Popen(command) as process:
        (tmp_path / "main.cu").write_text(SOURCE + "#ifdef __CUDA_ARCH__\n#endif\n")
        assert process.wait(timeout=60) == 0


def test_a_line_of_an_options_file_goes_on(tmp_path):
    (tmp_path / "options").write_text("-DA=1 \\\n  -DB='2 3'\n-D\\\nC=4\n")
    shown = tools.compiled(tmp_path, SOURCE, "@options", "--dryrun").err
    assert "-D A=1 -D" in shown and "-D C=4" in shown
