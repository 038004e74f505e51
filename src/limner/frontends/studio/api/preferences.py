"""Requests about this installation -> its keys, caps and trusted folders, and its health.

The value of a key goes in and never comes out. Folders can lose the trust of the user here; only
`limner trust` gives it, because no request can name a path.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limner.dollars import usd_to_nano
from limner.errors import NANO_PER_USD, UserError
from limner.frontends import health
from limner.frontends.health import HealthCheck, ProtectionCheck
from limner.frontends.studio.endpoints import Endpoint, NoArguments, StudioParts
from limner.settings import BudgetSettings, Loaded, load_with_sources, value_of
from limner.settings.trust import TrustedFolders
from limner.storage.os_errors import disk_errors
from limner.storage.settings_file import SettingsFile

CAPS = {f"budget.{name}": name for name in BudgetSettings.__struct_fields__}

KeyName = Annotated[str, Meta(pattern="^[A-Z][A-Z0-9_]{0,79}$", description="As OPENAI_API_KEY.")]
Amount = Annotated[str, Meta(max_length=30, description="In dollars, as 2.50; empty for no cap.")]


class KeyState(msgspec.Struct, frozen=True, kw_only=True):
    """A key by its name. ``source`` is None if it is not set; ``adds`` is what it is for.

    A variable in the environment wins over a stored key.
    """

    name: str
    source: Literal["environment", "file"] | None
    is_stored: bool
    adds: tuple[str, ...]


class KeyList(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that limner knows or has."""

    keys: list[KeyState]


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A key to remove."""

    name: KeyName


class KeyValue(msgspec.Struct, frozen=True, kw_only=True):
    """A key to store."""

    name: KeyName
    value: Annotated[str, Meta(min_length=1, max_length=10_000)]


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no cap. ``source`` says which file or variable set it.

    Only what the file of the user sets can be changed here.
    """

    name: str
    amount_usd: float | None
    source: str
    is_fixed: bool


class CapList(msgspec.Struct, frozen=True, kw_only=True):
    """The caps on a call, a session and a day, and the file they are stored in."""

    caps: list[Cap]
    file: str


class CapValues(msgspec.Struct, frozen=True, kw_only=True):
    """New caps; a cap that is left out stays as it is."""

    call_usd: Amount | None = None
    session_usd: Amount | None = None
    day_usd: Amount | None = None


class TrustedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder whose files the user accepted. It is closed while some are ``changed``."""

    id: str
    folder: str
    files: tuple[str, ...]
    changed: tuple[str, ...]


class TrustList(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that the user trusts."""

    folders: list[TrustedFolder]


class FolderRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A trusted folder by its id."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class StudioHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Who draws, looks and talks here now, and what `limner doctor` finds."""

    ok: bool
    usable: str
    checks: list[HealthCheck]
    sandbox: list[ProtectionCheck]


async def list_keys(studio: StudioParts, _: NoArguments) -> KeyList:
    """The keys, without their values."""
    lim = studio.lim
    adds: defaultdict[str, list[str]] = defaultdict(list)
    for spec in lim.specs.values():
        if spec.key_env:
            adds[spec.key_env].append(spec.name)
    for model in lim.models.known():
        if model.key_env:
            adds[model.key_env].append(model.name.partition("/")[0])
    entries = {entry.name: entry for entry in lim.keys.listing(adds)}
    states = [
        KeyState(
            name=name,
            source=entries[name].source if name in entries else None,
            is_stored=lim.keys.is_stored(name),
            adds=tuple(dict.fromkeys(adds[name])),
        )
        for name in dict.fromkeys([*adds, *entries])
    ]
    return KeyList(keys=sorted(states, key=lambda one: (one.source is None, one.name)))


async def store_key(studio: StudioParts, request: KeyValue) -> KeyList:
    """Store a key in the file that only the user can read."""
    await asyncio.to_thread(studio.lim.keys.set, request.name, request.value)
    return await list_keys(studio, NoArguments())


async def remove_key(studio: StudioParts, request: KeyRequest) -> KeyList:
    """Remove a stored key."""
    if not await asyncio.to_thread(studio.lim.keys.remove, request.name):
        raise UserError(f"no key {request.name!r} is stored")
    return await list_keys(studio, NoArguments())


