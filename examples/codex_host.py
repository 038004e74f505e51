"""Let your Codex draw and look: its model gets limner's tools, and you get the bill."""

import asyncio
from pathlib import Path

import limner
from limner import ApprovalRequest, TextDelta, ToolFinished, TurnEnded
from limner.errors import MissingExtra


async def approve(approval: ApprovalRequest) -> bool:
    """Agree to what costs no more than five cents, and to nothing else."""
    return approval.amount_usd is not None and approval.amount_usd <= 0.05


async def main(sketch: Path) -> None:
    async with limner.codex_thread(cwd=Path.cwd(), budget_usd="0.25", approve=approve) as thread:
        async for event in thread.stream(
            "Draw this again as a woodcut, then look at it and say what differs.", images=[sketch]
        ):
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ToolFinished():
                    print(f"[{event.call.name}: ${event.result.cost_usd}]")
                case TurnEnded():
                    print(f"\n{event.status}, ${event.cost_nano / 1e9} in all, thread {thread.id}")
                case _:
                    pass


sketch = limner.generate("a fox under the moon", output_path="sketch.png").path
print(sketch)
try:
    asyncio.run(main(sketch))
except MissingExtra as missing:
    print(missing.message, missing.hint)
