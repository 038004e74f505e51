"""A name or a role -> a model: what it takes in, where it is, what it costs, and its key.

Known are the rows of the catalogue, the user's own ``[[models]]``, whatever else a known service
may run, and the two that limner carries itself: eyes that look, and rules that talk. Everything is
decided from data, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from limner.catalogue.vision import (
    Limits,
    ModelService,
    Rate,
    VisionModel,
    services,
    unlisted,
    vision_model,
    vision_models,
)
from limner.errors import InputInvalid, SettingsError, UserError
from limner.settings.custom_models import CustomModel
from limner.wires.base import Effort

EYES = "limner/eyes"
OFFLINE = "limner/offline"
EMBEDDED = "embedded"
NO_MODEL = "NO_MODEL"

By = Literal["named", "vision", "default", "active", "first", "offline"]

# The short name of the tool whose behaviour this is, so that its settings can be carried over.
_ALIASES = {
    f"{prefix}/{role}": role for prefix in ("limner", "pi") for role in ("vision", "default")
}
_EFFORTS: Mapping[str, Effort] = {"off": "none", **{word: word for word in get_args(Effort)}}
_SAFE_FORMATS = ("image/png", "image/jpeg")
_FREE = Rate(input_usd=Decimal(0), output_usd=Decimal(0))


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked, if its key is set.

    Attributes:
        name: ``provider/id``.
        title: the name of its service, for messages.
        api: the wire it speaks, or ``EMBEDDED``.
        base_url: where it is, without a slash at its end.
        base_url_from: the variable or setting to correct where that address is wrong.
        key_env: the variable that holds its key; None where it needs none.
        account_url: where one sees what was spent, where that is known.
        facts: formats, limits, token rule and rate; what is unknown there is None.
    """

    name: str
    title: str
    api: str
    base_url: str
    base_url_from: str
    key_env: str | None
    account_url: str | None
    facts: VisionModel

    @property
    def takes_images(self) -> bool:
        """False where a picture would be refused."""
        return self.facts.takes_images

    @property
    def takes_audio(self) -> bool:
        """True where a sound would be heard."""
        return self.facts.takes_audio

    @property
    def rate(self) -> Rate | None:
        """What tokens cost, None where nobody says; free where there is no key to be billed."""
        return _FREE if self.facts.rate is None and self.key_env is None else self.facts.rate

    @property
    def provider(self) -> str:
        """The service, as its models' names begin."""
        return self.name.partition("/")[0]

    @property
    def id(self) -> str:
        """What the service calls the model."""
        return self.name.partition("/")[2]


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model by its name, and how hard it was asked to think there."""

    model: KnownModel
    effort: Effort | None = None


class UnknownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is no model, who said it, and the names it may have meant."""

    by: By
    name: str
    near: tuple[str, ...]


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The model that is used, who named it, and the names before it that are no models."""

    model: KnownModel
    effort: Effort | None
    by: By
    unknown: tuple[UnknownModel, ...] = ()


class Registry:
    """The models of one program.

    Args:
        key_of: looks a key up by its variable.
        env: where other base URLs come from.
        roles: which model does what, by role.
        own: the user's own models.
        embedded: whether the models that limner carries itself are there.
        today: the day, for models that retire.

    All of its methods but `key` may raise a SettingsError: one of the user's own models is nowhere.
    """

    def __init__(
        self,
        *,
        key_of: Callable[[str], str | None],
        env: Mapping[str, str],
        roles: Mapping[str, str | None],
        own: Sequence[CustomModel] = (),
        embedded: bool,
        today: Callable[[], date],
    ) -> None:
        self._key_of = key_of
        self._env = env
        self._roles = roles
        self._today = today
        self._own = own
        self._embedded = embedded

    def known(self) -> list[KnownModel]:
        """Every model that may look: those with a row or a table, and limner's own eyes."""
        return list(self._known.values())

    def available(self) -> list[KnownModel]:
        """The models of `known` that can be asked now: not retired, and no key is missing."""
        return list(self._available())

    def has_available(self) -> bool:
        """Whether `available` has at least one model."""
        return any(True for _ in self._available())

    def _available(self) -> Iterator[KnownModel]:
        today = self._today()
        for model in self._known.values():
            if not model.facts.is_retired(today) and self.key(model) is not None:
                yield model

    def key(self, model: KnownModel) -> str | None:
        """The key of a model: empty where it needs none, None where it is missing."""
        return "" if model.key_env is None else self._key_of(model.key_env) or None

    def find(self, name: str) -> FoundModel | None:
        """The model of a name; None where it is none.

        A name is ``provider/id``, or the alias of a role, and may end in ``:high`` or another
        effort. A known service has a model of every id.
        """
        return self._find(name.strip(), aliases_left=len(_ALIASES))

    def resolve(self, *, active: str | None = None) -> Resolution | None:
        """The model that looks at pictures: the first of these that is a model.

        The role ``vision``, the role ``default``, the model that is active in the session, the
        first available. Whether it takes pictures and has its key is not asked here. The rules of
        ``limner/offline`` look at nothing, so that talking to them leaves open who looks.
        """
        named: Sequence[tuple[By, str | None]] = (
            ("vision", self._roles.get("vision")),
            ("default", self._roles.get("default")),
            ("active", active),
        )
        unknown: list[UnknownModel] = []
        for by, name in named:
            if not name:
                continue
            found = self.find(name)
            if found is not None and found.model.name == OFFLINE and by != "vision":
                continue
            if found is not None:
                return Resolution(
                    model=found.model, effort=found.effort, by=by, unknown=tuple(unknown)
                )
            unknown.append(UnknownModel(by=by, name=name, near=tuple(self.near(name))))
        for model in self._available():
            return Resolution(model=model, effort=None, by="first", unknown=tuple(unknown))
        return None

    def resolve_talker(self, *, named: str | None = None) -> Resolution:
        """The model that a conversation is held with: the first of these that is said or there.

        The one that is ``named``, the role ``default``, the first available, ``limner/offline``.
        What somebody chose is used or refused, and never replaced by another.

        Raises:
            UserError: ``NO_MODEL`` where the one chosen is no model, or one that only looks, or
                there is none at all; ``NO_API_KEY`` where its key is missing.
        """
        chosen: Sequence[tuple[By, str | None]] = (
            ("named", named),
            ("default", self._roles.get("default")),
        )
        for by, name in chosen:
            if name:
                found = self._talker(name)
                return Resolution(model=found.model, effort=found.effort, by=by)
        for model in self._available():
            if model.api != EMBEDDED:
                return Resolution(model=model, effort=None, by="first")
        if not self._embedded:
            raise UserError(
                "There is no model to talk to.", code=NO_MODEL, hint="Set a key: OPENAI_API_KEY=…"
            )
        return Resolution(model=_offline(), effort=None, by="offline")

    def near(self, name: str) -> list[str]:
        """Names of models that one may have meant."""
        return _nearest(name, self._known)

    def _talker(self, name: str) -> FoundModel:
        found = self.find(name)
        if found is None:
            near = " or ".join(_nearest(name, [*self._known, OFFLINE]))
            raise UserError(
                f"There is no model {name[:80]!r}.",
                code=NO_MODEL,
                hint=f"Did you mean {near}?" if near else "`limner models --vision` lists them.",
            )
        model = found.model
        if model.name == EYES:
            raise UserError(
                f"{EYES} answers questions about pictures and cannot hold a conversation.",
                code=NO_MODEL,
                hint=f"Talk to {OFFLINE}, or to a model that has its key.",
            )
        if self.key(model) is None:
            raise UserError(
                f"No API key available for {model.name}.",
                code="NO_API_KEY",
                hint=f"Set {model.key_env}, or store it: limner keys set {model.key_env}",
            )
        return found

    @cached_property
    def _known(self) -> dict[str, KnownModel]:
        # Made when first asked for: reading the catalogue takes longer than starting a command.
        listed = [self._of_service(row) for row in vision_models()]
        rows = {model.name: model for model in listed}
        own = {model.name: self._of_user(model) for model in self._own}
        return rows | own | ({EYES: _eyes()} if self._embedded else {})

    def _find(self, name: str, *, aliases_left: int) -> FoundModel | None:
        bare, _, word = name.rpartition(":")
        found = self._named(name, aliases_left=aliases_left)
        if found is None and bare and word in _EFFORTS:
            found = self._named(bare, aliases_left=aliases_left) or self._unlisted(bare)
            return found and replace(found, effort=_EFFORTS[word])
        return found or self._unlisted(name)

    def _named(self, name: str, *, aliases_left: int) -> FoundModel | None:
        if name in self._known:
            return FoundModel(model=self._known[name])
        if name == OFFLINE and self._embedded:
            return FoundModel(model=_offline())
        meant = self._roles.get(_ALIASES.get(name, ""))
        # Roles may name each other, but not in a circle.
        if not meant or not aliases_left:
            return None
        return self._find(meant.strip(), aliases_left=aliases_left - 1)

    def _unlisted(self, name: str) -> FoundModel | None:
        facts = _facts(name)
        return None if facts is None else FoundModel(model=self._of_service(facts))

    def _of_service(self, facts: VisionModel) -> KnownModel:
        service = services()[facts.provider]
        return KnownModel(
            name=facts.name,
            title=service.title,
            api=service.api,
            base_url=self._base_url(service),
            base_url_from=service.base_url_env,
            key_env=service.key_env,
            account_url=service.account_url,
            facts=facts,
        )

    def _base_url(self, service: ModelService) -> str:
        return (self._env.get(service.base_url_env, "").strip() or service.base_url).rstrip("/")

    def _of_user(self, own: CustomModel) -> KnownModel:
        provider = own.name.partition("/")[0]
        facts = replace(
            _facts(own.name) or _facts_of_nobody(own.name),
            takes_images="image" in own.input,
            takes_audio="audio" in own.input,
        )
        if provider in services():
            model = self._of_service(facts)
        elif own.base_url is not None:
            model = _elsewhere(provider, facts)
        else:
            raise SettingsError(
                f"[[models]] {own.name[:80]!r}: limner does not know this provider",
                hint="Set base_url to the address of its server.",
            )
        if own.base_url is not None:
            # Another server: it gets the key that was named for it, or none.
            model = replace(
                model,
                base_url=own.base_url.rstrip("/"),
                base_url_from=f"base_url of {own.name!r}",
                key_env=None,
                account_url=None,
            )
        return replace(model, api=own.api or model.api, key_env=own.key_env or model.key_env)


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    return get_close_matches(name[:80].lower(), list(names), n=3, cutoff=0.5)


