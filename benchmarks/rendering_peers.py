"""Orders on stdin -> files: the programs that draw the same pictures, each in its own process.

An order is one JSON line with the picture, a number and the path of the file. The number is part
of the picture, so that no program draws the same one twice. The libraries of one program are not
loaded for another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 1024, 768
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
TITLES = {"bar": "Sales", "line": "Visitors"}
# Five rows of four steps; each leads to one or two of the next row.
STEPS = [f"Step {number}" for number in range(1, 21)]
EDGES = [
    (start, start - start % 4 + 4 + (start + turn) % 4)
    for start in range(16)
    for turn in range(1 + start % 2)
]
Draw = Callable[[str, int, Path], Awaitable[None]]


def values(number: int) -> list[int]:
    return [(month * 37 + number * 11) % 90 + 10 for month in range(12)]


def limner_json(picture: str, number: int) -> str:
    title = f"{TITLES[picture]} {number}"
    chart = {"type": picture, "title": title, "labels": MONTHS, "values": values(number)}
    return json.dumps(chart)


def vega_lite(picture: str, number: int) -> str:
    rows = zip(MONTHS, values(number), strict=True)
    return json.dumps(
        {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "title": f"{TITLES[picture]} {number}",
            "data": {"values": [{"month": month, "value": value} for month, value in rows]},
            "mark": picture,
            "encoding": {
                "x": {"field": "month", "type": "nominal", "sort": None},
                "y": {"field": "value", "type": "quantitative"},
            },
        }
    )


def dot(_: str, number: int) -> str:
    nodes = [f'n{place} [label="{step} ({number})"]' for place, step in enumerate(STEPS)]
    edges = [f"n{start} -> n{end}" for start, end in EDGES]
    inches = f"{WIDTH / 96:.2f},{HEIGHT / 96:.2f}!"
    return f'digraph {{ graph [size="{inches}" dpi=96 ratio=fill]; {"; ".join((*nodes, *edges))} }}'


def mermaid(_: str, number: int) -> str:
    nodes = [f'n{place}["{step} ({number})"]' for place, step in enumerate(STEPS)]
    edges = [f"n{start} --> n{end}" for start, end in EDGES]
    return "\n  ".join(("flowchart TD", *nodes, *edges))


@contextlib.asynccontextmanager
async def ours(write: Callable[[str, int], str]) -> AsyncGenerator[Draw]:
    from limner.client import Limner

    async with Limner() as lim:

        async def draw(picture: str, number: int, path: Path) -> None:
            source = write(picture, number)
            await lim.render(source, size=f"{WIDTH}x{HEIGHT}", output_path=str(path))

        yield draw


@contextlib.asynccontextmanager
async def matplotlib(_: object) -> AsyncGenerator[Draw]:
    import matplotlib as library

    library.use("Agg")
    from matplotlib import pyplot

    async def draw(picture: str, number: int, path: Path) -> None:
        figure, axes = pyplot.subplots(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100)
        axes.set_title(f"{TITLES[picture]} {number}")
        (axes.bar if picture == "bar" else axes.plot)(MONTHS, values(number))
        figure.savefig(path)
        pyplot.close(figure)

    yield draw


@contextlib.asynccontextmanager
async def vl_convert(write: Callable[[str, int], str]) -> AsyncGenerator[Draw]:
    import vl_convert as library

    async def draw(picture: str, number: int, path: Path) -> None:
        spec = {**json.loads(write(picture, number)), "width": WIDTH, "height": HEIGHT}
        spec["autosize"] = {"type": "fit", "contains": "padding"}
        path.write_bytes(library.vegalite_to_png(spec))

    yield draw


@contextlib.asynccontextmanager
async def graphviz(write: Callable[[str, int], str]) -> AsyncGenerator[Draw]:
    import pygraphviz

    async def draw(picture: str, number: int, path: Path) -> None:
        pygraphviz.AGraph(write(picture, number)).draw(str(path), format="png", prog="dot")

    yield draw


@contextlib.asynccontextmanager
async def dot_command(write: Callable[[str, int], str]) -> AsyncGenerator[Draw]:
    async def draw(picture: str, number: int, path: Path) -> None:
        command = ["dot", "-Tpng", "-o", str(path)]
        subprocess.run(command, input=write(picture, number), text=True, check=True)  # noqa: ASYNC221

    yield draw


Peer = tuple[Callable[[Any], contextlib.AbstractAsyncContextManager[Draw]], Any]
CHARTS: dict[str, Peer] = {
    "limner, JSON": (ours, limner_json),
    "limner, Vega-Lite": (ours, vega_lite),
    "vl-convert": (vl_convert, vega_lite),
    "matplotlib": (matplotlib, None),
}
DIAGRAMS: dict[str, Peer] = {
    "limner, DOT": (ours, dot),
    "limner, Mermaid": (ours, mermaid),
    "Graphviz, in process": (graphviz, dot),
    "Graphviz, dot": (dot_command, dot),
}
PICTURES = {"bar": CHARTS, "line": CHARTS, "diagram": DIAGRAMS}


async def serve(name: str) -> None:
    """Answer orders until stdin closes."""
    start, write = (CHARTS | DIAGRAMS)[name]
    async with start(write) as draw:
        for line in sys.stdin:  # blocks the loop, which has nothing else to do between orders
            order = json.loads(line)
            await draw(order["picture"], order["number"], Path(order["path"]))
            print("drawn", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
