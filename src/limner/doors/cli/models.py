"""The models limner knows, those that draw and those that look, and what is usable now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from limner.catalogue.images import ImageModel, Quote, Size
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
PRICED_AS = (
    f"Prices are for the size nearest to {PRICED_SIZE} in standard quality, the prompt apart; "
    "after ≤ it is the most that is set aside."
)
BY_NAME = "by name"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One model as it stands here and today. ``obstacle`` is why it cannot be used."""

    model: ImageModel
    status: str
    quote: Quote
    obstacle: str | None
    named_only: bool


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
    lines = [_line(lim, spec, model) for spec in lim.specs.values() for model in _rows(spec)]
    width = max((len(line.model.name) for line in lines), default=0)
    return Answer(
        value={"models": [_as_json(line) for line in lines]},
        text="\n".join(_text(line, width) for line in lines),
        notes=(PRICED_AS,),
    )


def _rows(spec: ProviderSpec) -> tuple[ImageModel, ...]:
    """The models of a provider; last what stands for any other."""
    return spec.models if spec.other_model is None else (*spec.models, spec.other_model)


def _line(lim: Limner, spec: ProviderSpec, model: ImageModel) -> _Line:
    today = lim.clock().date()
    if model.is_retired(today):
        obstacle = f"retired {model.retired}; use {model.successor}"
    elif spec.key(lim.keys.get) is None:
        obstacle = f"set {spec.key_env}"
    else:
        obstacle = None
    return _Line(
        model=model,
        status=model.status(today),
        quote=model.quote(model.nearest_size(PRICED_SIZE), "standard", ""),
        obstacle=obstacle,
        named_only=spec.named_only,
    )


def _text(line: _Line, width: int) -> str:
    """One model in two lines: what it costs and whether it is usable, and who says so."""
    model = line.model
    rule = model.price.__struct_config__.tag
    usable = BY_NAME if line.named_only else "usable"
    return (
        f"{model.name:{width}}  {_price(line.quote):>10}  {line.status:8}  "
        f"{line.obstacle or usable}\n"
        f"  {str(rule).replace('_', ' ')}; {model.source}; read {model.read}"
    )


def _price(quote: Quote) -> str:
    if quote.source == "unknown":
        return "unknown"
    if not quote.nano:
        return "free"
    return format_usd(quote.nano) if quote.exact else f"≤{format_usd(quote.nano)}"


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
        "named_only": line.named_only,
        "price_usd": line.quote.nano / NANO_PER_USD,
        "price_exact": line.quote.exact,
        "price": model.price,
        "sizes": model.sizes,
        "qualities": model.qualities,
        "edit": model.edit,
        "backgrounds": model.backgrounds,
        "negative_prompt": model.negative_prompt,
        "seeds": model.seeds,
        "partial_pictures": model.partial_pictures,
        "max_prompt_chars": model.max_prompt_chars,
        "source": model.source,
        "read": model.read,
    }
