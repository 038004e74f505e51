"""The types and methods of the settings: the effective values, their layers, and changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from limner.frontends.appserver.protocol.base import Method, Shape

MergeStrategy = Literal["replace", "upsert"]


class UserLayer(Shape, tag_field="type", tag="user"):
    """The user's ``config.toml``, which need not exist."""

    file: str
    profile: None = None


class ProjectLayer(Shape, tag_field="type", tag="project"):
    """The ``limner.toml`` of the working folder."""

    dot_codex_folder: str


class SessionFlagsLayer(Shape, tag_field="type", tag="sessionFlags"):
    """Environment variables and ``--config``."""


ConfigLayerSource = UserLayer | ProjectLayer | SessionFlagsLayer


class ConfigLayerMetadata(Shape):
    """A layer; ``version`` changes with its content."""

    name: ConfigLayerSource
    version: str


class ConfigLayer(Shape):
    name: ConfigLayerSource
    version: str
    config: dict[str, Any]
    disabled_reason: str | None = None


class ConfigReadParams(Shape):
    cwd: str | None = None
    include_layers: bool = False


class ConfigReadResponse(Shape):
    """The settings of limner by section, and those that Codex has a key for under that key.

    ``origins`` has the layer of each value that is not a default. The strongest of ``layers`` comes
    first.
    """

    config: dict[str, Any]
    origins: dict[str, ConfigLayerMetadata]
    layers: tuple[ConfigLayer, ...] | None = None


class ConfigEdit(Shape):
    """A new value of a setting or of a section; null removes it."""

    key_path: str
    value: Any
    merge_strategy: MergeStrategy


class _WriteParams(Shape):
    file_path: str | None = None
    expected_version: str | None = None


class ConfigValueWriteParams(_WriteParams):
    key_path: str
    value: Any
    merge_strategy: MergeStrategy


class ConfigBatchWriteParams(_WriteParams):
    edits: tuple[ConfigEdit, ...]
    reload_user_config: bool = False


class OverriddenMetadata(Shape):
    """The layer that keeps a written value from being in force."""

    message: str
    overriding_layer: ConfigLayerMetadata
    effective_value: Any


class ConfigWriteResponse(Shape):
    status: Literal["ok", "okOverridden"] = "ok"
    version: str
    file_path: str
    overridden_metadata: OverriddenMetadata | None = None


_WRITES = (
    "Only settings of limner, in the user's `config.toml`. A setting that protects the user (a cap,"
    " the approval policy, the sandbox) can only become stricter. Keys and models are refused. "
    "Model, approval policy and sandbox are in force for the next thread, other settings when the "
    "server starts again."
)

METHODS: Mapping[str, Method] = {
    "config/read": Method(
        params=ConfigReadParams,
        result=ConfigReadResponse,
        handler="config_methods:read_config",
        note="Only what limner has a setting for.",
    ),
    "config/value/write": Method(
        params=ConfigValueWriteParams,
        result=ConfigWriteResponse,
        handler="config_methods:write_value",
        note=_WRITES,
    ),
    "config/batchWrite": Method(
        params=ConfigBatchWriteParams,
        result=ConfigWriteResponse,
        handler="config_methods:write_batch",
        note="As `config/value/write`; all edits, or none.",
    ),
}
