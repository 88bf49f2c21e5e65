#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the gallery: runs every program that draws, with a small size, and writes the picture to docs/gallery. The tests compare the
programs with these pictures, which the CPU back end draws in the same way on every machine."""
import io
import pathlib
import sys
import tempfile

from programs import ROOT, read_programs
from run import BIN, execute

sys.path.insert(0, str(ROOT / "bench"))
from report import find  # noqa: E402

LIMIT = 200000  # largest file, in bytes


def pictures():
    """The program, the file of its picture, which several may share, and the arguments that draw it, for each program that draws. If
    its Check: field has --size, it gets one. Animations are drawn smaller than stills, because they consist of many pictures.
    """
    for program in read_programs():
        if program.picture:
            arguments, _, output = program.run.partition(f"./bin/{program.name} ")[2].rpartition("--output ")
            owner = program.name if program.picture == "yes" else program.picture.removeprefix("as ")
            words, ending = arguments.split(), output.rpartition(".")[2]
            words += ["--size", "512" if ending == "png" else "256"] * ("--size" in program.check)
            yield program.name, f"docs/gallery/{owner}.{ending}", words


def animation(frames):
    """An animated WebP with every second of the given pictures, at the highest quality that is within the limit. The programs write
    lossless animations, which are ten times as large."""
    from PIL import Image

    first, *rest = [Image.open(path).convert("RGB") for path in frames[::2]]
    for quality in 98, 95, 90, 80, 70, 60, 50, 40:
        file, settings = io.BytesIO(), {"duration": 50, "loop": 0, "quality": quality, "method": 6}
        first.save(file, "webp", save_all=True, append_images=rest, **settings)
        if file.tell() < LIMIT:
            break
    return file.getvalue()


def draw(name, file, arguments, scratch):
    """The bytes of a picture."""
    made = scratch / (pathlib.Path(file).name if file.endswith(".png") else "frame-%04d.png")
    status, errors = execute([BIN / name, *arguments, "--output", made], scratch / "log")
    if status:
        sys.exit(f"{' '.join([name, *arguments])}: {' '.join(errors)}")
    return made.read_bytes() if file.endswith(".png") else animation(sorted(scratch.glob("frame-*.png")))


def main():
    if not find("PIL"):
        sys.exit("no python3 here has PIL: make setup gallery installs it")
    for name, file, arguments in pictures():
        if not file.startswith(f"docs/gallery/{name}."):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            data = draw(name, file, arguments, pathlib.Path(scratch))
        if len(data) >= LIMIT:
            sys.exit(f"{file}: {len(data)} bytes are too many")
        target = ROOT / file
        same = target.exists() and target.read_bytes() == data
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        print(f"{file}: {len(data)} bytes{', as it was' * same}", flush=True)
    for path in {*(ROOT / "docs/gallery").glob("*/*")} - {ROOT / file for _, file, _ in pictures()}:
        path.unlink()
        print(f"{path.relative_to(ROOT)}: no program draws it, removed")


if __name__ == "__main__":
    main()
