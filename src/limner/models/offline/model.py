"""A prompt -> an answer of ``limner/offline``, with the interface of every model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable

from msgspec.structs import replace

from limner.errors import UserError
from limner.models.base import DEFAULT_TIMEOUT_S, ignore_text
from limner.models.offline.digest import digest
from limner.models.offline.intents import (
    ChangeIntent,
    DrawIntent,
    SayIntent,
    UnclearIntent,
    clauses,
    understand,
)
from limner.models.offline.replies import IS_A_RULE, KEY, NAME, introduction, report
from limner.models.offline.router import OfflineCall, is_redrawn, route
from limner.models.offline.transcript import Transcript, UserRequest, listen
from limner.wires import items
from limner.wires.base import Answer, Prompt, Usage

_PIECE = re.compile(r"\S+\s*|\s+")


class OfflineModel:
    """The rules that talk where no language model can, asked like any other."""

    name = NAME

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        on_text: Callable[[str], None] = ignore_text,
    ) -> Answer:
        """Answer with one call or with words; the same prompt always has the same answer.

        A prompt that offers no tools asks for a summary of the conversation.

        Raises:
            UserError: the answer has to follow a schema, which takes a model that understands it.
        """
        if prompt.schema is not None:
            raise UserError(
                f"{NAME} cannot follow a schema.", code="MODEL_CANNOT", hint=f"Set {KEY}."
            )
        step = answer(prompt)
        if isinstance(step, OfflineCall):
            call = items.function_call(
                call_id=_call_id(prompt, step),
                name=step.tool,
                arguments=json.dumps(step.arguments, ensure_ascii=False),
            )
            return _answer("", call)
        for piece in _PIECE.findall(step.words):
            on_text(piece)
        return _answer(step.words, items.message("assistant", items.text_part(step.words)))


def answer(prompt: Prompt) -> OfflineCall | SayIntent:
    """The next thing to do in a conversation."""
    if not prompt.tools:
        return SayIntent(words=digest(prompt.items))
    talk = listen(prompt.items)
    step = _next(talk, prompt)
    if isinstance(step, SayIntent) and not talk.has_spoken and NAME not in step.words:
        return SayIntent(words=f"{step.words}\n\n{IS_A_RULE}")
    return step


def _next(talk: Transcript, prompt: Prompt) -> OfflineCall | SayIntent:
    if not talk.requests:
        return SayIntent(words=introduction([offer.name for offer in prompt.tools], lost=False))
    request, follow_up = _steps(talk)
    wish = understand(request, talk.album_then)
    if not talk.deeds:
        return route(wish, prompt.tools, words=request.words)
    told = report(talk.deeds, redrawn=is_redrawn(wish))
    if follow_up is None or len(talk.deeds) > 1 or not talk.deeds[-1].ok:
        return SayIntent(words=told)
    step = route(understand(follow_up, talk.album), prompt.tools, words=follow_up.words)
    if isinstance(step, SayIntent):
        return SayIntent(words=f"{told}\n\n{step.words}")
    done = [(deed.tool, deed.arguments) for deed in talk.deeds]
    return SayIntent(words=told) if (step.tool, step.arguments) in done else step


def _steps(talk: Transcript) -> tuple[UserRequest, UserRequest | None]:
    """The last request, and what is to follow it; only what both make sense alone is two things."""
    request = talk.requests[-1]
    first, second = clauses(request.words)
    if second is None:
        return request, None
    before, after = replace(request, words=first), UserRequest(words=second)
    begins = isinstance(understand(before, talk.album_then), DrawIntent | ChangeIntent)
    goes_on = not isinstance(understand(after, talk.album_then), DrawIntent | UnclearIntent)
    return (before, after) if begins and goes_on else (request, None)


def _call_id(prompt: Prompt, call: OfflineCall) -> str:
    """An id that no other call of the conversation has, since none was made at the same point."""
    point = json.dumps([list(prompt.items), call.tool, call.arguments], default=str)
    return f"call_{hashlib.sha256(point.encode()).hexdigest()[:24]}"


def _answer(text: str, item: dict[str, object]) -> Answer:
    return Answer(
        text=text,
        stop="end",
        model=NAME,
        usage=Usage(input_tokens=0, output_tokens=0),
        items=(item,),
    )
