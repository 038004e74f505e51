"""What clients of the first protocol ask and are answered: one type for each."""

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
from limner.frontends.appserver.protocol.threads import DynamicTools
from limner.frontends.appserver.v1.events import EventMsg

Policy = Literal["untrusted", "on-failure", "on-request", "never"]


class NewConversationParams(Shape):
    """A new conversation; as ``overrides``, what is to be different in one that is there.

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
    """The new conversation, and who is talked to in it."""

    conversation_id: str
    model: str
    reasoning_effort: str | None = None
    rollout_path: str


class ResumeConversationParams(Shape):
    """A conversation goes on: the one of a file, else of an id, else one with a history."""

    path: str | None = None
    conversation_id: str | None = None
    history: list[dict[str, Any]] | None = None
    overrides: NewConversationParams | None = None


class ForkConversationParams(Shape):
    """A conversation is copied: the one of a file, else of an id."""

    path: str | None = None
    conversation_id: str | None = None
    overrides: NewConversationParams | None = None


class ResumeConversationResponse(Shape):
    """The conversation, and what was said in it so far."""

    conversation_id: str
    model: str
    initial_messages: tuple[EventMsg, ...] = ()
    rollout_path: str


class ForkConversationResponse(ResumeConversationResponse):
    """The copy, and what was said in it so far."""


class ListConversationsParams(Shape):
    """Which conversations, and how many."""

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
    """Some conversations, the newest first."""

    items: tuple[ConversationSummary, ...]
    next_cursor: str | None = None


class ArchiveConversationParams(Shape):
    """A conversation is put away."""

    conversation_id: str
    rollout_path: str | None = None


class InterruptConversationParams(Shape):
    """The turn that is under way in a conversation is to end."""

    conversation_id: str


class InterruptConversationResponse(Shape):
    """It has ended."""

    abort_reason: Literal["interrupted"] = "interrupted"


class AddConversationListenerParams(Shape):
    """This connection wants to hear of a conversation, maybe of every item as it is kept."""

    conversation_id: str
    experimental_raw_events: bool = False


class AddConversationSubscriptionResponse(Shape):
    """What the wish to hear is called."""

    subscription_id: str


class RemoveConversationListenerParams(Shape):
    """This connection wants to hear no more."""

    subscription_id: str


# --- what a user says ---


class Words(Shape, rename=None):
    """A text; how a client shows stretches of it is not kept."""

    text: str


class PictureAddress(Shape, rename=None):
    """The address of a picture, under either spelling of its name."""

    image_url: str | msgspec.UnsetType = msgspec.UNSET
    image_url_in_camels: str | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="imageUrl"
    )

    def __post_init__(self) -> None:
        if self.url is msgspec.UNSET:
            raise ValueError("missing field `image_url`")

    @property
    def url(self) -> str | msgspec.UnsetType:
        """The address."""
        is_old = self.image_url is not msgspec.UNSET
        return self.image_url if is_old else self.image_url_in_camels


class PicturePath(Shape, rename=None):
    """A file of the machine that the server runs on."""

    path: str


class TextItem(Shape, tag_field="type", tag="text"):
    """Words."""

    data: Words

    @property
    def given(self) -> UserInput:
        """As the second protocol has it."""
        return TextInput(text=self.data.text)


class ImageItem(Shape, tag_field="type", tag="image"):
    """A picture by its address."""

    data: PictureAddress

    @property
    def given(self) -> UserInput:
        """As the second protocol has it."""
        return ImageInput(url=self.data.url)


class LocalImageItem(Shape, tag_field="type", tag="localImage"):
    """A picture in a file."""

    data: PicturePath

    @property
    def given(self) -> UserInput:
        """As the second protocol has it."""
        return LocalImageInput(path=self.data.path)


InputItem = TextItem | ImageItem | LocalImageItem


# --- what a model may write ---


class FullAccess(Shape, tag_field="type", tag="danger-full-access"):
    """Everything above the floor may be written."""

    @property
    def now(self) -> SandboxPolicy:
        """As the second protocol has it."""
        return DangerFullAccess()


class ReadingOnly(Shape, tag_field="type", tag="read-only"):
    """Nothing outside the generated folder may be written."""

    @property
    def now(self) -> SandboxPolicy:
        """As the second protocol has it."""
        return ReadOnly()


class ConfinedElsewhere(Shape, tag_field="type", tag="external-sandbox"):
    """Somebody else confines this program."""

    @property
    def now(self) -> SandboxPolicy:
        """As the second protocol has it."""
        return ExternalSandbox()


class WritingHere(Shape, tag_field="type", tag="workspace-write"):
    """The folder of the conversation and the temporary folder may be written."""

    @property
    def now(self) -> SandboxPolicy:
        """As the second protocol has it."""
        return WorkspaceWrite()


OldSandboxPolicy = FullAccess | ReadingOnly | ConfinedElsewhere | WritingHere


# --- turns ---


class SendUserMessageParams(Shape):
    """What a user says; the turn is like those before."""

    conversation_id: str
    items: tuple[InputItem, ...]


class SendUserTurnParams(Shape):
    """What a user says, and what is to be different from this turn on."""

    conversation_id: str
    items: tuple[InputItem, ...]
    cwd: str | None = None
    approval_policy: Policy | None = None
    sandbox_policy: OldSandboxPolicy | None = None
    model: str | None = None
    service_tier: str | None = None
    effort: str | None = None
    summary: Summary | None = None
    output_schema: Any = None


METHODS: Mapping[str, Method] = {
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
}
