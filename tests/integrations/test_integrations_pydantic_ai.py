"""Pydantic AI with the real framework: the page's programs, and its approval of a paid call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ecosystem.pages import PAGES, read_page
from tests.ecosystem.programs import SCRIPT, picture, run_program
from tests.ecosystem.scripted_model import ScriptedModel
from tests.servers.components import needs

from limner.testing import FakeServices

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo

pytestmark = [pytest.mark.slow, needs("pydantic_ai")]
PAGE = read_page(PAGES / "pydantic_ai.md")
PROGRAMS = {"responses": PAGE.programs[0], "chat": PAGE.programs[1]}


@pytest.mark.parametrize("wire", PROGRAMS)
def test_the_program_of_the_page_shows_the_model_the_picture(wire: str, tmp_path: Path) -> None:
    with ScriptedModel(SCRIPT, picture=picture(), image_wait_s=2) as model:
        printed = run_program(
            PROGRAMS[wire], python=Path(sys.executable), model=model, folder=tmp_path
        )
    last = model.seen[-1]
    (shown,) = last.pictures
    assert printed.splitlines() == ["Done: I saw the picture.", "cost: 0.01342 USD"]
    assert (last.wire, last.saw_error, last.leaked_chars, model.drawn) == (wire, True, 0, 1)
    assert (shown.mime, shown.in_result) == ("image/webp", wire == "responses")


async def test_a_paid_call_is_deferred_until_it_is_approved() -> None:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from limner.integrations.pydantic_ai import limner_toolset

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("Done.")])
        call = ToolCallPart("image_generate", {"prompt": "a fox"}, tool_call_id="call_1")
        return ModelResponse(parts=[call])

    with FakeServices() as fake:
        async with fake.limner(settings={"approval.policy": "untrusted"}) as lim:
            agent = Agent(
                FunctionModel(answer),
                output_type=[str, DeferredToolRequests],
                toolsets=[limner_toolset(lim=lim, approval=True)],
            )
            asked = await agent.run("Draw a fox.")
            assert isinstance(asked.output, DeferredToolRequests)
            assert "costs" in asked.output.metadata["call_1"]["question"]
            assert fake.bill().charges == ()
            done = await agent.run(
                message_history=asked.all_messages(),
                deferred_tool_results=DeferredToolResults(approvals={"call_1": True}),
            )
            assert done.output == "Done."
            assert len(fake.bill().charges) == 1
