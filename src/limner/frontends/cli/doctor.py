"""Check that everything limner needs works here, and say what to do if something does not.

The exit status is 0 if every check passed and 1 if one failed. --scrub hashes every stored picture,
not just a sample. --repair puts a damaged database aside, starts from the newest good daily copy,
adds what can still be read, and brings back each picture whose bytes are in the home. Then it
checks everything. No other limner process may be running. The last lines say which protections of
the sandbox hold on this system, and do not change the exit status.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from limner import __version__
from limner.client import Limner
from limner.errors import LimnerError, NoProvider, SettingsError, StorageError, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.illustrator import assets
from limner.imaging.limits import Protections
from limner.models.registry import EYES
from limner.pictures.repair import SAMPLE, HomeRepair, Tell
from limner.pictures.request import Progress
from limner.providers.base import ProviderSpec
from limner.providers.specs import load_provider_plugins
from limner.settings import load_with_sources
from limner.settings.trust import PROJECT_FILE
from limner.storage.daily_copy import daily_copies
from limner.storage.database import damaged
from limner.tools.built_in import declarations
from limner.tools.function_tools import load_plugin_tools

EXAMPLE = """\
examples:
  limner doctor
  limner doctor --json
  limner doctor --scrub               hash every stored picture
  limner doctor --repair              after a crash of the disk; deletes nothing
"""
# The package that shows that an extra is installed.
EXTRAS = {
    "fast": "cykooz_resizer",
    "eyes": "rapidocr",
    "charts": "vl_convert",
    "typst": "typst",
    "cjk": "noto_cjk_sans_otc",
    "heic": "pillow_heif",
    "pdf": "pypdfium2",
    "team": "psycopg",
    "mcp": "uvicorn",
    "c2pa": "c2pa",
    "telemetry": "opentelemetry",
}
READ_TEXT = "pip install 'limner[eyes]'"
LISTED = 20
_WORDS = {True: "ok  ", False: "FAIL", None: "none"}
PR_GET_DUMPABLE = 3
LITTLE_DISK_BYTES = 200 * 1024 * 1024
TEST_CARD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """What one check found; ``ok`` is None if nothing failed and something is missing."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionCheck:
    """Whether a protection holds on this system. It is no fault of the system if one does not."""

    name: str
    holds: bool
    detail: str


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--scrub", action="store_true", help="hash every stored picture")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="repair the database and bring back pictures; hashes every stored picture",
    )


def run(args: Namespace) -> CommandResult:
    """Run every check; the exit status is 1 when one failed."""
    return wait_for(lambda: _examine(args))


async def _examine(args: Namespace) -> CommandResult:
    version = f"limner {__version__}, Python {platform.python_version()}, {platform.platform()}"
    findings = [HealthCheck(name="version", ok=sys.version_info >= (3, 11), detail=version)]
    waiting = Waiting()
    extras: dict[str, Any] = {}

    def tell(what: str, done: int, of: int) -> None:
        message = f"{what} {done:,} of {of:,}"
        waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / of))

    try:
        lim = Limner()
    except SettingsError as error:
        return _result([*findings, _failed("settings", error)], extras)
    async with lim, waiting.shown():
        usable = _usable(lim)
        if args.repair:
            extras["repair"] = await lim.repairer.repair(tell=tell)
        for name, check in CHECKS.items():
            findings.append(await _checked(name, check(lim)))
        if all(one.ok for one in findings if one.name == "imaging"):
            extras["sandbox"] = _sandbox(await lim.imaging.protections())
        # Without the database the pictures are not known, and its own check says why.
        if all(one.ok for one in findings if one.name == "database"):
            findings.append(await _checked("pictures", _pictures(lim, args, tell, extras)))
    return _result(findings, extras, usable=usable)


def _usable(lim: Limner) -> str:
    """Who draws, looks and talks here now, in one line; empty if that cannot be found out."""
    with suppress(LimnerError):
        draws = [spec.name for spec in _services(lim) if spec.key(lim.keys.get) is not None]
        looks = lim.looking.find_model().model.name
        talks = lim.models.resolve_conversation_model().model.name
        return f"works now: {draws[0]} draws, {looks} looks, {talks} talks" if draws else ""
    return ""


