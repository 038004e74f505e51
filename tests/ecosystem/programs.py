"""A program of a page -> what it printed, with every service played by the scripted model."""

from __future__ import annotations

import io
import os
import subprocess
from functools import cache
from pathlib import Path

from PIL import Image
from tests.ecosystem.pages import ROOT
from tests.ecosystem.scripted_model import ScriptedModel

LIMIT_S = 300
# The first call is wrong, so that the run shows how the framework reports an error to the model.
SCRIPT = [
    ("image_generate", {"prompt": "a red fox under the moon", "size": "huge"}),
    ("image_generate", {"prompt": "a red fox under the moon", "quality": "standard"}),
]


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


def run_program(program: str, *, python: Path, model: ScriptedModel, folder: Path) -> str:
    """Run a program of a page; returns what it printed."""
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    try:
        done = subprocess.run(
            [str(python), str(file)],
            cwd=folder,
            env=variables(model, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"it ran for more than {LIMIT_S} s\n{error.stdout!r}"
    return done.stdout if done.returncode == 0 else f"{done.stdout}\nexit status {done.returncode}"
