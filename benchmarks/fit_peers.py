"""Orders on stdin -> answers on stdout: the fits that run in Python, each in a process of its own.

Three orders, one JSON object on a line each: ``load`` reads a picture, ``fit`` fits it, ``save``
writes what came out. Only ``fit`` is measured, from outside, so no peer's files count. Nobody's
libraries are loaded for another, since memory is measured too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

# Two modes of limner, and two of one encoding at quality 75.
Mode = Literal["seed", "fast", "jpeg", "webp"]
# Bytes, MIME type, width, height.
Fitted = tuple[bytes, str, int, int]
Fit = Callable[[bytes, Mode], Awaitable[Fitted]]


@contextlib.asynccontextmanager
async def limner(*, large: bool = False) -> AsyncGenerator[Fit]:
    """Ours: a warm pool as the program itself holds one; its worker counts as ours too.

    ``large``: with the setting for a picture of more than 100 megapixels, and TIFF.
    """
    from limner.imaging.fit import FitRequest
    from limner.imaging.limits import limits_for
    from limner.imaging.pool import Imaging

    requests = {
        "seed": FitRequest(),
        "fast": FitRequest(mode="fast"),
        "jpeg": FitRequest(formats=("image/jpeg",)),
        "webp": FitRequest(formats=("image/webp",)),
    }
    pool = Imaging(limits=limits_for(1_100), accept=("tiff",)) if large else Imaging()
    async with pool as imaging:

        async def ours(data: bytes, mode: Mode) -> Fitted:
            fitted, sent = await imaging.fit(data, requests[mode])
            return sent, fitted.mime, fitted.width, fitted.height

        yield ours


Library = Callable[[bytes, Mode], Fitted]


def pillow() -> Library:
    """The seed's ladder as someone writes it with Pillow alone."""
    from benchmarks.fit_pillow import ladder

    return lambda data, _: ladder(data)


def floor() -> Library:
    """The least the work can be: scaled decode, SIMD resize, one JPEG."""
    from benchmarks.fit_floor import Floor

    least = Floor()
    return lambda data, _: least.fit(data)


def pyvips() -> Library:
    """One encoding by libvips."""
    from benchmarks.fit_libraries import Pyvips

    return Pyvips().fit


def opencv() -> Library:
    """One encoding by OpenCV."""
    from benchmarks.fit_libraries import OpenCV

    return OpenCV().fit


LIBRARIES: dict[str, Callable[[], Library]] = {
    "pillow": pillow,
    "floor": floor,
    "pyvips": pyvips,
    "OpenCV": opencv,
}


@contextlib.asynccontextmanager
async def peer(name: str) -> AsyncGenerator[Fit]:
    """The fit of a peer; a library works in this process."""
    if name in {"limner", "limner-large"}:
        async with limner(large=name == "limner-large") as fit:
            yield fit
        return
    library = LIBRARIES[name]()

    async def fit_here(data: bytes, mode: Mode) -> Fitted:
        return library(data, mode)

    yield fit_here


async def serve(name: str) -> None:
    """Answer orders until stdin closes."""
    data, result = b"", b""
    async with peer(name) as fit:
        for line in sys.stdin:  # blocks the loop, which has nothing else to do between orders
            order: dict[str, Any] = json.loads(line)
            answer: dict[str, str | int] = {}
            try:
                match order["do"]:
                    case "load":
                        data = Path(order["path"]).read_bytes()
                    case "fit":
                        result, mime, width, height = await fit(data, order["mode"])
                        answer = {"mime": mime, "width": width, "height": height}
                    case _:
                        Path(order["path"]).write_bytes(result)
            except Exception as error:  # a failure is a result here
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