def _services(lim: Limner) -> list[ProviderSpec]:
    """The providers that `auto` may choose if they have their key."""
    today = lim.clock().date()
    return [
        spec
        for spec in lim.specs.values()
        if not spec.named_only and any(not model.is_retired(today) for model in spec.models)
    ]


class _Missing(Exception):
    """Something optional is not there."""


async def _checked(name: str, check: Awaitable[str]) -> HealthCheck:
    try:
        return HealthCheck(name=name, ok=True, detail=await check)
    except _Missing as missing:
        return HealthCheck(name=name, ok=None, detail=str(missing))
    except LimnerError as error:
        return _failed(name, error)


def _result(
    findings: list[HealthCheck], extras: Mapping[str, Any], *, usable: str = ""
) -> CommandResult:
    healthy = all(finding.ok is not False for finding in findings)
    lines = [usable] if usable else []
    lines += [f"{_WORDS[finding.ok]}  {finding.name:10}  {finding.detail}" for finding in findings]
    if (repair := extras.get("repair")) is not None:
        lines = [*_repair_lines(repair), *lines]
    lines += [
        f"{'ok  ' if one.holds else 'none'}  {one.name:10}  {one.detail}"
        for one in extras.get("sandbox", ())
    ]
    return CommandResult(
        value={"ok": healthy, "checks": [asdict(finding) for finding in findings], **extras},
        text="\n".join(lines),
        status=0 if healthy else LimnerError.exit_status,
    )


def _repair_lines(repair: HomeRepair) -> Iterator[str]:
    database = repair.database
    if database.put_aside is not None:
        yield f"done  database    the damaged file is in {database.put_aside}"
    start = database.started_from or "a new database"
    yield f"done  database    started from {start}, added {database.salvaged_rows:,} rows"
    ledger = f"{database.ledger_rows:,} calls in the ledger"
    if database.ledger_rows_missing:
        ledger += f", {database.ledger_rows_missing:,} between them are lost"
    yield f"done  ledger      {ledger}: compare `limner spend` with the bills of your providers"
    yield (
        f"done  pictures    {repair.pictures:,} are whole: {repair.recorded:,} recorded anew, "
        f"{repair.restored:,} restored from generated files"
    )
    lost = {"damaged": repair.damaged, "missing": repair.missing, "no picture": repair.unreadable}
    for what, handles in lost.items():
        yield from (f"lost  {what:10}  {handle}" for handle in handles[:LISTED])


def _failed(name: str, error: LimnerError) -> HealthCheck:
    advice = f" {error.hint}" if error.hint else ""
    return HealthCheck(name=name, ok=False, detail=error.message + advice)


async def _settings(lim: Limner) -> str:
    files = [str(path) for path in (lim.home.config, lim.cwd / PROJECT_FILE) if path.exists()]
    shown = ", ".join(files) or "no file, so defaults and variables"
    ignored = load_with_sources(env=os.environ, cwd=lim.cwd).ignored
    return f"{shown}; not trusted, so {', '.join(ignored)} are ignored" if ignored else shown


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
    rows = await lim.store.read(lambda tx: tx.all("home_check"))
    found = [row[0] for row in rows if row[0] != "ok"]
    if found:
        raise damaged(lim.home.database, f"is damaged: {found[0].splitlines()[-1]}")
    await _check_sums(lim)
    return f"{lim.store.place}, open jobs: {len(jobs)}" + (" (limner jobs list)" if jobs else "")


async def _backups(lim: Limner) -> str:
    if lim.store.is_shared:
        raise _Missing("none by limner: a PostgreSQL database is copied with pg_dump")
    copies = daily_copies(lim.home)
    if not copies:
        return "no daily copy yet; `limner backup FILE` writes the whole home"
    return f"{len(copies)} daily copies of the database, the newest is {copies[0].name}"


