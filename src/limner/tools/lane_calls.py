"""A row of a batch -> a request to a vendor's batch API; its response -> the result of the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.batches.cheap_lane import NO_CHEAP_LANE, RemoteCall
from limner.batches.records import Batch, ClaimedRow, RemoteBatch, RowOutcome
from limner.batches.remote_api import LineResult
from limner.catalogue.batch_prices import image_model_in_batch, vision_model_in_batch
from limner.catalogue.prices import Quote
from limner.errors import LimnerError, StorageError, UserError
from limner.models import pricing
from limner.models.registry import KnownModel
from limner.models.remote import RemoteModel
from limner.money.ledger import Money
from limner.money.paid_call import resumed_call
from limner.money.records import JobRow, PaymentTerms
from limner.net.service import Service
from limner.pictures.request import ImageRequest, Receipt
from limner.providers.base import Batchable
from limner.providers.choice import Choice
from limner.storage.incoming_files import IncomingFile
from limner.tools.base import ToolContext
from limner.tools.batch_calls import BatchCalls
from limner.tools.built_in.inspect_image import as_value as inspection_value
from limner.tools.drawing_arguments import DrawingArguments, DrawingDefaults, order_for
from limner.tools.generation import ImageGenerator
from limner.tools.generation_tool import as_value
from limner.tools.inspection import (
    TOOL,
    InspectArguments,
    Inspection,
    Inspector,
    InspectRequest,
    answer_value,
)
from limner.tools.journal import encode_entry
from limner.tools.picture_set import PictureSet
from limner.tools.planning import quote_of
from limner.tools.recovery import receive


class QuestionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal keeps of a question: enough to make the result of its answer.

    ``key`` names the answer in the cache.
    """

    model: str
    key: str
    details: Mapping[str, Any]
    schema: Mapping[str, Any] | None = None


class RemoteRowCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Prepares rows for the vendors' batch APIs, and takes their responses."""

    calls: BatchCalls
    generator: ImageGenerator
    inspector: Inspector
    money: Money
    defaults: DrawingDefaults

    async def prepare(
        self, batch: Batch, row: ClaimedRow, terms: PaymentTerms
    ) -> RemoteCall | RowOutcome:
        """The request of a row, or its result if that is in the cache.

        Raises:
            LimnerError: the row would fail before it pays, or its model has no batch price.
        """
        context = self.calls.context_of(batch, terms)
        call = await self.offer(row.tool, msgspec.json.decode(row.arguments), context)
        if not call.draws:
            entry = msgspec.json.decode(call.entry, type=QuestionEntry)
            if await self.inspector.cache.recall(entry.key) is not None:
                return await self.calls.run(batch, row, terms)
        return call

    async def offer(
        self, tool: str, arguments: Mapping[str, object], context: ToolContext
    ) -> RemoteCall:
        """The request of a call with its price in a batch and without; nothing is sent.

        Raises:
            LimnerError: as `prepare`.
        """
        given = self.calls.arguments_of(tool, arguments)
        if isinstance(given, DrawingArguments):
            return await self._drawing(given, context)
        if isinstance(given, InspectArguments):
            return await self._question(given, context)
        raise UserError(
            f"{tool} has no cheap lane: it sends nothing to a vendor's batch API",
            code=NO_CHEAP_LANE,
            hint="Run it without --lane cheap.",
        )

    def connect(self, remote: RemoteBatch) -> Service:
        """The HTTP API of a remote batch.

        Raises:
            UserError: the key of the vendor is missing.
        """
        if remote.tool == TOOL:
            return self._client(self._model(f"{remote.provider}/{remote.model}")).service
        return self._provider(remote.provider, remote.model).service

    async def accept(self, remote: RemoteBatch, job_id: str, result: LineResult) -> RowOutcome:
        """Store the response to a job and settle its price; a failure is released."""
        job = await self.money.job(job_id)
        if job is None:
            raise StorageError(f"There is no job {job_id!r}.")
        try:
            if result.response is None:
                error = self.connect(remote).reported_error(result.code, result.message, paid=False)
                await self.money.release(job.reservation, error_code=error.code)
                raise error
            if remote.tool == TOOL:
                return await self._answer(job, result.response)
            return await self._picture(job, result.response, result)
        except LimnerError as error:
            now = await self.money.job(job_id)
            cost_nano = 0 if now is None or now.state == "released" else now.cost_nano
            source = error.cost_source if cost_nano else "table"
            return RowOutcome(error=error.as_json(), cost_nano=cost_nano, cost_source=source)

    # --- pictures ---

    async def _drawing(self, arguments: DrawingArguments, context: ToolContext) -> RemoteCall:
        order = order_for(arguments, self.defaults)
        today = self.generator.clock().date()
        plan = await self.generator.planner.plan(order, context, today=today)
        provider = self.generator.connect(plan.choice)
        model = image_model_in_batch(plan.choice.model)
        if model is None or not isinstance(provider, Batchable):
            raise _no_batch(plan.choice.model.name)
        return RemoteCall(
            api=provider.batch_api,
            service=provider.service,
            provider=plan.choice.spec.name,
            model=model.id,
            draws=True,
            quote_nano=quote_of(plan.request, model).nano,
            now_nano=plan.quote.nano,
            entry=encode_entry(plan),
            build=lambda: provider.batch_request(plan.request),
        )

    async def _picture(
        self, job: JobRow, response: Mapping[str, Any], result: LineResult
    ) -> RowOutcome:
        provider = self._provider(job.provider, job.model)
        row = self.generator.planner.specs()[job.provider].model(job.model)
        model = None if row is None else image_model_in_batch(row)
        if model is None:
            raise _no_batch(f"{job.provider}/{job.model}")

        async def read(file: IncomingFile, request: ImageRequest) -> Receipt:
            result.picture.copy_to(file)
            return await provider.read_batched(response, request, model, file)

        drawn = await receive(job, self.generator, read)
        value = as_value(PictureSet(images=(drawn,)))
        return RowOutcome(
            result=msgspec.json.encode(value).decode(),
            picture=drawn.image.handle,
            cost_nano=drawn.cost_nano,
            cost_source=drawn.cost_source,
        )

    def _provider(self, name: str, model_id: str) -> Batchable:
        planner = self.generator.planner
        spec = planner.specs()[name]
        key = spec.key(planner.key_of)
        if key is None:
            raise UserError(f"{name} needs a key in {spec.key_env}", code="NO_API_KEY")
        model = spec.model(model_id) or spec.models[0]
        provider = self.generator.connect(Choice(spec=spec, model=model, key=key))
        assert isinstance(provider, Batchable)
        return provider

    # --- answers in words ---

    async def _question(self, arguments: InspectArguments, context: ToolContext) -> RemoteCall:
        request = InspectRequest(**msgspec.structs.asdict(arguments))
        asked = await self.inspector.prepare(request, context)
        found = asked.found.model
        model = _in_batch(found)
        entry = QuestionEntry(
            model=found.name,
            key=self.inspector.cache.key(found.name, asked.prompt),
            details=asked.details,
            schema=asked.prompt.schema,
        )
        client = self._client(model)
        assert client.batch_api is not None
        return RemoteCall(
            api=client.batch_api,
            service=client.service,
            provider=found.provider,
            model=found.id,
            draws=False,
            quote_nano=asked.quote(_in_batch).nano,
            now_nano=asked.quote(lambda model: model).nano,
            entry=msgspec.json.encode(entry).decode(),
            build=lambda: client.batch_request(asked.prompt),
        )

    async def _answer(self, job: JobRow, response: Mapping[str, Any]) -> RowOutcome:
        entry = msgspec.json.decode(job.request, type=QuestionEntry)
        model = self._model(entry.model)
        quote = Quote(nano=job.quoted_nano, source="computed", exact=False)
        async with resumed_call(self.money, job, quote_source=quote.source) as call:
            answer = self._client(model).read_batched(response)
            call.received(*pricing.price(model, answer.usage, quote))
            text = answer.text.strip()
            value = answer_value(text, entry.schema, model)
            # In one transaction: a crash cannot lose an answer that is paid for.
            await call.settle(None, also=self.inspector.cache.keep(entry.key, text))
        usage: dict[str, Any] = {} if answer.usage is None else msgspec.structs.asdict(answer.usage)
        counted = {name: count for name, count in usage.items() if count is not None}
        inspection = Inspection(
            text=text,
            value=value,
            details={**entry.details, **({"usage": counted} if counted else {})},
            cost_nano=call.cost_nano,
            cost_source=call.cost_source,
        )
        return RowOutcome(
            result=msgspec.json.encode(inspection_value(inspection)).decode(),
            cost_nano=call.cost_nano,
            cost_source=call.cost_source,
        )

    def _model(self, name: str) -> KnownModel:
        return _in_batch(self.inspector.find_model(name).model)

    def _client(self, model: KnownModel) -> RemoteModel:
        client = self.inspector.connect(model)
        if not isinstance(client, RemoteModel) or client.batch_api is None:
            raise _no_batch(model.name)
        return client


def _in_batch(model: KnownModel) -> KnownModel:
    """The model at its batch price.

    Raises:
        UserError: the vendor has none.
    """
    facts = vision_model_in_batch(model.facts)
    if facts is None:
        raise _no_batch(model.name)
    return replace(model, facts=facts)


def _no_batch(name: str) -> UserError:
    return UserError(
        f"{name} has no cheap lane: limner knows no batch price of it. Models of OpenAI, Anthropic "
        "and Google have one, with OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY set",
        code=NO_CHEAP_LANE,
        hint="Name another model, or run it without --lane cheap.",
    )
