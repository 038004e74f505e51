"""A row of a batch -> a call of its tool: checked, quoted, run, and found again after a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.batches.manifest import ManifestRow
from limner.batches.queue import CheckedRow, checked
from limner.batches.records import Batch, ClaimedRow, RowOutcome, RowResult
from limner.content import Picture
from limner.errors import InputInvalid, LimnerError
from limner.money.ledger import Money
from limner.money.records import KeyedPayment, PaymentTerms
from limner.storage.reach import Reach
from limner.tools.base import ApprovalPolicy, ToolCall, ToolContext, ignore_progress
from limner.tools.generation import ImageGenerator
from limner.tools.generation_tool import as_value
from limner.tools.picture_set import PictureSet
from limner.tools.recovery import fetch_result
from limner.tools.registry import ToolRegistry

JOB_LOST = "JOB_LOST"
# The user has approved the budget, so that no row asks.
_APPROVED = ApprovalPolicy(policy="never", above_nano=0)


class RowCaller(msgspec.Struct, frozen=True, kw_only=True):
    """The folder, the reach and the history of the one whose calls the rows are.

    A manifest is data. If a user names one, its rows may read and write as a model with full access
    does: pictures only, and none of the files that are closed to models.
    """

    cwd: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    anywhere: bool = False
    read_only: bool = False
    has_read_untrusted: bool = False

    @classmethod
    def of(cls, context: ToolContext) -> RowCaller:
        """What the store keeps of a context."""
        reach = context.reach
        return cls(
            cwd=str(context.cwd),
            read=tuple(map(str, reach.read)),
            write=tuple(map(str, reach.write)),
            anywhere=reach.anywhere,
            read_only=reach.read_only,
            has_read_untrusted=context.has_read_untrusted,
        )

    def context(self, floor: Reach) -> ToolContext:
        """The context of a row; ``floor`` has the protected paths."""
        reach = replace(
            floor,
            read=tuple(map(Path, self.read)),
            write=tuple(map(Path, self.write)),
            anywhere=self.anywhere,
            read_only=self.read_only,
            by_person=False,
        )
        return ToolContext(
            cwd=Path(self.cwd), reach=reach, has_read_untrusted=self.has_read_untrusted
        )


class BatchCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Runs rows with the tools of one program.

    ``registry`` has limner's own tools. ``reach`` has the protected paths of this machine.
    ``key_of`` finds the key of a provider.
    """

    registry: ToolRegistry
    generator: ImageGenerator
    money: Money
    reach: Callable[[], Reach]
    key_of: Callable[[str], str | None]

    def check(self, row: ManifestRow) -> CheckedRow:
        """A row whose arguments fit its tool.

        Raises:
            InputInvalid: they do not; the error names the row.
        """
        try:
            tool = self.registry.get(row.tool)
            schema: Mapping[str, Any] = {} if tool is None else tool.schema
            arguments = _without_text(row.arguments, schema.get("properties", {}))
            _, meant = self.registry.read(ToolCall(name=row.tool, arguments=arguments))
            if meant.get("n", 1) != 1:
                raise InputInvalid("a row is one picture: write one row for each", field="n")
        except InputInvalid as error:
            error.message = f"Row {row.key!r}: {error.message}"
            error.args = (error.message,)
            raise
        return checked(row, meant)

    async def quote(self, row: CheckedRow, context: ToolContext) -> int:
        """The most that a row can cost, in nano-dollars; nothing is sent.

        Raises:
            LimnerError: the row would fail before it pays.
        """
        tool = self.registry.get(row.tool)
        if tool is None or tool.quote is None:
            return 0
        return await tool.quote(msgspec.json.decode(row.arguments), context)

    async def run(self, batch: Batch, row: ClaimedRow, terms: PaymentTerms) -> RowOutcome:
        """Run the call of a row once."""
        call = ToolCall(name=row.tool, arguments=msgspec.json.decode(row.arguments))
        result = await self.registry.execute(call, self.context_of(batch, terms))
        pictures = [part.handle for part in result.content if isinstance(part, Picture)]
        return RowOutcome(
            result=result.value if result.ok else None,
            error=None if result.ok else result.error_json,
            picture=pictures[0] if pictures and result.ok else None,
            cost_nano=result.cost_nano,
            cost_source=result.cost_source,
        )

    async def recover(
        self, batch: Batch, row: ClaimedRow, payment: KeyedPayment, terms: PaymentTerms
    ) -> RowOutcome:
        """The result of a row that was paid for, or may have been; nothing is paid again."""
        try:
            outcome = await self._fetch(payment)
        except LimnerError as error:
            outcome = RowOutcome(error=error.as_json())
        if outcome is None and payment.state == "settled":
            # An answer in words is in the cache. If it is not, the payment refuses another one.
            outcome = await self.run(batch, row, terms)
        if outcome is None:
            outcome = RowOutcome(error=_lost(payment).as_json())
        now = await self.money.payment(terms.key)
        if now is None:
            return replace(outcome, cost_nano=0, cost_source="table")
        source = now.cost_source if now.state == "settled" else "unknown"
        return replace(outcome, cost_nano=now.cost_nano, cost_source=source)

    def picture_file(self, row: RowResult) -> Path | None:
        """The file of the picture that a row made or looked at; None if it is not here."""
        result: Any = {} if row.result is None else msgspec.json.decode(row.result)
        named = result.get("path") or result.get("details", {}).get("imagePath")
        if named is not None and (path := Path(named)).is_file():
            return path
        return None

    def key_hash(self, provider: str) -> str:
        """Tells the keys of a provider apart, without being one."""
        return hashlib.sha256((self.key_of(provider) or "").encode()).hexdigest()[:12]

    async def _fetch(self, payment: KeyedPayment) -> RowOutcome | None:
        """The picture of a payment; None if it bought words, or the picture is lost."""
        job = None if payment.job_id is None else await self.money.job(payment.job_id)
        if job is None:
            return None
        drawn = await fetch_result(job, self.generator, path=payment.path, progress=ignore_progress)
        if drawn is None:
            return None
        value = as_value(PictureSet(images=(drawn,)))
        return RowOutcome(result=msgspec.json.encode(value).decode(), picture=drawn.image.handle)

    def arguments_of(self, tool: str, arguments: Mapping[str, object]) -> object:
        """The arguments of a tool as its Struct; None if it has none."""
        found = self.registry.get(tool)
        struct = None if found is None else found.arguments
        return None if struct is None else msgspec.convert(arguments, struct)

    def context_of(self, batch: Batch, terms: PaymentTerms) -> ToolContext:
        """The caller of a row, who pays from the budget of the batch."""
        caller = msgspec.json.decode(batch.caller, type=RowCaller)
        return replace(
            caller.context(self.reach()),
            session_id=batch.id,
            budget_nano=batch.budget_nano,
            approval=_APPROVED,
            terms=terms,
        )


def _lost(payment: KeyedPayment) -> LimnerError:
    may = "was billed" if payment.state == "settled" else "may have been billed"
    error = LimnerError(
        f"The row was interrupted after its request was sent; it {may}, and its result cannot be "
        "fetched",
        code=JOB_LOST,
        hint="`limner jobs list` shows it. Give the row another key to pay for it again.",
    )
    error.charge(payment.cost_nano, payment.cost_source)
    return error


def _without_text(
    arguments: Mapping[str, Any], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Arguments whose numbers, lists and objects came as text, as in a table of texts."""
    return {
        name: _parsed(value)
        if isinstance(value, str) and properties.get(name, {}).get("type") not in ("string", None)
        else value
        for name, value in arguments.items()
    }


def _parsed(text: str) -> object:
    try:
        return msgspec.json.decode(text.lower() if text.lower() in ("true", "false") else text)
    except msgspec.DecodeError:
        return text
