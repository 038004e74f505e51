"""The base types of the protocol: JSON objects, rows of the method table, shared values."""

from typing import Annotated, Any, Literal, dataclass_transform

import msgspec

PROTOCOL_VERSION = "0.166.0"
"""The release of Codex whose app-server protocol this is."""

OUR_NOTIFICATIONS = frozenset(
    {"thread/item/stored", "thread/spend/updated", "thread/tools/changed"}
)
"""The notifications that only limner has; a client gets those that it asks for."""

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
    """Makes every shape frozen and its members keyword-only."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "_Kind":
        options.setdefault("kw_only", True)
        return super().__new__(cls, name, bases, namespace, **options)


class Shape(msgspec.Struct, metaclass=_Kind, frozen=True, rename="camel"):
    """One JSON object. Unknown members are ignored; a message that is sent has every member."""


class Empty(Shape):
    """A result without members: the request was carried out."""


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the method table. Schemas, dispatch and the reference page derive from it.

    Attributes:
        params: the type of its params; None if it takes none.
        result: the type of its result.
        handler: the function that serves it, as ``module:function`` in this package.
        answer: its result, if that is always the same; then it has no handler.
        note: how it differs from the Codex app-server, for the reference page.
        is_ours: only limner has this method.
        is_experimental: a client needs the capability `experimentalApi` to call it.
        experimental_fields: the members of its params that need this capability.
        our_fields: the members of its params that only limner has.
        needs_initialize: a client has to send `initialize` first.
    """

    params: Any
    result: type[Shape]
    handler: str = ""
    answer: Shape | None = None
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
    """A policy with a choice for each kind of question. limner reads it as ``on-request``."""

    granular: Granular


AskForApproval = Literal["untrusted", "on-failure", "on-request", "never"] | GranularApproval


class DangerFullAccess(Shape, tag_field="type", tag="dangerFullAccess"):
    """The model may write everywhere except for the protected paths."""


class ReadOnly(Shape, tag_field="type", tag="readOnly"):
    """The model may write only to the generated folder."""

    network_access: bool = False


class ExternalSandbox(Shape, tag_field="type", tag="externalSandbox"):
    """Another program confines this one."""

    network_access: Literal["restricted", "enabled"] = "restricted"


class WorkspaceWrite(Shape, tag_field="type", tag="workspaceWrite"):
    """The model may write to the folder of the thread, its roots and the temporary folder."""

    writable_roots: tuple[str, ...] = ()
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


SandboxPolicy = DangerFullAccess | ReadOnly | ExternalSandbox | WorkspaceWrite


# --- input of a user ---


class ByteRange(Shape):
    start: int
    end: int


class TextElement(Shape):
    """A part of a text that a client shows in its own way."""

    byte_range: ByteRange
    placeholder: str | None = None


class TextInput(Shape, tag_field="type", tag="text"):
    """A text."""

    text: str
    text_elements: tuple[TextElement, ...] = msgspec.field(default=(), name="text_elements")


class ImageInput(Shape, tag_field="type", tag="image"):
    """A picture: a data URL, or the handle of a stored picture."""

    url: str | msgspec.UnsetType = msgspec.UNSET
    file_id: str | msgspec.UnsetType = msgspec.UNSET
    detail: Detail | None = None

    def __post_init__(self) -> None:
        if self.url is msgspec.UNSET and self.file_id is msgspec.UNSET:
            raise ValueError("data did not match any variant of untagged enum ImageReference")


class LocalImageInput(Shape, tag_field="type", tag="localImage"):
    """A picture in a file on the server's machine."""

    path: str
    detail: Detail | None = None


class AudioInput(Shape, tag_field="type", tag="audio"):
    """A sound, as a data URL."""

    url: str


class LocalAudioInput(Shape, tag_field="type", tag="localAudio"):
    """A sound in a file on the server's machine."""

    path: str


class SkillInput(Shape, tag_field="type", tag="skill"):
    """A skill of the client that the model should read."""

    name: str
    path: str


class MentionInput(Shape, tag_field="type", tag="mention"):
    """A file or another thing that the user refers to."""

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


# --- output of a client's tool ---


class InputText(Shape, tag_field="type", tag="inputText"):
    """A text."""

    text: str


class InputImage(Shape, tag_field="type", tag="inputImage", omit_defaults=True):
    """A picture, as a data URL.

    ``detail`` is how closely the model should look. ``label`` is a text that the model reads before
    the picture. Upstream has neither, so a value of another type is ignored.
    """

    image_url: str
    detail: Any = None
    label: Any = None


class InputAudio(Shape, tag_field="type", tag="inputAudio"):
    """A sound, as a data URL."""

    audio_url: str


ContentItem = InputText | InputImage | InputAudio


class TurnToolOutput(Shape):
    """The output of a tool that the model did not call: a string or an array of parts."""

    name: str
    output: str | list[dict[str, Any]]
    namespace: str | None = None
    retain: bool = False
