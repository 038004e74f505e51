"""The types and methods of threads: start, resume, fork, list, read, archive, delete."""

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

# Parsed by `tool_specs.read_specs`, which also knows the older form and upstream's error messages.
DynamicTools = Annotated[
    list[Any] | None,
    msgspec.Meta(description="Functions, and namespaces of functions, that the client answers."),
]


class NotLoaded(Shape, tag_field="type", tag="notLoaded"):
    """The thread is only in the store."""


class Idle(Shape, tag_field="type", tag="idle"):
    """The thread is open and no turn runs."""


class Broken(Shape, tag_field="type", tag="systemError"):
    """The last turn failed."""


class Active(Shape, tag_field="type", tag="active"):
    """A turn is running; the flags say what it waits for."""

    active_flags: tuple[ActiveFlag, ...] = ()


ThreadStatus = NotLoaded | Idle | Broken | Active


class ThreadEnvironment(Shape):
    environment_id: str
    cwd: str
    runtime_workspace_roots: tuple[str, ...] = ()


class GitInfo(Shape):
    """The commit that a client says the thread is about."""

    sha: str | None = None
    branch: str | None = None
    origin_url: str | None = None


class TurnPosition(Shape, tag_field="type", tag="turn"):
    """The first item of a turn."""

    turn_id: str


class ThreadStart(Shape, tag_field="type", tag="threadStart"):
    """The first item of the thread."""


class ThreadReadState(Shape):
    """How far the user has read. A new ``revision`` means that there is something new."""

    first_unread: TurnPosition | ThreadStart | None = None
    revision: str


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
    git_info: GitInfo | None = None
    name: str | None = None
    daybreak_enabled: bool | None = None
    turns: tuple[Turn, ...] = ()


class _Terms(Shape):
    """The options for a thread that is started, resumed or forked."""

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
    """Options that are left out come from the settings."""

    personality: Personality | None = None
    ephemeral: bool | None = None
    service_name: str | None = None
    session_start_source: Literal["startup", "clear"] | None = None
    thread_source: str | None = None


class ThreadResumeInitialTurnsPageParams(Shape):
    """How much of the history comes with the response."""

    limit: Count | None = None
    sort_direction: Direction | None = None
    items_view: ItemsView | None = None


class ThreadResumeParams(_Terms):
    """The thread is found by ``history``, else by the file at ``path``, else by its id."""

    thread_id: str
    history: list[dict[str, Any]] | None = None
    path: str | None = None
    exclude_turns: bool = False
    initial_turns_page: ThreadResumeInitialTurnsPageParams | None = None
    personality: Personality | None = None


class ThreadForkParams(_Terms):
    """Copies all turns, or those up to ``last_turn_id``, or those before ``before_turn_id``."""

    thread_id: str
    path: str | None = None
    last_turn_id: str | None = None
    before_turn_id: str | None = None
    ephemeral: bool = False
    exclude_turns: bool = False
    thread_source: str | None = None


class _Opened(Shape):
    """The thread and the options that are in force."""

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
    pass


