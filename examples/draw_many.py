"""Draw several pictures at once under one budget."""

import asyncio

import limner

PROMPTS = ["a red apple", "two cats on a beach at sunset", "a robot in space"]


async def main() -> None:
    async with limner.Limner(budget_usd=0.25) as lim:
        for drawn in await asyncio.gather(*(lim.generate(prompt) for prompt in PROMPTS)):
            print(drawn.path, drawn.provider)


asyncio.run(main())
