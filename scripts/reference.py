"""Write the reference pages from the code, or check that they are up to date.

usage: python scripts/reference.py [--check]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from limner import errors
from limner.catalogue.images import Size, all_image_models
from limner.doors.cli.main import COMMANDS
from limner.money.amounts import format_usd
from limner.settings import Settings
from limner.tools.image_generate import DESCRIPTION, MAX_RESULT_CHARS, SCHEMA

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
MADE = "<!-- Made by scripts/reference.py: run `make format` after a change. -->\n\n"
Lines = Iterator[str]


def command_line() -> Lines:
    yield "# Command line\n\n"
    yield "Exit statuses: 0 done, 1 failed, 2 bad usage or input, 3 a provider failed, 4 a picture "
    yield "is broken or too large, 5 denied by policy or budget, 130 interrupted. With `--json` "
    yield "exactly one JSON object is printed on standard output; a failure is "
    yield '`{"error": {"code", "message", "retryable", "billed", "cost_usd", "hint"}}`.\n'
    for words in ([], *([name] for name in COMMANDS)):
        text = subprocess.run(
            [sys.executable, "-m", "limner.doors.cli.main", *words, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "96"},
        ).stdout
        yield f"\n## {' '.join(['limner', *words])}\n\n```\n{text}```\n"


def settings() -> Lines:
    yield "# Settings\n\n"
    yield "Read in this order, later ones winning: the defaults, `$LIMNER_HOME/config.toml`, "
    yield "`limner.toml` in the working folder, variables, flags. `$LIMNER_HOME` is `~/.limner` "
    yield "where it is not set.\n\n| key | variable | default | what it does |\n|---|---|---|---|\n"
    for section in msgspec.structs.fields(Settings):
        if section.name == "home":
            continue
        for field in msgspec.structs.fields(section.type):
            key = f"{section.name}.{field.name}"
            variable = f"LIMNER_{key.upper().replace('.', '_')}"
            default = _shown(field.default)
            yield f"| `{key}` | `{variable}` | {default} | {_description(field.type)} |\n"


def models() -> Lines:
    yield "# Image models\n\n"
    yield "Prices are for 1024x1024 and an empty prompt. `limner models --json` has every rule, "
    yield "size and source.\n\n"
    yield "| model | standard | hd | retired | successor | source | read |\n"
    yield "|---|---|---|---|---|---|---|\n"
    size = Size(1024, 1024)
    for model in all_image_models():
        prices = [format_usd(model.quote(size, word, "").nano) for word in ("standard", "hd")]
        cells = [
            f"`{model.name}`",
            *prices,
            _shown(model.retired),
            _shown(model.successor),
            model.source,
            str(model.read),
        ]
        yield f"| {' | '.join(cells)} |\n"


def error_codes() -> Lines:
    yield "# Error codes\n\n"
    yield "Every failure has a code that does not change; `kind` is the `code` of a tool result."
    yield "\n\n"
    yield "| code | kind | exit | retryable | meaning |\n|---|---|---|---|---|\n"
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.LimnerError):
            if value is errors.ProviderError:  # only ever raised as one of its kinds
                continue
            meaning = (value.__doc__ or "").splitlines()[0]
            retryable = "yes" if value.retryable else "no"
            yield f"| `{value.code}` | {value.kind} | {value.exit_status} | {retryable} | "
            yield f"{meaning} |\n"


def tools() -> Lines:
    yield "# Tools\n\n## image_generate\n\n"
    yield f"{DESCRIPTION}\n\n"
    yield f"Toolset `image`; at most {MAX_RESULT_CHARS:,} characters of result.\n\n"
    yield "| parameter | type | required | default | description |\n|---|---|---|---|---|\n"
    for name, schema in SCHEMA["properties"].items():
        required = "yes" if name in SCHEMA["required"] else "no"
        cells = [f"`{name}`", schema["type"], required, _shown(schema.get("default"))]
        yield f"| {' | '.join(cells)} | {schema.get('description', '')} |\n"


PAGES = {
    "command-line.md": command_line,
    "settings.md": settings,
    "models.md": models,
    "errors.md": error_codes,
    "tools.md": tools,
}


def _shown(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{', '.join(value)}`"
        case Decimal() | date():
            return str(value)
        case _:
            return f"`{value}`"


def _description(annotation: Any) -> str:
    found = [meta.description for meta in annotation.__metadata__ if meta.description]
    return found[-1] if found else ""


def main() -> int:
    stale = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        text = MADE + "".join(page())
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run `make format`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