class TurnsPage(Shape):
    """One page of turns, with cursors to the next and the previous page."""

    data: tuple[Turn, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadResumeResponse(_Opened):
    initial_turns_page: TurnsPage | None = None
    turns_backwards_cursor: str | None = None
    items_backwards_cursor: str | None = None
    collaboration_mode: None = None


class ThreadForkResponse(_Opened):
    pass


class ThreadListParams(Shape):
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
    """The threads come without their turns; ``read_states`` are by thread id."""

    data: tuple[Thread, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None
    read_states: dict[str, ThreadReadState] | None = None


class ThreadReadParams(Shape):
    """Reads a thread without opening it."""

    thread_id: str
    include_turns: bool = False


class ThreadReadResponse(Shape):
    thread: Thread
    read_state: ThreadReadState | None = None


class ThreadArchiveParams(Shape):
    thread_id: str


class ThreadUnarchiveParams(Shape):
    thread_id: str


class ThreadUnarchiveResponse(Shape):
    thread: Thread


class ThreadDeleteParams(Shape):
    """Also deletes the pictures that no other thread uses."""

    thread_id: str


class ThreadSetNameParams(Shape):
    thread_id: str
    name: str


class ThreadCompactStartParams(Shape):
    thread_id: str


class ThreadInjectItemsParams(Shape):
    """The items are added to the history without a turn."""

    thread_id: str
    items: list[dict[str, Any]]


class ThreadUnsubscribeParams(Shape):
    thread_id: str


class ThreadUnsubscribeResponse(Shape):
    status: Literal["notLoaded", "notSubscribed", "unsubscribed"]


class ThreadLoadedListParams(Shape):
    """Lists the threads that are open in this process."""

    cursor: str | None = None
    limit: Count | None = None


class ThreadLoadedListResponse(Shape):
    """``data`` has the ids of the threads."""

    data: tuple[str, ...]
    next_cursor: str | None = None


class ThreadTurnsListParams(Shape):
    """The newest turn comes first, unless ``sort_direction`` is ``asc``."""

    thread_id: str
    cursor: str | None = None
    limit: Count | None = None
    sort_direction: Direction | None = None
    items_view: ItemsView | None = None


class ThreadTurnsListResponse(TurnsPage):
    pass


class ItemAnchor(Shape, tag_field="type", tag="item"):
    """The page starts after this item."""

    item_id: str


class ThreadItemsListParams(Shape):
    """The oldest item comes first, unless ``sort_direction`` is ``desc``."""

    thread_id: str
    turn_id: str | None = None
    cursor: str | ItemAnchor | None = None
    limit: Count | None = None
    sort_direction: Direction | None = None


class ThreadItemsListResponse(Shape):
    data: tuple[ThreadItemEntry, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadItemsReadParams(Shape):
    """Reads some items of one turn by their ids."""

    thread_id: str
    turn_id: str
    item_ids: list[str]


class ThreadItemsReadResponse(Shape):
    data: tuple[ThreadItemEntry, ...]


class ThreadSearchParams(Shape):
    """Searches names, previews and the texts of items."""

    search_term: str
    cursor: str | None = None
    limit: Count | None = None
    sort_key: Literal["created_at", "updated_at", "recency_at"] | None = None
    sort_direction: Direction | None = None
    source_kinds: list[str] | None = None
    archived: bool | None = None


class ThreadSearchResult(Shape):
    """A thread, and the text in it that matches."""

    thread: Thread
    snippet: str


class ThreadSearchResponse(Shape):
    data: tuple[ThreadSearchResult, ...]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class ThreadSettingsUpdateParams(Shape):
    """New options of an open thread, in force from the next turn on."""

    thread_id: str
    model: str | None = None
    effort: str | None = None
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    sandbox_policy: SandboxPolicy | None = None


class CollaborationSettings(Shape, rename=None):
    model: str
    reasoning_effort: str | None = None
    developer_instructions: str | None = None


class CollaborationMode(Shape):
    """There is one mode."""

    mode: Literal["default"] = "default"
    settings: CollaborationSettings


class ThreadSettings(Shape):
    """The options that are in force."""

    model: str
    model_provider: str
    effort: str | None = None
    cwd: str
    approval_policy: Literal["untrusted", "on-request", "never"]
    approvals_reviewer: Reviewer = "user"
    sandbox_policy: SandboxPolicy
    active_permission_profile: None = None
    collaboration_mode: CollaborationMode
    multi_agent_mode: Literal["explicitRequestOnly"] = "explicitRequestOnly"
    disabled_plugin_ids: tuple[str, ...] = ()
    personality: None = None
    service_tier: None = None
    summary: None = None


class ThreadMetadataGitInfoUpdateParams(Shape):
    """A member that is null is removed; one that is missing stays."""

    sha: str | msgspec.UnsetType | None = msgspec.UNSET
    branch: str | msgspec.UnsetType | None = msgspec.UNSET
    origin_url: str | msgspec.UnsetType | None = msgspec.UNSET


class ThreadMetadataUpdateParams(Shape):
    thread_id: str
    git_info: ThreadMetadataGitInfoUpdateParams | None = None


class ThreadMetadataUpdateResponse(Shape):
    thread: Thread


class ReadOperation(Shape, tag_field="type", tag="read"):
    """The user has read everything."""


class UnreadOperation(Shape, tag_field="type", tag="unread"):
    """The user wants to read the last turn again."""


class ThreadReadStateUpdateParams(Shape):
    """``expected_revision`` is the revision that the client knows."""

    thread_id: str
    expected_revision: str
    operation: ReadOperation | UnreadOperation


class ThreadReadStateUpdateResponse(Shape):
    read_state: ThreadReadState


class ThreadRevertParams(Shape):
    """Removes a turn and all turns after it."""

    thread_id: str
    before_turn_id: str


class ThreadRevertResponse(Shape):
    """The thread comes without its turns."""

    thread: Thread
    turns_backwards_cursor: str | None = None
    items_backwards_cursor: str | None = None


class ThreadToolsSetParams(Shape):
    """The tools are in force from the next turn on."""

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
        | {
            "attachToSource",
            "beforeTurnId",
            "deferGoalContinuation",
            "dynamicTools",
            "experimentalDisablePredictionMcp",
            "experimentalPredictionMode",
        },
        our_fields=frozenset({"dynamicTools"}),
    ),
    "thread/list": Method(
        params=ThreadListParams,
        result=ThreadListResponse,
        handler="thread_methods:list_threads",
        experimental_fields=frozenset(
            {"ancestorThreadId", "attachedToThreadId", "parentThreadId", "projectId"}
        ),
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
    "thread/items/read": Method(
        params=ThreadItemsReadParams,
        result=ThreadItemsReadResponse,
        handler="thread_methods:items_read",
        is_experimental=True,
        note=_PICTURES,
    ),
    "thread/search": Method(
        params=ThreadSearchParams,
        result=ThreadSearchResponse,
        handler="thread_methods:search",
        is_experimental=True,
    ),
    "thread/settings/update": Method(
        params=ThreadSettingsUpdateParams,
        result=Empty,
        handler="thread_changes:update_settings",
        is_experimental=True,
    ),
    "thread/metadata/update": Method(
        params=ThreadMetadataUpdateParams,
        result=ThreadMetadataUpdateResponse,
        handler="thread_changes:update_metadata",
        note="Only `gitInfo` is stored.",
        experimental_fields=frozenset({"daybreakEnabled", "projectId"}),
    ),
    "thread/readState/update": Method(
        params=ThreadReadStateUpdateParams,
        result=ThreadReadStateUpdateResponse,
        handler="thread_changes:update_read_state",
        is_experimental=True,
    ),
    "thread/revert": Method(
        params=ThreadRevertParams,
        result=ThreadRevertResponse,
        handler="thread_changes:revert",
        note="The thread must be open and idle. The removed turns are deleted.",
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
