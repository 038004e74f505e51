"""Check that everything limner needs works here, and say what to do where it does not."""

from __future__ import annotations

import platform
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec

from limner import __version__
from limner.client import Limner
from limner.doors.cli.terminal import print_json, wait_for
from limner.errors import LimnerError
from limner.illustrator import assets

EXAMPLE = """\
examples:
  limner doctor
  limner doctor --json
"""
LITTLE_DISK_BYTES = 200 * 1024 * 1024
TEST_CARD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found."""

    name: str
    ok: bool
    detail: str


def configure(parser: ArgumentParser) -> None:
    """The command takes no arguments of its own."""


def run(args: Namespace) -> int:
    """Run every check; the exit status is 1 when one failed."""
    findings = wait_for(_examine)
    healthy = all(finding.ok for finding in findings)
    if args.json:
        print_json({"ok": healthy, "checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name:10}  {finding.detail}")
    return 0 if healthy else 1


async def _examine() -> list[Finding]:
    version = f"limner {__version__}, Python {platform.python_version()}, {platform.platform()}"
    findings = [Finding(name="version", ok=sys.version_info >= (3, 11), detail=version)]
    async with Limner() as lim:
        checks: dict[str, Callable[[Limner], Awaitable[str]]] = {
            "home": _home,
            "database": _database,
            "imaging": _imaging,
            "assets": _assets,
            "providers": _providers,
            "extras": _extras,
        }
        for name, check in checks.items():
            try:
                findings.append(Finding(name=name, ok=True, detail=await check(lim)))
            except LimnerError as error:
                advice = f" {error.hint}" if error.hint else ""
                findings.append(Finding(name=name, ok=False, detail=error.message + advice))
    return findings


async def _home(lim: Limner) -> str:
    folder = lim.home.folder
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < LITTLE_DISK_BYTES:
        raise LimnerError(
            f"{folder}: only {free // 1024**2} MiB of disk are free.",
            hint="Free some, or set LIMNER_HOME to another disk.",
        )
    return f"{folder}, {free // 1024**3} GiB free"


async def _database(lim: Limner) -> str:
    jobs = await lim.money.unfinished_jobs()
    waiting = f", {len(jobs)} open jobs (limner jobs list)" if jobs else ""
    return f"{lim.home.database}{waiting}"


async def _imaging(lim: Limner) -> str:
    png = await lim.imaging.render_svg(TEST_CARD, width=8, height=8, assets={})
    facts = await lim.imaging.verify(png)
    return f"the isolated worker rendered and decoded {facts.mime} {facts.width}x{facts.height}"


async def _assets(_: Limner) -> str:
    return f"{len(assets.names())} pictures for the illustrator"


async def _providers(lim: Limner) -> str:
    today = lim.clock().date()
    usable = [
        name
        for name, spec in lim.specs.items()
        if spec.key_env is None or lim.keys.get(spec.key_env) is not None
        if any(not model.is_retired(today) for model in spec.models)
    ]
    missing = sorted(
        {spec.key_env for name, spec in lim.specs.items() if spec.key_env and name not in usable}
        - {spec.key_env for name, spec in lim.specs.items() if name in usable}
    )
    advice = f"; set {' or '.join(missing)} for more" if missing else ""
    return f"usable: {', '.join(usable) or 'none'}{advice}"


async def _extras(_: Limner) -> str:
    fast = (
        "installed" if find_spec("cykooz_resizer") else "not installed (pip install limner[fast])"
    )
    return f"fast resizing {fast}"
