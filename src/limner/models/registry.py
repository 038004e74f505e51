"""A name or a role -> a model: its inputs, its URL, its price and its key.

The registry has the rows of the catalogue, the user's own ``[[models]]``, any other model of a
known service, and limner's two embedded models: one for pictures (eyes) and one for conversations
(offline). All of it is data; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
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
from limner.content import Discreet
from limner.errors import InputInvalid, SettingsError, UserError
from limner.settings.custom_models import CustomModel
from limner.settings.variables import Lookup
from limner.wires.base import Effort

EYES = "limner/eyes"
OFFLINE = "limner/offline"
EMBEDDED = "embedded"
EMBEDDED_PROVIDER = "limner"
NO_MODEL = "NO_MODEL"

By = Literal["named", "vision", "default", "active", "first", "offline"]

# `pi` is accepted as well, so that users can keep settings of that tool.
_ROLES: tuple[Literal["vision", "default"], ...] = ("vision", "default")
_ALIASES = {f"{prefix}/{role}": role for prefix in ("limner", "pi") for role in _ROLES}
_EFFORTS: Mapping[str, Effort] = {"off": "none", **{word: word for word in get_args(Effort)}}
_SAFE_FORMATS = ("image/png", "image/jpeg")
_FREE = Rate(input_usd=Decimal(0), output_usd=Decimal(0))


class KnownModel(Discreet, frozen=True, kw_only=True):
    """A model that can be used if its key is set.

    Attributes:
        name: ``provider/id``.
        title: the name of its service, for messages.
        api: the wire it speaks, or ``EMBEDDED``.
        base_url: its URL, without a slash at its end.
        base_url_from: the variable or setting that sets the URL.
        key_env: the variable with its key; None if it needs none.
        account_url: where the user sees the bill, if that is known.
        facts: formats, limits, token rule and rate; unknown facts are None.
    """

    unshown = ("base_url",)  # it may have a password in it

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
        """Whether it accepts pictures."""
        return self.facts.takes_images

    @property
    def takes_audio(self) -> bool:
        """Whether it accepts audio."""
        return self.facts.takes_audio

    @property
    def rate(self) -> Rate | None:
        """The price of tokens; None if it is not known, free if the model needs no key."""
        return _FREE if self.facts.rate is None and self.key_env is None else self.facts.rate

    @property
    def provider(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]

    @property
    def id(self) -> str:
        """The service's name of the model."""
        return self.name.partition("/")[2]


class UnknownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is not a model, its origin, and similar names."""

    by: By
    name: str
    near: tuple[str, ...]

    def __str__(self) -> str:
        near = f" Did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"model_roles.{self.by} names {self.name[:80]!r}, which is not a model.{near}"


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was found by its name or by a role.

    Attributes:
        model: the model.
        effort: the reasoning effort in its name.
        by: what chose it.
        unknown: the names before it that are not models.
    """

    model: KnownModel
    effort: Effort | None = None
    by: By = "named"
    unknown: tuple[UnknownModel, ...] = ()