def _facts(name: str) -> VisionModel | None:
    try:
        return vision_model(name)
    except InputInvalid:
        return unlisted(name)


def _facts_of_nobody(name: str) -> VisionModel:
    """What may be taken for granted of a model that nobody has described."""
    provider, _, model_id = name.partition("/")
    return VisionModel(
        provider=provider,
        id=model_id,
        title=model_id,
        takes_images=True,
        formats=_SAFE_FORMATS,
        limits=Limits(),
        rule=None,
        rate=None,
        context_tokens=None,
        retired=None,
        source="settings",
        read=date.min,
    )


def _elsewhere(provider: str, facts: VisionModel) -> KnownModel:
    return KnownModel(
        name=facts.name,
        title=provider,
        api="openai-chat",
        base_url="",
        base_url_from="",
        key_env=None,
        account_url=None,
        facts=facts,
    )


def _eyes() -> KnownModel:
    facts = replace(
        _facts_of_nobody(EYES),
        title="limner's own eyes",
        formats=(*_SAFE_FORMATS, "image/gif", "image/webp"),
        rate=_FREE,
        source="limner",
    )
    return replace(_elsewhere("limner", facts), api=EMBEDDED)


def _offline() -> KnownModel:
    facts = replace(
        _facts_of_nobody(OFFLINE),
        title="limner's own rules",
        # They read what pictures are called, and never need one loaded.
        takes_images=False,
        formats=(),
        rate=_FREE,
        source="limner",
    )
    return replace(_elsewhere("limner", facts), api=EMBEDDED)
