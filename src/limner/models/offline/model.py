"""A prompt -> an answer of ``limner/offline``, with the interface of every model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from limner.errors import UserError
from limner.models.base import DEFAULT_TIMEOUT_S, ignore_text
from limner.models.offline.album import Album, AlbumPicture
from limner.models.offline.digest import digest
from limner.models.offline.message import read_message, split_steps
from limner.models.offline.named_tools import OfflineCall
from limner.models.offline.replies import IS_A_RULE, KEY, NAME, introduction, report
from limner.models.offline.table import CHANGES, GO_ON, understand
from limner.models.offline.transcript import (
    COMMENTARY,
    OpenRequest,
    Transcript,
    UserRequest,
    call_id_of,
    listen,
)
from limner.wires import items
from limner.wires.base import Answer, Prompt, ToolOffer, Usage

_PIECE = re.compile(r"\S+\s*|\s+")
Tools = Mapping[str, ToolOffer]
TO_COME = AlbumPicture(path="to-come.png")
"""Stands for the picture that a step will make."""


class OfflineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What to say, and the tool to call then; ``number`` is the open request that it is for."""

    words: str
    call: OfflineCall | None = None
    number: int = 0


class OfflineModel:
    """The rules that talk if there is no language model, asked like any other model."""

    name = NAME

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        on_text: Callable[[str], None] = ignore_text,
    ) -> Answer:
        """Answer with words, a call, or both; the same prompt always has the same answer.

        A prompt that offers no tools asks for a summary of the conversation.

        Raises:
            UserError: the answer has to follow a schema, which takes a model that understands it.
        """
        if prompt.schema is not None:
            raise UserError(
                f"{NAME} cannot follow a schema.", code="MODEL_CANNOT", hint=f"Set {KEY}."
            )
        found = answer(prompt)
        for piece in _PIECE.findall(found.words):
            on_text(piece)
        made: list[dict[str, object]] = []
        if found.words:
            # Requests that the user typed ahead are open still.
            phase = None if found.call is None else COMMENTARY
            made.append(items.message("assistant", items.text_part(found.words), phase=phase))
        if found.call is not None:
            made.append(_function_call(prompt, found.call, found.number))
        return Answer(
            text=found.words,
            stop="end",
            model=NAME,
            usage=Usage(input_tokens=0, output_tokens=0),
            items=tuple(made),
        )


def answer(prompt: Prompt) -> OfflineAnswer:
    """The next thing to say and to do in a conversation."""
    if not prompt.tools:
        return OfflineAnswer(words=digest(prompt.items))
    talk = listen(prompt.items)
    found = _next(talk, {offer.name: offer for offer in prompt.tools})
    if found.call is None and not talk.has_spoken and NAME not in found.words:
        return replace(found, words=f"{found.words}\n\n{IS_A_RULE}")
    return found


def _next(talk: Transcript, tools: Tools) -> OfflineAnswer:
    """Serve the open requests one after the other, until one needs a tool."""
    album, told = talk.album_before, list[str]()
    for number, one in enumerate(talk.open):
        album = album.with_mentioned(one.request.attached)
        said, call = _serve(one, album, tools)
        if call is not None:
            return OfflineAnswer(words="\n\n".join(told), call=call, number=number)
        told += [] if one.is_told else said
        for deed in one.deeds:
            album = album.with_mentioned(deed.pictures)
    if not told:
        told = [GO_ON if talk.has_spoken else introduction(tools)]
    return OfflineAnswer(words="\n\n".join(told))


def _serve(one: OpenRequest, album: Album, tools: Tools) -> tuple[list[str], OfflineCall | None]:
    """What to say about a request so far, and the call that it needs next."""
    deeds, told = iter(one.deeds), list[str]()
    for step in _steps(one.request, album, tools):
        rule, found = understand(read_message(step, album, tools))
        if isinstance(found, str):
            told.append(found)
            continue
        deed = next(deeds, None)
        if deed is None:
            return told, found
        told.append(report(deed, redrawn=rule.name in CHANGES, album=album))
        album = album.with_mentioned(deed.pictures)
        if not deed.ok:
            break
    return told, None


def _steps(request: UserRequest, album: Album, tools: Tools) -> Iterator[UserRequest]:
    """The steps of a request; what no rule knows alone belongs to the step before it."""
    steps = list[str]()
    for joint, part in split_steps(request.words):
        rule, _ = understand(read_message(replace(request, words=part), album, tools))
        # A later step may be about the picture of the step before it.
        album = album.with_mentioned([TO_COME])
        if steps and not rule.follows:
            steps[-1] += joint + part
        else:
            steps.append(part)
    for number, words in enumerate(steps):
        # The pictures of the message are those of its first step; later ones go on from there.
        yield replace(request, words=words, attached=() if number else request.attached)


def _function_call(prompt: Prompt, call: OfflineCall, number: int) -> dict[str, object]:
    """The item of a call, with an id that no other call of the conversation has."""
    point = json.dumps([list(prompt.items), call.tool, call.arguments], default=str)
    return items.function_call(
        call_id=call_id_of(number, hashlib.sha256(point.encode()).hexdigest()[:24]),
        name=call.tool,
        arguments=json.dumps(call.arguments, ensure_ascii=False),
    )
