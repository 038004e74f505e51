"""AutoGen: each tool is a `BaseTool` that returns text; the model context shows its pictures."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import (
    SHOWN,
    ToolAnswer,
    Toolset,
    ToolsetOptions,
    encode,
    schema_of,
)
from limner.tools.base import Tool

with needs("autogen-agentchat"):
    from autogen_core import CancellationToken, Image
    from autogen_core.model_context import UnboundedChatCompletionContext
    from autogen_core.models import FunctionExecutionResultMessage, LLMMessage, UserMessage
    from autogen_core.tools import BaseTool, ToolSchema
    from pydantic import BaseModel


class _AutogenTool(BaseTool[BaseModel, str]):
    component_config_schema = BaseModel

    def __init__(self, own: Toolset, tool: Tool) -> None:
        super().__init__(BaseModel, str, tool.name, tool.description)
        self._own, self._parameters = own, schema_of(tool)
        self.answers: dict[str, ToolAnswer] = {}

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description=self.description, parameters=self._parameters)

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> str:
        return await self.run_json(args.model_dump(), cancellation_token)

    async def run_json(
        self, args: Mapping[str, Any], cancellation_token: Any, call_id: str | None = None
    ) -> str:
        answer = await self._own.call(self.name, args)
        if not answer.ok:
            raise ValueError(answer.words)
        self.answers[answer.words] = answer
        return answer.words


class PictureContext(UnboundedChatCompletionContext):
    """The model context of an agent: it shows the pictures of the tools after their results."""

    def __init__(self, tools: Iterable[BaseTool]) -> None:
        super().__init__()
        self._tools = [tool for tool in tools if isinstance(tool, _AutogenTool)]

    async def get_messages(self) -> list[LLMMessage]:
        """The messages for the model."""
        shown: list[LLMMessage] = []
        for message in await super().get_messages():
            shown.append(message)
            if isinstance(message, FunctionExecutionResultMessage):
                pictures = [
                    Image.from_base64(encode(picture))
                    for result in message.content
                    for tool in self._tools
                    if result.content in tool.answers
                    for picture in tool.answers[result.content].pictures
                ]
                if pictures:
                    shown.append(UserMessage(content=[SHOWN, *pictures], source="limner"))
        return shown


def limner_tools(**options: Unpack[ToolsetOptions]) -> list[BaseTool]:
    """The tools for an agent. Its ``model_context`` is a `PictureContext` of them."""
    own = Toolset(**options)
    return [_AutogenTool(own, tool) for tool in own.tools]
