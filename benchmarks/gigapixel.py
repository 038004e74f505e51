"""A gigapixel TIFF and a JPEG panorama, fitted by limner and by pyvips: processor time and memory.

limner decodes in a sandboxed process, which gets the file through a pipe; pyvips decodes in its own
process, on as many threads as it likes.
"""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

from PIL import Image

from benchmarks.comparison import Comparison, compare
from benchmarks.environments import bench_folder, python_if_possible
from benchmarks.fit import LIBRARIES
from benchmarks.metered import Metered

EDGE, TILE, DISTINCT = 32_768, 256, 64
PANORAMA = (30_000, 10_000)
ROUNDS = 2


def main() -> list[Comparison]:
    """Both pictures, in turns."""
    pictures = {
        "a TIFF of 32768x32768, deflated tiles": _tiff(bench_folder() / "gigapixel.tif"),
        "a JPEG of 30000x10000": _panorama(bench_folder() / "panorama.jpg"),
    }
    commands = {"limner": [sys.executable, "-m", "benchmarks.fit_peers", "limner-large"]}
    if python := python_if_possible("fit-peers", *LIBRARIES):
        commands["pyvips"] = [python, "-m", "benchmarks.fit_peers", "pyvips"]
    found: list[Comparison] = []
    for label, path in pictures.items():
        cpu_s: dict[str, list[float]] = {name: [] for name in commands}
        peak_mb: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                # A fresh process for each, since memory is measured.
                metered = Metered(command)
                _, cost = metered.fit(path, mode="jpeg")
                metered.close()
                cpu_s[name].append(cost.cpu_ms / 1000)
                peak_mb[name].append(cost.peak_mb)
        size = f"The file has {path.stat().st_size / 1e6:.0f} MB."
        found.append(compare(f"Fit {label}", cpu_s, unit="CPU seconds", note=size))
        found.append(compare(f"Memory to fit {label}", peak_mb, unit="MB", note=size))
    return found


def _panorama(path: Path) -> Path:
    if not path.is_file():
        noise = Image.effect_noise((1000, 500), 60).resize(PANORAMA, Image.Resampling.BILINEAR)
        shade = Image.linear_gradient("L").resize(PANORAMA)
        Image.merge("RGB", (noise, shade, noise)).save(path, "JPEG", quality=85)
    return path


def _tiff(path: Path) -> Path:
    """A tiled TIFF, written tile by tile; few tiles are distinct, so that it is made fast."""
    if path.is_file():
        return path
    tiles: list[bytes] = []
    for number in range(DISTINCT):
        noise = Image.effect_noise((TILE // 4, TILE // 4), 60)
        noise = noise.resize((TILE, TILE), Image.Resampling.NEAREST)
        flat = Image.new("L", (TILE, TILE), number * 4)
        tiles.append(zlib.compress(Image.merge("RGB", (noise, flat, flat)).tobytes(), 6))
    count = (EDGE // TILE) ** 2
    chosen = [tiles[number * 7 % DISTINCT] for number in range(count)]
    places, at = [], 8
    for tile in chosen:
        places.append(at)
        at += len(tile)
    entries = [
        (256, 4, 1, EDGE),
        (257, 4, 1, EDGE),
        (258, 3, 3, at + 8 * count),
        (259, 3, 1, 8),
        (262, 3, 1, 2),
        (277, 3, 1, 3),
        (284, 3, 1, 1),
        (322, 4, 1, TILE),
        (323, 4, 1, TILE),
        (324, 4, count, at),
        (325, 4, count, at + 4 * count),
    ]
    start = at + 8 * count + 8
    with path.open("wb") as file:
        file.write(b"II" + struct.pack("<HI", 42, start))
        file.writelines(chosen)
        file.write(struct.pack(f"<{2 * count}I", *places, *map(len, chosen)))
        file.write(struct.pack("<4H", 8, 8, 8, 0) + struct.pack("<H", len(entries)))
        file.writelines(struct.pack("<HHII", *entry) for entry in entries)
        file.write(bytes(4))
    return path
