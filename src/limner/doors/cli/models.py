"""The models limner knows, those that draw and those that look, and what is usable now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from limner.catalogue.images import ImageModel, Size
from limner.client import Limner
from limner.doors.cli.answer import Answer
from limner.doors.cli.vision_models import listing
from limner.errors import NANO_PER_USD
from limner.money.amounts import format_usd
from limner.providers.base import ProviderSpec

EXAMPLE = """\
examples:
  limner models
  limner models --json
  limner models --vision
"""
PRICED_SIZE = Size(1024, 1024)
PRICED_AS = f"A price is the most that {PRICED_SIZE} in standard quality costs, the prompt apart."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One model as it stands here and today. ``obstacle`` is why it cannot be used."""

    model: ImageModel
    status: str
    price_nano: int
    obstacle: str | None


def configure(parser: ArgumentParser) -> None:
    """Which of the two kinds is listed."""
    parser.add_argument(
        "--vision", action="store_true", help="list the models that look at pictures instead"
    )


def run(args: Namespace) -> Answer:
    """List them in the order in which they are tried."""
    lim = Limner()
    if args.vision:
        return listing(lim)
    lines = [_line(lim, spec, model) for spec in lim.specs.values() for model in spec.models]
    width = max((len(line.model.name) for line in lines), default=0)
    return Answer(
        value={"models": [_as_json(line) for line in lines]},
        text="\n".join(
            f"{line.model.name:{width}}  {_price(line):>8}  {line.status:8}  "
            f"{line.obstacle or 'usable'}"
            for line in lines
        ),
        notes=(PRICED_AS,),
    )


def _line(lim: Limner, spec: ProviderSpec, model: ImageModel) -> _Line:
    today = lim.clock().date()
    if model.is_retired(today):
        obstacle = f"retired {model.retired}; use {model.successor}"
    elif spec.key_env is not None and lim.keys.get(spec.key_env) is None:
        obstacle = f"set {spec.key_env}"
    else:
        obstacle = None
    return _Line(
        model=model,
        status=model.status(today),
        price_nano=model.quote(PRICED_SIZE, "standard", "").nano,
        obstacle=obstacle,
    )


def _price(line: _Line) -> str:
    return format_usd(line.price_nano) if line.price_nano else "free"


def _as_json(line: _Line) -> dict[str, Any]:
    model = line.model
    return {
        "name": model.name,
        "provider": model.provider,
        "id": model.id,
        "title": model.title,
        "usable": line.obstacle is None,
        "obstacle": line.obstacle,
        "status": line.status,
        "retired": model.retired,
        "successor": model.successor,
        "price_usd": line.price_nano / NANO_PER_USD,
        "price": model.price,
        "sizes": model.sizes,
        "qualities": model.qualities,
        "max_prompt_chars": model.max_prompt_chars,
        "source": model.source,
        "read": model.read,
    }
