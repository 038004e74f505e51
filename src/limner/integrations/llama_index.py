"""LlamaIndex: each tool is an `AsyncBaseTool`; its pictures are `ImageBlock`s of its output."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack

from limner.blocking import wait_for
from limner.integrations import needs
from limner.integrations.toolset import Toolset, ToolsetOptions, schema_of
from limner.tools.base import Tool

with needs("llama-index-core"):
    from llama_index.core.base.llms.types import ImageBlock, TextBlock
    from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput


@dataclass
class _Metadata(ToolMetadata):
    schema: dict[str, Any] = field(default_factory=dict)

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.schema


class _LlamaTool(AsyncBaseTool):
    def __init__(self, own: Toolset, tool: Tool) -> None:
        self._own = own
        self._metadata = _Metadata(
            description=tool.description, name=tool.name, schema=schema_of(tool)
        )

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    async def acall(self, *args: Any, **arguments: Any) -> ToolOutput:
        given = {**(args[0] if args else {}), **arguments}
        answer = await self._own.call(self._metadata.get_name(), given)
        shown = [ImageBlock(image=one.data, image_mimetype=one.mime) for one in answer.pictures]
        return ToolOutput(
            tool_name=self._metadata.get_name(),
            blocks=[TextBlock(text=answer.words), *shown],
            raw_input=given,
            raw_output=answer.facts,
            is_error=not answer.ok,
        )

    def call(self, *args: Any, **arguments: Any) -> ToolOutput:
        return wait_for(self.acall(*args, **arguments))


def limner_tools(**options: Unpack[ToolsetOptions]) -> list[AsyncBaseTool]:
    """The tools for an agent; ``raw_output`` of a tool's output has the cost and the handles."""
    own = Toolset(**options)
    return [_LlamaTool(own, tool) for tool in own.tools]