async def _pictures(lim: Limner, args: Namespace, tell: Tell, extras: dict[str, Any]) -> str:
    found = await lim.repairer.scrub(sample=None if args.scrub else SAMPLE, tell=tell)
    if args.scrub:
        extras["scrub"] = found
    bad = [*found.damaged, *found.missing]
    if bad:
        listed = ", ".join(bad[:LISTED]) + (" …" if len(bad) > LISTED else "")
        raise StorageError(
            f"{len(found.damaged)} damaged and {len(found.missing)} missing of "
            f"{found.pictures:,} pictures: {listed}.",
            hint="`limner doctor --repair` restores those that the generated folder still has.",
        )
    way = "all" if args.scrub else "a sample"
    return f"{found.pictures:,} stored; {way} checked, {found.checked:,} files are as they came"


async def _check_sums(lim: Limner) -> None:
    wrong = await lim.money.wrong_counters()
    if wrong:
        raise StorageError(
            f"{len(wrong)} sums differ from the rows of the ledger: {', '.join(wrong[:3])}.",
            hint="Budgets go by these sums. `limner doctor --repair` adds them up anew.",
        )


async def _imaging(lim: Limner) -> str:
    png = await lim.imaging.render_svg(TEST_CARD, width=8, height=8, assets={})
    facts = await lim.imaging.verify(png)
    return f"the isolated worker rendered and decoded {facts.mime} {facts.width}x{facts.height}"


def _sandbox(worker: Protections) -> list[ProtectionCheck]:
    """What the system forbids a worker, one line each."""
    landlock = f"Landlock {worker.landlock_abi}" if worker.landlock_abi else ""
    both = ", ".join(filter(None, ["seccomp" if worker.seccomp else "", landlock]))
    rows = (
        ("reading", bool(landlock), "a worker reads only Python and its libraries", landlock),
        ("writing", bool(both), "a worker writes and deletes no file", both),
        ("network", worker.seccomp, "a worker opens no socket", both),
        ("processes", worker.seccomp, "a worker starts no program and reaches no process", both),
        ("memory", worker.memory_limit, "a worker has a limit on memory", "rlimit"),
        ("host", _is_hidden(), "other programs cannot read limner's memory", "not dumpable"),
    )
    return [
        ProtectionCheck(
            name=name,
            holds=holds,
            detail=f"{what} ({means})" if holds else f"this system cannot enforce: {what}",
        )
        for name, holds, what, means in rows
    ]


def _is_hidden() -> bool:
    return sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0


async def _assets(_: Limner) -> str:
    return f"{len(assets.names())} pictures for the illustrator"


async def _providers(lim: Limner) -> str:
    current = _services(lim)
    usable = [spec.name for spec in current if spec.key(lim.keys.get) is not None]
    keys = [spec.key_env for spec in current if spec.name not in usable and spec.key_env]
    missing = " or ".join(dict.fromkeys(keys))
    if not usable:
        raise NoProvider("Nothing here can draw.", hint=f"Set {missing}.")
    return f"usable: {', '.join(usable)}" + (f"; set {missing} for more" if missing else "")


async def _vision(lim: Limner) -> str:
    unknown = lim.models.unknown_roles()
    if unknown:
        hint = "`limner models --vision` lists the models."
        raise UserError(" ".join(map(str, unknown)), code="NO_MODEL", hint=hint)
    name = lim.looking.find_model().model.name
    no_text = name == EYES and find_spec(EXTRAS["eyes"]) is None
    return f"{name} looks at pictures" + ("; to read text: " + READ_TEXT if no_text else "")


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
    extras = ",".join(missing)
    raise _Missing(f"not installed: {', '.join(missing)} (pip install 'limner[{extras}]')")


CHECKS: dict[str, Callable[[Limner], Awaitable[str]]] = {
    "settings": _settings,
    "home": _home,
    "database": _database,
    "backups": _backups,
    "imaging": _imaging,
    "assets": _assets,
    "providers": _providers,
    "vision": _vision,
    "plug-ins": _plugins,
    "extras": _extras,
}
