#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""animation.py OUT.webp FRAME…: makes an animated WebP of every second of the pictures named. With loss: what
the programs write has none, and is ten times as large."""
import sys

from PIL import Image

frames = [Image.open(path).convert("RGB") for path in sys.argv[2::2]]
frames[0].save(sys.argv[1], save_all=True, append_images=frames[1:], duration=50, loop=0, quality=70, method=6)
