"""smolagents: each tool is a `Tool` that returns text; a step callback shows its pictures."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import ToolAnswer, Toolset, ToolsetOptions, schema_of
from limner.tools.base import Tool

with needs("smolagents"):
    from smolagents import ActionStep
    from smolagents import Tool as AgentTool
    from smolagents.agent_types import AgentImage

COST_KEY = "limner_cost_usd"


class _SmolTool(AgentTool):
    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, own: Toolset, tool: Tool) -> None:
        schema = schema_of(tool)
        required = schema.get("required", ())
        self.name, self.description, self._own = tool.name, tool.description, own
        self.inputs = {
            name: {"type": "any", "description": "", **one}
            | ({} if name in required else {"nullable": True})
            for name, one in schema["properties"].items()
        }
        self.answers: list[ToolAnswer] = []
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        answer = self._own.call_blocking(self.name, arguments)
        if not answer.ok:
            raise ValueError(answer.words)
        self.answers.append(answer)
        return answer.words


def limner_tools(**options: Unpack[ToolsetOptions]) -> list[AgentTool]:
    """The tools for an agent. It also needs the step callback `show_pictures`."""
    own = Toolset(**options)
    return [_SmolTool(own, tool) for tool in own.tools]


def show_pictures(step: ActionStep, agent: Any) -> None:
    """A step callback: the model sees the pictures of this step, and the state counts the cost."""
    for tool in agent.tools.values():
        if isinstance(tool, _SmolTool):
            answers, tool.answers = tool.answers, []
            spent = sum(one.result.cost_usd for one in answers)
            agent.state[COST_KEY] = agent.state.get(COST_KEY, 0) + spent
            shown = [AgentImage(p.data).to_raw() for one in answers for p in one.pictures]
            step.observations_images = [*(step.observations_images or ()), *shown]
