"""Draw a picture offline, then look at it, with nothing but what limner brings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from msgspec.structs import replace

from limner.client import Limner
from limner.frontends.cli.generate import draw
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import wait_for
from limner.models.registry import EYES
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.built_in.inspect_image import as_value

EXAMPLE = """\
examples:
  limner demo
  limner demo --show
"""
PROMPT = "a cat on a red bicycle on a beach at sunset"
QUESTION = "How large is it, and which colours does it have?"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")


def run(args: Namespace) -> CommandResult:
    """Draw with the embedded illustrator and look with the embedded eyes, whatever keys are set."""
    drawn = draw(GenerateArguments(prompt=PROMPT, provider="illustrator"), args)

    async def look() -> dict[str, object]:
        async with Limner() as lim:
            return as_value(await lim.inspect(drawn.value["path"], QUESTION, model=EYES))

    seen = wait_for(look)
    return replace(
        drawn,
        value={**drawn.value, "inspection": seen},
        text=f"{drawn.text}\n\n{QUESTION}\n{seen['text']}",
    )
