#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""animation.py OUT.webp BYTES FRAME…: makes an animated WebP of every second of the pictures named, as good as
it can be in fewer bytes. What the programs write has no loss, and is ten times as large."""
import io
import pathlib
import sys

from PIL import Image

out, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2])
frames = [Image.open(path).convert("RGB") for path in sys.argv[3::2]]
for quality in 98, 95, 90, 80, 70, 60, 50, 40:
    animation = io.BytesIO()
    frames[0].save(animation, "webp", save_all=True, append_images=frames[1:], duration=50, loop=0, quality=quality, method=6)
    if animation.tell() < limit:
        break
out.write_bytes(animation.getvalue())
