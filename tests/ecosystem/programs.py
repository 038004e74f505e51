"""A program of a page -> what it printed, with every service played by the scripted model."""

from __future__ import annotations

import io
import os
import subprocess
from functools import cache
from pathlib import Path

from PIL import Image
from tests.ecosystem.pages import ROOT, Program
from tests.ecosystem.scripted_model import ScriptedModel

LIMIT_S = 300
# The first call is wrong, so that the run shows how the framework reports an error to the model.
SCRIPT = [
    ("image_generate", {"prompt": "a red fox under the moon", "size": "huge"}),
    ("image_generate", {"prompt": "a red fox under the moon", "quality": "standard"}),
]
# limner then asks before each call that costs something.
ASKING = {"LIMNER_APPROVAL_ABOVE_USD": "0"}


@cache
def picture() -> bytes:
    """A PNG as an image service draws it."""
    file = io.BytesIO()
    with Image.open(ROOT / "docs" / "images" / "cat.png") as cat:
        cat.convert("RGB").resize((1024, 1024)).save(file, "PNG")
    return file.getvalue()


def variables(model: ScriptedModel, home: Path) -> dict[str, str]:
    """The environment of a program: every service is the scripted one."""
    address = model.origin
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LIMNER_HOME": str(home / "limner"),
        "LIMNER_IMAGES_PROVIDER": "openai-image",
        "OPENAI_API_KEY": "sk-scripted-0123456789",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_BASE": f"{address}/v1",
        "ANTHROPIC_API_KEY": "scripted-0123456789",
        "ANTHROPIC_BASE_URL": address,
        "GOOGLE_API_KEY": "scripted-0123456789",
        "GOOGLE_GEMINI_BASE_URL": address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "OTEL_SDK_DISABLED": "true",
    }


def run_program(
    program: Program,
    *,
    python: Path,
    model: ScriptedModel,
    folder: Path,
    user_says: str | None = None,
) -> str:
    """Run a program of a page; returns what it printed.

    Args:
        program: the program.
        python: the Python of its environment.
        model: plays every service.
        folder: its home and its current folder.
        user_says: what the user answers to each question, of limner or of the program.
    """
    file = folder / "program.py"
    file.write_text(program.code, encoding="utf-8")
    env = variables(model, folder)
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    # A command line asks by the framework's own option.
    if user_says is not None and not program.is_shell:
        env |= ASKING
    command = ["sh", "-c", program.code] if program.is_shell else [str(python), str(file)]
    if program.is_shell and user_says is not None:
        # It asks at a terminal alone.
        command = ["script", "-qefc", program.code, "/dev/null"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            input=None if user_says is None else f"{user_says}\n" * 9,
            stdin=subprocess.DEVNULL if user_says is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"it ran for more than {LIMIT_S} s\n{error.stdout!r}"
    return done.stdout if done.returncode == 0 else f"{done.stdout}\nexit status {done.returncode}"
