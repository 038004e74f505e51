"""The methods that read the settings with their layers, and change the user's settings file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.errors import SettingsError, UserError
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.protocol import config as protocol
from limner.frontends.appserver.protocol.notifications import METHOD_OF, ConfigWarningNotification
from limner.frontends.appserver.server import Host
from limner.frontends.appserver.thread_options import name_model, resolve_model, shown_policy
from limner.frontends.appserver.threads import ThreadTable
from limner.net.jsonrpc import INVALID_REQUEST, RpcError
from limner.settings import Loaded, all_settings, load_with_sources, value_of
from limner.settings.fields import Entry, Setting, check_entries, hide_password, snake
from limner.storage.settings_file import SETTINGS_CHANGED, SettingsFile

CONFLICT = "Configuration was modified since last read. Fetch latest version and retry."
READONLY = "Only writes to the user config are allowed"
DEFAULT_MODEL = "model_roles.default"
MODEL_KEYS = ("model", "model_provider", "model_reasoning_effort")
# The keys of Codex that name a setting of limner.
ALIASES = {"approval_policy": "approval.policy", "sandbox_mode": "agent.sandbox"}
# A new thread starts with these, so they need no new server.
IN_FORCE_AT_ONCE = frozenset({DEFAULT_MODEL, *ALIASES.values()})
_MAX_KEY_CHARS = 200
_TITLES: Mapping[type[protocol.ConfigLayerSource], str] = {
    protocol.UserLayer: "user config",
    protocol.ProjectLayer: "project config",
    protocol.SessionFlagsLayer: "session flags",
}

Json = dict[str, Any]


async def read_config(
    host: Host, threads: ThreadTable, params: protocol.ConfigReadParams
) -> protocol.ConfigReadResponse:
    """The effective settings, and the layers that they come from."""
    layers = _Layers.load(host, None if params.cwd is None else host.cwd / params.cwd)
    settings = layers.loaded.settings
    default = resolve_model(threads.defaults, lim=threads.limner)
    effective = {key: value_of(settings, key) for key in all_settings()}
    return protocol.ConfigReadResponse(
        config={
            "model": default.model,
            "model_provider": default.provider,
            "model_reasoning_effort": default.effort,
            "approval_policy": shown_policy(settings.approval.policy),
            "sandbox_mode": settings.agent.sandbox,
            **_nested(effective),
        },
        origins=layers.origins(),
        layers=layers.all() if params.include_layers else None,
    )


async def write_value(
    host: Host, threads: ThreadTable, call: RpcCall, params: protocol.ConfigValueWriteParams
) -> None:
    """Change one setting, or the settings of one section."""
    edit = protocol.ConfigEdit(
        key_path=params.key_path, value=params.value, merge_strategy=params.merge_strategy
    )
    written = await write_settings(
        host, threads, [edit], path=params.file_path, version=params.expected_version
    )
    _answer(call, written)


async def write_batch(
    host: Host, threads: ThreadTable, call: RpcCall, params: protocol.ConfigBatchWriteParams
) -> None:
    """Change several settings, or none of them."""
    written = await write_settings(
        host, threads, params.edits, path=params.file_path, version=params.expected_version
    )
    _answer(call, written)


class WrittenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a change, and the settings that wait for a new server."""

    answer: protocol.ConfigWriteResponse
    later: tuple[str, ...]


