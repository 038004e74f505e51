"""Sources are compiled in a worker: its errors arrive whole, and its limits hold."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from limner.errors import ImageTooLarge, InputInvalid
from limner.imaging.limits import WorkerLimits
from limner.imaging.pool import Imaging
from limner.imaging.process import RENDERING_WORKER
from limner.rendering.sources import CompiledSource, SourceFormat, compile_source

CHART = '{"type": "bar", "labels": ["Q1"], "values": [12]}'
LARGE_GRAPH = "digraph {" + ";".join(f"a{i % 290} -> a{i * 7919 % 290}" for i in range(1100)) + "}"


async def compiled(
    source: str, imaging: Imaging, kind: SourceFormat | None = None
) -> CompiledSource:
    return await compile_source(source, kind=kind, size=None, imaging=imaging)


async def test_an_error_of_a_compiler_arrives_with_its_hint_and_field() -> None:
    async with Imaging(workers=1, program=RENDERING_WORKER) as imaging:
        with pytest.raises(InputInvalid) as caught:
            await compiled('{"type": "barz"}', imaging)
        assert caught.value.message == "Invalid value 'barz' - at `$.type`"
        assert (caught.value.hint or "").startswith("Did you mean bar? The types are text, ")
        assert (caught.value.field, caught.value.untrusted) == ("source", False)
        with pytest.raises(InputInvalid, match="line 2"):
            await compiled("flowchart LR\n  a -->", imaging)
        nested = '{"type": "row", "children": [' * 2000 + "]}" * 2000
        with pytest.raises(InputInvalid, match=r"deep"):
            await compiled(nested, imaging)
        drawn = await compiled(CHART, imaging)
        assert (drawn.format, drawn.width, drawn.height, drawn.notes) == ("limner", 1024, 768, ())


async def test_a_source_that_takes_too_long_is_stopped_with_a_hint() -> None:
    limits = WorkerLimits(timeout_s=0.05)
    async with Imaging(workers=1, limits=limits, program=RENDERING_WORKER) as imaging:
        with pytest.raises(ImageTooLarge) as caught:
            await compiled(LARGE_GRAPH, imaging)
    assert caught.value.message == "the document took more than 0.05 s"
    assert caught.value.hint == "Make the document smaller: fewer elements, rows, nodes or words."


async def test_a_cancelled_compilation_ends_its_worker() -> None:
    async with Imaging(workers=1, program=RENDERING_WORKER) as imaging:
        await imaging.ready()
        call = asyncio.create_task(compiled(LARGE_GRAPH, imaging))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await compiled(CHART, imaging)).format == "limner"


def test_a_prompt_that_names_a_genre_is_laid_out_in_the_worker(tmp_path: Path) -> None:
    # Where the layout runs, the module is loaded.
    code = (
        "import asyncio, sys, limner\n"
        "async def main():\n"
        "    async with limner.Limner() as lim:\n"
        "        drawn = await lim.generate('a bar chart: tea 3, coffee 5',\n"
        "            provider='illustrator', output_path='a.png')\n"
        "        print(drawn.extras['genre'], 'limner.rendering.layout' in sys.modules)\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "LIMNER_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"bar False\n"
