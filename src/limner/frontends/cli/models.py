"""The models that draw and those that look, their prices, and which are usable now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from limner.catalogue.images import ImageModel, Quote, Size
from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, UserError
from limner.frontends.cli.output import CommandResult
from limner.models.registry import EMBEDDED, By, FoundModel, KnownModel
from limner.net.redaction import drop_userinfo
from limner.providers.base import ProviderSpec

RATED_AS = "Rates are dollars for a million tokens in / out; a picture counts as tokens in."
_CHOSEN: Mapping[By, str] = {
    "first": "the first available",
    "offline": "rules, not a language model: no key is set",
}


def listing(lim: Limner, *, sources: bool) -> CommandResult:
    """List the models that look: who looks and talks now, then each model below its condition."""
    models = lim.models.known()
    used = lim.models.resolve()
    roles = _roles(lim)
    talker = _talker(lim)
    lines = [
        f"looks    {_used_text(used)}",
        f"talks    {talker if isinstance(talker, str) else _used_text(talker)}",
        *(f"{role:8} {_role_text(found)}" for role, found in roles.items() if found["set"]),
        *_groups([_vision_row(lim, model) for model in models], sources=sources),
    ]
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


class _Row(NamedTuple):
    """A model in the listing: a line below the heading of its group, and one about its source."""

    name: str
    price: str
    group: str
    source: str
    remark: str = ""


NOW, LOCAL, GONE = "usable now", "on your own server or GPU, if you name the provider", "retired"


def _with_key(name: str) -> str:
    return f"with a key: limner keys set {name}"


def _groups(rows: Iterable[_Row], *, sources: bool) -> Iterator[str]:
    """The rows below their headings: what is usable now, what a key adds, what is gone."""
    groups: dict[str, list[_Row]] = {NOW: []}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    last = [name for name in (LOCAL, GONE) if name in groups]
    width = max((len(row.name) for group in groups.values() for row in group), default=0)
    for heading in [*(name for name in groups if name not in last), *last]:
        yield from ("", heading)
        for row in groups[heading]:
            yield f"  {row.name:{width}}  {row.price:>10}  {row.remark}".rstrip()
            if sources:
                yield f"      {row.source}"


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


def _used(used: FoundModel) -> dict[str, Any]:
    return {"model": used.model.name, "effort": used.effort, "by": used.by}


def _used_text(used: FoundModel | None) -> str:
    if used is None:
        return "nothing: no model is available"
    return f"{used.model.name} ({_CHOSEN.get(used.by) or f'the role {used.by}'})"


def _talker(lim: Limner) -> FoundModel | str:
    """The model that answers in a conversation, or why there is none."""
    try:
        return lim.models.resolve_conversation_model()
    except UserError as error:
        return f"nothing: {error.message}"


def _warnings(used: FoundModel | None) -> list[str]:
    return [
        f"model_roles.{one.by}: there is no model {one.name!r}"
        + (f"; did you mean {' or '.join(one.near)}?" if one.near else "")
        for one in (() if used is None else used.unknown)
    ]


def _vision_row(lim: Limner, model: KnownModel) -> _Row:
    facts, obstacle = model.facts, _obstacle(lim, model)
    group = NOW
    if facts.is_retired(lim.clock().date()):
        group = GONE
    elif obstacle is not None:
        group = _with_key(model.key_env) if model.key_env else obstacle
    formats = " ".join(mime.removeprefix("image/") for mime in facts.formats)
    about = (model.api, formats, _counting(model), facts.source, _read(facts.read))
    return _Row(
        name=model.name,
        price=_rate(model),
        group=group,
        source="; ".join(part for part in about if part),
    )


def _read(day: date) -> str:
    return "" if day == day.min else f"read {day}"


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
  limner models --sources       where each price comes from, and the day it was read
  limner models --vision        the models that look at pictures and talk
  limner models --json
"""
PRICED_SIZE = Size(1024, 1024)
PRICED_AS = f"Prices: one picture of about {PRICED_SIZE}, standard quality; ≤ is an upper bound."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One model as it is here and today.

    ``obstacle`` is why it cannot be used, ``key_env`` the variable of the key that it requires.
    """

    model: ImageModel
    status: str
    quote: Quote
    obstacle: str | None
    named_only: bool
    key_env: str | None


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--vision", action="store_true", help="list the models that look at pictures instead"
    )
    parser.add_argument(
        "--sources", action="store_true", help="say where each price comes from, and of which day"
    )


def run(args: Namespace) -> CommandResult:
    """List them: what is usable now, then what each key adds."""
    lim = Limner()
    if args.vision:
        return listing(lim, sources=args.sources)
    lines = [_line(lim, spec, model) for spec in lim.specs.values() for model in _rows(spec)]
    rows = [*map(_row, lines), *_embedded_rows(lim)]
    return CommandResult(
        value={"models": [_as_json(line) for line in lines]},
        text="\n".join([*_groups(rows, sources=args.sources)][1:]),
        notes=(PRICED_AS, "limner models --vision lists the models that look and talk."),
    )


def _embedded_rows(lim: Limner) -> Iterator[_Row]:
    """Who looks and who talks now, so that the first lines say all that works."""
    looks, talks = lim.models.resolve(), _talker(lim)
    for who, what in ((looks, "looks"), (talks, "talks")):
        if isinstance(who, FoundModel) and lim.models.key(who.model) is not None:
            yield _Row(
                name=who.model.name,
                price="free" if who.model.api == EMBEDDED else _rate(who.model),
                group=NOW,
                source=who.model.facts.source,
                remark=what,
            )


def _rows(spec: ProviderSpec) -> tuple[ImageModel, ...]:
    """The models of a provider; the last row is for models that have no row."""
    other = spec.other_model
    return spec.models if other is None or other in spec.models else (*spec.models, other)


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
        key_env=None if spec.key_optional else spec.key_env,
    )


def _row(line: _Line) -> _Row:
    model, price, remark = line.model, _price(line.quote), ""
    if line.status == "retired":
        group, price = GONE, f"use {model.successor}"
    elif line.obstacle is not None:
        group = _with_key(line.key_env) if line.key_env else line.obstacle
    else:
        group = LOCAL if line.named_only and line.key_env is None else NOW
        remark = "draws" + (" if you name its provider" if line.named_only else "")
    if line.status == "retiring":
        remark = f"retires {model.retired}"
    rule = str(model.price.__struct_config__.tag).replace("_", " ")
    return _Row(
        name=model.name,
        price=price,
        group=group,
        source=f"{rule}; {model.source}; {_read(model.read)}",
        remark="" if group == LOCAL else remark,
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
