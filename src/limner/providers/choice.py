"""Which provider and model draw a request: decided from data alone, before anything is sent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import msgspec

from limner.catalogue.images import ImageModel, Needs, Size
from limner.errors import InputInvalid, LimnerError, NoProvider, UserError
from limner.providers.base import EMBEDDED, ProviderSpec

AUTO = "auto"
CANNOT = "PROVIDER_CANNOT"
NOTHING_MORE = Needs()
MAIN_KEYS = ("OPENAI_API_KEY", "REPLICATE_API_TOKEN")
NO_KEY_MESSAGE = f"Neither {MAIN_KEYS[0]} nor {MAIN_KEYS[1]} is set."
NO_KEY_HINT = f"Set {MAIN_KEYS[0]} or {MAIN_KEYS[1]}, or run: limner keys set {MAIN_KEYS[0]}"


class DrawingNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asked for, as far as it decides who draws it.

    ``any_size`` says that only the shape of the size is meant.
    """

    provider: str
    model: str | None
    size: Size
    quality: str
    has_svg: bool
    any_size: bool = False
    needs: Needs = NOTHING_MORE


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Who draws it, with which model and key. ``notice`` is for the caller to pass on."""

    spec: ProviderSpec
    model: ImageModel
    key: str
    notice: str | None = None


def choose(
    wish: DrawingNeeds,
    *,
    specs: Mapping[str, ProviderSpec],
    key_of: Callable[[str], str | None],
    today: date,
) -> Choice:
    """The provider and model for a wish.

    A named provider or model is taken at its word, even when it is retired: proxies serve old
    models. ``auto`` takes the first that has its key, is not retired and can do the size and
    quality; the embedded illustrator only draws when no key is set at all, or from ``svg``.

    Raises:
        InputInvalid: no such provider or model, or they do not go together.
        InvalidSize: the provider cannot do the size and quality.
        UserError: it cannot do something else; the hint names one that can.
        NoProvider: nothing that could draw has its key.
    """
    if wish.has_svg:
        spec = _illustrator(wish, specs)
    elif wish.provider != AUTO:
        spec = _known(wish.provider, specs)
    elif wish.model is not None:
        spec = _serving(wish.model, specs)
    else:
        return _automatic(wish, specs, key_of=key_of, today=today)
    return _checked(_named(wish, spec, key_of=key_of, today=today), wish, specs)


def _illustrator(wish: DrawingNeeds, specs: Mapping[str, ProviderSpec]) -> ProviderSpec:
    (name,) = EMBEDDED
    if wish.provider not in (AUTO, name):
        raise InputInvalid(
            f"provider {wish.provider!r} does not draw SVG documents; leave it out or say {name!r}",
            field="provider",
        )
    if name not in specs:
        raise NoProvider(
            "The embedded illustrator, which draws SVG documents, is switched off.",
            hint="Set images.embedded = true.",
        )
    return specs[name]


def _known(name: str, specs: Mapping[str, ProviderSpec]) -> ProviderSpec:
    if name in specs:
        return specs[name]
    near = difflib.get_close_matches(name, specs, n=1)
    raise InputInvalid(
        f"there is no provider {name!r}; there are {', '.join([AUTO, *specs])}",
        field="provider",
        hint=f"Did you mean {near[0]!r}?" if near else None,
    )


def _serving(model: str, specs: Mapping[str, ProviderSpec]) -> ProviderSpec:
    for spec in specs.values():
        by_row = any(row.id == model for row in spec.models)
        if by_row or (model.startswith(f"{spec.name}/") and spec.model(model) is not None):
            return spec
    ids = [row.id for spec in specs.values() for row in spec.models]
    near = difflib.get_close_matches(model, ids, n=1)
    raise InputInvalid(
        f"no provider has a model {model!r}",
        field="model",
        hint=f"Did you mean {near[0]!r}?" if near else "Run `limner models` for the list.",
    )


def _named(
    wish: DrawingNeeds, spec: ProviderSpec, *, key_of: Callable[[str], str | None], today: date
) -> Choice:
    model = spec.models[0] if wish.model is None else spec.model(wish.model)
    if model is None:
        ids = ", ".join(row.id for row in spec.models)
        raise InputInvalid(
            f"provider {spec.name!r} has no model {wish.model!r}; it has {ids}", field="model"
        )
    key = spec.key(key_of)
    if key is None:
        raise NoProvider(
            f"{spec.key_env} is not set, and {spec.name} needs it.",
            hint=f"Set {spec.key_env}, or run: limner keys set {spec.key_env}",
        )
    return Choice(spec=spec, model=model, key=key, notice=_retirement(model, today))


def _automatic(
    wish: DrawingNeeds,
    specs: Mapping[str, ProviderSpec],
    *,
    key_of: Callable[[str], str | None],
    today: date,
) -> Choice:
    ready = [
        (spec, key)
        for name, spec in specs.items()
        if name not in EMBEDDED and not spec.named_only and (key := spec.key(key_of)) is not None
    ]
    living = {
        spec.name: [row for row in spec.models if not row.is_retired(today)] for spec, _ in ready
    }
    able = [
        Choice(spec=spec, model=model, key=key)
        for spec, key in ready
        if (model := _first_able(living[spec.name], wish.needs)) is not None
    ]
    for choice in able:
        if _can_draw(choice.model, wish):
            return choice
    keyed = [spec for spec, key in ready if key]
    (embedded,) = EMBEDDED
    if not keyed and embedded in specs:
        spec = specs[embedded]
        return _checked(Choice(spec=spec, model=spec.models[0], key=""), wish, specs)
    if able:
        raise _invalid_size(able[0], wish)
    if some := next((models[0] for models in living.values() if models), None):
        raise _incapable(some, wish, specs)
    raise _nobody(keyed)


def _nobody(keyed: Sequence[ProviderSpec]) -> NoProvider:
    """Why nothing can draw: no key is set, or only keys for what is retired."""
    if not keyed:
        return NoProvider(NO_KEY_MESSAGE, hint=NO_KEY_HINT)
    names = ", ".join(row.name for spec in keyed for row in spec.models)
    return NoProvider(
        f"A key is set, but the models it is for are retired: {names}.",
        hint="Name the provider where a proxy still serves it, or set another key.",
    )


def _first_able(models: Sequence[ImageModel], needs: Needs) -> ImageModel | None:
    return next((row for row in models if row.lacks(needs) is None), None)


def _checked(choice: Choice, wish: DrawingNeeds, specs: Mapping[str, ProviderSpec]) -> Choice:
    if choice.model.lacks(wish.needs) is not None:
        raise _incapable(choice.model, wish, specs)
    if not _can_draw(choice.model, wish):
        raise _invalid_size(choice, wish)
    return choice


def _can_draw(model: ImageModel, wish: DrawingNeeds) -> bool:
    size = model.nearest_size(wish.size) if wish.any_size else wish.size
    return model.can_draw(size, wish.quality)


def _incapable(
    model: ImageModel, wish: DrawingNeeds, specs: Mapping[str, ProviderSpec]
) -> UserError:
    """The error that says what a model cannot do, and names one that can."""
    hint = "No model here can."
    for spec in specs.values():
        living = [row for row in spec.models if row.retired is None]
        if (able := _first_able(living, wish.needs)) is not None:
            key = "" if spec.key_env is None else f", with {spec.key_env} set"
            hint = f"{able.name} can{key}."
            break
    return UserError(f"{model.name} {model.lacks(wish.needs)}.", code=CANNOT, hint=hint)


def _invalid_size(choice: Choice, wish: DrawingNeeds) -> LimnerError:
    return choice.model.invalid_size(wish.size, wish.quality)


def _retirement(model: ImageModel, today: date) -> str | None:
    if not model.is_retired(today):
        return None
    successor = "" if model.successor is None else f" Its successor is {model.successor}."
    return (
        f"{model.title} was retired by its maker on {model.retired}; "
        f"this only works where a proxy still serves it.{successor}"
    )
