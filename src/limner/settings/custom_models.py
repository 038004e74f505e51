"""The ``[[models]]`` tables of a settings file -> the user's own models, each of them checked.

A table can name any server with one of the supported APIs: Ollama, vLLM, LM Studio, llama.cpp, a
proxy. limner sends pictures, texts and the named key there, so it reads the tables of a file in the
working folder only if the user trusts the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from limner.content import Discreet
from limner.errors import SettingsError

Api = Literal["openai-responses", "openai-chat", "anthropic-messages", "gemini-generate-content"]
Input = Literal["text", "image", "audio"]

MODELS = "models"
RESERVED_PROVIDERS = frozenset({"limner", "pi"})


class CustomModel(Discreet, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table: a model and its server."""

    unshown = ("base_url",)  # it may have a password in it

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
            "`gemini-generate-content`. The default is the API of a provider that limner knows, "
            "and `openai-chat` for any other."
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Meta(description="The server's address. Not needed for a provider that limner knows."),
    ] = None
    key_env: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None,
        Meta(description="The variable with the key; without it no key is sent to `base_url`."),
    ] = None
    input: Annotated[
        tuple[Input, ...],
        Meta(min_length=1, description="What it accepts: `text`, `image`, `audio`."),
    ] = ("text", "image")


def take_custom_models(files: Mapping[Path, dict[str, object]]) -> tuple[CustomModel, ...]:
    """Remove the models from the settings files; for a name in both, the later file wins.

    Raises:
        SettingsError: a table is not a model, or its server has no web address.
    """
    models: dict[str, CustomModel] = {}
    for path, sections in files.items():
        if MODELS in sections:
            models |= _parse(sections.pop(MODELS), source=str(path))
    return tuple(models.values())


def _parse(tables: object, *, source: str) -> Mapping[str, CustomModel]:
    """The models of one file by name."""
    try:
        models = msgspec.convert(tables, list[CustomModel])
    except msgspec.ValidationError as problem:
        fields = ", ".join(CustomModel.__struct_fields__)
        raise SettingsError(
            f"{source}: [[models]]: {problem}", hint=f"A model has the fields {fields}."
        ) from problem
    for model in models:
        _check(model, source=source)
    named = {model.name: model for model in models}
    if len(named) < len(models):
        raise SettingsError(f"{source}: [[models]]: a model appears twice")
    return named


def _check(model: CustomModel, *, source: str) -> None:
    place = f"{source}: [[models]] {model.name[:80]!r}"
    if model.name.partition("/")[0] in RESERVED_PROVIDERS:
        raise SettingsError(f"{place}: this provider name is reserved for limner")
    if model.base_url is not None and _host(model.base_url) is None:
        raise SettingsError(
            f"{place}: base_url is not a web address",
            hint="Set it to an address such as http://127.0.0.1:11434/v1",
        )


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None
