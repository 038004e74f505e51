"""What the messages of the protocol are made of: the base of every object, and shared values."""

from __future__ import annotations

from typing import Annotated, Any, Literal, dataclass_transform

import msgspec

PROTOCOL_VERSION = "0.166.0"
"""The release of Codex whose app-server this protocol is the one of."""

MAX_U32 = 2**32 - 1

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_U32)]
Detail = Literal["auto", "low", "high", "original"]
Direction = Literal["asc", "desc"]
Reviewer = Literal["user", "auto_review", "guardian_subagent"]
SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]
Summary = Literal["auto", "concise", "detailed", "none"]
Personality = Literal["none", "friendly", "pragmatic"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class _Kind(msgspec.StructMeta):
    """Makes every shape frozen and its members keywords, without a word in each class."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _Kind:
        options.setdefault("kw_only", True)
        return super().__new__(cls, name, bases, namespace, **options)


class Shape(msgspec.Struct, metaclass=_Kind, frozen=True, rename="camel"):
    """One JSON object: unknown members are ignored, and what is sent leaves nothing out."""


class Empty(Shape):
    """A result without members: the request was carried out."""


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the method table. Schemas, dispatch and the reference page derive from it.

    Attributes:
        params: the type of its params; None if it takes none.
        result: the type of its result.
        handler: the function that serves it, as ``module:function`` in this package.
        note: how it differs from the Codex app-server, for the reference page.
        is_ours: only limner has this method.
        is_experimental: a client needs the capability `experimentalApi` to call it.
        experimental_fields: the members of its params that need this capability.
        our_fields: the members of its params that only limner has.
        needs_initialize: a client has to send `initialize` first.
    """

    params: Any
    result: type[Shape]
    handler: str
    note: str = ""
    is_ours: bool = False
    is_experimental: bool = False
    experimental_fields: frozenset[str] = frozenset()
    our_fields: frozenset[str] = frozenset()
    needs_initialize: bool = True


class Granular(Shape, rename=None):
    """Which kinds of questions reach the user."""

    sandbox_approval: bool
    rules: bool
    mcp_elicitations: bool
    request_permissions: bool = False
    skill_approval: bool = False


class GranularApproval(Shape):
    """A policy with a choice for each kind of question; here it is read as ``on-request``."""

    granular: Granular


AskForApproval = Literal["untrusted", "on-failure", "on-request", "never"] | GranularApproval


class DangerFullAccess(Shape, tag_field="type", tag="dangerFullAccess"):
    """Everything above the floor may be written."""


class ReadOnly(Shape, tag_field="type", tag="readOnly"):
    """Nothing outside the generated folder may be written."""

    network_access: bool = False


class ExternalSandbox(Shape, tag_field="type", tag="externalSandbox"):
    """Somebody else confines this program."""

    network_access: Literal["restricted", "enabled"] = "restricted"


class WorkspaceWrite(Shape, tag_field="type", tag="workspaceWrite"):
    """The folder of the thread, its roots and the temporary folder may be written."""

    writable_roots: tuple[str, ...] = ()
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


SandboxPolicy = DangerFullAccess | ReadOnly | ExternalSandbox | WorkspaceWrite


# --- what a user says ---


class ByteRange(Shape):
    """From where to where in a text, in bytes."""

    start: int
    end: int


class TextElement(Shape):
    """A stretch of a text that a client shows in a way of its own."""

    byte_range: ByteRange
    placeholder: str | None = None


class TextInput(Shape, tag_field="type", tag="text"):
    """Words."""

    text: str
    text_elements: tuple[TextElement, ...] = msgspec.field(default=(), name="text_elements")


class ImageInput(Shape, tag_field="type", tag="image"):
    """A picture by its address: a data URL, or the handle of a picture that is here."""

    url: str | msgspec.UnsetType = msgspec.UNSET
    file_id: str | msgspec.UnsetType = msgspec.UNSET
    detail: Detail | None = None

    def __post_init__(self) -> None:
        if self.url is msgspec.UNSET and self.file_id is msgspec.UNSET:
            raise ValueError("data did not match any variant of untagged enum ImageReference")


class LocalImageInput(Shape, tag_field="type", tag="localImage"):
    """A picture in a file of the machine that the server runs on."""

    path: str
    detail: Detail | None = None


class AudioInput(Shape, tag_field="type", tag="audio"):
    """A sound, as a data URL."""

    url: str


class LocalAudioInput(Shape, tag_field="type", tag="localAudio"):
    """A sound in a file."""

    path: str


class SkillInput(Shape, tag_field="type", tag="skill"):
    """A skill that the client has for the model to read."""

    name: str
    path: str


class MentionInput(Shape, tag_field="type", tag="mention"):
    """Something that the user points at."""

    name: str
    path: str


UserInput = (
    TextInput
    | ImageInput
    | LocalImageInput
    | AudioInput
    | LocalAudioInput
    | SkillInput
    | MentionInput
)


# --- what a client's tool answers with ---


class InputText(Shape, tag_field="type", tag="inputText"):
    """Words of a tool."""

    text: str


class InputImage(Shape, tag_field="type", tag="inputImage", omit_defaults=True):
    """A picture of a tool, as a data URL.

    ``detail`` is how closely a model should look, and ``label`` what it reads before the picture;
    neither is upstream's, so a value that says nothing here is no mistake.
    """

    image_url: str
    detail: Any = None
    label: Any = None


class InputAudio(Shape, tag_field="type", tag="inputAudio"):
    """A sound of a tool, as a data URL."""

    audio_url: str


ContentItem = InputText | InputImage | InputAudio


class TurnToolOutput(Shape):
    """What a tool that nobody called has to say; ``output`` is a string or an array of parts."""

    name: str
    output: str | list[dict[str, Any]]
    namespace: str | None = None
    retain: bool = False
