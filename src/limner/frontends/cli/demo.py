"""Draw a scene, a chart and a diagram offline, look at one, and say what to type next.

It needs no key and no network, and uses none if there are some. In a terminal it shows the
pictures.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD
from limner.frontends.cli.output import CommandResult, speak
from limner.frontends.cli.preview import can_show, show
from limner.frontends.cli.stderr import size, wrapped
from limner.frontends.cli.terminal import wait_for
from limner.models.registry import EYES
from limner.tools.built_in import image_render, inspect_image
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.generation_tool import as_value
from limner.tools.output_file import GeneratedImage

EXAMPLE = """\
examples:
  limner demo
  limner demo --json
"""
PROMPT = "a cat on a red bicycle on a beach at sunset"
CHART = (
    '{"type": "bar", "title": "Pictures a day", "labels": ["Mon", "Tue", "Wed", "Thu", "Fri"], '
    '"values": [12, 18, 9, 25, 31]}'
)
DIAGRAM = "digraph { rankdir=LR; prompt -> quote -> draw -> picture; quote -> refusal }"
QUESTION = "How large is it, and which colours does it have?"
NEXT = (
    'chat "Draw a fox in the snow, then make it dusk."',
    'generate "a bar chart of drinks: tea 3, coffee 5" --show',
    "models",
)
PREVIEW_ROWS = 14


def configure(_: ArgumentParser) -> None:
    """Take no arguments."""


def run(args: Namespace) -> CommandResult:
    """Run the steps one after the other, and print each as soon as it is done."""
    return wait_for(lambda: _tour(_ignore if args.json else _print))


def _ignore(_: str) -> None:
    """Print nothing."""


def _print(text: str) -> None:
    # A command stays in one piece, so that it can be copied.
    speak(f"{text if text.startswith('  ') else wrapped(text, size().columns)}\n")


async def _tour(tell: Callable[[str], None]) -> CommandResult:
    async with Limner() as lim:
        began_s = time.monotonic()
        tell(f"A scene from words: {PROMPT}")
        scene = await lim.draw(GenerateArguments(prompt=PROMPT, provider="illustrator"))
        await _present(scene.images[0], lim, tell, began_s)
        rendered: list[dict[str, Any]] = []
        for title, source in (("A chart from JSON", CHART), ("A diagram from DOT", DIAGRAM)):
            began_s = time.monotonic()
            tell(f"{title}: {source}")
            drawn = await lim.render(source)
            await _present(drawn, lim, tell, began_s)
            rendered.append(image_render.as_value(drawn))
        tell(f"A look at the scene: {QUESTION}")
        seen = await lim.inspect(scene.images[0].path, QUESTION, model=EYES)
        tell(f"{seen.text}\n")
        spent_nano = await lim.money.spent(session_id=lim.session_id)
    commands = [f"{_command_name()} {words}" for words in NEXT]
    tell(f"Spent: {format_usd(spent_nano)}. Type one of these next:")
    tell("\n".join(f"  {command}" for command in commands))
    return CommandResult(
        value={
            **as_value(scene),
            "rendered": rendered,
            "inspection": inspect_image.as_value(seen),
            "spent_usd": spent_nano / NANO_PER_USD,
            "next": commands,
        }
    )


async def _present(
    drawn: GeneratedImage, lim: Limner, tell: Callable[[str], None], began_s: float
) -> None:
    """Print where a picture is and what it took; a terminal shows it too."""
    seconds = time.monotonic() - began_s
    facts = f"{drawn.dimensions}, {format_usd(drawn.cost_nano)}, {seconds:.1f} s"
    tell(f"{drawn.path}\n{facts}")
    if tell is _print and sys.stdout.isatty() and can_show():
        await show(drawn.image, lim, max_rows=PREVIEW_ROWS)
    tell("")


def _command_name() -> str:
    """What the user types to start this program again: `limner` only if the shell finds it."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m limner"
    found = shutil.which("limner")
    if found is not None and Path(found).resolve() == program.resolve():
        return "limner"
    is_near = program.is_absolute() and program.is_relative_to(Path.cwd())
    return shlex.quote(str(program.relative_to(Path.cwd()) if is_near else program))
