"""What a client wants to hold for a thread -> what holds, and what of it nobody here can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast, get_args

import msgspec
from msgspec.structs import replace

from limner.agent.session_options import SessionOptions
from limner.client import Limner
from limner.dollars import usd_to_nano
from limner.errors import InputInvalid, LimnerError
from limner.frontends.appserver.protocol.base import (
    AskForApproval,
    DangerFullAccess,
    ExternalSandbox,
    GranularApproval,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
)
from limner.frontends.appserver.protocol.threads import (
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
)
from limner.frontends.appserver.protocol.turns import TurnStartParams
from limner.frontends.appserver.rpc_errors import refusal
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import read_specs
from limner.models.registry import Registry
from limner.settings import Policy, Sandbox, all_settings
from limner.wires.base import Effort

Opening = ThreadStartParams | ThreadResumeParams | ThreadForkParams

DEFAULT_PROVIDER = "openai"
MODES: Mapping[Sandbox, SandboxPolicy] = {
    "read-only": ReadOnly(),
    "workspace-write": WorkspaceWrite(),
    "danger-full-access": DangerFullAccess(),
}

# The keys of `config` that hold for one thread, in limner's words and in Codex's.
_TERMS = {
    "agent.personality": "personality",
    "agent.sandbox": "sandbox",
    "approval.policy": "approval",
    "approval_policy": "approval",
    "base_instructions": "base_instructions",
    "budget.session_usd": "budget_usd",
    "compact_prompt": "compact_prompt",
    "developer_instructions": "developer_instructions",
    "profile": "personality",
    "sandbox_mode": "sandbox",
}
_MODEL, _PROVIDER, _EFFORT = "model", "model_provider", "model_reasoning_effort"
_ALIASES = {"model_roles.default": _MODEL}
_TOOL = "tools."
_MAX_KEYS, _MAX_KEY_CHARS = 1_000, 200


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Who is talked to, as clients are told."""

    provider: str
    model: str
    effort: str | None = None


class ThreadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What holds, and one sentence for each wish that does not."""

    kept: ThreadState
    warnings: tuple[str, ...] = ()


def agree(kept: ThreadState, wanted: Opening, *, lim: Limner) -> ThreadOptions:
    """What holds for a thread that is begun, continued or copied.

    Raises:
        RpcError: something wanted is not of the right shape.
        InputInvalid: a tool breaks a rule.
    """
    config = dict(islice(_flat(wanted.config or {}), _MAX_KEYS + 1))
    if len(config) > _MAX_KEYS:
        raise refusal(f"config has more than {_MAX_KEYS:,} keys")
    config = {_ALIASES.get(key, key): value for key, value in config.items()}
    terms, warnings = _configured(kept.terms, config)
    before = terms.model or _model_elsewhere(kept.others, lim)
    provider = wanted.model_provider or _text(config, _PROVIDER)
    model = wanted.model or _text(config, _MODEL)
    if model is None and provider is not None:
        model = _same_of(provider, replace(terms, model=before), lim)
    named = named_model(model, provider, lim.models)
    asked = {
        "model": _with_effort(named or before, _text(config, _EFFORT), lim),
        "approval": None if wanted.approval_policy is None else policy_of(wanted.approval_policy),
        "sandbox": wanted.sandbox,
        "base_instructions": wanted.base_instructions,
        "developer_instructions": wanted.developer_instructions,
    }
    kept = replace(kept, terms=_changed(terms, asked))
    off = {key.removeprefix(_TOOL): value for key, value in config.items() if _is_tool(key)}
    if off:
        still_off = set(kept.rest.tools_off) - off.keys()
        now_off = {name for name, is_on in off.items() if is_on is False}
        kept = kept.but(tools_off=tuple(sorted(still_off | now_off)))
    if wanted.cwd is not None:
        kept = kept.but(cwd=str(lim.cwd / wanted.cwd))
    if wanted.dynamic_tools is not None:
        kept = replace(kept, tools=read_specs(wanted.dynamic_tools)).but(found=())
    return ThreadOptions(kept=kept, warnings=tuple(warnings))


def agree_for_turn(kept: ThreadState, wanted: TurnStartParams, *, lim: Limner) -> ThreadState:
    """What holds from a turn on.

    Raises:
        RpcError: something wanted is not of the right shape.
    """
    named = named_model(wanted.model, None, lim.models, like=kept.terms.model)
    policy, sandbox = wanted.approval_policy, wanted.sandbox_policy
    asked = {
        "model": _with_effort(named or kept.terms.model, wanted.effort, lim),
        "approval": None if policy is None else policy_of(policy),
        "sandbox": None if sandbox is None else mode_of(sandbox),
    }
    kept = replace(kept, terms=_changed(kept.terms, asked))
    return kept if wanted.cwd is None else kept.but(cwd=str(lim.cwd / wanted.cwd))


def talker(terms: SessionOptions, *, lim: Limner) -> ModelChoice:
    """Who would be talked to; where nobody can be, whoever is named."""
    name = terms.model
    try:
        who = lim.personalities.get(terms.personality or lim.settings.agent.personality)
        found = lim.models.resolve_talker(named=name or who.model)
    except LimnerError:
        provider, _, model = (name or lim.settings.model_roles.default or "").partition("/")
        return ModelChoice(provider=provider, model=model)
    return ModelChoice(provider=found.model.provider, model=found.model.id, effort=found.effort)


def named_model(
    model: str | None, provider: str | None, models: Registry, *, like: str | None = None
) -> str | None:
    """What clients call a model and its provider -> ``provider/id``; None where none is named.

    A client may name a model as limner does, or by its id alone: then it is the provider's that
    is named beside it, or that of the model before, or whoever has a model of that id.
    """
    if model is None:
        return None
    if provider is not None:
        return model if model.startswith(f"{provider}/") else f"{provider}/{model}"
    if "/" in model:
        return model
    bare = model.partition(":")[0]
    before = (like or "").partition("/")[0]
    having = [known.provider for known in models.known() if known.id == bare]
    if before and (before in having or not having):
        return f"{before}/{model}"
    return f"{having[0] if having else DEFAULT_PROVIDER}/{model}"


def _model_elsewhere(others: Mapping[str, Any], lim: Limner) -> str | None:
    """The model that an imported thread had elsewhere, if it can be asked from here."""
    name = named_model(_text(others, _MODEL), _text(others, _PROVIDER), lim.models)
    found = None if name is None else lim.models.find(name)
    return None if found is None or lim.models.key(found.model) is None else name


def _same_of(provider: str, terms: SessionOptions, lim: Limner) -> str | None:
    """The model that is talked to, where another provider is known to have it as well."""
    talked_to = talker(terms, lim=lim).model
    having = [known.provider for known in lim.models.known() if known.id == talked_to]
    return talked_to if provider in having else None


def policy_of(asked: AskForApproval) -> Policy:
    """When the user is asked; a choice for each kind of question is one of ours as a whole."""
    return "on-request" if isinstance(asked, GranularApproval) else asked


def mode_of(policy: SandboxPolicy) -> Sandbox:
    """What a model may write; where somebody else confines it, everything above the floor."""
    match policy:
        case ReadOnly():
            return "read-only"
        case WorkspaceWrite():
            return "workspace-write"
        case DangerFullAccess() | ExternalSandbox():
            return "danger-full-access"


def _configured(
    terms: SessionOptions, config: Mapping[str, Any]
) -> tuple[SessionOptions, list[str]]:
    warnings: list[str] = []
    asked: dict[str, Any] = {}
    kinds = {field.name: field.type for field in msgspec.structs.fields(SessionOptions)}
    for key, value in config.items():
        if key in _TERMS:
            field = _TERMS[key]
            try:
                asked[field] = msgspec.convert(value, kinds[field], strict=False)
                if field == "budget_usd":
                    usd_to_nano(asked[field], field=key)
            except (msgspec.ValidationError, ValueError, InputInvalid) as error:
                raise refusal(f"invalid config.{key[:80]}: {str(error)[:200]}") from None
        elif key not in (_MODEL, _PROVIDER, _EFFORT) and not _is_tool(key):
            whole = "holds for the whole server" if key in all_settings() else "is not known here"
            warnings.append(f"config.{key[:80]} {whole} and is ignored for this thread.")
    return _changed(terms, asked), warnings


def _is_tool(key: str) -> bool:
    return key.startswith(_TOOL) and key not in all_settings()


def _changed(terms: SessionOptions, asked: Mapping[str, Any]) -> SessionOptions:
    return replace(terms, **{name: value for name, value in asked.items() if value is not None})


def _with_effort(name: str | None, effort: str | None, lim: Limner) -> str | None:
    """The name with another effort, which stands behind it."""
    if effort is None:
        return name
    if effort not in get_args(Effort):
        words = ", ".join(f"`{word}`" for word in get_args(Effort))
        raise refusal(f"unknown reasoning effort `{effort[:80]}`, expected one of {words}")
    found = None if name is None else lim.models.find(name)
    bare = name if found is None else found.model.name
    if bare is None:
        who = talker(SessionOptions(), lim=lim)
        bare = f"{who.provider}/{who.model}"
    return f"{bare}:{effort}"


def _text(config: Mapping[str, Any], key: str) -> str | None:
    value = config.get(key)
    return value if isinstance(value, str) else None


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if len(prefix) + len(name) > _MAX_KEY_CHARS:
            # Whatever is below would be named with all of it.
            raise refusal(f"config has a key of more than {_MAX_KEY_CHARS} characters")
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
