"""What a user says, as a client sends it -> the items of a conversation that say it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.sessions import new_id
from limner.client import Limner
from limner.errors import ImageError, InputInvalid, LimnerError
from limner.frontends.appserver.item_views import ALWAYS, TOOL_OUTPUT
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
from limner.frontends.appserver.rpc_errors import INVALID_PARAMS, REMOTE_IMAGE, refusal
from limner.frontends.appserver.tool_answers import NOT_INLINE, REMOTE_SOUND
from limner.net.jsonrpc import RpcError
from limner.pictures.placeholders import omitted, reason_of
from limner.wires import item_views
from limner.wires import items as made
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item, image_urls

MAX_TEXT_CHARS = 1 << 20
SOURCE = "the user"
_NO_FILE_IDS = "images by fileId are not supported; use an inline data URL instead"

_ROLES = frozenset({"user", "assistant", "developer", "system"})

Part = dict[str, Any]
Given = tuple[UserInput, ...] | str | list[Part]
"""How a client put what somebody says: a user's input, or the output of a tool."""


class ParsedInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a user says: the item that is kept, and how the client put it.

    ``warnings`` are for whoever sent it: one for each picture or sound that was left out.
    """

    item: Item
    given: Given = ()
    warnings: tuple[str, ...] = ()


async def read_input(
    given: Sequence[UserInput], *, lim: Limner, cwd: Path, client_id: str | None = None
) -> ParsedInput:
    """The message of a user; its pictures have been taken in.

    Raises:
        RpcError: it is too long, or has something in it that is never taken.
        StorageError: a picture cannot be kept.
    """
    check_length(one.text for one in given if isinstance(one, TextInput))
    parts: list[Part] = []
    pictures = 0
    for one in given:
        pictures += isinstance(one, ImageInput | LocalImageInput)
        parts += await _parts(one, lim=lim, cwd=cwd, number=pictures)
    entered = await lim.ingress.parts(parts, source=SOURCE)
    named = {} if client_id is None else {"client_id": client_id}
    item = {**made.message("user", *entered.items), "id": new_id(), **named}
    return ParsedInput(item=item, given=tuple(given), warnings=entered.warnings)


async def read_tool_output(output: TurnToolOutput, *, lim: Limner) -> ParsedInput:
    """What a tool has to say that nobody called: a stranger's words, and marked as such.

    Raises:
        RpcError: it is too long, or has a picture in it that is not inline.
        StorageError: a picture cannot be kept.
    """
    told = output.output
    parts = [made.text_part(told)] if isinstance(told, str) else told
    check_length(str(part.get("text", "")) for part in parts)
    check_items([made.message("user", *parts)], name="toolOutput.output")
    entered = await lim.ingress.parts(parts, source=f"the tool {output.name}")
    opening = made.text_part(f"The tool {output.name} says:")
    item = {
        **made.message("user", opening, *entered.items),
        "id": new_id(),
        "untrusted": True,
        "call_id": new_id(),  # what the tags around a stranger's words are named by
        TOOL_OUTPUT: {"name": output.name, "namespace": output.namespace},
    }
    return ParsedInput(item=item, given=told, warnings=entered.warnings)


def check_length(texts: Iterable[str]) -> None:
    """Insist that all words together are not too many.

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


def check_items(items: Sequence[Item], *, name: str) -> None:
    """Insist that a model can be sent these items, and that their pictures are inline or here.

    An item with which every later request would be refused is refused once, here.

    Raises:
        RpcError: one is something else; it is named by its number.
    """
    for number, item in enumerate(items):
        try:
            problem = _unknown_role(item_views.check(item))
        except InputInvalid as error:
            problem = error.message
        if problem is not None:
            raise refusal(f"{name}[{number}] is not a valid response item: {problem[:200]}")
        for url in image_urls(item):
            _check_address(url)


def _unknown_role(seen: item_views.View) -> str | None:
    if isinstance(seen, item_views.Message) and seen.role not in _ROLES:
        return f"unknown role `{seen.role}`"
    return None


def _check_address(url: str) -> None:
    scheme = url.lstrip()[:16].partition(":")[0].lower()
    if scheme in ("http", "https"):
        raise refusal(REMOTE_IMAGE)
    if scheme != "data" and not url.startswith(HANDLE_URL):
        raise refusal(NOT_INLINE)


async def _parts(one: UserInput, *, lim: Limner, cwd: Path, number: int) -> list[Part]:
    match one:
        case TextInput():
            return [made.text_part(one.text)]
        case ImageInput():
            if not isinstance(one.url, str):
                raise refusal(_NO_FILE_IDS)
            _check_address(one.url)
            return [_picture(one.url, one.detail)]
        case LocalImageInput():
            return await _local_image(one, lim=lim, path=cwd / one.path, number=number)
        case AudioInput():
            if one.url.lstrip()[:5].lower() != "data:":
                raise refusal(REMOTE_SOUND)
            return [made.audio_part(one.url.lstrip())]
        case LocalAudioInput():
            return [await _local_audio(lim, cwd / one.path)]
        case SkillInput() | MentionInput():
            return [made.text_part(f"[{one.name}]({one.path})")]


async def _local_image(one: LocalImageInput, *, lim: Limner, path: Path, number: int) -> list[Part]:
    """A picture between tags that name its file; where there is none, why."""
    try:
        shown, _ = await lim.shown(path)
        inside = _picture(f"{HANDLE_URL}{shown.handle}", one.detail)
    except ImageError as error:
        inside = made.text_part(omitted(reason_of(error)))
    except LimnerError as error:
        return [
            made.text_part(f"limner could not read the local image at `{path}`: {error.message}")
        ]
    return [
        made.text_part(f'<image name=[Image #{number}] path="{path}">'),
        inside,
        made.text_part("</image>"),
    ]


async def _local_audio(lim: Limner, path: Path) -> Part:
    """The sound in a file; where there is none, why."""
    try:
        return made.audio_part(await lim.heard(path))
    except LimnerError as error:
        return made.text_part(f"limner could not read the local audio at `{path}`: {error.message}")


def _picture(url: str, detail: str | None) -> Part:
    return {"type": "input_image", "image_url": url, "detail": detail or ALWAYS}
