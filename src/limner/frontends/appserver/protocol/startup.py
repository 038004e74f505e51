"""The methods that clients call at start-up, whose answer here is always the same value.

limner has no skills, hooks, apps, plug-ins, projects or features of Codex. A client that lists them
gets an empty list, so that its own start goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from limner.frontends.appserver.protocol.base import Method, Shape


class ConfigRequirementsReadResponse(Shape):
    """No administrator restricts the settings."""

    requirements: None = None


class ModelProviderCapabilitiesReadResponse(Shape):
    """limner draws with its own tools, and searches nothing."""

    image_generation: bool = True
    web_search: bool = False


class CollaborationModeMask(Shape, rename=None):
    name: str
    mode: Literal["default"] | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class CollaborationModeListResponse(Shape):
    """There is one mode."""

    data: tuple[CollaborationModeMask, ...] = (
        CollaborationModeMask(name="Default", mode="default"),
    )


class _EmptyPage(Shape):
    data: tuple[()] = ()
    next_cursor: str | None = None


class ListMcpServerStatusResponse(_EmptyPage):
    pass


class AppsListResponse(_EmptyPage):
    pass


class ProjectListResponse(_EmptyPage):
    pass


class ThreadSectionListResponse(_EmptyPage):
    pass


class ExperimentalFeatureListResponse(_EmptyPage):
    pass


class PermissionProfileSummary(Shape):
    id: str
    description: str | None = None
    allowed: bool = True


class PermissionProfileListResponse(Shape):
    """The sandbox modes, by their names as profiles."""

    data: tuple[PermissionProfileSummary, ...] = (
        PermissionProfileSummary(id=":read-only"),
        PermissionProfileSummary(id=":workspace"),
        PermissionProfileSummary(id=":danger-full-access"),
    )
    next_cursor: str | None = None


class PluginInstalledResponse(Shape):
    marketplaces: tuple[()] = ()
    marketplace_load_errors: tuple[()] = ()


class PluginListResponse(PluginInstalledResponse):
    featured_plugin_ids: tuple[()] = ()


class FuzzyFileSearchResponse(Shape):
    files: tuple[()] = ()


# --- lists for each folder that the client names ---


class FoldersParams(Shape):
    """The folders that a client asks about; by default the folder of the server."""

    cwds: tuple[str, ...] = ()


class SkillsListParams(FoldersParams):
    pass


class HooksListParams(FoldersParams):
    pass


class SkillsListEntry(Shape):
    cwd: str
    skills: tuple[()] = ()
    errors: tuple[()] = ()


class SkillsListResponse(Shape):
    data: tuple[SkillsListEntry, ...]


class HooksListEntry(Shape):
    cwd: str
    hooks: tuple[()] = ()
    warnings: tuple[()] = ()
    errors: tuple[()] = ()


class HooksListResponse(Shape):
    data: tuple[HooksListEntry, ...]


class RemoteControlStatusReadResponse(Shape):
    """There is no remote control."""

    status: Literal["disabled"] = "disabled"
    server_name: str
    installation_id: str
    environment_id: str | None = None


class GetAuthStatusResponse(Shape):
    auth_method: Literal["apikey"] | None = None
    auth_token: None = None
    requires_openai_auth: bool = False


class GetUserAgentResponse(Shape):
    user_agent: str


class UserInfoResponse(Shape):
    """limner knows no address of the user."""

    alleged_user_email: None = None


def _always(answer: Shape, *, is_experimental: bool = False, note: str = "") -> Method:
    return Method(
        params=None,
        result=type(answer),
        answer=answer,
        is_experimental=is_experimental,
        note=note or "Always the same answer.",
    )


METHODS: Mapping[str, Method] = {
    "configRequirements/read": _always(ConfigRequirementsReadResponse()),
    "modelProvider/capabilities/read": _always(ModelProviderCapabilitiesReadResponse()),
    "collaborationMode/list": _always(CollaborationModeListResponse(), is_experimental=True),
    "mcpServerStatus/list": _always(ListMcpServerStatusResponse()),
    "app/list": _always(AppsListResponse()),
    "plugin/list": _always(PluginListResponse()),
    "plugin/installed": _always(PluginInstalledResponse()),
    "project/list": _always(ProjectListResponse(), is_experimental=True),
    "threadSection/list": _always(ThreadSectionListResponse()),
    "experimentalFeature/list": _always(ExperimentalFeatureListResponse()),
    "permissionProfile/list": _always(PermissionProfileListResponse()),
    "fuzzyFileSearch": _always(FuzzyFileSearchResponse(), note="limner searches no files."),
    "skills/list": Method(
        params=SkillsListParams, result=SkillsListResponse, handler="account_methods:skills_list"
    ),
    "hooks/list": Method(
        params=HooksListParams, result=HooksListResponse, handler="account_methods:hooks_list"
    ),
    "remoteControl/status/read": Method(
        params=None,
        result=RemoteControlStatusReadResponse,
        handler="account_methods:remote_control_status",
        is_experimental=True,
    ),
}

FIRST_METHODS: Mapping[str, Method] = {
    "getAuthStatus": Method(
        params=None, result=GetAuthStatusResponse, handler="account_methods:auth_status"
    ),
    "getUserAgent": Method(
        params=None, result=GetUserAgentResponse, handler="account_methods:client_user_agent"
    ),
    "userInfo": _always(UserInfoResponse()),
}
"""Methods of the first protocol that clients of the second call too."""

UNSERVED: Mapping[str, str] = {
    "account/usage, account/workspaceMessages, account/gatewayOAuth, account/bedrock, account/gcp, "
    "loginChatGpt, cancelLoginChatGpt, "
    "account/rateLimitResetCredit, account/sendAddCreditsNudgeEmail, accountSession": (
        "limner has no account at a vendor"
    ),
    "experimentalFeature/enablement, mock": "limner has no experimental features to switch",
    "thread/searchOccurrences": "not built yet: `thread/search` finds threads, not places in them",
    "command/exec, process, thread/shellCommand, thread/backgroundTerminals, windowsSandbox": (
        "limner runs no commands"
    ),
    "fs, fuzzyFileSearch/session, gitDiffToRemote, review/start, execOneOffCommand": (
        "limner edits no code; a model reaches files through its tools alone"
    ),
    "plugin, marketplace, skills/config, skills/extraRoots, hooks, app, mcpServer, "
    "config/mcpServer/reload, externalAgentConfig": (
        "limner has no plug-ins, skills, hooks, apps or MCP servers of Codex"
    ),
    "thread/realtime, thread/timeline": "limner holds no spoken conversations",
    "thread/queue, thread/sample, thread/prediction, turn/settings": (
        "a client starts each turn itself; `turn/start` adds input to a running turn"
    ),
    "thread/attachment, thread/section, threadSection, project, environment": (
        "limner sorts threads by folder, name and time alone"
    ),
    "memory, thread/memory, thread/memoryMode, rollout/compress": "limner has no memory of Codex",
    "remoteControl, userVerification, feedback, server/diagnostics": (
        "limner sends nothing to a vendor beside model requests"
    ),
    "thread/approveGuardianDeniedAction, thread/increment_elicitation, "
    "thread/decrement_elicitation": (
        "limner asks the user alone, and elicits nothing for other servers"
    ),
}
"""The methods of Codex that limner does not serve, by the start of their names, and why."""
