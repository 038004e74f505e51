"""A program's parts -> what works here, and what to do about the rest."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec

import msgspec

from limner import __version__
from limner.client import Limner
from limner.errors import LimnerError, NoProvider, StorageError, UserError
from limner.illustrator import assets
from limner.imaging.limits import Protections
from limner.models.registry import EYES
from limner.pictures.repair import SAMPLE, Scrub, Tell
from limner.providers.base import ProviderSpec
from limner.providers.specs import load_provider_plugins
from limner.settings import load_with_sources
from limner.settings.trust import PROJECT_FILE
from limner.storage.daily_copy import daily_copies
from limner.storage.database import damaged
from limner.tools.built_in import declarations
from limner.tools.function_tools import load_plugin_tools

# The package that shows that an extra is installed.
EXTRAS = {
    "fast": "cykooz_resizer",
    "eyes": "rapidocr",
    "charts": "vl_convert",
    "typst": "typst",
    "cjk": "noto_cjk_sans_otc",
    "heic": "pillow_heif",
    "pdf": "pypdfium2",
    "team": "obstore",
    "mcp": "uvicorn",
    "c2pa": "c2pa",
    "telemetry": "opentelemetry",
}
READ_TEXT = "pip install 'limner[eyes]'"
LISTED = 20
PR_GET_DUMPABLE = 3
MAX_CLOCK_DIFFERENCE_S = 60
LITTLE_DISK_BYTES = 200 * 1024 * 1024
TEST_CARD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
)


class HealthCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What one check found; ``ok`` is None if nothing failed and something is missing."""

    name: str
    ok: bool | None
    detail: str


class ProtectionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a protection holds on this system. It is no fault of the system if one does not."""

    name: str
    holds: bool
    detail: str


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """Who draws, looks and talks here now, and what each check found.

    ``sandbox`` is None if no worker could be asked, ``scrub`` if only a sample was hashed.
    """

    usable: str
    checks: list[HealthCheck]
    sandbox: list[ProtectionCheck] | None = None
    scrub: Scrub | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.ok is not False for check in self.checks)


async def examine(
    lim: Limner, *, scrub: bool = False, tell: Tell = lambda _what, _done, _of: None
) -> HealthReport:
    """Run every check. With ``scrub`` every stored picture is hashed, else a sample."""
    usable = _usable(lim)
    checks = [check_version()]
    for name, check in CHECKS.items():
        checks.append(await _checked(name, check(lim)))
    found = {check.name: check.ok for check in checks}
    sandbox = _sandbox(await lim.imaging.protections()) if found["imaging"] else None
    scrubbed: Scrub | None = None
    is_team = lim.store.is_shared
    # Without the database the pictures are not known, and its own check says why.
    if found["database"]:
        try:
            scrubbed = await lim.repairer.scrub(sample=None if scrub else SAMPLE, tell=tell)
            checks.append(
                await _checked("pictures", _pictures(scrubbed, is_all=scrub, is_team=is_team))
            )
        except LimnerError as error:
            checks.append(failed_check("pictures", error))
    return HealthReport(
        usable=usable, checks=checks, sandbox=sandbox, scrub=scrubbed if scrub else None
    )


def check_version() -> HealthCheck:
    """Whether this Python is new enough, and the versions of everything."""
    version = f"limner {__version__}, Python {platform.python_version()}, {platform.platform()}"
    return HealthCheck(name="version", ok=sys.version_info >= (3, 11), detail=version)


def failed_check(name: str, error: LimnerError) -> HealthCheck:
    """A check that failed, with the way to mend it."""
    advice = f" {error.hint}" if error.hint else ""
    return HealthCheck(name=name, ok=False, detail=error.message + advice)


def _usable(lim: Limner) -> str:
    """Who draws, looks and talks here now, in one line; empty if that cannot be found out."""
    with suppress(LimnerError):
        draws = [spec.name for spec in _services(lim) if spec.key(lim.keys.get) is not None]
        looks = lim.inspector.find_model().model.name
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
        return failed_check(name, error)


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


async def _blobs(lim: Limner) -> str:
    blobs = lim.components.blobs
    await asyncio.to_thread(blobs.check)
    return f"pictures are stored in {blobs.place}"


async def _database(lim: Limner) -> str:
    jobs = await lim.money.unfinished_jobs()
    rows = await lim.store.read(lambda tx: tx.all("home_check"))
    found = [row[0] for row in rows if row[0] != "ok"]
    if found:
        raise damaged(lim.home.database, f"is damaged: {found[0].splitlines()[-1]}")
    await _check_sums(lim)
    said = f"{lim.store.place}, open jobs: {len(jobs)}" + (" (limner jobs list)" if jobs else "")
    return f"{said}, {await _server(lim)}" if lim.store.is_shared else said


async def _server(lim: Limner) -> str:
    """What to know about a PostgreSQL server, in one line."""
    from limner.storage.postgres_engine import read_server_facts  # noqa: PLC0415 - only then

    facts = await lim.store.read(read_server_facts)
    newer = " by a newer limner" if facts.tables > facts.newest else ""
    way = "ahead of" if facts.ahead_s > 0 else "behind"
    clock = f"the clock of this host is {abs(facts.ahead_s):.1f} s {way} the server's"
    said = (
        f"PostgreSQL {facts.version}, tables {facts.tables}{newer}, "
        f"answers in {facts.answer_ms:.1f} ms, {clock}"
    )
    if abs(facts.ahead_s) > MAX_CLOCK_DIFFERENCE_S:
        raise StorageError(
            f"{lim.store.place}: {said}.",
            hint="Set the clocks of both by NTP: dates of pictures, days of caps and the garbage "
            "collector go by them.",
        )
    return said


async def _backups(lim: Limner) -> str:
    if lim.store.is_shared:
        raise _Missing("none by limner: a PostgreSQL database is copied with pg_dump")
    copies = daily_copies(lim.home)
    if not copies:
        return "no daily copy yet; `limner backup FILE` writes the whole home"
    return f"{len(copies)} daily copies of the database, the newest is {copies[0].name}"


async def _pictures(found: Scrub, *, is_all: bool, is_team: bool) -> str:
    bad = [*found.damaged, *found.missing]
    if bad:
        listed = ", ".join(bad[:LISTED]) + (" …" if len(bad) > LISTED else "")
        raise StorageError(
            f"{len(found.damaged)} damaged and {len(found.missing)} missing of "
            f"{found.pictures:,} pictures: {listed}.",
            hint="Giving or drawing the same picture again stores it again."
            if is_team
            else "`limner doctor --repair` restores those that the generated folder still has.",
        )
    way = "all" if is_all else "a sample"
    return f"{found.pictures:,} stored; {way} checked, {found.checked:,} files are as they came"


async def _check_sums(lim: Limner) -> None:
    wrong = await lim.money.wrong_counters()
    if wrong:
        raise StorageError(
            f"{len(wrong)} sums differ from the rows of the ledger: {', '.join(wrong[:3])}.",
            hint="Budgets go by these sums. "
            + (
                "Restore a copy of pg_dump."
                if lim.store.is_shared
                else "`limner doctor --repair` adds them up anew."
            ),
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
    name = lim.inspector.find_model().model.name
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
    "blobs": _blobs,
    "imaging": _imaging,
    "assets": _assets,
    "providers": _providers,
    "vision": _vision,
    "plug-ins": _plugins,
    "extras": _extras,
}
