"""The types and methods of the first protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from limner.frontends.appserver.protocol.base import (
    Count,
    DangerFullAccess,
    Empty,
    ExternalSandbox,
    ImageInput,
    LocalImageInput,
    Method,
    ReadOnly,
    SandboxMode,
    SandboxPolicy,
    Shape,
    Summary,
    TextInput,
    UserInput,
    WorkspaceWrite,
)
from limner.frontends.appserver.protocol.startup import FIRST_METHODS
from limner.frontends.appserver.protocol.threads import DynamicTools
from limner.frontends.appserver.v1.events import EventMsg

Policy = Literal["untrusted", "on-failure", "on-request", "never"]


class NewConversationParams(Shape):
    """A new conversation; as ``overrides``, the changes to an existing one.

    ``dynamic_tools`` are as in `thread/start`.
    """

    model: str | None = None
    model_provider: str | None = None
    profile: str | None = None
    cwd: str | None = None
    approval_policy: Policy | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    compact_prompt: str | None = None
    include_apply_patch_tool: bool | None = None
    dynamic_tools: DynamicTools = None


class NewConversationResponse(Shape):
    conversation_id: str
    model: str
    reasoning_effort: str | None = None
    rollout_path: str


class ResumeConversationParams(Shape):
    """The conversation is found by its file, else by its id, else made from a history."""

    path: str | None = None
    conversation_id: str | None = None
    history: list[dict[str, Any]] | None = None
    overrides: NewConversationParams | None = None


class ForkConversationParams(Shape):
    """The conversation is found by its file, else by its id."""

    path: str | None = None
    conversation_id: str | None = None
    overrides: NewConversationParams | None = None


class ResumeConversationResponse(Shape):
    """``initial_messages`` has the history as events."""

    conversation_id: str
    model: str
    initial_messages: tuple[EventMsg, ...] = ()
    rollout_path: str


class ForkConversationResponse(ResumeConversationResponse):
    pass


class ListConversationsParams(Shape):
    page_size: Count | None = None
    cursor: str | None = None
    model_providers: list[str] | None = None


class ConversationSummary(Shape):
    """One conversation; times are in ISO 8601."""

    conversation_id: str
    path: str
    preview: str
    timestamp: str | None = None
    updated_at: str | None = None
    model_provider: str
    cwd: str
    cli_version: str
    source: str
    git_info: None = None


class ListConversationsResponse(Shape):
    """The newest conversation comes first."""

    items: tuple[ConversationSummary, ...]
    next_cursor: str | None = None


class ArchiveConversationParams(Shape):
    conversation_id: str
    rollout_path: str | None = None


class InterruptConversationParams(Shape):
    conversation_id: str


class InterruptConversationResponse(Shape):
    """The turn has ended."""

    abort_reason: Literal["interrupted"] = "interrupted"


class AddConversationListenerParams(Shape):
    """``experimental_raw_events`` asks for every item in the form in which it is stored."""

    conversation_id: str
    experimental_raw_events: bool = False


class AddConversationSubscriptionResponse(Shape):
    subscription_id: str


class RemoveConversationListenerParams(Shape):
    subscription_id: str


# --- input of a user ---


class TextData(Shape, rename=None):
    """A text. How a client shows parts of it is not stored."""

    text: str


class ImageData(Shape, rename=None):
    """The URL of a picture, under either spelling of the member."""

    image_url: str | msgspec.UnsetType = msgspec.UNSET
    image_url_in_camel_case: str | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="imageUrl"
    )

    def __post_init__(self) -> None:
        if self.url is msgspec.UNSET:
            raise ValueError("missing field `image_url`")

    @property
    def url(self) -> str | msgspec.UnsetType:
        is_old = self.image_url is not msgspec.UNSET
        return self.image_url if is_old else self.image_url_in_camel_case


class LocalImageData(Shape, rename=None):
    """A file on the server's machine."""

    path: str


class TextItem(Shape, tag_field="type", tag="text"):
    data: TextData

    def to_v2(self) -> UserInput:
        return TextInput(text=self.data.text)


class ImageItem(Shape, tag_field="type", tag="image"):
    data: ImageData

    def to_v2(self) -> UserInput:
        return ImageInput(url=self.data.url)


class LocalImageItem(Shape, tag_field="type", tag="localImage"):
    data: LocalImageData

    def to_v2(self) -> UserInput:
        return LocalImageInput(path=self.data.path)


InputItem = TextItem | ImageItem | LocalImageItem


# --- sandbox policies ---


