"""A hostile source is refused, stopped or drawn without harm, and the next one is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.rendering.hostile_sources import DEFAULT_INSTALL, ENGINES, HostileSource, Verdict
from tests.servers.components import needs

from limner.errors import ImageTooLarge, InputInvalid, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.pool import Imaging
from limner.imaging.process import RENDERING_WORKER, WorkerProcess
from limner.rendering.sources import compile_source

LIMITS = WorkerLimits(cpu_s=2, timeout_s=120)
AT_A_LIMIT = ("took more than", "needs more than")


async def verdict_on(hostile: HostileSource, imaging: Imaging) -> Verdict:
    try:
        drawn = await compile_source(
            hostile.source, kind=hostile.format, size=None, imaging=imaging
        )
        await imaging.render_svg(drawn.svg, width=drawn.width, height=drawn.height, assets={})
    except (InputInvalid, UnsafeSvg):
        return "refused"
    except ImageTooLarge as error:
        return "stopped" if any(words in error.message for words in AT_A_LIMIT) else "refused"
    return "drawn"


async def verdicts_on(sources: Iterable[HostileSource]) -> dict[str, Verdict]:
    async with Imaging(workers=1, limits=LIMITS, program=RENDERING_WORKER) as imaging:
        found: dict[str, Verdict] = {
            str(hostile): await verdict_on(hostile, imaging) for hostile in sources
        }
        harmless = await compile_source(
            '{"type": "bar", "values": {"a": 1}}', kind=None, size=None, imaging=imaging
        )
        assert harmless.format == "limner"
    return found


@pytest.mark.slow
async def test_hostile_sources_of_the_default_install_do_no_harm() -> None:
    expected = {str(hostile): hostile.verdict for hostile in DEFAULT_INSTALL}
    assert await verdicts_on(DEFAULT_INSTALL) == expected
    assert Counter(expected.values()) == {"refused": 18, "drawn": 3}


@pytest.mark.slow
@needs("typst", "vl_convert")
async def test_hostile_sources_of_the_engines_do_no_harm() -> None:
    expected = {str(hostile): hostile.verdict for hostile in ENGINES}
    assert await verdicts_on(ENGINES) == expected
    assert Counter(expected.values()) == {"refused": 14, "stopped": 8, "drawn": 2}


@pytest.mark.slow
@needs("typst", "vl_convert")
@pytest.mark.parametrize("program", ["limner.rendering.typst", "limner.rendering.vega_lite"])
def test_an_engine_runs_in_the_sandbox(program: str) -> None:
    plain, engine = WorkerProcess(LIMITS), WorkerProcess(LIMITS, program)
    try:
        assert engine.protections == plain.protections
    finally:
        plain.close()
        engine.close()
