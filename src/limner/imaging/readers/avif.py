"""AVIF bytes -> an opened picture, with Pillow."""

from __future__ import annotations

from functools import partial

from PIL import AvifImagePlugin

from limner.imaging.readers import rasters

# A worker may begin no thread once it is locked down.
AvifImagePlugin.DEFAULT_MAX_THREADS = 1

avif = partial(rasters.read, decoder="AVIF")
