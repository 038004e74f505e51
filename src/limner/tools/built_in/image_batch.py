"""The tool `image_batch`: rows of calls in, a job that runs them in the background out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.batches import BatchAnswer
from limner.tools.built_in import ToolParts
from limner.tools.declaration import PathText, ToolDeclaration

MAX_ROWS = 1_000


class BatchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_batch`."""

    rows: Annotated[
        tuple[Mapping[str, Any], ...],
        Meta(
            description="The calls: each has a `key` of its own, a `tool` (default: "
            "image_generate) and the arguments of that tool.",
            max_length=MAX_ROWS,
        ),
    ] = ()
    manifest: (
        Annotated[PathText, Meta(description="A JSONL or CSV file with the rows instead.")] | None
    ) = None
    budget_usd: (
        Annotated[
            float,
            Meta(description="The most that all rows may cost. Default: the sum of quotes.", ge=0),
        ]
        | None
    ) = None
    job: Annotated[str, Meta(description="The job of a batch that was started.")] | None = None
    action: Annotated[
        Literal["run", "status", "cancel"],
        Meta(description="What to do with the job: go on, report, or stop it."),
    ] = "run"


IMAGE_BATCH = ToolDeclaration(
    name="image_batch",
    title="Run many calls",
    description="Run many calls of the other image tools in the background, within one budget. "
    "Answers with a job at once: call again with `job` for its state and results. Each row is paid "
    "for at most once, also if the same rows are sent again; rows fail alone.",
    arguments=BatchArguments,
    answer=BatchAnswer,
    hints=ToolHints(read_only=False, destructive=True, idempotent=True, open_world=True),
    max_result_chars=20_000,
    keeps_books=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""

    async def run(arguments: BatchArguments, context: ToolContext) -> Outcome:
        batches = parts.batches()
        if arguments.job is not None:
            answer = await batches.follow(arguments.job, action=arguments.action)
        else:
            answer = await batches.start(
                arguments.manifest or arguments.rows, context, budget_usd=arguments.budget_usd
            )
        return Outcome(value=msgspec.to_builtins(answer), untrusted=answer.failed > 0)

    return IMAGE_BATCH.tool(run)
