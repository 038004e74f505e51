"""Draw a storybook under a budget, look at each page, and print what it cost."""

import asyncio

import limner
from limner.errors import BudgetExceeded, ProviderRefused, ProviderUnavailable

BUDGET_USD = 0.50
STYLE = "a watercolour for a children's book"
PAGES = [
    "a red fox wakes up in the snow",
    "the fox meets two cats on a beach",
    "a robot shows the fox the moon",
    "the fox sleeps under a tree",
]


async def draw(lim: limner.Limner, scene: str) -> limner.GeneratedImage:
    try:
        return await lim.generate(f"{scene}, {STYLE}")
    except ProviderRefused:
        # A refusal costs nothing here. Other words may pass.
        return await lim.generate(f"{scene}, friendly and calm, {STYLE}")
    except ProviderUnavailable as error:
        # If the service may charge for the lost picture, a second one would cost twice.
        if error.billed:
            raise
        return await lim.generate(f"{scene}, {STYLE}")


async def make_page(lim: limner.Limner, number: int, scene: str) -> str:
    try:
        drawn = await draw(lim, scene)
        look = await lim.inspect(drawn, "What are the main colours?")
    except BudgetExceeded as error:
        return f"Page {number} is left out, the budget is used up. {error.message}"
    except limner.LimnerError as error:
        return f"Page {number} is left out: {error.code}, it cost ${error.cost_usd:.4f}."
    return f"Page {number} {drawn.path} {look.text.splitlines()[0]}"


async def main() -> None:
    async with limner.Limner(budget_usd=BUDGET_USD) as lim:
        pages = (make_page(lim, number, scene) for number, scene in enumerate(PAGES, 1))
        for page in await asyncio.gather(*pages):
            print(page)
        spend = await lim.spend()
        print(f"Spent ${spend.own_usd:.4f} of ${BUDGET_USD:.2f}")


asyncio.run(main())
