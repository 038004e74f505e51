"""A prompt -> a model's answer: built, reserved, asked, settled, and nothing is refused twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from limner.agent.picture_slots import find_media
from limner.agent.prompt_builder import BuiltPrompt, PromptBuilder
from limner.agent.quarantine import Quarantine, is_about_the_request
from limner.agent.untrusted import fence_items
from limner.catalogue.prices import PROMPT_WRAPPING_TOKENS
from limner.catalogue.tokens import UNKNOWN_TOKENS
from limner.errors import LimnerError, ProviderError
from limner.models import pricing
from limner.models.base import Model
from limner.models.registry import FoundModel, KnownModel
from limner.money.ledger import Money
from limner.money.paid_call import finish_despite_cancellation, paid_call
from limner.net.waits import waits_reported
from limner.storage.store import Transaction
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.consent import payer_for
from limner.tools.in_flight import InFlight
from limner.wires.base import Answer, Prompt, Usage
from limner.wires.content_parts import AudioClip
from limner.wires.items import Item
from limner.wires.turns import left_out

logger = logging.getLogger("limner.agent")

TOOL = "conversation"
"""The tool name of a conversation in the ledger."""

MAX_STREAM_RETRIES = 2
STREAM_RETRY_PAUSE_S = 0.2
BYTES_PER_TOKEN = 3
# One second is at most 32 tokens. It takes 512 bytes at the lowest bit rate of speech, and about
# thirty times as many in a usual recording.
LEAST_AUDIO_BYTES_PER_TOKEN = 16
AUDIO_BYTES_PER_TOKEN = 500


class PromptSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a prompt: bytes of text, bytes of audio, tokens of pictures."""

    size_bytes: int
    picture_tokens: int
    audio_bytes: int = 0

    @property
    def max_tokens(self) -> int:
        """The most tokens it can have: a token is at least one byte."""
        audio = -(-self.audio_bytes // LEAST_AUDIO_BYTES_PER_TOKEN)
        return PROMPT_WRAPPING_TOKENS + self.size_bytes + self.picture_tokens + audio

    @property
    def expected_tokens(self) -> int:
        """About how many tokens it has."""
        words = self.size_bytes // BYTES_PER_TOKEN
        audio = self.audio_bytes // AUDIO_BYTES_PER_TOKEN
        return PROMPT_WRAPPING_TOKENS + words + self.picture_tokens + audio

    def minus(self, shorter: PromptSize) -> PromptSize | None:
        """What was added to a shorter prompt; None if something was removed."""
        added = PromptSize(
            size_bytes=self.size_bytes - shorter.size_bytes,
            picture_tokens=self.picture_tokens - shorter.picture_tokens,
            audio_bytes=self.audio_bytes - shorter.audio_bytes,
        )
        is_longer = min(added.size_bytes, added.picture_tokens, added.audio_bytes) >= 0
        return added if is_longer else None


class PromptCount(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a model counted for a prompt; a longer prompt has at least as many."""

    model: str
    size: PromptSize
    usage: Usage

    def max_tokens(self, longer: PromptSize) -> int:
        """The most tokens of a longer prompt that begins with this one."""
        added = longer.minus(self.size)
        return longer.max_tokens if added is None else self._grown(added.max_tokens)

    def expected_tokens(self, longer: PromptSize) -> int:
        """About how many tokens such a prompt has."""
        added = longer.minus(self.size)
        return longer.expected_tokens if added is None else self._grown(added.expected_tokens)

    def _grown(self, added_tokens: int) -> int:
        # The tokens that wrap a prompt were counted with the shorter one.
        return self.usage.input_tokens + added_tokens - PROMPT_WRAPPING_TOKENS


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, its cost, and the counted tokens of the prompt."""

    answer: Answer
    cost_nano: int
    prompt_count: PromptCount | None


class AnswerStorage(NamedTuple):
    """What stores an answer in the transaction of its price, and what is called after it.

    The latter is called even if the caller is cancelled meanwhile.
    """

    write: Callable[[Transaction], None]
    note: Callable[[], None]


StoreAnswer = Callable[[Answer, int], AnswerStorage]
"""An answer and its cost -> how it is stored."""


def _store_nothing(*_: object) -> AnswerStorage:
    def nothing(*_: object) -> None:
        pass

    return AnswerStorage(write=nothing, note=nothing)


class ModelCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Sends the requests of conversations to models, and pays for them."""

    prompts: PromptBuilder
    quarantine: Quarantine
    money: Money
    approval: ApprovalPolicy
    connect: Callable[[KnownModel], Model]
    in_flight: InFlight

    async def ask(
        self,
        prompt: Prompt,
        found: FoundModel,
        context: ToolContext,
        *,
        prompt_count: PromptCount | None = None,
        on_text: Callable[[str], None],
        on_retry: Callable[[LimnerError], None],
        on_warning: Callable[[str], None],
        store: StoreAnswer = _store_nothing,
    ) -> ModelReply:
        """Ask once, and again only if that is safe.

        A request whose picture or audio was refused costs nothing, and is sent without it. An
        answer that broke off before the service reported tokens is asked for again a few times;
        the ledger counts what was cut off as unknown.

        Args:
            prompt: the whole conversation, its pictures named by handle.
            found: the model, and its reasoning effort.
            context: the session that pays, and its budget.
            prompt_count: the counted tokens of a shorter prompt of this conversation.
            on_text: gets the answer as it arrives.
            on_retry: gets the error after which the request is sent again.
            on_warning: gets a sentence about pictures that are left out to save room.
            store: stores the answer in the transaction of its price.

        Raises:
            BudgetExceeded: a cap leaves too little for an answer.
            ProviderError: the provider failed.
            InputInvalid: the model's API cannot express something in the conversation.
        """
        model = found.model
        prompt = replace(prompt, effort=found.effort)
        broken = 0
        while True:
            ready = await self.prompts.build(prompt, model)
            for warning in ready.warnings:
                on_warning(warning)
            asking = self._ask_once(
                ready, model, context, prompt_count, on_text=on_text, on_retry=on_retry, store=store
            )
            try:
                return await asking
            except ProviderError as error:
                pause_s = 0.0
                if error.extras.get("broke_off") and broken < MAX_STREAM_RETRIES:
                    pause_s = STREAM_RETRY_PAUSE_S * 2**broken
                    broken += 1
                elif not await self.quarantine.refused(error, ready.sent, model=model.name):
                    if not _may_be_audio(error, ready):
                        raise
                    model = replace(model, facts=replace(model.facts, takes_audio=False))
                logger.info("%s: %s; limner asks again in another form", model.name, error.code)
                on_retry(error)
                await asyncio.sleep(pause_s)

    def warnings(self, items: Sequence[Item], model: KnownModel) -> list[str]:
        """A sentence for each kind of item that the model is not sent in any form."""
        return [
            f"Items of the kind {kind!r} stay in the history, and {model.name} is not sent them: "
            "its service cannot read them."
            for kind in left_out(items, model.api)
        ]

    async def _ask_once(
        self,
        ready: BuiltPrompt,
        model: KnownModel,
        context: ToolContext,
        prompt_count: PromptCount | None,
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[LimnerError], None],
        store: StoreAnswer,
    ) -> ModelReply:
        prompt = replace(ready.prompt, items=fence_items(ready.prompt.items))
        size = measure(prompt, picture_tokens=ready.picture_tokens, clips=ready.clips)
        input_tokens = size.max_tokens if prompt_count is None else prompt_count.max_tokens(size)
        tokens = {"input_tokens": input_tokens, "output_tokens": prompt.max_output_tokens}
        quote = pricing.quote(model, **tokens)
        client = self.connect(model)
        with self.in_flight.track():
            async with paid_call(
                self.money,
                quote,
                payer=payer_for(context, self.approval, self.money, what=None),
                tool=TOOL,
                provider=model.provider,
                model=model.id,
            ) as call:
                paid = replace(quote, nano=call.cost_nano)
                length = pricing.answer_tokens(model, quote, reserved_nano=paid.nano, **tokens)
                prompt = replace(prompt, max_output_tokens=length)
                with call.announced(None), waits_reported(lambda error, _: on_retry(error)):
                    answer = await client.ask(prompt, timeout_s=None, on_text=on_text)
                call.received(*pricing.price(model, answer.usage, paid))
                storage = store(answer, call.cost_nano)

                def store_all(tx: Transaction) -> None:
                    self.quarantine.accept(tx, ready.unproven, model=model.name)
                    storage.write(tx)

                async def settle() -> None:
                    # In one transaction: a crash cannot lose an answer that is paid for.
                    await call.settle(None, also=store_all)
                    storage.note()

                await finish_despite_cancellation(settle())
        usage = answer.usage
        return ModelReply(
            answer=answer,
            cost_nano=call.cost_nano,
            prompt_count=None
            if usage is None
            else PromptCount(model=model.name, size=size, usage=usage),
        )


def _may_be_audio(error: ProviderError, ready: BuiltPrompt) -> bool:
    """Whether the service may answer the same request without its audio."""
    return bool(ready.clips) and is_about_the_request(error) and not error.billed


def measure(prompt: Prompt, *, picture_tokens: int, clips: Sequence[AudioClip]) -> PromptSize:
    """The size of a prompt; ``clips`` are the audio clips in its items."""
    tools = [(tool.name, tool.description, tool.schema) for tool in prompt.tools]
    text = [*prompt.items, prompt.instructions, prompt.schema, tools]
    return PromptSize(
        size_bytes=len(msgspec.json.encode(text)) - sum(len(clip.url) for clip in clips),
        picture_tokens=picture_tokens,
        audio_bytes=sum(clip.size_bytes for clip in clips),
    )


def measure_history(prompt: Prompt) -> PromptSize:
    """The approximate size of a prompt before it is built."""
    media = find_media(prompt.items)
    picture_tokens = len(media.slots) * UNKNOWN_TOKENS
    return measure(prompt, picture_tokens=picture_tokens, clips=media.clips)