async def list_caps(studio: StudioParts, _: NoArguments) -> CapList:
    """The caps, and where each is set."""
    return _caps(studio, _load(studio))


async def change_caps(studio: StudioParts, request: CapValues) -> CapList:
    """Store caps in the settings of the user. They hold here at once."""
    changes: dict[str, Any] = {}
    for key, name in CAPS.items():
        amount: str | None = getattr(request, name)
        if amount is not None:
            text = amount.strip()
            # Checked as everywhere; the file has a number.
            changes[key] = usd_to_nano(text, field=name) / NANO_PER_USD if text else None
    await asyncio.to_thread(SettingsFile(studio.lim.home.config).change, changes)
    loaded = _load(studio)
    studio.lim.adopt_budget(loaded.settings.budget)
    return _caps(studio, loaded)


async def list_trust(studio: StudioParts, _: NoArguments) -> TrustList:
    """The folders that the user trusts."""
    trusted = TrustedFolders(studio.lim.home.folder)
    return TrustList(
        folders=[
            TrustedFolder(
                id=trusted.path(Path(one.folder)).stem,
                folder=one.folder,
                files=tuple(one.files),
                changed=tuple(trusted.changed(one)),
            )
            for one in trusted.all()
        ]
    )


async def remove_trust(studio: StudioParts, request: FolderRequest) -> TrustList:
    """Trust a folder no longer."""
    trusted = TrustedFolders(studio.lim.home.folder)
    for one in trusted.all():
        folder = Path(one.folder)
        if trusted.path(folder).stem == request.id:
            with disk_errors(doing="remove the trust in", path=folder):
                await asyncio.to_thread(trusted.remove, folder)
            return await list_trust(studio, NoArguments())
    raise UserError("this folder is not trusted")


async def check_health(studio: StudioParts, _: NoArguments) -> StudioHealth:
    """Run the checks of `limner doctor`."""
    report = await health.examine(studio.lim)
    return StudioHealth(
        ok=report.ok, usable=report.usable, checks=report.checks, sandbox=report.sandbox or []
    )


def _load(studio: StudioParts) -> Loaded:
    lim = studio.lim
    env = {**os.environ, "LIMNER_HOME": str(lim.home.folder)}
    return load_with_sources(env=env, cwd=lim.cwd)


def _caps(studio: StudioParts, loaded: Loaded) -> CapList:
    file = str(studio.lim.home.config)
    caps: list[Cap] = []
    for key, name in CAPS.items():
        amount, source = value_of(loaded.settings, key), loaded.sources[key]
        caps.append(
            Cap(
                name=name,
                amount_usd=None if amount is None else float(amount),
                source=source,
                is_fixed=source not in ("default", file),
            )
        )
    return CapList(caps=caps, file=file)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/keys",
        summary="List the keys of providers, without their values.",
        request=NoArguments,
        answer=KeyList,
        handler=list_keys,
    ),
    Endpoint(
        method="PUT",
        path="/api/keys/{name}",
        summary="Store a key. Its value is never sent back.",
        request=KeyValue,
        answer=KeyList,
        handler=store_key,
    ),
    Endpoint(
        method="DELETE",
        path="/api/keys/{name}",
        summary="Remove a stored key.",
        request=KeyRequest,
        answer=KeyList,
        handler=remove_key,
    ),
    Endpoint(
        method="GET",
        path="/api/caps",
        summary="List the caps on spending, and where each is set.",
        request=NoArguments,
        answer=CapList,
        handler=list_caps,
    ),
    Endpoint(
        method="PUT",
        path="/api/caps",
        summary="Change the caps on spending in the settings file of the user.",
        request=CapValues,
        answer=CapList,
        handler=change_caps,
    ),
    Endpoint(
        method="GET",
        path="/api/trust",
        summary="List the folders that the user trusts.",
        request=NoArguments,
        answer=TrustList,
        handler=list_trust,
    ),
    Endpoint(
        method="DELETE",
        path="/api/trust/{id}",
        summary="Trust a folder no longer.",
        request=FolderRequest,
        answer=TrustList,
        handler=remove_trust,
    ),
    Endpoint(
        method="GET",
        path="/api/health",
        summary="Run the checks of `limner doctor`.",
        request=NoArguments,
        answer=StudioHealth,
        handler=check_health,
    ),
)
