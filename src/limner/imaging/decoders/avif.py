"""AVIF bytes -> an opened picture, with Pillow.

This is not a part of `raster`, so that only a worker that accepts AVIF loads its library.
"""

from __future__ import annotations

from functools import partial

from PIL import AvifImagePlugin

from limner.imaging.decoders.raster import open_with_pillow

# A sandboxed worker cannot start a thread.
AvifImagePlugin.DEFAULT_MAX_THREADS = 1

avif = partial(open_with_pillow, plugin="AVIF")