class Registry:
    """The models of one program.

    Args:
        key_of: finds a key by its variable.
        env: the environment, for base URLs.
        roles: the model of each role.
        own: the user's own models.
        embedded: whether limner's embedded models are on.
        today: the date, for models that retire.

    All of its methods but `key` raise a SettingsError if one of the user's own models has no URL.
    """

    def __init__(
        self,
        *,
        key_of: Callable[[str], str | None],
        env: Lookup,
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
        """All models with a row or a ``[[models]]`` table, and limner's own eyes."""
        return list(self._known.values())

    def providers(self) -> set[str]:
        """The services that a model can be named of, known or of the user's own models."""
        return {*services(), EMBEDDED_PROVIDER, *(model.provider for model in self.known())}

    def available(self) -> list[KnownModel]:
        """The models of `known` that can be used now: not retired, and with their keys."""
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
        """The key of a model: empty if it needs none, None if it is missing."""
        return "" if model.key_env is None else self._key_of(model.key_env) or None

    def find(self, name: str) -> FoundModel | None:
        """The model of a name, or None.

        A name is ``provider/id`` or the alias of a role, and may end in ``:high`` or another
        effort. A known service has a model of every id. An id alone is enough if only one known
        model has it. Of several names, with commas between them, the first that is a model counts.
        """
        for one in name.split(","):
            found = self._find(one.strip(), aliases_left=len(_ALIASES))
            if found is not None:
                return found
        return None

    def unknown_roles(self) -> tuple[UnknownModel, ...]:
        """The roles of the settings that name no model."""
        return tuple(
            UnknownModel(by=role, name=name, near=tuple(self.near(name)))
            for role in _ROLES
            if (name := self._roles.get(role)) and self.find(name) is None
        )

    def vision_facts(self, name: str) -> VisionModel:
        """What is known about the model of a name, found as `find` does.

        Raises:
            InputInvalid: there is no such model.
        """
        found = self.find(name)
        return vision_model(name) if found is None else found.model.facts

    def resolve(self, *, active: str | None = None) -> FoundModel | None:
        """The model for pictures: the first of these names that is a model.

        The role ``vision``, the role ``default``, the model that is active in the session, the
        first available. This does not check if it accepts pictures or has its key.
        ``limner/offline`` cannot look at pictures, so it counts only in the role ``vision``.
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
                return replace(found, by=by, unknown=tuple(unknown))
            unknown.append(UnknownModel(by=by, name=name, near=tuple(self.near(name))))
        for model in self._available():
            return FoundModel(model=model, by="first", unknown=tuple(unknown))
        return None

    def resolve_conversation_model(self, *, named: str | None = None) -> FoundModel:
        """The model for a conversation: the first of these that is set or available.

        The ``named`` one, the role ``default``, the first available, ``limner/offline``. A model
        that the user chose is never replaced by another.

        Raises:
            UserError: ``NO_MODEL`` if the chosen name is not a model, or the model only looks at
                pictures, or there is no model; ``NO_API_KEY`` if its key is missing.
        """
        chosen: Sequence[tuple[By, str | None]] = (
            ("named", named),
            ("default", self._roles.get("default")),
        )
        for by, name in chosen:
            if name:
                return replace(self._conversation_model(name), by=by)
        for model in self._available():
            if model.api != EMBEDDED:
                return FoundModel(model=model, by="first")
        if not self._embedded:
            raise UserError(
                "There is no model to talk to.", code=NO_MODEL, hint="Set a key: OPENAI_API_KEY=…"
            )
        return FoundModel(model=_offline(), by="offline")

    def near(self, name: str) -> list[str]:
        """The names of similar models."""
        return _nearest(name, self._known)

    def _conversation_model(self, name: str) -> FoundModel:
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
        # Built at the first use: loading the catalogue takes longer than starting a command.
        listed = [self._from_service(row) for row in vision_models()]
        rows = {model.name: model for model in listed}
        own = {model.name: self._from_settings(model) for model in self._own}
        return rows | own | ({EYES: _eyes()} if self._embedded else {})

    def _find(self, name: str, *, aliases_left: int) -> FoundModel | None:
        bare, _, word = name.rpartition(":")
        found = self._named(name, aliases_left=aliases_left)
        if found is None and bare and word in _EFFORTS:
            found = self._named(bare, aliases_left=aliases_left) or self._unlisted(bare)
            return found and replace(found, effort=_EFFORTS[word])
        return found or self._unlisted(name)

    def _named(self, name: str, *, aliases_left: int) -> FoundModel | None:
        if (known := self._known.get(name) or self._nearly(name)) is not None:
            return FoundModel(model=known)
        if name == OFFLINE and self._embedded:
            return FoundModel(model=_offline())
        target = self._roles.get(_ALIASES.get(name, ""))
        # Roles may name each other, but not in a cycle.
        if not target or not aliases_left:
            return None
        return self._find(target.strip(), aliases_left=aliases_left - 1)

    def _nearly(self, name: str) -> KnownModel | None:
        """The only known model whose name, or id alone, differs at most in case."""
        folded = name.casefold()
        alike = [
            model
            for known, model in self._known.items()
            if folded in (known.casefold(), model.id.casefold())
        ]
        return alike[0] if len(alike) == 1 else None

    def _unlisted(self, name: str) -> FoundModel | None:
        facts = _facts(name)
        return None if facts is None else FoundModel(model=self._from_service(facts))

    def _from_service(self, facts: VisionModel) -> KnownModel:
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

    def _from_settings(self, own: CustomModel) -> KnownModel:
        provider = own.name.partition("/")[0]
        facts = replace(
            _facts(own.name) or _default_facts(own.name),
            takes_images="image" in own.input,
            takes_audio="audio" in own.input,
        )
        if provider in services():
            model = self._from_service(facts)
        elif own.base_url is not None:
            model = _without_service(provider, facts)
        else:
            raise SettingsError(
                f"[[models]] {own.name[:80]!r}: limner does not know this provider",
                hint="Set base_url to the address of its server.",
            )
        if own.base_url is not None:
            # Another server gets only the key that the table names for it.
            model = replace(
                model,
                base_url=own.base_url.rstrip("/"),
                base_url_from=f"base_url of {own.name!r}",
                key_env=None,
                account_url=None,
            )
        return replace(model, api=own.api or model.api, key_env=own.key_env or model.key_env)


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    return get_close_matches(name[:80].lower(), list(names), n=3, cutoff=0.5)


def _facts(name: str) -> VisionModel | None:
    try:
        return vision_model(name)
    except InputInvalid:
        return unlisted(name)


def _default_facts(name: str) -> VisionModel:
    """The facts of a model without a row."""
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


def _without_service(provider: str, facts: VisionModel) -> KnownModel:
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
        _default_facts(EYES),
        title="limner's own eyes",
        formats=(*_SAFE_FORMATS, "image/gif", "image/webp"),
        rate=_FREE,
        source="limner",
    )
    return replace(_without_service("limner", facts), api=EMBEDDED)


def _offline() -> KnownModel:
    facts = replace(
        _default_facts(OFFLINE),
        title="limner's own rules",
        # It reads only the names of pictures.
        takes_images=False,
        formats=(),
        rate=_FREE,
        source="limner",
    )
    return replace(_without_service("limner", facts), api=EMBEDDED)
