"""A prompt's items -> its turns, with every picture loaded: the step that all wires share.

The sides take turns: the user asks, the model answers and may call tools, the tools return their
outputs. Every call has its output in the turn after it, and every output has its call. What the
model says while calls are running belongs to the answer that made the calls.

An item that only the Responses API knows goes out as it came on that wire, and in words on the
others. Items that no wire can send are left out here, and only here; `left_out` names them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from types import UnionType
from typing import Any, Literal, cast, get_args

import msgspec

from limner.errors import InputInvalid
from limner.wires.base import NATIVE_API, Prompt
from limner.wires.content_parts import (
    Medium,
    Part,
    PartSupport,
    PartWriter,
    PlacedPicture,
    excerpt,
    join_text,
    media,
    replace_surrogates,
)
from limner.wires.item_views import (
    AdditionalTools,
    AgentMessage,
    Compaction,
    ContextCompaction,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    GeneratedPicture,
    InputImage,
    InputText,
    LocalShellCall,
    Message,
    Reasoning,
    ToolSearchCall,
    ToolSearchOutput,
    Unknown,
    View,
    WebSearchCall,
    view,
    view_type,
)

AnyCall = FunctionCall | CustomToolCall
AnyOutput = FunctionCallOutput | CustomToolCallOutput
UserRole = Literal["user", "developer", "system"]
_USER_ROLES = frozenset(get_args(UserRole))


_START_NOT_SHOWN = "(The beginning of the conversation is not shown.)"
_MAX_ID_CHARS = 40
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")


class MessagePart(msgspec.Struct, frozen=True, kw_only=True):
    """Text of the model; ``native`` is the item that it puts into words."""

    texts: Sequence[str]
    phase: str | None = None
    native: Mapping[str, Any] | None = None


class ReasoningPart(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning of the model."""

    reasoning: Reasoning

    @property
    def text(self) -> str | None:
        """Its text; None if its service hides it."""
        content = self.reasoning.content
        return None if content is None else "".join(part.text for part in content)

    def signature_of(self, api: str) -> str | None:
        """The signature that the service of this API gave it; None for that of any other API."""
        return self.reasoning.encrypted_content if self.reasoning.origin == api else None


class CallPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model calls a tool; ``is_custom`` if ``arguments`` is free text instead of JSON.

    ``native`` is the item of a call that is not one of a function.
    """

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False
    namespace: str | None = None
    native: Mapping[str, Any] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments as an object; if they are not one, they become its ``input``."""
        try:
            value: object = None if self.is_custom else msgspec.json.decode(self.arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            value = None
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        return {"input": self.arguments}


class OutputPart(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a call.

    ``tool`` is what the item says about the tool, if anything. ``is_text`` if it came as a string.
    """

    call: CallPart
    tool: Mapping[str, str]
    parts: Sequence[Part]
    is_text: bool
    has_failed: bool

    @property
    def media(self) -> list[Medium]:
        """Its pictures and audio clips."""
        return media(self.parts)


Step = MessagePart | ReasoningPart | CallPart


class UserTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The user, the developer or the system speaks."""

    role: UserRole
    parts: Sequence[Part]


class AssistantTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The model speaks, reasons and calls tools, in this order."""

    steps: Sequence[Step]

    @property
    def trimmed_steps(self) -> Sequence[Step]:
        """The steps without reasoning at the end, which most services refuse."""
        end = len(self.steps)
        while isinstance(self.steps[end - 1], ReasoningPart):
            end -= 1
        return self.steps[:end]


class ToolTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of all calls of the turn before, in the order of the calls."""

    outputs: Sequence[OutputPart]


Turn = UserTurn | AssistantTurn | ToolTurn


def build_turns(prompt: Prompt, takes: PartSupport) -> list[Turn]:
    """The turns of a prompt.

    Raises:
        InputInvalid: an item or a part cannot be sent; a picture is not loaded, or the API does
            not take it; a call has no output, or an output no call; there is nothing to send.
    """
    builder = _TurnBuilder(prompt, takes)
    for item in prompt.items:
        builder.add(view(item), item)
    return builder.finish()


def left_out(items: Iterable[Mapping[str, Any]], api: str) -> list[str]:
    """The kinds of items that a model behind this API is not sent in any form, each once."""
    found: dict[str, None] = {}
    for item in items:
        seen = view_type(item)
        is_summary = seen in (Compaction, ContextCompaction)
        if seen is Unknown or (is_summary and api != NATIVE_API):
            found[str(item.get("type"))[:_MAX_ID_CHARS]] = None
    return list(found)


def put_into_words(item: View) -> str | None:
    """What the model did, for a model that does not know this kind of item."""
    match item:
        case LocalShellCall():
            return f"command run: {shlex.join(item.action.command)}"
        case WebSearchCall():
            return _search_words(item.action or {})
        case GeneratedPicture():
            prompt = f": {item.revised_prompt}" if item.revised_prompt else ""
            return f"picture generated{prompt}"
        case AgentMessage():
            texts = [part.text for part in item.parts if isinstance(part, InputText)]
            return f"message from {item.author} to {item.recipient}: {' '.join(texts)}"
        case _:
            return _tool_words(item)


def _tool_words(item: View) -> str | None:
    match item:
        case ToolSearchCall():
            return f"tools searched: {_json(item.arguments)}"
        case ToolSearchOutput():
            return f"tools found: {_names(item.tools)}"
        case AdditionalTools():
            return f"tools added: {_names(item.tools)}"
        case _:
            return None


def _names(tools: Iterable[Any]) -> str:
    found = [cast("dict[str, Any]", tool) for tool in tools if isinstance(tool, dict)]
    return ", ".join(str(tool.get("name")) for tool in found) or "none"


def _search_words(action: Mapping[str, Any]) -> str:
    url = action.get("url")
    match action.get("type"):
        case "open_page":
            return f"web page opened: {url}"
        case "find_in_page":
            return f"searched in the web page {url} for: {action.get('pattern')}"
        case _:
            queries = action.get("queries") or [action.get("query")]
            shown = ", ".join(str(query) for query in queries if query)
            return f"web search: {shown}" if shown else "web search"


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def split_instructions(prompt: Prompt, turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """The system prompt, with the instructions that the conversation starts with; and the rest.

    For services that have one field for instructions, and want the user to speak first.
    """
    opening: list[UserTurn] = []
    for turn in turns[:-1]:
        if not isinstance(turn, UserTurn) or turn.role == "user" or media(turn.parts):
            break
        opening.append(turn)
    texts = [
        replace_surrogates(prompt.instructions or ""),
        *(join_text(turn.parts) for turn in opening),
    ]
    rest = list(turns[len(opening) :])
    if isinstance(rest[0], AssistantTurn):
        rest.insert(0, UserTurn(role="user", parts=[_START_NOT_SHOWN]))
    return "\n\n".join(filter(None, texts)) or None, rest


def group_by_role(turns: Iterable[Turn]) -> Iterator[tuple[str, list[Turn]]]:
    """The turns in groups whose roles, ``user`` and ``assistant``, alternate."""
    for role, group in groupby(turns, key=_role):
        yield role, list(group)


def _role(turn: Turn) -> str:
    return "assistant" if isinstance(turn, AssistantTurn) else "user"


def label_media(
    outputs: Iterable[OutputPart], kinds: type[Medium] | UnionType = Medium
) -> list[Part]:
    """The media of these kinds in outputs, each after a text that names its call.

    For services whose outputs cannot contain them.
    """
    return [
        part
        for output in outputs
        for one in output.media
        if isinstance(one, kinds)
        for part in (f"{one.name}, returned by {output.call.name} ({output.call.call_id}):", one)
    ]


def legal_id(call_id: str) -> str:
    """The id of a call, or another one made from it if some service would refuse it."""
    if len(call_id) <= _MAX_ID_CHARS and _LEGAL_ID.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode(errors='replace')).hexdigest()[:32]}"


def called_tools(turns: Iterable[Turn]) -> list[str]:
    """The names of all tools that were called, once each: some services need them."""
    return list(
        dict.fromkeys(
            step.name
            for turn in turns
            if isinstance(turn, AssistantTurn)
            for step in turn.steps
            if isinstance(step, CallPart)
        )
    )


class _TurnBuilder:
    """Puts items into turns, one after the other."""

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
        self._is_native = takes.native
        self._commands: dict[str, str] = {}
        self._later: list[UserTurn] = []

    def add(self, item: View, raw: Mapping[str, Any]) -> None:
        match item:
            case Message(role="assistant"):
                self._add_answer(item)
            case Message():
                self._add_question(item)
            case Reasoning():
                self._steps.append(ReasoningPart(reasoning=item))
            case FunctionCall():
                self._add_call(item, replace_surrogates(item.arguments))
            case CustomToolCall():
                self._add_call(item, replace_surrogates(item.input), is_custom=True)
            case FunctionCallOutput() | CustomToolCallOutput():
                self._add_output(item)
            case LocalShellCall():
                self._add_command(item, raw)
            case GeneratedPicture():
                self._add_generated(item, raw)
            case _:
                self._add_native(item, raw)

    def finish(self) -> list[Turn]:
        self._end_answer()
        if not self._turns:
            raise InputInvalid("There is nothing to send to the model", field="items")
        return self._turns

    def _add_question(self, item: Message) -> None:
        parts = self._writer.write(item.parts)
        # An unknown role must not make every later request fail.
        role = item.role if item.role in _USER_ROLES else "user"
        if parts:
            # A message that came before the outputs is sent after them.
            self._later.append(UserTurn(role=cast("UserRole", role), parts=parts))
        if not self._calls:
            self._end_answer()

    def _add_answer(self, item: Message) -> None:
        texts = self._writer.write_text(item.parts)
        if texts:
            self._steps.append(MessagePart(texts=texts, phase=item.phase))

    def _add_call(self, item: AnyCall, arguments: str, *, is_custom: bool = False) -> None:
        self._check_new(item.call_id)
        call = CallPart(
            call_id=legal_id(item.call_id),
            name=replace_surrogates(item.name),
            arguments=arguments,
            is_custom=is_custom,
            namespace=item.namespace,
        )
        self._steps.append(call)
        self._calls[item.call_id] = call

    def _add_output(self, item: AnyOutput) -> None:
        parts = self._writer.write(item.parts)
        call = self._calls.get(item.call_id)
        if call is None and item.call_id in self._commands:
            self._say(self._commands[item.call_id], parts)
            return
        if call is None or item.call_id in self._outputs:
            raise InputInvalid(
                f"The output {excerpt(item.call_id)} has no call before it", field="items"
            )
        says = {"name": item.name, "namespace": item.namespace}
        self._outputs[item.call_id] = OutputPart(
            call=call,
            tool={key: value for key, value in says.items() if value is not None},
            parts=parts,
            is_text=isinstance(item.output, str),
            has_failed=item.succeeded is False,
        )
        if len(self._outputs) == len(self._calls):
            self._end_calls()

    def _add_command(self, item: LocalShellCall, raw: Mapping[str, Any]) -> None:
        call_id = item.call_id or item.id or ""
        if not self._is_native:
            self._commands[call_id] = put_into_words(item) or ""
            return
        self._check_new(call_id)
        call = CallPart(
            call_id=legal_id(call_id), name="", arguments="", native={**raw, "call_id": call_id}
        )
        self._steps.append(call)
        self._calls[call_id] = call

    def _add_generated(self, item: GeneratedPicture, raw: Mapping[str, Any]) -> None:
        words = put_into_words(item) or ""
        if not item.result:
            words = f"{words}; {item.note}" if item.note else words
            self._steps.append(MessagePart(texts=[f"[{replace_surrogates(words)}]"]))
            return
        (picture,) = self._writer.write([InputImage(image_url=item.result)])
        if self._is_native and isinstance(picture, PlacedPicture):
            native = {**raw, "result": picture.image.data}
            self._steps.append(MessagePart(texts=[words], native=native))
        else:
            self._say(words, [picture])

    def _add_native(self, item: View, raw: Mapping[str, Any]) -> None:
        """Add an item as it came, or in words; an item that has neither is left out."""
        words = put_into_words(item)
        is_sent = words is not None or isinstance(item, Compaction | ContextCompaction)
        if self._is_native and is_sent:
            self._steps.append(MessagePart(texts=[words or ""], native=raw))
        elif words is not None:
            self._steps.append(MessagePart(texts=[f"[{replace_surrogates(words)}]"]))

    def _say(self, words: str, output: Sequence[Part]) -> None:
        """Add what the model did and its output as a message of the user."""
        text = "\n".join(part for part in output if isinstance(part, str))
        shown = replace_surrogates(f"{words}; output: {text}" if text else words)
        self._later.append(UserTurn(role="user", parts=[f"[{shown}]", *media(output)]))
        if not self._calls:
            self._end_answer()

    def _check_new(self, call_id: str) -> None:
        if call_id in self._calls:
            raise InputInvalid(f"The call {excerpt(call_id)} occurs twice", field="items")

    def _end_calls(self) -> None:
        outputs = [self._outputs[call_id] for call_id in self._calls]
        self._turns += [AssistantTurn(steps=self._steps), ToolTurn(outputs=outputs), *self._later]
        self._steps, self._calls, self._outputs, self._later = [], {}, {}, []

    def _end_answer(self) -> None:
        if self._calls:
            raise self._unanswered()
        # Reasoning without a message or a call after it is not sent.
        if any(not isinstance(step, ReasoningPart) for step in self._steps):
            self._turns.append(AssistantTurn(steps=self._steps))
        self._turns += self._later
        self._steps, self._later = [], []

    def _unanswered(self) -> InputInvalid:
        missing = next(call_id for call_id in self._calls if call_id not in self._outputs)
        return InputInvalid(f"The call {excerpt(missing)} has no output after it", field="items")
