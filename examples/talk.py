"""Talk to a model that draws and looks; without a key it is a set of rules, and says so."""

import asyncio

import limner


async def main() -> None:
    async with limner.Agent(budget_usd=0.50) as agent:
        for words in ("Draw a fox in the snow.", "Which colours does it have?"):
            async for event in agent.run(words):
                match event:
                    case limner.TextDelta():
                        print(event.text, end="")
                    case limner.ToolFinished():
                        print(f"[{event.call.name}: ${event.result.cost_usd:.2f}]")
                    case limner.TurnEnded():
                        print(f"\n({event.status}, ${event.session_usd:.2f} so far)")
                    case _:
                        pass


asyncio.run(main())
