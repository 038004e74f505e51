"""The ``[[models]]`` tables of a settings file -> models of one's own, each of them checked.

Any server that speaks one of the wires can be named there: Ollama, vLLM, LM Studio, llama.cpp, a
proxy. A file in the working folder may come from a stranger, along with everything else in that
folder, so it may send pictures, words and keys nowhere but to this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from limner.errors import SettingsError

Api = Literal["openai-responses", "openai-chat", "anthropic-messages", "gemini-generate-content"]
Input = Literal["text", "image", "audio"]
VariableName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

RESERVED_PROVIDERS = frozenset({"limner", "pi"})


class CustomModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table: a model, and where it is."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[^/\s]+/\S+$",
            description="`provider/id`; the id is what the server calls the model.",
        ),
    ]
    api: Annotated[
        Api | None,
        Meta(
            description="`openai-responses`, `openai-chat`, `anthropic-messages` or "
            "`gemini-generate-content`; a provider that limner knows has its own, and any other "
            "`openai-chat`."
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Meta(description="The server's address; a provider that limner knows has its own."),
    ] = None
    key_env: Annotated[
        VariableName | None,
        Meta(description="The variable with the key; without it `base_url` is sent none."),
    ] = None
    input: Annotated[
        tuple[Input, ...],
        Meta(min_length=1, description="What it takes in: `text`, `image`, `audio`."),
    ] = ("text", "image")


def take_own_models(
    files: Mapping[Path, dict[str, object]], *, from_strangers: Set[Path]
) -> tuple[CustomModel, ...]:
    """Take the models out of settings files; of two with one name the later file's is kept.

    Raises:
        SettingsError: a table is not one of a model, or would send something where it may not go.
    """
    taken: dict[str, CustomModel] = {}
    for path, sections in files.items():
        if "models" in sections:
            strange = path in from_strangers
            taken |= _read(sections.pop("models"), source=str(path), from_strangers=strange)
    return tuple(taken.values())


def _read(tables: object, *, source: str, from_strangers: bool) -> Mapping[str, CustomModel]:
    """The models of one file by name."""
    try:
        models = msgspec.convert(tables, list[CustomModel])
    except msgspec.ValidationError as problem:
        fields = ", ".join(CustomModel.__struct_fields__)
        raise SettingsError(
            f"{source}: [[models]]: {problem}", hint=f"A model has the fields {fields}."
        ) from problem
    for model in models:
        _check(model, source=source, from_strangers=from_strangers)
    named = {model.name: model for model in models}
    if len(named) < len(models):
        raise SettingsError(f"{source}: [[models]]: a model is there twice")
    return named


def _check(model: CustomModel, *, source: str, from_strangers: bool) -> None:
    where = f"{source}: [[models]] {model.name[:80]!r}"
    if model.name.partition("/")[0] in RESERVED_PROVIDERS:
        raise SettingsError(f"{where}: this provider's name is limner's own")
    if model.base_url is None:
        return
    host = _host(model.base_url)
    if host is None:
        raise SettingsError(
            f"{where}: base_url is not a web address",
            hint="Set it to an address such as http://127.0.0.1:11434/v1",
        )
    if from_strangers and not _is_this_machine(host):
        raise SettingsError(
            f"{where}: a file in the working folder may not send anything to {host[:80]!r}",
            hint="Move the table to config.toml in limner's own folder.",
        )


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None


def _is_this_machine(host: str) -> bool:
    import ipaddress  # noqa: PLC0415 - few settings files have a model in them

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
