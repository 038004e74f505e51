"""A request's needs, the specs and the keys -> the provider and model that draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import ImageModel, Needs, Size
from limner.errors import InputInvalid, LimnerError, NoProvider, UserError
from limner.providers.base import ProviderSpec
from limner.providers.specs import ILLUSTRATOR

AUTO = "auto"
CANNOT = "PROVIDER_CANNOT"
NOTHING_MORE = Needs()
MAIN_KEYS = ("OPENAI_API_KEY", "REPLICATE_API_TOKEN")
NO_KEY_MESSAGE = f"Neither {MAIN_KEYS[0]} nor {MAIN_KEYS[1]} is set."
NO_KEY_HINT = f"Set {MAIN_KEYS[0]} or {MAIN_KEYS[1]}, or run: limner keys set {MAIN_KEYS[0]}"


class DrawingNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that decide which provider and model draw it.

    ``any_size`` means that only the aspect ratio of the size counts.
    """

    provider: str
    model: str | None
    size: Size
    quality: str
    has_svg: bool
    any_size: bool = False
    needs: Needs = NOTHING_MORE


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The provider, model and key for a request. ``notice`` is a message for the user."""

    spec: ProviderSpec
    model: ImageModel
    key: str
    notice: str | None = None


def choose(
    needs: DrawingNeeds,
    *,
    specs: Mapping[str, ProviderSpec],
    key_of: Callable[[str], str | None],
    today: date,
) -> Choice:
    """Choose the provider and model for a request.

    A named provider or model is used even if it is retired, because proxies serve old models.
    ``auto`` takes the first that has its key, is not retired and can draw the size and quality.
    The embedded illustrator draws only if no key is set, or if the request has an ``svg``.

    Raises:
        InputInvalid: the provider or model does not exist, or the provider lacks the model.
        InvalidSize: the model cannot draw the size and quality.
        UserError: the model cannot do something else; the hint names one that can.
        NoProvider: no provider that could draw it has its key.
    """
    needs = replace(needs, provider=_spelled(needs.provider, [AUTO, *specs]))
    if needs.model is not None:
        ids = [row.id for spec in specs.values() for row in spec.models]
        needs = replace(needs, model=_spelled(needs.model, ids))
    if needs.has_svg:
        spec = _illustrator(needs)
    elif needs.provider != AUTO:
        spec = find_provider(needs.provider, specs)
    elif needs.model is not None:
        spec = _find_by_model(needs.model, specs)
    else:
        return _choose_automatically(needs, specs, key_of=key_of, today=today)
    return _check(_choose_model(needs, spec, key_of=key_of, today=today), needs, specs)


def _spelled(name: str, known: Iterable[str]) -> str:
    """The known name that differs only in case and surrounding blanks, or else the name itself."""
    names, folded = list(known), name.strip().casefold()
    if name in names:
        return name
    return next((one for one in names if one.casefold() == folded), name)


def _illustrator(needs: DrawingNeeds) -> ProviderSpec:
    name = ILLUSTRATOR.name
    if needs.provider not in (AUTO, name):
        raise InputInvalid(
            f"provider {needs.provider!r} does not draw SVG documents; "
            f"leave it out or say {name!r}",
            field="provider",
        )
    # A document needs no model: it is drawn even if the embedded one is switched off.
    return ILLUSTRATOR


def find_provider(
    name: str, specs: Mapping[str, ProviderSpec], *, field: str = "provider"
) -> ProviderSpec:
    """The provider with a name.

    Raises:
        InputInvalid: there is none; the error names the argument ``field``.
    """
    if (known := _spelled(name, specs)) in specs:
        return specs[known]
    near = _nearest(name, specs)
    raise InputInvalid(
        f"there is no provider {name[:80]!r}; there are {', '.join([AUTO, *specs])}",
        field=field,
        hint=f"Did you mean {near[0]!r}?" if near else None,
    )


def _find_by_model(model: str, specs: Mapping[str, ProviderSpec]) -> ProviderSpec:
    for spec in specs.values():
        has_row = any(row.id == model for row in spec.models)
        if has_row or (model.startswith(f"{spec.name}/") and spec.model(model) is not None):
            return spec
    ids = [row.id for spec in specs.values() for row in spec.models]
    near = _nearest(model, ids)
    raise InputInvalid(
        f"no provider has a model {model[:80]!r}",
        field="model",
        hint=f"Did you mean {near[0]!r}?" if near else "Run `limner models` for the list.",
    )


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    return get_close_matches(name, list(known), n=1)


def _choose_model(
    needs: DrawingNeeds, spec: ProviderSpec, *, key_of: Callable[[str], str | None], today: date
) -> Choice:
    model = spec.models[0] if needs.model is None else spec.model(needs.model)
    if model is None:
        ids = ", ".join(row.id for row in spec.models)
        raise InputInvalid(
            f"provider {spec.name!r} has no model {needs.model!r}; it has {ids}", field="model"
        )
    key = spec.key(key_of)
    if key is None:
        raise NoProvider(
            f"{spec.key_env} is not set, and {spec.name} needs it.",
            hint=f"Set {spec.key_env}, or run: limner keys set {spec.key_env}",
        )
    return Choice(spec=spec, model=model, key=key, notice=_retirement(model, today))


def _choose_automatically(
    needs: DrawingNeeds,
    specs: Mapping[str, ProviderSpec],
    *,
    key_of: Callable[[str], str | None],
    today: date,
) -> Choice:
    ready = [
        (spec, key)
        for name, spec in specs.items()
        if name != ILLUSTRATOR.name
        and not spec.named_only
        and (key := spec.key(key_of)) is not None
    ]
    current = {
        spec.name: [row for row in spec.models if not row.is_retired(today)] for spec, _ in ready
    }
    able = [
        Choice(spec=spec, model=model, key=key)
        for spec, key in ready
        if (model := _first_able(current[spec.name], needs.needs)) is not None
    ]
    for choice in able:
        if _can_draw(choice.model, needs):
            return choice
    keyed = [spec for spec, key in ready if key]
    if not keyed and ILLUSTRATOR.name in specs:
        spec = specs[ILLUSTRATOR.name]
        return _check(Choice(spec=spec, model=spec.models[0], key=""), needs, specs)
    if able:
        raise _invalid_size(able[0], needs)
    if model := next((models[0] for models in current.values() if models), None):
        raise _incapable(model, needs, specs)
    raise _no_provider(keyed)


def _no_provider(keyed: Sequence[ProviderSpec]) -> NoProvider:
    """The error if no key is set, or only keys of retired models."""
    if not keyed:
        return NoProvider(NO_KEY_MESSAGE, hint=NO_KEY_HINT)
    names = ", ".join(row.name for spec in keyed for row in spec.models)
    return NoProvider(
        f"A key is set, but the models it is for are retired: {names}.",
        hint="Name the provider if a proxy still serves it, or set another key.",
    )


def _first_able(models: Sequence[ImageModel], needs: Needs) -> ImageModel | None:
    return next((row for row in models if row.lacks(needs) is None), None)


def _check(choice: Choice, needs: DrawingNeeds, specs: Mapping[str, ProviderSpec]) -> Choice:
    if choice.model.lacks(needs.needs) is not None:
        raise _incapable(choice.model, needs, specs)
    if not _can_draw(choice.model, needs):
        raise _invalid_size(choice, needs)
    return choice


def _can_draw(model: ImageModel, needs: DrawingNeeds) -> bool:
    size = model.nearest_size(needs.size) if needs.any_size else needs.size
    return model.can_draw(size, needs.quality)


def _incapable(
    model: ImageModel, needs: DrawingNeeds, specs: Mapping[str, ProviderSpec]
) -> UserError:
    """The error for a model that cannot do it; the hint names a model that can."""
    hint = "No model here can."
    for spec in specs.values():
        current = [row for row in spec.models if row.retired is None]
        if (able := _first_able(current, needs.needs)) is not None:
            key = "" if spec.key_env is None or spec.key_optional else f", with {spec.key_env} set"
            hint = f"{able.name} can{key}."
            break
    return UserError(f"{model.name} {model.lacks(needs.needs)}.", code=CANNOT, hint=hint)


def _invalid_size(choice: Choice, needs: DrawingNeeds) -> LimnerError:
    return choice.model.invalid_size(needs.size, needs.quality)


def _retirement(model: ImageModel, today: date) -> str | None:
    if not model.is_retired(today):
        return None
    successor = "" if model.successor is None else f" Its successor is {model.successor}."
    return (
        f"{model.title} was retired by its maker on {model.retired}; "
        f"this only works if a proxy still serves it.{successor}"
    )
