"""Which provider and model draw a request: decided from data alone, before anything is sent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from limner.catalogue.images import ImageModel, Size
from limner.errors import InputInvalid, LimnerError, NoProvider
from limner.providers.base import EMBEDDED, ProviderSpec

AUTO = "auto"
MAIN_KEYS = ("OPENAI_API_KEY", "REPLICATE_API_TOKEN")
NO_KEY_MESSAGE = f"Neither {MAIN_KEYS[0]} nor {MAIN_KEYS[1]} is set."
NO_KEY_HINT = f"Set {MAIN_KEYS[0]} or {MAIN_KEYS[1]}, or run: limner keys set {MAIN_KEYS[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the caller asked for, as far as it decides who draws it."""

    provider: str
    model: str | None
    size: Size
    quality: str
    has_svg: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Who draws it, with which model and key. ``notice`` is for the caller to pass on."""

    spec: ProviderSpec
    model: ImageModel
    key: str
    notice: str | None = None


def choose(
    wish: Wish,
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
        NoProvider: nothing that could draw has its key.
    """
    if wish.has_svg:
        return _named(wish, _illustrator(wish, specs), key_of=key_of, today=today)
    if wish.provider != AUTO:
        return _named(wish, _known(wish.provider, specs), key_of=key_of, today=today)
    if wish.model is not None:
        return _named(wish, _serving(wish.model, specs), key_of=key_of, today=today)
    return _automatic(wish, specs, key_of=key_of, today=today)


def _illustrator(wish: Wish, specs: Mapping[str, ProviderSpec]) -> ProviderSpec:
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
        if _model_of(spec, model) is not None:
            return spec
    ids = [row.id for spec in specs.values() for row in spec.models]
    near = difflib.get_close_matches(model, ids, n=1)
    raise InputInvalid(
        f"no provider has a model {model!r}",
        field="model",
        hint=f"Did you mean {near[0]!r}?" if near else "Run `limner models` for the list.",
    )


def _model_of(spec: ProviderSpec, name: str) -> ImageModel | None:
    """A model by the vendor's id, alone or behind the provider's name."""
    bare = name.removeprefix(f"{spec.name}/")
    return next((row for row in spec.models if row.id == bare), None)


def _named(
    wish: Wish, spec: ProviderSpec, *, key_of: Callable[[str], str | None], today: date
) -> Choice:
    model = spec.models[0] if wish.model is None else _model_of(spec, wish.model)
    if model is None:
        ids = ", ".join(row.id for row in spec.models)
        raise InputInvalid(
            f"provider {spec.name!r} has no model {wish.model!r}; it has {ids}", field="model"
        )
    key = _key(spec, key_of)
    if key is None:
        raise NoProvider(
            f"{spec.key_env} is not set, and {spec.name} needs it.",
            hint=f"Set {spec.key_env}, or run: limner keys set {spec.key_env}",
        )
    choice = Choice(spec=spec, model=model, key=key, notice=_retirement(model, today))
    return _checked(choice, wish)


def _automatic(
    wish: Wish,
    specs: Mapping[str, ProviderSpec],
    *,
    key_of: Callable[[str], str | None],
    today: date,
) -> Choice:
    ready = [
        (spec, key)
        for name, spec in specs.items()
        if name not in EMBEDDED and (key := _key(spec, key_of)) is not None
    ]
    living = [
        Choice(spec=spec, model=model, key=key)
        for spec, key in ready
        if (model := _first_living(spec.models, today)) is not None
    ]
    for choice in living:
        if choice.model.can_draw(wish.size, wish.quality):
            return choice
    keyed = [spec for spec, key in ready if key]
    (embedded,) = EMBEDDED
    if not keyed and embedded in specs:
        spec = specs[embedded]
        return _checked(Choice(spec=spec, model=spec.models[0], key=""), wish)
    if living:
        raise _invalid_size(living[0], wish)
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


def _key(spec: ProviderSpec, key_of: Callable[[str], str | None]) -> str | None:
    return "" if spec.key_env is None else key_of(spec.key_env)


def _first_living(models: Sequence[ImageModel], today: date) -> ImageModel | None:
    return next((row for row in models if not row.is_retired(today)), None)


def _checked(choice: Choice, wish: Wish) -> Choice:
    if not choice.model.can_draw(wish.size, wish.quality):
        raise _invalid_size(choice, wish)
    return choice


def _invalid_size(choice: Choice, wish: Wish) -> LimnerError:
    return choice.model.invalid_size(wish.size, wish.quality)


def _retirement(model: ImageModel, today: date) -> str | None:
    if not model.is_retired(today):
        return None
    successor = "" if model.successor is None else f" Its successor is {model.successor}."
    return (
        f"{model.title} was retired by its maker on {model.retired}; "
        f"this only works where a proxy still serves it.{successor}"
    )
