"""Check that everything limner needs works here, and say what to do if something does not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec

from limner import __version__
from limner.client import Limner
from limner.errors import LimnerError, NoProvider, SettingsError, StorageError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import wait_for
from limner.illustrator import assets
from limner.providers.specs import load_provider_plugins
from limner.tools.built_in import declarations
from limner.tools.function_tools import load_plugin_tools

EXAMPLE = """\
examples:
  limner doctor
  limner doctor --json
"""
# The package that shows that an extra is installed.
EXTRAS = {
    "fast": "cykooz_resizer",
    "eyes": "rapidocr",
    "heic": "pillow_heif",
    "pdf": "pypdfium2",
    "mcp": "mcp",
    "c2pa": "c2pa",
    "telemetry": "opentelemetry",
}
LITTLE_DISK_BYTES = 200 * 1024 * 1024
TEST_CARD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """What one check found."""

    name: str
    ok: bool
    detail: str


def configure(parser: ArgumentParser) -> None:
    """The command takes no arguments of its own."""


def run(_: Namespace) -> CommandResult:
    """Run every check; the exit status is 1 when one failed."""
    findings = wait_for(_examine)
    healthy = all(finding.ok for finding in findings)
    return CommandResult(
        value={"ok": healthy, "checks": [asdict(finding) for finding in findings]},
        text="\n".join(
            f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name:10}  {finding.detail}"
            for finding in findings
        ),
        status=0 if healthy else LimnerError.exit_status,
    )


async def _examine() -> list[HealthCheck]:
    version = f"limner {__version__}, Python {platform.python_version()}, {platform.platform()}"
    findings = [HealthCheck(name="version", ok=sys.version_info >= (3, 11), detail=version)]
    try:
        lim = Limner()
    except SettingsError as error:
        return [*findings, _failed("settings", error)]
    checks: dict[str, Callable[[Limner], Awaitable[str]]] = {
        "settings": _settings,
        "home": _home,
        "database": _database,
        "imaging": _imaging,
        "assets": _assets,
        "providers": _providers,
        "vision": _vision,
        "plug-ins": _plugins,
        "extras": _extras,
    }
    async with lim:
        for name, check in checks.items():
            try:
                findings.append(HealthCheck(name=name, ok=True, detail=await check(lim)))
            except LimnerError as error:
                findings.append(_failed(name, error))
    return findings


def _failed(name: str, error: LimnerError) -> HealthCheck:
    advice = f" {error.hint}" if error.hint else ""
    return HealthCheck(name=name, ok=False, detail=error.message + advice)


async def _settings(lim: Limner) -> str:
    files = [str(path) for path in (lim.home.config, lim.cwd / "limner.toml") if path.exists()]
    return ", ".join(files) or "no file, so defaults and variables"


async def _home(lim: Limner) -> str:
    folder = lim.home.folder
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        raise StorageError(
            f"{existing} is not a folder that may be written.",
            hint="Set LIMNER_HOME to one.",
        )
    free = shutil.disk_usage(existing).free
    if free < LITTLE_DISK_BYTES:
        raise StorageError(
            f"{folder}: only {free // 1024**2} MiB of disk are free.",
            hint="Free some, or set LIMNER_HOME to another disk.",
        )
    return f"{folder}, {free // 1024**3} GiB free"


async def _database(lim: Limner) -> str:
    jobs = await lim.money.unfinished_jobs()
    await _check_sums(lim)
    return f"{lim.home.database}, open jobs: {len(jobs)}" + (" (limner jobs list)" if jobs else "")


async def _check_sums(lim: Limner) -> None:
    wrong = await lim.money.wrong_counters()
    if wrong:
        raise StorageError(
            f"{len(wrong)} sums differ from the rows of the ledger: {', '.join(wrong[:3])}.",
            hint="Budgets go by these sums. Restore a backup, or report this as a bug.",
        )


async def _imaging(lim: Limner) -> str:
    png = await lim.imaging.render_svg(TEST_CARD, width=8, height=8, assets={})
    facts = await lim.imaging.verify(png)
    return f"the isolated worker rendered and decoded {facts.mime} {facts.width}x{facts.height}"


async def _assets(_: Limner) -> str:
    return f"{len(assets.names())} pictures for the illustrator"


async def _providers(lim: Limner) -> str:
    today = lim.clock().date()
    current = [
        spec
        for spec in lim.specs.values()
        if not spec.named_only and any(not model.is_retired(today) for model in spec.models)
    ]
    usable = [spec.name for spec in current if spec.key(lim.keys.get) is not None]
    keys = [spec.key_env for spec in current if spec.name not in usable and spec.key_env]
    missing = " or ".join(dict.fromkeys(keys))
    if not usable:
        raise NoProvider("Nothing here can draw.", hint=f"Set {missing}.")
    return f"usable: {', '.join(usable)}" + (f"; set {missing} for more" if missing else "")


async def _vision(lim: Limner) -> str:
    found = lim.models.resolve()
    if found is None:
        raise NoProvider("Nothing here can look at pictures.", hint="Set OPENAI_API_KEY.")
    unknown = "".join(f"; {name.name!r} is not a model" for name in found.unknown)
    return f"{found.model.name} looks at pictures{unknown}"


async def _plugins(_: Limner) -> str:
    providers, tools = load_provider_plugins(), load_plugin_tools(taken=declarations())
    problems = [
        f"the {kind} {one.name!r} of {one.package} ({one.target}) cannot be loaded: {one.reason}"
        for kind, plugins in (("provider", providers), ("tool", tools))
        for one in plugins.broken
    ]
    if problems:
        raise LimnerError(
            f"{'; '.join(problems)}.", hint="Mend the package, or uninstall it with pip."
        )
    names = [spec.name for spec in providers.usable] + [tool.name for tool in tools.usable]
    return ", ".join(names) or "none installed"


async def _extras(_: Limner) -> str:
    missing = [extra for extra, module in EXTRAS.items() if find_spec(module) is None]
    if not missing:
        return "all installed"
    return f"not installed: {', '.join(missing)} (pip install 'limner[{','.join(missing)}]')"
