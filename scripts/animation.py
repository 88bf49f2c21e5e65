#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""animation.py OUT.webp BYTES FRAME…: writes an animated WebP with every second of the given pictures, at the highest
quality that needs fewer than BYTES bytes. The programs write lossless animations, which are ten times as large."""
import io
import pathlib
import sys

from PIL import Image

out, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2])
frames = [Image.open(path).convert("RGB") for path in sys.argv[3::2]]
for quality in 98, 95, 90, 80, 70, 60, 50, 40:
    animation = io.BytesIO()
    frames[0].save(
        animation,
        "webp",
        save_all=True,
        append_images=frames[1:],
        duration=50,
        loop=0,
        quality=quality,
        method=6,
    )
    if animation.tell() < limit:
        break
out.write_bytes(animation.getvalue())
