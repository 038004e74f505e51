"""CrewAI: each tool is a `BaseTool` that returns text; a hook before model calls shows pictures."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from functools import cache
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import SHOWN, Toolset, ToolsetOptions, data_url, schema_of

with needs("crewai"):
    from crewai.hooks import LLMCallHookContext, register_before_llm_call_hook
    from crewai.tools import BaseTool
    from crewai.utilities.pydantic_schema_utils import create_model_from_schema
    from pydantic import PrivateAttr


class _CrewTool(BaseTool):
    cost_usd: float = 0
    _own: Toolset = PrivateAttr()
    _shown: list[str] = PrivateAttr(default_factory=list)

    def _run(self, **arguments: Any) -> str:
        answer = self._own.call_blocking(self.name, arguments)
        self.cost_usd += answer.result.cost_usd
        if not answer.ok:
            raise ValueError(answer.words)
        self._shown += map(data_url, answer.pictures)
        return answer.words


def limner_tools(**options: Unpack[ToolsetOptions]) -> list[BaseTool]:
    """The tools for an agent; ``cost_usd`` of each is what its calls have cost."""
    _register_hook()
    own = Toolset(**options)
    tools: list[BaseTool] = []
    for tool in own.tools:
        made = _CrewTool(
            name=tool.name,
            description=tool.description,
            args_schema=create_model_from_schema(schema_of(tool), model_name=tool.name),
            cache_function=lambda *_: False,  # the same prompt again is another picture
        )
        made._own = own
        tools.append(made)
    return tools


@cache
def _register_hook() -> None:
    register_before_llm_call_hook(_show_pictures)


def _show_pictures(context: LLMCallHookContext) -> None:
    for tool in getattr(context.agent, "tools", None) or ():
        if isinstance(tool, _CrewTool) and tool._shown:
            addresses, tool._shown = tool._shown, []
            shown = [{"type": "image_url", "image_url": {"url": one}} for one in addresses]
            content = [{"type": "text", "text": SHOWN}, *shown]
            context.messages.append({"role": "user", "content": content})
