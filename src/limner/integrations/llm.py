"""llm: the tools are a `Toolbox`, which the plug-in registers; pictures are attachments."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from limner.integrations import needs

with needs("llm"):
    import llm


class LimnerToolbox(llm.Toolbox):
    """limner's tools: ``llm -T Limner`` or ``llm -T 'Limner(budget_usd=2)'``.

    Args:
        budget_usd: the most that the calls may cost.
        model: the model that gets the pictures, as ``provider/id``.
    """

    cost_usd = 0.0

    def __init__(self, budget_usd: float | None = None, model: str | None = None) -> None:
        # llm loads its plug-ins at every start; limner is loaded only if it is used.
        from limner.integrations.toolset import Toolset, schema_of  # noqa: PLC0415

        self._own = Toolset(budget_usd=budget_usd, model=model)
        for tool in self._own.tools:
            run = partial(self._run, tool.name)
            self.add_tool(llm.Tool(tool.name, tool.description, schema_of(tool), run))

    def _run(self, name: str, /, **arguments: Any) -> llm.ToolOutput:
        answer = self._own.call_blocking(name, arguments)
        self.cost_usd += answer.result.cost_usd
        if not answer.ok:
            raise ValueError(answer.words)
        shown = [llm.Attachment(type=one.mime, content=one.data) for one in answer.pictures]
        return llm.ToolOutput(answer.words, attachments=shown)


@llm.hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Give llm the toolbox; it makes one if a prompt asks for it."""
    register(LimnerToolbox, name="Limner")
