"""Talk to an app-server, limner's own or the real Codex, and bring a tool of your own along."""

import asyncio
import json
from datetime import datetime

import limner
from limner import TextDelta, ToolFinished, TurnEnded


@limner.tool
def clock() -> str:
    """Say what time it is where the user sits."""
    return f"{datetime.now().astimezone():%H:%M}"


async def main() -> None:
    # The same with limner.connect(codex="codex"), or connect("ws://127.0.0.1:4500", token=…).
    async with limner.connect() as client:
        thread = await client.thread(tools=[clock], model="limner/offline")
        async for event in thread.stream("draw a fox in the snow"):
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ToolFinished(result=result) if result.ok:
                    print(json.loads(result.value)["path"])
                case TurnEnded():
                    print(f"\n{event.status}")
                case _:
                    pass


asyncio.run(main())
