"""The models that draw and those that look, their prices, and which are usable now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from limner.catalogue.images import ImageModel, Quote, Size
from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, UserError
from limner.frontends.cli.output import CommandResult
from limner.models.registry import By, KnownModel, Resolution
from limner.net.redaction import drop_userinfo
from limner.providers.base import ProviderSpec

RATED_AS = (
    "Rates are dollars for a million tokens in and out; those of a picture are tokens in. "
    "`--json` has the source of each row and the day it was read."
)
_CHOSEN: Mapping[By, str] = {
    "first": "the first available",
    "offline": "rules, not a language model: no key is set",
}


def listing(lim: Limner) -> CommandResult:
    """List them in the order in which limner tries them."""
    models = lim.models.known()
    used = lim.models.resolve()
    roles = _roles(lim)
    width = max((len(model.name) for model in models), default=0)
    lines = [
        f"{model.name:{width}}  {model.api:23}  {_formats(model):23}  "
        f"{_counting(model) or '-':16}  {_rate(model):>13}  "
        f"{_obstacle(lim, model) or 'available'}"
        for model in models
    ]
    lines += ["", *(f"{role:8} {_role_text(found)}" for role, found in roles.items())]
    talker = _talker(lim)
    lines.append(f"{'used now':8} {_used_text(used)}")
    lines.append(f"{'talks':8} {talker if isinstance(talker, str) else _used_text(talker)}")
    return CommandResult(
        value={
            "models": [_vision_json(lim, model) for model in models],
            "roles": roles,
            "used": None if used is None else _used(used),
            "talks": None if isinstance(talker, str) else _used(talker),
        },
        text="\n".join(lines),
        notes=(RATED_AS, *_warnings(used)),
    )


def _obstacle(lim: Limner, model: KnownModel) -> str | None:
    """Why a model cannot be used, or None if it can."""
    if model.facts.is_retired(lim.clock().date()):
        return f"retired {model.facts.retired}"
    if lim.models.key(model) is None:
        return f"set {model.key_env}"
    return None if model.takes_images else "takes no pictures"


def _roles(lim: Limner) -> dict[str, dict[str, Any]]:
    """What each role is set to, and the model that this names; None if it names none."""
    settings = lim.settings.model_roles
    roles: dict[str, dict[str, Any]] = {}
    for role, name in (("vision", settings.vision), ("default", settings.default)):
        found = None if name is None else lim.models.find(name)
        roles[role] = {
            "set": name,
            "model": found and found.model.name,
            "effort": found and found.effort,
            "available": found is not None and lim.models.key(found.model) is not None,
        }
    return roles


def _role_text(role: dict[str, Any]) -> str:
    if role["set"] is None:
        return "not set"
    return f"{role['set']} -> {role['model'] or 'no such model'}"


def _used(used: Resolution) -> dict[str, Any]:
    return {"model": used.model.name, "effort": used.effort, "by": used.by}


def _used_text(used: Resolution | None) -> str:
    if used is None:
        return "nothing: no model is available"
    return f"{used.model.name} ({_CHOSEN.get(used.by) or f'the role {used.by}'})"


def _talker(lim: Limner) -> Resolution | str:
    """The model that answers in a conversation, or why there is none."""
    try:
        return lim.models.resolve_conversation_model()
    except UserError as error:
        return f"nothing: {error.message}"


def _warnings(used: Resolution | None) -> list[str]:
    return [
        f"model_roles.{one.by}: there is no model {one.name!r}"
        + (f"; did you mean {' or '.join(one.near)}?" if one.near else "")
        for one in (() if used is None else used.unknown)
    ]


def _formats(model: KnownModel) -> str:
    return " ".join(mime.removeprefix("image/") for mime in model.facts.formats)


def _counting(model: KnownModel) -> str | None:
    """The name of the rule by which a picture becomes tokens."""
    rule = model.facts.rule
    return None if rule is None else str(type(rule).__struct_config__.tag)


def _rate(model: KnownModel) -> str:
    rate = model.rate
    if rate is None:
        return "unknown"
    return f"{_usd(rate.input_usd)} / {_usd(rate.output_usd)}" if rate.output_usd else "free"


def _usd(amount: Decimal) -> str:
    return f"{amount.normalize():f}"


def _vision_json(lim: Limner, model: KnownModel) -> dict[str, Any]:
    obstacle, facts = _obstacle(lim, model), model.facts
    return {
        "name": model.name,
        "title": facts.title,
        "api": model.api,
        "base_url": drop_userinfo(model.base_url) or None,
        "available": obstacle is None,
        "obstacle": obstacle,
        "key": model.key_env,
        "takes_images": model.takes_images,
        "formats": facts.formats,
        "limits": facts.limits,
        "token_rule": _counting(model),
        "rate": model.rate,
        "context_tokens": facts.context_tokens,
        "retired": facts.retired,
        "source": facts.source,
        "read": None if facts.read == facts.read.min else facts.read,
    }


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
    """One model as it is here and today. ``obstacle`` is why it cannot be used."""

    model: ImageModel
    status: str
    quote: Quote
    obstacle: str | None
    named_only: bool


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--vision", action="store_true", help="list the models that look at pictures instead"
    )


def run(args: Namespace) -> CommandResult:
    """List them in the order in which they are tried."""
    lim = Limner()
    if args.vision:
        return listing(lim)
    lines = [_line(lim, spec, model) for spec in lim.specs.values() for model in _rows(spec)]
    width = max((len(line.model.name) for line in lines), default=0)
    return CommandResult(
        value={"models": [_as_json(line) for line in lines]},
        text="\n".join(_text(line, width) for line in lines),
        notes=(PRICED_AS,),
    )


def _rows(spec: ProviderSpec) -> tuple[ImageModel, ...]:
    """The models of a provider; the last row is for models that have no row."""
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
    """One model in two lines: its price, whether it is usable, and the source."""
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