class V1DangerFullAccess(Shape, tag_field="type", tag="danger-full-access"):
    def to_v2(self) -> SandboxPolicy:
        return DangerFullAccess()


class V1ReadOnly(Shape, tag_field="type", tag="read-only"):
    def to_v2(self) -> SandboxPolicy:
        return ReadOnly()


class V1ExternalSandbox(Shape, tag_field="type", tag="external-sandbox"):
    def to_v2(self) -> SandboxPolicy:
        return ExternalSandbox()


class V1WorkspaceWrite(Shape, tag_field="type", tag="workspace-write"):
    def to_v2(self) -> SandboxPolicy:
        return WorkspaceWrite()


V1SandboxPolicy = V1DangerFullAccess | V1ReadOnly | V1ExternalSandbox | V1WorkspaceWrite


# --- turns ---


class SendUserMessageParams(Shape):
    """The input of a user. The options of the conversation stay."""

    conversation_id: str
    items: tuple[InputItem, ...]


class SendUserTurnParams(Shape):
    """The input of a user. The other options are in force from this turn on."""

    conversation_id: str
    items: tuple[InputItem, ...]
    cwd: str | None = None
    approval_policy: Policy | None = None
    sandbox_policy: V1SandboxPolicy | None = None
    model: str | None = None
    service_tier: str | None = None
    effort: str | None = None
    summary: Summary | None = None
    output_schema: Any = None


# --- settings and keys ---


class UserSavedConfig(Shape):
    """The settings that Codex has a key for; limner has no profiles of Codex."""

    approval_policy: Policy | None = None
    sandbox_mode: SandboxMode | None = None
    sandbox_settings: None = None
    forced_chatgpt_workspace_id: None = None
    forced_login_method: None = None
    model: str | None = None
    model_reasoning_effort: str | None = None
    model_reasoning_summary: None = None
    model_verbosity: None = None
    tools: None = None
    profile: None = None
    profiles: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class GetUserSavedConfigResponse(Shape):
    config: UserSavedConfig


class SetDefaultModelParams(Shape):
    model: str | None = None
    reasoning_effort: str | None = None


class LoginApiKeyParams(Shape):
    api_key: str


class GetConversationSummaryParams(Shape):
    """The conversation is found by its file, else by its id."""

    rollout_path: str | None = None
    conversation_id: str | None = None


class GetConversationSummaryResponse(Shape):
    summary: ConversationSummary


METHODS: Mapping[str, Method] = {
    **FIRST_METHODS,
    "newConversation": Method(
        params=NewConversationParams,
        result=NewConversationResponse,
        handler="v1.conversation_opener:new",
    ),
    "resumeConversation": Method(
        params=ResumeConversationParams,
        result=ResumeConversationResponse,
        handler="v1.conversation_opener:resume",
    ),
    "forkConversation": Method(
        params=ForkConversationParams,
        result=ForkConversationResponse,
        handler="v1.conversation_opener:fork",
    ),
    "listConversations": Method(
        params=ListConversationsParams,
        result=ListConversationsResponse,
        handler="v1.methods:list_conversations",
    ),
    "archiveConversation": Method(
        params=ArchiveConversationParams,
        result=Empty,
        handler="v1.methods:archive",
    ),
    "sendUserMessage": Method(
        params=SendUserMessageParams,
        result=Empty,
        handler="v1.methods:send_message",
    ),
    "sendUserTurn": Method(
        params=SendUserTurnParams,
        result=Empty,
        handler="v1.methods:send_turn",
    ),
    "interruptConversation": Method(
        params=InterruptConversationParams,
        result=InterruptConversationResponse,
        handler="v1.methods:interrupt",
    ),
    "addConversationListener": Method(
        params=AddConversationListenerParams,
        result=AddConversationSubscriptionResponse,
        handler="v1.methods:add_listener",
    ),
    "removeConversationListener": Method(
        params=RemoveConversationListenerParams,
        result=Empty,
        handler="v1.methods:remove_listener",
    ),
    "getConversationSummary": Method(
        params=GetConversationSummaryParams,
        result=GetConversationSummaryResponse,
        handler="v1.methods:conversation_summary",
    ),
    "getUserSavedConfig": Method(
        params=None, result=GetUserSavedConfigResponse, handler="v1.methods:saved_config"
    ),
    "setDefaultModel": Method(
        params=SetDefaultModelParams, result=Empty, handler="v1.methods:set_default_model"
    ),
    "loginApiKey": Method(
        params=LoginApiKeyParams, result=Empty, handler="v1.methods:login_api_key"
    ),
    "logoutChatGpt": Method(params=None, result=Empty, handler="account_methods:logout"),
}
