"""Make a tool of a function: its answer is a picture that the model gets to see."""

import asyncio
from pathlib import Path
from typing import Annotated

import limner


@limner.tool
def bar_chart(
    values: Annotated[list[float], "The heights of the bars, from left to right."],
    colour: Annotated[str, "A colour as in CSS."] = "teal",
) -> Path:
    """Draw a bar chart of the values."""
    tallest = max(values)
    bars = "".join(
        f'<rect x="{40 * i + 10}" y="{200 - 180 * value / tallest}" width="30" '
        f'height="{180 * value / tallest}" fill="{colour}"/>'
        for i, value in enumerate(values)
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 210">{bars}</svg>'
    return limner.generate("a bar chart", svg=svg, size="800x420", output_path="chart.png").path


async def main() -> None:
    async with limner.Limner() as lim:
        registry = lim.registry(more=[bar_chart])
        call = limner.ToolCall(name="bar_chart", arguments={"values": [3, 1, 4, 1, 5]})
        (result,) = await registry.execute_parallel([call], limner.ToolContext())
        print([part for part in result.content if isinstance(part, limner.Picture)])


asyncio.run(main())
print(Path("chart.png").resolve())
