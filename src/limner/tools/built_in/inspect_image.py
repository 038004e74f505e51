"""The tool `inspect_image`: a local picture and a question in, a model's answer in words out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.content import Text
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import ToolDeclaration
from limner.tools.inspection import (
    TOOL,
    InspectArguments,
    Inspection,
    InspectRequest,
)

# So that a model that takes too long is reported as such, and not as a tool that does.
SPARE_S = 30.0


class InspectionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `inspect_image`."""

    text: str
    details: Mapping[str, Any]


INSPECT_IMAGE = ToolDeclaration(
    name=TOOL,
    title="Ask about a picture",
    description="Look at a picture file with a vision model and answer a question about it. Use it "
    "to read text in screenshots, describe photos, check a user interface, compare pictures. The "
    "answer keeps what is visible apart from what is inferred. Ask one specific question. To read "
    "small text, give `region` in pixels of the original: it is looked at in full detail.",
    arguments=InspectArguments,
    answer=InspectionAnswer,
    hints=ToolHints(read_only=True, destructive=False, idempotent=False, open_world=True),
    max_result_chars=40_000,
    keeps_books=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""
    inspector = parts.inspector

    async def run(arguments: InspectArguments, context: ToolContext) -> Outcome:
        request = InspectRequest(**msgspec.structs.asdict(arguments))
        inspection = await inspector.inspect(request, context)
        return Outcome(
            value=as_value(inspection),
            content=(Text(inspection.text),),
            cost_nano=inspection.cost_nano,
            cost_source=inspection.cost_source,
            untrusted=inspection.untrusted,
        )

    async def quote(arguments: InspectArguments, context: ToolContext) -> int:
        return await inspector.quote(InspectRequest(**msgspec.structs.asdict(arguments)), context)

    return INSPECT_IMAGE.tool(run, quote=quote, timeout_s=inspector.timeout_s + SPARE_S)


def as_value(inspection: Inspection) -> dict[str, Any]:
    """The tool's answer."""
    details = {
        **inspection.details,
        "cost_usd": inspection.cost_usd,
        "cost_source": inspection.cost_source,
    }
    return msgspec.structs.asdict(InspectionAnswer(text=inspection.text, details=details))
