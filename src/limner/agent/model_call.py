"""A prompt -> a model's answer: made ready, reserved, asked, settled, and nothing refused twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from limner.agent.picture_slots import find_media
from limner.agent.prompt_builder import BuiltPrompt, PromptBuilder
from limner.agent.quarantine import Quarantine, is_about_the_request
from limner.agent.untrusted import quoted
from limner.catalogue.prices import PROMPT_WRAPPING_TOKENS, Quote
from limner.catalogue.tokens import UNKNOWN_TOKENS
from limner.errors import LimnerError, ProviderError
from limner.models import pricing
from limner.models.base import Model
from limner.models.registry import FoundModel, KnownModel
from limner.money.ledger import Money
from limner.money.paid_call import paid_call
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.consent import payer_for
from limner.tools.in_flight import InFlight
from limner.wires.base import Answer, Prompt, Usage
from limner.wires.content_parts import AudioClip

TOOL = "conversation"
"""What the ledger calls the requests of a conversation."""

# An answer shorter than this is no answer: where the budget leaves less, nothing is asked.
MIN_ANSWER_TOKENS = 256
BYTES_PER_TOKEN = 3
# A second is 32 tokens at most, and takes 512 bytes where speech is packed tightest; in a recording
# as people make it, thirty times as many.
LEAST_AUDIO_BYTES_PER_TOKEN = 16
AUDIO_BYTES_PER_TOKEN = 500


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """How long a prompt is: the bytes of its words and sounds, and the tokens of its pictures."""

    size_bytes: int
    picture_tokens: int
    audio_bytes: int = 0

    @property
    def most_tokens(self) -> int:
        """The most it can count: a token is at least one byte."""
        audio = -(-self.audio_bytes // LEAST_AUDIO_BYTES_PER_TOKEN)
        return PROMPT_WRAPPING_TOKENS + self.size_bytes + self.picture_tokens + audio

    @property
    def likely_tokens(self) -> int:
        """What it will count, more or less."""
        words = self.size_bytes // BYTES_PER_TOKEN
        audio = self.audio_bytes // AUDIO_BYTES_PER_TOKEN
        return PROMPT_WRAPPING_TOKENS + words + self.picture_tokens + audio

    def beyond(self, shorter: Weight) -> Weight | None:
        """What was added to a shorter prompt; None where something was taken away."""
        added = Weight(
            size_bytes=self.size_bytes - shorter.size_bytes,
            picture_tokens=self.picture_tokens - shorter.picture_tokens,
            audio_bytes=self.audio_bytes - shorter.audio_bytes,
        )
        is_longer = min(added.size_bytes, added.picture_tokens, added.audio_bytes) >= 0
        return added if is_longer else None


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """What a model counted for a prompt and its answer: a longer one counts so much at least."""

    model: str
    weight: Weight
    usage: Usage

    def most_tokens(self, longer: Weight) -> int:
        """The most that a prompt can count which begins as this one did."""
        added = longer.beyond(self.weight)
        return longer.most_tokens if added is None else self._grown(added.most_tokens)

    def likely_tokens(self, longer: Weight) -> int:
        """What such a prompt will count, more or less."""
        added = longer.beyond(self.weight)
        return longer.likely_tokens if added is None else self._grown(added.likely_tokens)

    def _grown(self, added_tokens: int) -> int:
        # What wraps a prompt was counted with the shorter one.
        return self.usage.input_tokens + added_tokens - PROMPT_WRAPPING_TOKENS


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, what it cost, and how long the prompt was."""

    answer: Answer
    cost_nano: int
    gauge: Gauge | None


class ModelCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Asks the models of conversations, and pays for it."""

    prompts: PromptBuilder
    quarantine: Quarantine
    money: Money
    approval: ApprovalPolicy
    connect: Callable[[KnownModel], Model]
    in_flight: InFlight

    async def think(
        self,
        prompt: Prompt,
        found: FoundModel,
        context: ToolContext,
        *,
        gauge: Gauge | None = None,
        on_text: Callable[[str], None],
        on_retry: Callable[[LimnerError], None],
    ) -> ModelReply:
        """Ask once; again only where a picture or a sound was refused, which nobody pays for.

        Args:
            prompt: the whole conversation, its pictures named by handle.
            found: who is asked, and how hard to think.
            context: whose session pays, and up to where.
            gauge: what a shorter prompt of this conversation counted.
            on_text: gets the answer as it comes in.
            on_retry: is told why the same is asked again in another form.

        Raises:
            BudgetExceeded: no cap leaves enough for an answer.
            ProviderError: the service failed.
            InputInvalid: something in the conversation has no place on the model's wire.
        """
        model = found.model
        prompt = replace(prompt, effort=found.effort)
        while True:
            ready = await self.prompts.build(prompt, model)
            try:
                thought = await self._paid(ready, model, context, gauge, on_text)
            except ProviderError as error:
                if not await self.quarantine.refused(error, ready.sent, model=model.name):
                    if not _may_be_audio(error, ready):
                        raise
                    model = replace(model, facts=replace(model.facts, takes_audio=False))
                on_retry(error)
            else:
                await self.quarantine.accepted(ready.unproven, model=model.name)
                return thought

    async def _paid(
        self,
        ready: BuiltPrompt,
        model: KnownModel,
        context: ToolContext,
        gauge: Gauge | None,
        on_text: Callable[[str], None],
    ) -> ModelReply:
        prompt = replace(ready.prompt, items=quoted(ready.prompt.items))
        weight = weigh(prompt, picture_tokens=ready.picture_tokens, clips=ready.clips)
        input_tokens = weight.most_tokens if gauge is None else gauge.most_tokens(weight)
        prompt, quote = await self._quoted(prompt, model, input_tokens, context)
        # Whatever can go wrong before anything is sent goes wrong here: the row counts as sent.
        asked = self.connect(model)
        with self.in_flight.track():
            async with paid_call(
                self.money,
                quote,
                payer=payer_for(context, self.approval, self.money, what=None),
                tool=TOOL,
                provider=model.provider,
                model=model.id,
                sending=True,
            ) as call:
                answer = await asked.ask(prompt, timeout_s=None, on_text=on_text)
                call.received(*pricing.price(model, answer.usage, quote))
                await call.settle(None)
        usage = answer.usage
        return ModelReply(
            answer=answer,
            cost_nano=call.cost_nano,
            gauge=None if usage is None else Gauge(model=model.name, weight=weight, usage=usage),
        )

    async def _quoted(
        self, prompt: Prompt, model: KnownModel, input_tokens: int, context: ToolContext
    ) -> tuple[Prompt, Quote]:
        """The most the answer can cost, and the prompt with room for no more than is left."""

        def most(output_tokens: int) -> Quote:
            return pricing.quote(model, input_tokens=input_tokens, output_tokens=output_tokens)

        tokens = prompt.max_output_tokens
        left = await self.money.remaining(
            context.session_id or "", session_cap_nano=context.budget_nano
        )
        thousand = most(1_000).nano - most(0).nano
        if left is not None and thousand:
            # Rounded up for a thousand, so that the whole never costs more than is left.
            room = max(0, left - most(0).nano) * 1_000 // thousand
            tokens = max(MIN_ANSWER_TOKENS, min(tokens, room))
        return replace(prompt, max_output_tokens=tokens), most(tokens)


def _may_be_audio(error: ProviderError, ready: BuiltPrompt) -> bool:
    """Whether the service may answer the same request without its audio."""
    return bool(ready.clips) and is_about_the_request(error) and not error.billed


def weigh(prompt: Prompt, *, picture_tokens: int, clips: Sequence[AudioClip]) -> Weight:
    """How long a prompt is; ``clips`` are the audio clips in its items."""
    tools = [(tool.name, tool.description, tool.schema) for tool in prompt.tools]
    text = [*prompt.items, prompt.instructions, prompt.schema, tools]
    return Weight(
        size_bytes=len(msgspec.json.encode(text)) - sum(len(clip.url) for clip in clips),
        picture_tokens=picture_tokens,
        audio_bytes=sum(clip.size_bytes for clip in clips),
    )


def weigh_history(prompt: Prompt) -> Weight:
    """How long a prompt is about, before it is built."""
    media = find_media(prompt.items)
    picture_tokens = len(media.slots) * UNKNOWN_TOKENS
    return weigh(prompt, picture_tokens=picture_tokens, clips=media.clips)
