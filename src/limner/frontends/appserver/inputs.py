"""The input of a user, as a client sends it -> the item that is stored and sent to the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.sessions import new_id
from limner.agent.stored_turns import TOOL_OUTPUT
from limner.client import Limner
from limner.errors import ImageError, InputInvalid, LimnerError
from limner.frontends.appserver.protocol.base import (
    AudioInput,
    ImageInput,
    LocalAudioInput,
    LocalImageInput,
    MentionInput,
    SkillInput,
    TextInput,
    TurnToolOutput,
    UserInput,
)
from limner.frontends.appserver.rpc_errors import INVALID_PARAMS, invalid_request
from limner.frontends.appserver.tool_answers import (
    DEFAULT_DETAIL,
    audio_url_problem,
    image_url_problem,
)
from limner.net.jsonrpc import RpcError
from limner.pictures.placeholders import omitted, reason_of
from limner.wires import item_views
from limner.wires import items as wire_items
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item, image_urls

MAX_TEXT_CHARS = 1 << 20
SOURCE = "the user"
_NO_FILE_IDS = "images by fileId are not supported; use an inline data URL instead"

_ROLES = frozenset({"user", "assistant", "developer", "system"})

Part = dict[str, Any]
ClientInput = tuple[UserInput, ...] | str | list[Part]
"""An input in the form in which the client sent it: a user's, or the output of a tool."""


class ParsedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a user: the item that is stored, and its original form.

    ``warnings`` has one sentence for each picture or sound that was left out.
    """

    item: Item
    original: ClientInput = ()
    warnings: tuple[str, ...] = ()


async def parse_input(
    given: Sequence[UserInput], *, lim: Limner, cwd: Path, client_id: str | None = None
) -> ParsedInput:
    """The message of a user; its pictures are stored.

    Raises:
        RpcError: it is too long, or has an input that is not supported.
        StorageError: a picture cannot be stored.
    """
    check_length(one.text for one in given if isinstance(one, TextInput))
    parts: list[Part] = []
    pictures = 0
    for one in given:
        pictures += isinstance(one, ImageInput | LocalImageInput)
        parts += await _parts(one, lim=lim, cwd=cwd, number=pictures)
    entered = await lim.ingress.parts(parts, source=SOURCE)
    named = {} if client_id is None else {"client_id": client_id}
    item = {**wire_items.message("user", *entered.items), "id": new_id(), **named}
    return ParsedInput(item=item, original=tuple(given), warnings=entered.warnings)


async def parse_tool_output(output: TurnToolOutput, *, lim: Limner) -> ParsedInput:
    """The output of a tool that the model did not call; it is marked as untrusted.

    Raises:
        RpcError: it is too long, or has a picture that is not inline.
        StorageError: a picture cannot be stored.
    """
    sent = output.output
    parts = [wire_items.text_part(sent)] if isinstance(sent, str) else sent
    check_length(str(part.get("text", "")) for part in parts)
    check_items([wire_items.message("user", *parts)], name="toolOutput.output")
    entered = await lim.ingress.parts(parts, source=f"the tool {output.name}")
    headline = wire_items.text_part(f"The tool {output.name} says:")
    item = {
        **wire_items.message("user", headline, *entered.items),
        "id": new_id(),
        "untrusted": True,
        "call_id": new_id(),  # names the tags around untrusted text
        TOOL_OUTPUT: {"name": output.name, "namespace": output.namespace},
    }
    return ParsedInput(item=item, original=sent, warnings=entered.warnings)


def check_length(texts: Iterable[str]) -> None:
    """Check that the texts together are not too long.

    Raises:
        RpcError: they are.
    """
    chars = sum(map(len, texts))
    if chars > MAX_TEXT_CHARS:
        raise RpcError(
            INVALID_PARAMS,
            f"Input exceeds the maximum length of {MAX_TEXT_CHARS} characters.",
            {
                "input_error_code": "input_too_large",
                "max_chars": MAX_TEXT_CHARS,
                "actual_chars": chars,
            },
        )


def sift_history(history: Sequence[Item]) -> tuple[list[Item], tuple[str, ...]]:
    """The items of a history that can be stored, and a warning for each of the others.

    An item of an unknown kind is stored as it came; one that does not match its kind would make
    every later model request fail.
    """
    kept: list[Item] = []
    warnings: list[str] = []
    for number, item in enumerate(history):
        flat = wire_items.flatten_output(item)
        try:
            item_views.view(flat)
        except InputInvalid as error:
            warnings.append(f"history[{number}] was left out: {error.message[:200]}")
        else:
            kept.append(flat)
    return kept, tuple(warnings)


def check_items(items: Sequence[Item], *, name: str) -> None:
    """Check that a model can be sent these items, and that their pictures are inline or stored.

    A bad item would make every later model request fail, so it is refused here.

    Raises:
        RpcError: an item is invalid; the message has its number.
    """
    for number, item in enumerate(items):
        try:
            problem = _unknown_role(item_views.check(item))
        except InputInvalid as error:
            problem = error.message
        if problem is not None:
            raise invalid_request(f"{name}[{number}] is not a valid response item: {problem[:200]}")
        for url in image_urls(item):
            _refuse(image_url_problem(url))


def _unknown_role(seen: item_views.View) -> str | None:
    if isinstance(seen, item_views.Message) and seen.role not in _ROLES:
        return f"unknown role `{seen.role}`"
    return None


def _refuse(problem: str | None) -> None:
    if problem is not None:
        raise invalid_request(problem)


async def _parts(one: UserInput, *, lim: Limner, cwd: Path, number: int) -> list[Part]:
    match one:
        case TextInput():
            return [wire_items.text_part(one.text)]
        case ImageInput():
            if not isinstance(one.url, str):
                raise invalid_request(_NO_FILE_IDS)
            _refuse(image_url_problem(one.url))
            return [_picture(one.url, one.detail)]
        case LocalImageInput():
            return await _local_image(one, lim=lim, path=cwd / one.path, number=number)
        case AudioInput():
            _refuse(audio_url_problem(one.url))
            return [wire_items.audio_part(one.url.lstrip())]
        case LocalAudioInput():
            return [await _local_audio(lim, cwd / one.path)]
        case SkillInput() | MentionInput():
            return [wire_items.text_part(f"[{one.name}]({one.path})")]


async def _local_image(one: LocalImageInput, *, lim: Limner, path: Path, number: int) -> list[Part]:
    """A picture between tags that name its file; if it cannot be read, the reason."""
    try:
        shown, _ = await lim.take_with_path(path)
        inside = _picture(f"{HANDLE_URL}{shown.handle}", one.detail)
    except ImageError as error:
        inside = wire_items.text_part(omitted(reason_of(error)))
    except LimnerError as error:
        return [
            wire_items.text_part(
                f"limner could not read the local image at `{path}`: {error.message}"
            )
        ]
    return [
        wire_items.text_part(f'<image name=[Image #{number}] path="{path}">'),
        inside,
        wire_items.text_part("</image>"),
    ]


async def _local_audio(lim: Limner, path: Path) -> Part:
    """The sound in a file; if it cannot be read, the reason."""
    try:
        return wire_items.audio_part(await lim.read_audio(path))
    except LimnerError as error:
        return wire_items.text_part(
            f"limner could not read the local audio at `{path}`: {error.message}"
        )


def _picture(url: str, detail: str | None) -> Part:
    return {"type": "input_image", "image_url": url, "detail": detail or DEFAULT_DETAIL}
