"""Threads: how one is begun, continued, copied, found and put away, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from limner.frontends.appserver.protocol.base import (
    AskForApproval,
    Count,
    Direction,
    Empty,
    Method,
    Personality,
    Reviewer,
    SandboxMode,
    SandboxPolicy,
    Shape,
)
from limner.frontends.appserver.protocol.items import ThreadItemEntry
from limner.frontends.appserver.protocol.turns import ItemsView, Turn

ActiveFlag = Literal["waitingOnApproval", "waitingOnUserInput"]
SortKey = Literal["created_at", "updated_at", "recency_at", "section_position"]

# Read by `specs.read_specs`, which knows the older form as well and says what is wrong in the
# words that clients know.
DynamicTools = Annotated[
    list[Any] | None,
    msgspec.Meta(description="Functions, and namespaces of functions, that the client answers."),
]


class NotLoaded(Shape, tag_field="type", tag="notLoaded"):
    """The thread is in the store only."""


class Idle(Shape, tag_field="type", tag="idle"):
    """Nothing happens in the thread."""


class Broken(Shape, tag_field="type", tag="systemError"):
    """The thread cannot go on."""


class Active(Shape, tag_field="type", tag="active"):
    """A turn is running; the flags say what it waits for."""

    active_flags: tuple[ActiveFlag, ...] = ()


ThreadStatus = NotLoaded | Idle | Broken | Active


class ThreadEnvironment(Shape):
    """Where a thread works."""

    environment_id: str
    cwd: str
    runtime_workspace_roots: tuple[str, ...] = ()


class Thread(Shape):
    """A conversation; times are in seconds."""

    id: str
    environments: tuple[ThreadEnvironment, ...] | None = None
    extra: None = None
    session_id: str
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    preview: str
    ephemeral: bool
    section: None = None
    section_entered_at: None = None
    project_id: str | None = None
    history_mode: Literal["legacy", "paginated"] = "paginated"
    model_provider: str
    model: str | None = None
    reasoning_effort: str | None = None
    created_at: int
    updated_at: int
    recency_at: int | None = None
    status: ThreadStatus
    path: str | None = None
    cwd: str
    cli_version: str
    originator: str | None = None
    source: str | dict[str, Any]
    can_accept_direct_input: bool | None = None
    thread_source: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    git_info: None = None
    name: str | None = None
    daybreak_enabled: bool | None = None
    turns: tuple[Turn, ...] = ()


class _Terms(Shape):
    """What can be asked for when a thread is begun, continued or copied."""

    model: str | None = None
    model_provider: str | None = None
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: Reviewer | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    dynamic_tools: DynamicTools = None


class ThreadStartParams(_Terms):
    """A new thread; everything that is not said comes from the settings."""

    personality: Personality | None = None
    ephemeral: bool | None = None
    service_name: str | None = None
    session_start_source: Literal["startup", "clear"] | None = None
    thread_source: str | None = None


class ThreadResumeInitialTurnsPageParams(Shape):
    """How much of the history comes with the answer."""

    limit: Count | None = None
    sort_direction: Direction | None = None
    items_view: ItemsView | None = None


class ThreadResumeParams(_Terms):
    """A thread goes on: from ``history``, else from the file at ``path``, else by its id."""

    thread_id: str
    history: list[dict[str, Any]] | None = None
    path: str | None = None
    exclude_turns: bool = False
    initial_turns_page: ThreadResumeInitialTurnsPageParams | None = None
    personality: Personality | None = None


class ThreadForkParams(_Terms):
    """A thread is copied, up to and with one turn or up to the one before."""

    thread_id: str
    path: str | None = None
    last_turn_id: str | None = None
    before_turn_id: str | None = None
    ephemeral: bool = False
    exclude_turns: bool = False
    thread_source: str | None = None


class _Opened(Shape):
    """The thread, and what holds for it."""

    thread: Thread
    model: str
    model_provider: str
    service_tier: str | None = None
    disabled_plugin_ids: tuple[str, ...] = ()
    cwd: str
    runtime_workspace_roots: tuple[str, ...] = ()
    instruction_sources: tuple[str, ...] = ()
    approval_policy: Literal["untrusted", "on-request", "never"]
    approvals_reviewer: Reviewer = "user"
    sandbox: SandboxPolicy
    active_permission_profile: None = None
    reasoning_effort: str | None = None
    multi_agent_mode: str = "explicitRequestOnly"


class ThreadStartResponse(_Opened):
    """The new thread."""


class TurnsPage(Shape):
    """Some turns, and where the next and the earlier ones are."""

    data: tuple[Turn, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadResumeResponse(_Opened):
    """The thread as it is now."""

    initial_turns_page: TurnsPage | None = None
    turns_backwards_cursor: str | None = None
    items_backwards_cursor: str | None = None
    collaboration_mode: None = None


class ThreadForkResponse(_Opened):
    """The copy."""


class ThreadListParams(Shape):
    """Which threads, in which order, and how many."""

    cursor: str | None = None
    limit: Count | None = None
    sort_key: SortKey | None = None
    sort_direction: Direction | None = None
    model_providers: list[str] | None = None
    source_kinds: list[str] | None = None
    archived: bool | None = None
    cwd: str | list[str] | None = None
    search_term: str | None = None
    excluded_thread_ids: list[str] | None = None


class ThreadListResponse(Shape):
    """Some threads, without their turns."""

    data: tuple[Thread, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadReadParams(Shape):
    """A thread is looked at without being opened."""

    thread_id: str
    include_turns: bool = False


class ThreadReadResponse(Shape):
    """The thread."""

    thread: Thread


class ThreadArchiveParams(Shape):
    """A thread is put away."""

    thread_id: str


class ThreadUnarchiveParams(Shape):
    """A thread that was put away is wanted again."""

    thread_id: str


class ThreadUnarchiveResponse(Shape):
    """The thread."""

    thread: Thread


class ThreadDeleteParams(Shape):
    """A thread is forgotten, with the pictures that only it referred to."""

    thread_id: str


class ThreadSetNameParams(Shape):
    """What people call a thread."""

    thread_id: str
    name: str


class ThreadCompactStartParams(Shape):
    """A thread is to be summed up."""

    thread_id: str


class ThreadInjectItemsParams(Shape):
    """Items that are added to the history as they are."""

    thread_id: str
    items: list[dict[str, Any]]


class ThreadUnsubscribeParams(Shape):
    """This connection wants to hear no more of a thread."""

    thread_id: str


class ThreadUnsubscribeResponse(Shape):
    """What that changed."""

    status: Literal["notLoaded", "notSubscribed", "unsubscribed"]


class ThreadLoadedListParams(Shape):
    """Which threads are open in this process."""

    cursor: str | None = None
    limit: Count | None = None


class ThreadLoadedListResponse(Shape):
    """Their ids."""

    data: tuple[str, ...]
    next_cursor: str | None = None


class ThreadTurnsListParams(Shape):
    """Some turns of a thread; the newest first, unless said otherwise."""

    thread_id: str
    cursor: str | None = None
    limit: Count | None = None
    sort_direction: Direction | None = None
    items_view: ItemsView | None = None


class ThreadTurnsListResponse(TurnsPage):
    """The turns."""


class ItemAnchor(Shape, tag_field="type", tag="item"):
    """The place of one item, which itself is not listed."""

    item_id: str


class ThreadItemsListParams(Shape):
    """Some items of a thread, or of one of its turns; the newest first, unless said otherwise."""

    thread_id: str
    turn_id: str | None = None
    cursor: str | ItemAnchor | None = None
    limit: Count | None = None
    sort_direction: Direction | None = None


class ThreadItemsListResponse(Shape):
    """The items."""

    data: tuple[ThreadItemEntry, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadToolsSetParams(Shape):
    """The client's tools of a thread, from the next turn on."""

    thread_id: str
    dynamic_tools: Annotated[list[Any], msgspec.Meta(description="As in thread/start.")]