async def write_settings(
    host: Host,
    threads: ThreadTable,
    edits: Sequence[protocol.ConfigEdit],
    *,
    path: str | None = None,
    version: str | None = None,
) -> WrittenSettings:
    """Change settings in the user's file.

    Args:
        host: names the file.
        threads: new threads start with the changed settings.
        edits: all of them are made, or none.
        path: the file that the client wants to change.
        version: the version of the file that the client has read.

    Raises:
        RpcError: an edit is refused, or the file has another version.
        StorageError: the file cannot be written.
    """
    file = _user_file(host)
    if path is not None and os.path.realpath(path) != os.path.realpath(file.path):
        raise _refusal("configLayerReadonly", READONLY)
    try:
        before = _Layers.load(host)
        changes = _changes(edits, before, threads)
        _check_changes(changes, before)
        written = await asyncio.to_thread(file.change, changes, expected_version=version)
        after = _Layers.load(host)
    except SettingsError as error:
        message = f"Invalid configuration: {error.message}. {error.hint or ''}".rstrip()
        raise _refusal("configValidationError", message) from error
    except UserError as error:
        if error.code != SETTINGS_CHANGED:
            raise
        raise _refusal("configVersionConflict", CONFLICT) from error
    threads.adopt(after.loaded.settings)
    overridden = after.overridden(changes)
    return WrittenSettings(
        answer=protocol.ConfigWriteResponse(
            status="ok" if overridden is None else "okOverridden",
            version=written,
            file_path=str(file.path),
            overridden_metadata=overridden,
        ),
        later=tuple(key for key in changes if key not in IN_FORCE_AT_ONCE),
    )


