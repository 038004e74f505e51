"""A prompt's items -> its turns, every picture loaded: what all wires have in common.

A turn is what one side says before the other does: somebody asks, the model answers and may call
tools, the tools' outputs return. Every call has its output in the turn after it, and every output
its call; what the model does while some are under way belongs to the answer that made them. Kinds
of items that no wire has words for are left out here, and only here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from types import UnionType
from typing import Any, Literal, cast, get_args

import msgspec

from limner.errors import InputInvalid
from limner.wires.base import Prompt
from limner.wires.content_parts import (
    Medium,
    Part,
    PartSupport,
    PartWriter,
    excerpt,
    join_text,
    media,
    replace_surrogates,
)
from limner.wires.item_views import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    LocalShellCall,
    Message,
    Reasoning,
    View,
    view,
)

AnyCall = FunctionCall | CustomToolCall
AnyOutput = FunctionCallOutput | CustomToolCallOutput
AskingRole = Literal["user", "developer", "system"]


_CONTINUED = "(The beginning of the conversation is not shown.)"
_MAX_ID_CHARS = 40
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")


class MessagePart(msgspec.Struct, frozen=True, kw_only=True):
    """Words of the model."""

    texts: Sequence[str]
    phase: str | None = None


class ReasoningPart(msgspec.Struct, frozen=True, kw_only=True):
    """A thought of the model."""

    reasoning: Reasoning


class CallPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model calls a tool; ``is_custom`` where ``arguments`` is free text instead of JSON."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments as an object; what is none, a model's slip too, is its ``input``."""
        try:
            found: object = None if self.is_custom else msgspec.json.decode(self.arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            found = None
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
        return {"input": self.arguments}


class OutputPart(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave back."""

    call: CallPart
    parts: Sequence[Part]
    has_failed: bool

    @property
    def media(self) -> list[Medium]:
        """Its pictures and sounds."""
        return media(self.parts)


Step = MessagePart | ReasoningPart | CallPart


class UserTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody other than the model speaks."""

    role: AskingRole
    parts: Sequence[Part]


class AssistantTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The model speaks, thinks and calls, in this order."""

    steps: Sequence[Step]

    @property
    def concluded(self) -> Sequence[Step]:
        """The steps up to the last that is no thought: most services want none at the end."""
        last = max(at for at, step in enumerate(self.steps) if not isinstance(step, ReasoningPart))
        return self.steps[: last + 1]


class ToolTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of all calls of the turn before, in the order of the calls."""

    outputs: Sequence[OutputPart]


Turn = UserTurn | AssistantTurn | ToolTurn


def turns(prompt: Prompt, takes: PartSupport) -> list[Turn]:
    """The turns of a prompt.

    Raises:
        InputInvalid: an item, a role or a part has no place; a picture is not there, or the API
            does not take it; a call has no output, or an output no call; nothing is said.
    """
    sorting = _Sorting(prompt, takes)
    for item in prompt.items:
        sorting.take(view(item))
    return sorting.finish()


def instructed(prompt: Prompt, found: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """The system prompt, with the instructions that the conversation opens with; and the rest.

    For services that have one place for instructions, and want the user to speak first.
    """
    opening: list[UserTurn] = []
    for turn in found[:-1]:
        if not isinstance(turn, UserTurn) or turn.role == "user" or media(turn.parts):
            break
        opening.append(turn)
    said = [
        replace_surrogates(prompt.instructions or ""),
        *(join_text(turn.parts) for turn in opening),
    ]
    rest = list(found[len(opening) :])
    if isinstance(rest[0], AssistantTurn):
        rest.insert(0, UserTurn(role="user", parts=[_CONTINUED]))
    return "\n\n".join(filter(None, said)) or None, rest


def labelled(outputs: Iterable[OutputPart], kinds: type[Medium] | UnionType = Medium) -> list[Part]:
    """What outputs cannot carry of these kinds, each after words that say whose it is."""
    return [
        part
        for output in outputs
        for one in output.media
        if isinstance(one, kinds)
        for part in (f"{one.name}, returned by {output.call.name} ({output.call.call_id}):", one)
    ]


def legal_id(call_id: str) -> str:
    """The id of a call, or one made of it where some service would not take it."""
    if len(call_id) <= _MAX_ID_CHARS and _LEGAL_ID.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode(errors='replace')).hexdigest()[:32]}"


def called(found: Iterable[Turn]) -> list[str]:
    """The names of all tools that were called, once each: some services want to know them."""
    return list(
        dict.fromkeys(
            step.name
            for turn in found
            if isinstance(turn, AssistantTurn)
            for step in turn.steps
            if isinstance(step, CallPart)
        )
    )


class _Sorting:
    """Follows the items and puts them into turns."""

    def __init__(self, prompt: Prompt, takes: PartSupport) -> None:
        self._writer = PartWriter(
            prompt.pictures,
            omitted=prompt.omitted,
            takes=takes,
            takes_images=prompt.takes_images,
            takes_audio=prompt.takes_audio,
        )
        self._turns: list[Turn] = []
        self._steps: list[Step] = []
        self._calls: dict[str, CallPart] = {}
        self._outputs: dict[str, OutputPart] = {}
        self._left_out: set[str] = set()
        self._later: list[UserTurn] = []

    def take(self, item: View) -> None:
        match item:
            case Message(role="assistant"):
                self._said(item)
            case Message():
                self._asked(item)
            case Reasoning():
                self._steps.append(ReasoningPart(reasoning=item))
            case FunctionCall():
                self._call(item, replace_surrogates(item.arguments))
            case CustomToolCall():
                self._call(item, replace_surrogates(item.input), is_custom=True)
            case FunctionCallOutput() | CustomToolCallOutput():
                self._output(item)
            case LocalShellCall():
                self._left_out.add(item.call_id or item.id or "")
            case _:
                pass

    def finish(self) -> list[Turn]:
        self._answer_complete()
        if not self._turns:
            raise InputInvalid("There is nothing to send to the model", field="items")
        return self._turns

    def _asked(self, item: Message) -> None:
        parts = self._writer.write(item.parts)
        # A role that no service knows must not end the conversation it is in.
        role = item.role if item.role in get_args(AskingRole) else "user"
        if parts:
            # What was said before the outputs were there is told after them.
            self._later.append(UserTurn(role=cast("AskingRole", role), parts=parts))
        if not self._calls:
            self._answer_complete()

    def _said(self, item: Message) -> None:
        texts = self._writer.write_text(item.parts)
        if texts:
            self._steps.append(MessagePart(texts=texts, phase=item.phase))

    def _call(self, item: AnyCall, arguments: str, *, is_custom: bool = False) -> None:
        if item.call_id in self._calls:
            raise InputInvalid(f"The call {excerpt(item.call_id)} is there twice", field="items")
        call = CallPart(
            call_id=legal_id(item.call_id),
            name=replace_surrogates(item.name),
            arguments=arguments,
            is_custom=is_custom,
        )
        self._steps.append(call)
        self._calls[item.call_id] = call

    def _output(self, item: AnyOutput) -> None:
        parts = self._writer.write(item.parts)
        call = self._calls.get(item.call_id)
        if call is None and item.call_id in self._left_out:
            self._without_call(item, parts)
            return
        if call is None or item.call_id in self._outputs:
            raise InputInvalid(
                f"The output {excerpt(item.call_id)} has no call before it", field="items"
            )
        self._outputs[item.call_id] = OutputPart(
            call=call, parts=parts, has_failed=item.succeeded is False
        )
        if len(self._outputs) == len(self._calls):
            self._returned()

    def _without_call(self, item: AnyOutput, parts: Sequence[Part]) -> None:
        """An output whose call is left out is left out with it, but not its pictures or sounds."""
        if any(isinstance(part, InputImage | InputAudio) for part in item.parts):
            self._later.append(UserTurn(role="user", parts=["Output of a command:", *parts]))
            if not self._calls:
                self._answer_complete()

    def _returned(self) -> None:
        outputs = [self._outputs[call_id] for call_id in self._calls]
        self._turns += [AssistantTurn(steps=self._steps), ToolTurn(outputs=outputs), *self._later]
        self._steps, self._calls, self._outputs, self._later = [], {}, {}, []

    def _answer_complete(self) -> None:
        if self._calls:
            raise self._unanswered()
        # Thoughts that led to nothing are of no use to anybody.
        if any(not isinstance(step, ReasoningPart) for step in self._steps):
            self._turns.append(AssistantTurn(steps=self._steps))
        self._turns += self._later
        self._steps, self._later = [], []

    def _unanswered(self) -> InputInvalid:
        missing = next(call_id for call_id in self._calls if call_id not in self._outputs)
        return InputInvalid(f"The call {excerpt(missing)} has no output after it", field="items")
