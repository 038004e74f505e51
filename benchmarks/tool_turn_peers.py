"""Paths on stdin -> a turn each: agents whose tool returns the picture at that path.

usage: python -m benchmarks.tool_turn_peers NAME BASE_URL

Each runs in a process of its own, in one conversation, with the same model server. Nobody's
libraries are loaded for another.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from benchmarks.app_server_model import MARK, SHOT

MODEL = "gpt-5.5"
WORDS = f"{MARK}{SHOT}"
Turn = Callable[[Path], Awaitable[None]]


@asynccontextmanager
async def limner(base_url: str) -> AsyncGenerator[Turn]:
    import limner

    shot = Path()

    @limner.tool
    async def take_screenshot() -> limner.Picture:
        """Take a screenshot."""
        return await lim.take(shot)

    env = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": base_url}
    async with limner.Limner(env=env) as lim:
        agent = limner.Agent(lim, model=f"openai/{MODEL}", tools=[take_screenshot])
        async with agent:

            async def turn(path: Path) -> None:
                nonlocal shot
                shot = path
                async for event in agent.run(WORDS):
                    if isinstance(event, limner.TurnEnded):
                        assert event.status == "completed", event

            yield turn


@asynccontextmanager
async def pydantic_ai(base_url: str) -> AsyncGenerator[Turn]:
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    shot, messages = Path(), []
    model = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=base_url, api_key="k"))
    agent = Agent(model)

    @agent.tool_plain
    def take_screenshot() -> BinaryContent:
        """Take a screenshot."""
        return BinaryContent(shot.read_bytes(), media_type="image/png")

    async def turn(path: Path) -> None:
        nonlocal shot, messages
        shot = path
        async with agent.run_stream(WORDS, message_history=messages) as streamed:
            async for _ in streamed.stream_text(delta=True):
                pass
        messages = streamed.all_messages()

    yield turn


@asynccontextmanager
async def openai_agents(base_url: str) -> AsyncGenerator[Turn]:
    import base64

    from agents import (
        Agent,
        OpenAIResponsesModel,
        Runner,
        ToolOutputImage,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    shot, items = Path(), []

    @function_tool
    def take_screenshot() -> ToolOutputImage:
        """Take a screenshot."""
        data = base64.b64encode(shot.read_bytes()).decode()
        return ToolOutputImage(image_url=f"data:image/png;base64,{data}")

    client = AsyncOpenAI(base_url=base_url, api_key="k")
    model = OpenAIResponsesModel(MODEL, openai_client=client)
    agent = Agent(name="a", model=model, tools=[take_screenshot])

    async def turn(path: Path) -> None:
        nonlocal shot, items
        shot = path
        asked = [*items, {"role": "user", "content": WORDS}]
        streamed = Runner.run_streamed(agent, asked)
        async for _ in streamed.stream_events():
            pass
        items = streamed.to_input_list()

    yield turn


PEERS: dict[str, Callable[[str], AbstractAsyncContextManager[Turn]]] = {
    "limner": limner,
    "Pydantic AI": pydantic_ai,
    "OpenAI Agents": openai_agents,
}


async def serve(name: str, base_url: str) -> None:
    """Run turns until stdin closes."""
    async with PEERS[name](base_url) as turn:
        for line in sys.stdin:  # blocks the loop, which has nothing else to do between turns
            await turn(Path(line.strip()))
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