_TOOLS = "`dynamicTools` is read here too, and replaces the tools that the thread had."
_PICTURES = (
    "Pictures are inline, the newest first, up to 32 MiB of base64 in one response. Older ones "
    "are named `limner://image/<sha256>`."
)
_OPENING = frozenset({"path", "permissions", "runtimeWorkspaceRoots"})

METHODS: Mapping[str, Method] = {
    "thread/start": Method(
        params=ThreadStartParams,
        result=ThreadStartResponse,
        handler="thread_opener:start",
        experimental_fields=frozenset(
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
    ),
    "thread/resume": Method(
        params=ThreadResumeParams,
        result=ThreadResumeResponse,
        handler="thread_opener:resume",
        note=f"{_TOOLS} {_PICTURES}",
        experimental_fields=_OPENING | {"dynamicTools", "history", "initialTurnsPage"},
        our_fields=frozenset({"dynamicTools"}),
    ),
    "thread/fork": Method(
        params=ThreadForkParams,
        result=ThreadForkResponse,
        handler="thread_opener:fork",
        note=f"{_TOOLS} {_PICTURES}",
        experimental_fields=_OPENING
        | {"beforeTurnId", "deferGoalContinuation", "dynamicTools", "experimentalPredictionMode"},
        our_fields=frozenset({"dynamicTools"}),
    ),
    "thread/list": Method(
        params=ThreadListParams,
        result=ThreadListResponse,
        handler="thread_methods:list_threads",
        experimental_fields=frozenset({"ancestorThreadId", "parentThreadId", "projectId"}),
    ),
    "thread/loaded/list": Method(
        params=ThreadLoadedListParams,
        result=ThreadLoadedListResponse,
        handler="thread_methods:loaded_list",
    ),
    "thread/read": Method(
        params=ThreadReadParams,
        result=ThreadReadResponse,
        handler="thread_methods:read",
        note=_PICTURES,
    ),
    "thread/turns/list": Method(
        params=ThreadTurnsListParams,
        result=ThreadTurnsListResponse,
        handler="thread_methods:turns_list",
        note=_PICTURES,
    ),
    "thread/items/list": Method(
        params=ThreadItemsListParams,
        result=ThreadItemsListResponse,
        handler="thread_methods:items_list",
        note=_PICTURES,
    ),
    "thread/archive": Method(
        params=ThreadArchiveParams,
        result=Empty,
        handler="thread_methods:archive",
    ),
    "thread/unarchive": Method(
        params=ThreadUnarchiveParams,
        result=ThreadUnarchiveResponse,
        handler="thread_methods:unarchive",
    ),
    "thread/delete": Method(
        params=ThreadDeleteParams,
        result=Empty,
        handler="thread_methods:delete",
    ),
    "thread/name/set": Method(
        params=ThreadSetNameParams,
        result=Empty,
        handler="thread_methods:set_name",
    ),
    "thread/compact/start": Method(
        params=ThreadCompactStartParams,
        result=Empty,
        handler="thread_methods:compact",
    ),
    "thread/inject_items": Method(
        params=ThreadInjectItemsParams,
        result=Empty,
        handler="thread_methods:inject_items",
        note="A picture that cannot be stored is replaced by a text that says why.",
    ),
    "thread/unsubscribe": Method(
        params=ThreadUnsubscribeParams,
        result=ThreadUnsubscribeResponse,
        handler="thread_methods:unsubscribe",
    ),
    "thread/tools/set": Method(
        params=ThreadToolsSetParams,
        result=Empty,
        handler="thread_methods:tools_set",
        note="Replaces the client's tools of an open thread.",
        is_ours=True,
        is_experimental=True,
        experimental_fields=frozenset({"dynamicTools"}),
        our_fields=frozenset({"dynamicTools"}),
    ),
}