class _Layers(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as they are on disk now, and the layers that they come from."""

    loaded: Loaded
    user: SettingsFile
    cwd: Path

    @classmethod
    def load(cls, host: Host, cwd: Path | None = None) -> _Layers:
        folder = host.cwd if cwd is None else cwd
        env = os.environ if host.env is None else host.env
        flags = {key: value for key, value in host.config.items() if key in all_settings()}
        loaded = load_with_sources(env=env, cwd=folder, flags=flags)
        return cls(loaded=loaded, user=_user_file(host), cwd=folder)

    def user_values(self) -> Mapping[str, Any]:
        return self.loaded.values.get(str(self.user.path), {})

    def origins(self) -> dict[str, protocol.ConfigLayerMetadata]:
        sources = self.loaded.sources
        found = {
            key: self._metadata(source) for key, source in sources.items() if source != "default"
        }
        of_codex = {**dict.fromkeys(MODEL_KEYS, DEFAULT_MODEL), **ALIASES}
        return found | {name: found[key] for name, key in of_codex.items() if key in found}

    def all(self) -> tuple[protocol.ConfigLayer, ...]:
        """The layers, the strongest first; the user's file is always one of them."""
        grouped: dict[protocol.ConfigLayerSource, Json] = {self._name(str(self.user.path)): {}}
        for source, values in self.loaded.values.items():
            grouped.setdefault(self._name(source), {}).update(values)
        return tuple(
            protocol.ConfigLayer(name=name, version=self._version(name), config=_nested(values))
            for name, values in reversed(grouped.items())
        )

    def overridden(self, changes: Mapping[str, Any]) -> protocol.OverriddenMetadata | None:
        """The first changed value that another layer overrides."""
        for key, value in changes.items():
            source = self.loaded.sources[key]
            if value is not None and source != str(self.user.path):
                return protocol.OverriddenMetadata(
                    message=f"Overridden by {_TITLES[type(self._name(source))]}: {source}",
                    overriding_layer=self._metadata(source),
                    effective_value=_json(value_of(self.loaded.settings, key)),
                )
        return None

    def _metadata(self, source: str) -> protocol.ConfigLayerMetadata:
        name = self._name(source)
        return protocol.ConfigLayerMetadata(name=name, version=self._version(name))

    def _name(self, source: str) -> protocol.ConfigLayerSource:
        if source == str(self.user.path):
            return protocol.UserLayer(file=source)
        if Path(source).parent == self.cwd:
            return protocol.ProjectLayer(dot_codex_folder=str(self.cwd))
        return protocol.SessionFlagsLayer()

    def _version(self, name: protocol.ConfigLayerSource) -> str:
        if isinstance(name, protocol.UserLayer):
            return self.user.version()
        values = {s: v for s, v in self.loaded.values.items() if self._name(s) == name}
        return f"sha256:{sha256(msgspec.json.encode(values, order='sorted')).hexdigest()}"


def _changes(
    edits: Iterable[protocol.ConfigEdit], before: _Layers, threads: ThreadTable
) -> dict[str, Any]:
    """The edits as values by key; None removes a value."""
    changes: dict[str, Any] = {}
    model: dict[str, str | None] = {}
    for edit in edits:
        path, value = edit.key_path, edit.value
        if not all(path.split(".")):
            problem = "segments must not be empty" if path else "must not be empty"
            raise _refusal("configValidationError", f"keyPath {problem}")
        key = ALIASES.get(path, snake(path[:_MAX_KEY_CHARS]))
        if key in MODEL_KEYS:
            if not isinstance(value, str | None):
                raise _refusal("configValidationError", f"Invalid configuration: {key} is a text")
            model[key] = value
        elif isinstance(value, dict):
            if edit.merge_strategy == "replace":
                names = (name for name in before.user_values() if name.startswith(f"{key}."))
                changes |= dict.fromkeys(names)
            changes |= {f"{key}.{snake(name)}": one for name, one in cast("Json", value).items()}
        else:
            changes[key] = value
    if model:
        changes[DEFAULT_MODEL] = name_model(
            threads.defaults,
            lim=threads.limner,
            changes={key: model[key] for key in MODEL_KEYS if key in model},
        )
    return changes


def _check_changes(changes: Mapping[str, Any], before: _Layers) -> None:
    """Refuse an unknown key, a value that is not valid, and one that protects the user less."""
    known = all_settings()
    for key, raw in changes.items():
        if key not in known:
            raise _refusal("configSchemaUnknownKey", _why_unknown(key))
        if "." not in key:  # it names where limner keeps everything
            raise _refusal(
                "configValidationError", f"Only the user can change {key}, in {before.user.path}."
            )
        default = known[key].default
        entry = Entry("config", key, raw)
        value = default if raw is None else next(iter(check_entries([entry], known)))[2]
        current = before.user_values().get(key, default)
        if not _is_safe(known[key], value, current=current):
            raise _refusal(
                "configValidationError",
                f"A client can only make {key} stricter, and it is {_json(current)} now. The user "
                f"can change it in {before.user.path}.",
            )


def _is_safe(setting: Setting, value: Any, *, current: Any) -> bool:
    rule = setting.project_rule
    if rule is None or value == current:
        return True
    return value is not None and rule.allows(value, current=current)


def _why_unknown(key: str) -> str:
    if key.partition(".")[0] == "models":
        return "Models of your own are set in config.toml by hand: their servers get pictures."
    if key.rpartition("_")[2] in ("key", "token"):
        return "Keys are no settings: use account/login/start, or `limner keys set`."
    try:
        next(iter(check_entries([Entry("config", key, None)], all_settings())))
    except SettingsError as error:
        return f"{error.message}. {error.hint or ''}".rstrip()
    raise AssertionError("a known key is not looked up")


def _answer(call: RpcCall, written: WrittenSettings) -> None:
    call.answer(written.answer)
    if written.later:
        names = ", ".join(written.later)
        notice = ConfigWarningNotification(
            summary=f"{names}: the change is in force after a restart of the app-server."
        )
        call.connection.notify(METHOD_OF[type(notice)], notice)


def _user_file(host: Host) -> SettingsFile:
    return SettingsFile(host.settings.home / "config.toml")


def _refusal(code: str, message: str) -> RpcError:
    return RpcError(INVALID_REQUEST, message, {"config_write_error_code": code})


def _nested(values: Mapping[str, Any]) -> Json:
    nested: Json = {}
    for key, value in values.items():
        section, _, field = key.rpartition(".")
        table = nested.setdefault(section, {}) if section else nested
        table[field] = _json(value)
    return nested


def _json(value: Any) -> Any:
    if isinstance(value, str):
        return hide_password(value)
    return float(value) if isinstance(value, Decimal) else msgspec.to_builtins(value)
