"""What a client must have asked for as experimental before it may use it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

_OPENING = frozenset({"path", "permissions", "runtimeWorkspaceRoots"})

EXPERIMENTAL: Mapping[str, frozenset[str]] = {
    "thread/start": frozenset(
        {
            "allowProviderModelFallback",
            "daybreakEnabled",
            "dynamicTools",
            "environments",
            "experimentalRawEvents",
            "historyMode",
            "mockExperimentalField",
            "multiAgentMode",
            "permissions",
            "projectId",
            "runtimeWorkspaceRoots",
            "selectedCapabilityRoots",
        }
    ),
    "thread/resume": _OPENING | {"dynamicTools", "history", "initialTurnsPage"},
    "thread/fork": _OPENING
    | {"beforeTurnId", "deferGoalContinuation", "dynamicTools", "experimentalPredictionMode"},
    "thread/list": frozenset({"ancestorThreadId", "parentThreadId", "projectId"}),
    "thread/tools/set": frozenset({"dynamicTools"}),
    "turn/start": frozenset(
        {
            "additionalContext",
            "collaborationMode",
            "cyberAccessProgram",
            "environments",
            "multiAgentMode",
            "permissions",
            "responsesapiClientMetadata",
            "runtimeWorkspaceRoots",
        }
    ),
    "turn/steer": frozenset({"additionalContext", "responsesapiClientMetadata"}),
}
"""The members of each method's params that are experimental, by their names on the wire."""

EXPERIMENTAL_METHODS = frozenset({"thread/tools/set"})
"""The methods that are experimental as a whole."""

OURS: Mapping[str, frozenset[str]] = {
    "thread/resume": frozenset({"dynamicTools"}),
    "thread/fork": frozenset({"dynamicTools"}),
    "thread/tools/set": frozenset({"dynamicTools"}),
}
"""Those among them that only limner knows."""


def opt_in_needed(method: str, params: Raw | None) -> str | None:
    """What of a request is experimental, as it is named to the client; None where nothing is.

    A member that is null or false asks for nothing; an empty list does. Params that are no object
    are refused where they are read.
    """
    if method in EXPERIMENTAL_METHODS:
        return method
    gated = EXPERIMENTAL.get(method)
    if gated is None or params is None:
        return None
    try:
        given = msgspec.json.decode(params, type=dict[str, Raw])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    used = next((name for name in given if name in gated and not _is_nothing(given[name])), None)
    if used is not None:
        return f"{method}.{used}"
    policy = given.get("approvalPolicy")
    is_object = policy is not None and memoryview(policy)[:1].tobytes() == b"{"
    return "askForApproval.granular" if is_object else None


def _is_nothing(value: Raw) -> bool:
    view = memoryview(value)
    # Not copied where it is long: a history may be a hundred megabytes.
    return view.nbytes <= len(b"false") and view.tobytes() in (b"null", b"false")
