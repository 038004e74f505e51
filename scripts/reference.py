"""Write the reference pages from the code, or check that they are up to date.

usage: python scripts/reference.py [--check]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import python_options
from app_server_page import app_server
from calls_page import calls
from events_page import events
from plugins_page import plug_ins
from python_page import python_api
from studio_page import studio_api

from limner import errors
from limner.catalogue.images import ImageModel, Size
from limner.catalogue.vision import vision_models
from limner.client import Limner, create_image_tools
from limner.dollars import format_usd
from limner.frontends.cli.main import COMMANDS
from limner.frontends.mcp.offers import COMPILED
from limner.frontends.mcp.tool_list import compile_offers
from limner.metrics import FAMILIES, MAX_SERIES, OTHER, HistogramMetric
from limner.providers.specs import all_specs
from limner.settings import all_settings
from limner.settings.custom_models import CustomModel
from limner.settings.fields import Setting

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
DECISIONS = FOLDER.parent / "decisions"
SITE = FOLDER.parent.parent / "zensical.toml"
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
            [sys.executable, "-m", "limner", *words, "--help"],
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
    yield "if it is not set.\n\nA `limner.toml` comes with the folder, which may be a stranger's. "
    yield "It may set only what the last column says, and `limner` ignores the rest with one "
    yield "warning. `limner trust` accepts the whole file: see [the guide](../guides/trust.md).\n\n"
    yield "| key | variable | default | what it does | may `./limner.toml` set it |\n"
    yield "|---|---|---|---|---|\n"
    for key, setting in all_settings().items():
        cells = [
            f"`{key}`",
            f"`{setting.variable}`",
            _shown(setting.default),
            setting.description,
            _project_rule(setting),
        ]
        yield f"| {' | '.join(cells)} |\n"
    yield "\n## Models of your own\n\n"
    yield "Each `[[models]]` table in a settings file names a model on any server that speaks one "
    yield "of the APIs: Ollama, vLLM, LM Studio, llama.cpp, a proxy. limner sends pictures, texts "
    yield "and the key there, so it ignores these tables in a folder that you do not trust.\n\n"
    yield "| field | what it is |\n|---|---|\n"
    for field in msgspec.structs.fields(CustomModel):
        yield f"| `{field.name}` | {_description(field.type)} |\n"


def _project_rule(setting: Setting) -> str:
    rule = setting.project_rule
    if rule is None:
        return "no"
    if rule.change == "stricter":
        return f"only stricter: {', '.join(_shown(value) for value in rule.strictest_first)}"
    return {"any": "yes", "lower": "only lower", "shrink": "only shrink"}[rule.change]


def models() -> Lines:
    yield "# Models and prices\n\n## Image models\n\n"
    yield "In the order `auto` prefers their providers; those with a star only when they are "
    yield "named. Prices are for the size nearest to 1024x1024 and an empty prompt; where one is "
    yield "not exact it is the most that is set aside. `limner models --json` has every rule, size "
    yield "and source.\n\n"
    yield "| model | key | standard | hd | draws from | can also | retired | source | read |\n"
    yield "|---|---|---|---|---|---|---|---|---|\n"
    for spec in all_specs(embedded=True).values():
        rows = spec.models if spec.other_model is None else (*spec.models, spec.other_model)
        for model in rows:
            cells = [
                f"`{model.name}`{'*' if spec.named_only else ''}",
                _shown(spec.key_env),
                *(_price(model, word) for word in ("standard", "hd")),
                _sources(model),
                ", ".join(_abilities(model)),
                _shown(model.retired),
                model.source,
                str(model.read),
            ]
            yield f"| {' | '.join(cells)} |\n"
    yield "\n## Vision models\n\n"
    yield "Dollars for a million tokens. `limner fit PICTURE --for MODEL` counts a picture; "
    yield "`limner models --vision` says what is usable now. Ollama, llama.cpp and LM Studio run "
    yield "whatever is installed on them.\n\n"
    yield "| model | input | output | counts pictures by | retired | source | read |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for model in vision_models():
        rate, rule = model.rate, model.rule
        cells = [
            f"`{model.name}`",
            "unknown" if rate is None else f"${rate.input_usd}",
            "unknown" if rate is None else f"${rate.output_usd}",
            _counting(model.takes_images, rule),
            _shown(model.retired),
            model.source,
            str(model.read),
        ]
        yield f"| {' | '.join(cells)} |\n"


def _price(model: ImageModel, quality: str) -> str:
    size = model.nearest_size(Size(1024, 1024))
    if not model.can_draw(size, quality):
        return ""
    quote = model.quote(size, quality, "")
    if quote.source == "unknown":
        return "unknown"
    return format_usd(quote.nano) if quote.exact else f"at most {format_usd(quote.nano)}"


def _sources(model: ImageModel) -> str:
    if model.edit is None:
        return ""
    pictures = "1 picture" if model.edit.max_sources == 1 else f"{model.edit.max_sources} pictures"
    return pictures if model.edit.mask is None else f"{pictures}, mask"


def _abilities(model: ImageModel) -> Lines:
    yield from (f"{background} background" for background in model.backgrounds)
    if model.negative_prompt:
        yield "negative prompt"
    if model.seeds:
        yield "seed"
    if model.partial_pictures:
        yield "unfinished pictures"


def _counting(takes_images: bool, rule: Any) -> str:
    if not takes_images:
        return "takes no pictures"
    if rule is None:
        return "unknown"
    kind = type(rule).__struct_config__.tag.replace("_", " ")
    return kind if rule.exact else f"{kind} (estimated)"


def error_codes() -> Lines:
    yield "# Error codes\n\n"
    yield "Every failure has a code that does not change; `kind` is the `code` of a tool result. "
    yield "`error.retryable` says for one failure if the same call may work later.\n\n"
    yield "| code | kind | exit | retryable | meaning |\n|---|---|---|---|---|\n"
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.LimnerError):
            if value is errors.ProviderError:  # only ever raised as one of its kinds
                continue
            meaning = (value.__doc__ or "").splitlines()[0]
            for code in _codes(value):
                yield _error_row(code, value, meaning)
    for code, (kind, meaning) in errors.MORE_CODES.items():
        yield _error_row(code, kind, meaning)


def _error_row(code: str, kind: type[errors.LimnerError], meaning: str) -> str:
    retryable = errors.RETRYABLE.get(code, "yes" if kind.retryable else "no")
    return f"| `{code}` | {kind.kind} | {kind.exit_status} | {retryable} | {meaning} |\n"


def tools() -> Lines:
    yield "# Tools\n"
    for tool in create_image_tools(Limner(env={"HOME": "/"}, cwd=Path("/"))):
        yield f"\n## {tool.name}\n\n{_without_html(tool.description)}\n\n"
        yield f"Toolset `{tool.toolset}`; at most {tool.max_result_chars:,} characters of result.\n"
        yield "\n| parameter | type | required | default | description |\n|---|---|---|---|---|\n"
        whole: Mapping[str, Any] = tool.schema
        for name, schema in whole["properties"].items():
            required = "yes" if name in whole.get("required", ()) else "no"
            cells = [f"`{name}`", schema["type"], required, _shown(schema.get("default"))]
            description = _without_html(schema.get("description", ""))
            yield f"| {' | '.join(cells)} | {description} |\n"


def _without_html(text: str) -> str:
    """A text with its tags as code: Markdown would hide them."""
    return re.sub(r"(`[^`]*`)|(<[^<>]+>)", lambda found: found[1] or f"`{found[2]}`", text)


def metrics() -> Lines:
    yield "# Metrics\n\n"
    yield "What `--metrics HOST:PORT` of `limner work`, `limner mcp`, `limner app-server` and "
    yield "`limner studio` serves at `/metrics`, in the text format of Prometheus. "
    yield "[Operations](../guides/operations.md) says how to read it and what to alert on. The "
    yield f"numbers are of one process, from its start on. A metric has at most {MAX_SERIES} "
    yield f"combinations of labels; further ones are counted as `{OTHER}`.\n\n"
    yield "| metric | kind | labels | what it counts |\n|---|---|---|---|\n"
    for family in sorted(FAMILIES, key=lambda family: family.name):
        labels = ", ".join(f"`{name}`" for name in family.labels)
        about = family.about
        if isinstance(family, HistogramMetric):
            about += f" Buckets: {', '.join(f'{most:g}' for most in family.buckets_s)} s."
        yield f"| `{family.name}` | {family.kind} | {labels} | {about} |\n"


PAGES = {
    "command-line.md": command_line,
    "settings.md": settings,
    "models.md": models,
    "errors.md": error_codes,
    "tools.md": tools,
    "calls.md": calls,
    "python.md": python_api,
    "events.md": events,
    "plug-ins.md": plug_ins,
    "app-server.md": app_server,
    "studio-api.md": studio_api,
    "metrics.md": metrics,
}


def _codes(error: type[errors.LimnerError]) -> list[str]:
    """The codes of an error: services have one for pictures and one for words."""
    words = [error.model_code] if issubclass(error, errors.ProviderError) else []
    return list(dict.fromkeys([error.code, *words]))


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


def decisions() -> Lines:
    yield "# Decisions\n\n"
    yield "Why limner is built this way: one page for each choice that a reader may question, with "
    yield "what was tried and what it costs.\n\n"
    for page in sorted(DECISIONS.glob("0*.md")):
        title, _, _ = page.read_text(encoding="utf-8").partition("\n")
        yield f"- [{title.removeprefix('# ')}]({page.name})\n"


def navigation() -> str:
    """zensical.toml with the decisions in its navigation."""
    rows = "".join(f'      "decisions/{page.name}",\n' for page in sorted(DECISIONS.glob("0*.md")))
    return re.sub(
        r'(?m)(?<="decisions/index.md",\n)(^ +"decisions/.*\n)*',
        rows,
        SITE.read_text(encoding="utf-8"),
    )


def main() -> int:
    stale = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = {FOLDER / name: MADE + "".join(page()) for name, page in PAGES.items()}
    files[DECISIONS / "index.md"] = MADE + "".join(decisions())
    files[SITE] = navigation()
    files[python_options.FILE] = "".join(python_options.module())
    files[COMPILED] = compile_offers().decode()
    for path, text in files.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run `make format`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
