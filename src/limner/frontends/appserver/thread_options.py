"""The options that a client asks for -> the state of the thread, and warnings."""

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
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import read_specs
from limner.models.registry import EMBEDDED_PROVIDER, OFFLINE
from limner.settings import Policy, Sandbox, all_settings
from limner.wires.base import Effort

Opening = ThreadStartParams | ThreadResumeParams | ThreadForkParams

DEFAULT_PROVIDER = "openai"
MODES: Mapping[Sandbox, SandboxPolicy] = {
    "read-only": ReadOnly(),
    "workspace-write": WorkspaceWrite(),
    "danger-full-access": DangerFullAccess(),
}

# The keys of `config` that a thread can have for itself: limner's keys and Codex's.
_OPTION_KEYS = {
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
# The names of Codex that have no effect here, as of August 2026: the first part of a key.
_CODEX_NAMES = frozenset(
    """\
    agents allow_login_shell analytics approvals_reviewer apps apps_mcp_product_sku audio
    auto_review background_terminal_max_timeout browser_use chatgpt_base_url
    check_for_update_on_startup cli_auth_credentials_store computer_use default_permissions
    desktop disable_paste_burst disable_response_storage features feedback file_opener
    forced_chatgpt_workspace_id forced_login_method ghost_snapshot goals hide_agent_reasoning
    history hooks include_apply_patch_tool include_apps_instructions
    include_collaboration_mode_instructions include_environment_context
    include_permissions_instructions include_plan_tool include_view_image_tool instructions
    log_dir marketplaces mcp_oauth_callback_port mcp_oauth_callback_url
    mcp_oauth_credentials_store mcp_servers memories model_auto_compact_token_limit
    model_auto_compact_token_limit_scope model_catalog_json model_context_window
    model_instructions_file model_max_output_tokens model_providers model_reasoning_summary
    model_reasoning_summary_format model_supports_reasoning_summaries model_verbosity notice
    notify openai_base_url orchestrator oss_provider otel permissions personality
    plan_mode_reasoning_effort plugins preferred_auth_method profiles
    project_doc_fallback_filenames project_doc_max_bytes project_root_markers projects realtime
    responses_api_metadata review_model sandbox_workspace_write service_tier
    shell_environment_policy show_raw_agent_reasoning skills sqlite_home
    suppress_unstable_features_warning tool_output_token_limit tool_suggest tools tui web_search
    windows
    """.split()  # noqa: SIM905 - a list of strings would have a line for each
)
_CODEX_EXPERIMENT = "experimental_"


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The model of a thread: ``model`` as clients see it, and its full ``name``."""

    provider: str
    model: str
    name: str
    effort: str | None = None


class ResolvedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The new state of a thread, and a warning for each option that has no effect."""

    state: ThreadState
    warnings: tuple[str, ...] = ()


def resolve_options(state: ThreadState, params: Opening, *, lim: Limner) -> ResolvedOptions:
    """Apply the options of a request that starts, resumes or forks a thread.

    Raises:
        RpcError: an option is invalid.
        InputInvalid: a tool breaks a rule.
    """
    config = dict(islice(_flat(params.config or {}), _MAX_KEYS + 1))
    if len(config) > _MAX_KEYS:
        raise invalid_request(f"config has more than {_MAX_KEYS:,} keys")
    config = {_ALIASES.get(key, key): value for key, value in config.items()}
    options, warnings = _apply_config(state.options, config)
    before = options.model or _imported_model(state.others, lim)
    provider = params.model_provider or _text(config, _PROVIDER)
    if provider is not None and provider not in lim.models.providers():
        raise invalid_request(f"Model provider `{provider[:80]}` not found")
    model = params.model or _text(config, _MODEL)
    if model is None and provider is not None:
        model = _same_model_at(provider, replace(options, model=before), lim)
    named = full_model_name(model, provider, lim, like=before)
    policy = params.approval_policy
    given = {
        "model": _with_effort(named or before, _text(config, _EFFORT), lim),
        "approval": None if policy is None else to_policy(policy),
        "sandbox": params.sandbox,
        "base_instructions": params.base_instructions,
        "developer_instructions": params.developer_instructions,
    }
    state = replace(state, options=_with_given(options, given))
    switches = {key.removeprefix(_TOOL): is_on for key, is_on in config.items() if _is_tool(key)}
    if switches:
        still_off = set(state.extras.tools_off) - switches.keys()
        now_off = {name for name, is_on in switches.items() if is_on is False}
        state = state.with_extras(tools_off=tuple(sorted(still_off | now_off)))
    if params.cwd is not None:
        state = state.with_extras(cwd=str(lim.cwd / params.cwd))
    if params.dynamic_tools is not None:
        state = replace(state, tools=read_specs(params.dynamic_tools)).with_extras(found=())
    return ResolvedOptions(state=state, warnings=tuple(warnings))


def resolve_turn_options(
    state: ThreadState, params: TurnStartParams, *, lim: Limner
) -> ThreadState:
    """Apply the options of a turn. They stay in force for later turns.

    Raises:
        RpcError: an option is invalid.
    """
    named = full_model_name(params.model, None, lim, like=state.options.model)
    policy, sandbox = params.approval_policy, params.sandbox_policy
    given = {
        "model": _with_effort(named or state.options.model, params.effort, lim),
        "approval": None if policy is None else to_policy(policy),
        "sandbox": None if sandbox is None else to_sandbox_mode(sandbox),
    }
    state = replace(state, options=_with_given(state.options, given))
    return state if params.cwd is None else state.with_extras(cwd=str(lim.cwd / params.cwd))


def resolve_model(options: SessionOptions, *, lim: Limner) -> ModelChoice:
    """The model that a turn would use; if none is available, the model that is named."""
    provider, model, effort = _chosen_model(options, lim)
    shown = name_for_clients(provider, model, lim=lim)
    return ModelChoice(provider=provider, model=shown, effort=effort, name=f"{provider}/{model}")


def name_model(
    options: SessionOptions, *, lim: Limner, changes: Mapping[str, str | None]
) -> str | None:
    """The full name of the default model after a change of Codex's keys; None if it is removed.

    Raises:
        RpcError: there is no such provider or effort, or the provider lacks the model.
    """
    current = resolve_model(options, lim=lim)
    model, provider = changes.get(_MODEL), changes.get(_PROVIDER)
    if _MODEL in changes and model is None:
        return None
    if provider is not None and provider not in lim.models.providers():
        raise invalid_request(f"Model provider `{provider[:80]}` not found")
    if model is None and provider is not None:
        model = _same_model_at(provider, options, lim)
        if model is None:
            raise invalid_request(f"`{provider[:80]}` has no model `{current.model}`: name one too")
    named = full_model_name(model, provider, lim, like=current.name) or current.name
    return _with_effort(named, changes.get(_EFFORT, current.effort), lim)


def _chosen_model(options: SessionOptions, lim: Limner) -> tuple[str, str, str | None]:
    """The provider, the id and the effort of the model that a turn would use."""
    name = options.model
    try:
        personality = options.personality or lim.settings.agent.personality
        found = lim.models.resolve_conversation_model(
            named=name or lim.personalities.get(personality).model
        )
    except LimnerError:
        provider, _, model = (name or lim.settings.model_roles.default or "").partition("/")
        return provider, model, None
    return found.model.provider, found.model.id, found.effort


def full_model_name(
    model: str | None, provider: str | None, lim: Limner, *, like: str | None = None
) -> str | None:
    """The name ``provider/id`` of the model that a client names; None if it names none.

    A client may send the full name, or the id alone. An id alone is completed by the provider that
    the client names, else by the provider of the model ``like`` or of the default model if that
    has the model or no other has it, else by one that has this model.
    """
    if model is None:
        return None
    if provider is not None:
        return model if model.startswith(f"{provider}/") else f"{provider}/{model}"
    if "/" in model:
        return model
    bare = model.partition(":")[0]
    before = (like or "").partition("/")[0] or _default_provider(lim)
    embedded = [EMBEDDED_PROVIDER] if f"{EMBEDDED_PROVIDER}/{bare}" == OFFLINE else []
    providers = [known.provider for known in lim.models.known() if known.id == bare] + embedded
    if before in providers or not providers:
        return f"{before}/{model}"
    return f"{providers[0]}/{model}"


def name_for_clients(provider: str, model: str, *, lim: Limner) -> str:
    """The name of a model as clients see it in a list and in a thread.

    It is the id alone, as in Codex, if `full_model_name` completes it to the same model.
    """
    full = f"{provider}/{model}"
    is_enough = not provider or full_model_name(model, None, lim) == full
    return model if is_enough else full


def _default_provider(lim: Limner) -> str:
    """The provider of the default model; the offline model is the only one of its provider."""
    provider = _chosen_model(SessionOptions(), lim)[0]
    return DEFAULT_PROVIDER if provider in ("", EMBEDDED_PROVIDER) else provider


def _imported_model(others: Mapping[str, Any], lim: Limner) -> str | None:
    """The model that an imported thread had, if there is a key for it here."""
    name = full_model_name(_text(others, _MODEL), _text(others, _PROVIDER), lim)
    found = None if name is None else lim.models.find(name)
    return None if found is None or lim.models.key(found.model) is None else name


def _same_model_at(provider: str, options: SessionOptions, lim: Limner) -> str | None:
    """The current model, if this provider has it too."""
    current = _chosen_model(options, lim)[1]
    providers = [known.provider for known in lim.models.known() if known.id == current]
    return current if provider in providers else None


def to_policy(policy: AskForApproval) -> Policy:
    """The approval policy in limner's form; one with a choice for each kind is ``on-request``."""
    return "on-request" if isinstance(policy, GranularApproval) else policy


def shown_policy(policy: str) -> str:
    """An approval policy as clients know it: their protocol has no ``on-failure``."""
    return "on-request" if policy == "on-failure" else policy


def to_sandbox_mode(policy: SandboxPolicy) -> Sandbox:
    """The sandbox mode of a policy; an external sandbox needs no restriction here."""
    match policy:
        case ReadOnly():
            return "read-only"
        case WorkspaceWrite():
            return "workspace-write"
        case DangerFullAccess() | ExternalSandbox():
            return "danger-full-access"


def _apply_config(
    options: SessionOptions, config: Mapping[str, Any]
) -> tuple[SessionOptions, list[str]]:
    warnings: list[str] = []
    given: dict[str, Any] = {}
    types = {field.name: field.type for field in msgspec.structs.fields(SessionOptions)}
    for key, value in config.items():
        if key in _OPTION_KEYS:
            field = _OPTION_KEYS[key]
            try:
                given[field] = msgspec.convert(value, types[field], strict=False)
                if field == "budget_usd":
                    usd_to_nano(given[field], field=key)
            except (msgspec.ValidationError, ValueError, InputInvalid) as error:
                raise invalid_request(f"invalid config.{key[:80]}: {str(error)[:200]}") from None
        elif key not in (_MODEL, _PROVIDER, _EFFORT) and not _is_tool(key):
            warnings.append(
                f"config.{key[:80]} {_why_ignored(key)} and is ignored for this thread."
            )
    return _with_given(options, given), warnings


def _why_ignored(key: str) -> str:
    """Why a key has no effect on a thread.

    Raises:
        RpcError: neither limner nor Codex has such a key. A cap with a mistyped name would be
            missing, and a client rarely shows a warning.
    """
    if key in all_settings():
        return "applies to the whole server"
    name = key.partition(".")[0]
    if name in _CODEX_NAMES or name.startswith(_CODEX_EXPERIMENT):
        return "is not known here"
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    keys = (*_OPTION_KEYS, *_ALIASES, _MODEL, _PROVIDER, _EFFORT)
    close = get_close_matches(key[:80], [*keys, *all_settings(), *_CODEX_NAMES], n=1)
    hint = f"did you mean {close[0]}?" if close else f"a thread has {', '.join(sorted(keys))}"
    raise invalid_request(f"invalid config.{key[:80]}: there is no such key; {hint}")


def _is_tool(key: str) -> bool:
    return key.startswith(_TOOL) and key not in all_settings()


def _with_given(options: SessionOptions, given: Mapping[str, Any]) -> SessionOptions:
    return replace(options, **{name: value for name, value in given.items() if value is not None})


def _with_effort(name: str | None, effort: str | None, lim: Limner) -> str | None:
    """The name of the model, followed by ``:effort``."""
    if effort is None:
        return name
    if effort not in get_args(Effort):
        words = ", ".join(f"`{word}`" for word in get_args(Effort))
        raise invalid_request(f"unknown reasoning effort `{effort[:80]}`, expected one of {words}")
    found = None if name is None else lim.models.find(name)
    bare = name if found is None else found.model.name
    if bare is None:
        bare = resolve_model(SessionOptions(), lim=lim).name
    return f"{bare}:{effort}"


def _text(config: Mapping[str, Any], key: str) -> str | None:
    value = config.get(key)
    return value if isinstance(value, str) else None


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if len(prefix) + len(name) > _MAX_KEY_CHARS:
            # The keys below would all repeat this prefix.
            raise invalid_request(f"config has a key of more than {_MAX_KEY_CHARS} characters")
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
