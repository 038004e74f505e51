"""A call by an agent of another framework -> the words, fitted pictures and cost of its result.

The other modules of this package turn these into what the users of their framework expect.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from decimal import Decimal
from functools import partial
from inspect import isawaitable
from typing import Any, TypedDict, cast

import msgspec
from msgspec.structs import replace

from limner.base64_text import encode_base64
from limner.blocking import wait_for
from limner.client import Limner
from limner.content import Picture
from limner.dollars import usd_to_nano
from limner.errors import ImageError, StorageError
from limner.pictures.fitting import FittedImage
from limner.pictures.placeholders import BLOCKED, omitted, reason_of
from limner.tools.base import Question, Tool, ToolCall, ToolResult, answer_no
from limner.tools.result_budget import to_json
from limner.wires.base import HANDLE_URL

SHOWN = "The pictures of the tool's result:"
Ask = Callable[[Question], Awaitable[bool] | bool]


class ToolsetOptions(TypedDict, total=False):
    """The options of every integration.

    Attributes:
        lim: the `Limner` that draws, stores and pays; by default one with this program's settings.
        model: the model that gets the pictures, as ``provider/id``. They are fitted for it.
        budget_usd: the most that these tools may spend.
        ask: decides what only a person can decide; by default the answer is no. It may be async.
            An exception that it raises leaves the tool, so a framework can pause the run.
    """

    lim: Limner | None
    model: str | None
    budget_usd: Decimal | float | str | None
    ask: Ask


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model gets for a call.

    Attributes:
        result: the result of the tool.
        words: the text for the model, as JSON. A failure is ``{"error": {…}}``.
        pictures: the pictures for the model.
    """

    result: ToolResult
    words: str
    pictures: tuple[FittedImage, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the tool did its work."""
        return self.result.ok

    @property
    def invites_retry(self) -> bool:
        """Whether the model can call again: after a wrong argument, or a failure that passes."""
        result = self.result
        return result.code == "input_invalid" or (result.retryable and not result.billed)

    @property
    def facts(self) -> dict[str, Any]:
        """What a program wants to know, as JSON: the cost, and the handles of the pictures."""
        result = self.result
        shown = [one.handle for one in result.content if isinstance(one, Picture)]
        return {
            "tool": result.name,
            "ok": result.ok,
            "cost_usd": result.cost_usd,
            "cost_source": result.cost_source,
            "images": [f"{HANDLE_URL}{handle}" for handle in shown],
        }


class Toolset:
    """limner's tools for an agent of another framework; `ToolsetOptions` has the arguments.

    What its calls spend belongs to one session, which ``budget_usd`` caps.

    Raises:
        InputInvalid: there is no such model, or the budget is not an amount.
    """

    def __init__(
        self,
        lim: Limner | None = None,
        *,
        model: str | None = None,
        budget_usd: Decimal | float | str | None = None,
        ask: Ask = answer_no,
    ) -> None:
        self.limner = Limner() if lim is None else lim
        if model is not None:
            self.limner.models.vision_facts(model)
        self._model, self._ask = model, ask
        self._budget_nano = None if budget_usd is None else usd_to_nano(budget_usd)
        self._session_id = uuid.uuid4().hex
        self._registry = self.limner.registry()
        self._has_read_untrusted = False

    @property
    def tools(self) -> list[Tool]:
        """The tools that can be called now."""
        return self._registry.definitions()

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, ask: Ask | None = None
    ) -> ToolAnswer:
        """Call a tool; a failure is an answer too. ``ask`` replaces that of the options.

        Raises:
            Exception: ``ask`` raised it; nothing was sent or paid.
        """
        raised: list[Exception] = []

        async def decide(question: Question) -> bool:
            try:
                # A plain function may wait for a person at a terminal.
                answer = await asyncio.to_thread(ask or self._ask, question)
                return bool(await answer if isawaitable(answer) else answer)
            except Exception as error:
                raised.append(error)
                return False

        context = replace(
            self.limner.context(ask=decide),
            session_id=self._session_id,
            budget_nano=self._budget_nano,
            has_read_untrusted=self._has_read_untrusted,
        )
        call = ToolCall(name=name, arguments=arguments)
        (result,) = await self._registry.execute_parallel([call], context)
        if raised:
            raise raised[0]
        self._has_read_untrusted |= result.untrusted
        return await self._answer(result)

    def call_blocking(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """As `call`, for a framework without async."""
        # The framework may find its run by a context variable, which the other thread lacks.
        ask = partial(copy_context().run, self._ask)
        return wait_for(self.call(name, arguments, ask=ask))

    async def _answer(self, result: ToolResult) -> ToolAnswer:
        if not result.value:
            return ToolAnswer(result=result, words=to_json({"error": result.error_json}))
        pictures: list[FittedImage] = []
        words = [result.value]
        for one in (item for item in result.content if isinstance(item, Picture)):
            if self.limner.settings.images.block_images:
                words.append(omitted(BLOCKED))
                continue
            try:
                pictures.append(await self.limner.picture(one).fit(model=self._model))
            except (ImageError, StorageError) as error:
                words.append(omitted(reason_of(error)))
        return ToolAnswer(result=result, words="\n".join(words), pictures=tuple(pictures))


def encode(picture: FittedImage) -> str:
    """The bytes of a picture as base64."""
    return encode_base64(picture.data)


def data_url(picture: FittedImage) -> str:
    """A picture as a data URL."""
    return f"data:{picture.mime};base64,{encode(picture)}"


def schema_of(tool: Tool) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, which the framework may change."""
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(tool.schema)))
