"""The settings: a section for each part of the program, a type and a description for each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from limner.dollars import MAX_USD
from limner.settings.custom_models import CustomModel
from limner.settings.fields import ProjectRule, Setting

# An error message shows the title of the type.
Switch = Annotated[bool, Meta(title="true or false")]
Words = Annotated[str, Meta(title="a text", min_length=1)]
Count = Annotated[int, Meta(title="a whole number from 1 to 1024", ge=1, le=1024)]
Megapixels = Annotated[int, Meta(title="a whole number from 1 to 4000", ge=1, le=4000)]
Seconds = Annotated[float, Meta(title="a number of seconds above 0", gt=0, le=1e9)]
Share = Annotated[float, Meta(title="a number above 0 and at most 1", gt=0, le=1)]
Usd = Annotated[
    Decimal, Meta(title=f"an amount in dollars from 0 to {MAX_USD:,}, nine decimals at most")
]
Fit = Annotated[Literal["seed", "fast", "model"], Meta(title="seed, fast or model")]
PictureForm = Annotated[Literal["inline", "path", "none"], Meta(title="inline, path or none")]
Tile = Annotated[Literal["off", "auto"], Meta(title="off or auto")]
Policy = Annotated[
    Literal["untrusted", "on-failure", "on-request", "never"],
    Meta(title="untrusted, on-failure, on-request or never"),
]
Sandbox = Annotated[
    Literal["read-only", "workspace-write", "danger-full-access"],
    Meta(title="read-only, workspace-write or danger-full-access"),
]
Format = Literal["png", "jpeg", "gif", "webp", "avif", "bmp", "heic", "ico", "pdf", "svg", "tiff"]
BlobAddress = Annotated[
    str,
    Meta(
        title="an address such as s3://bucket/folder, gs://…, az://… or file:///folder",
        pattern=r"^(?:(?:s3|gs|az)://[A-Za-z0-9._-]+(?:/[\w./=+-]*)?|file:///.+)$",
    ),
]
StoreAddress = Annotated[
    str,
    Meta(
        title="an address such as postgresql://user@host/database",
        pattern=r"^postgres(?:ql)?://\S+$",
    ),
]
Names = Annotated[tuple[Words, ...], Meta(title="a list of providers")]
Formats = Annotated[
    tuple[Format, ...], Meta(title=f"a list of {', '.join(get_args(Format))}", min_length=1)
]

# What a `limner.toml` may do to a setting before the user trusts the folder. Everything that has
# none of these is closed to the file.
FREE = ProjectRule("any")
ONLY_LOWER = ProjectRule("lower")
ONLY_SHRINK = ProjectRule("shrink")


class ImageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How limner draws, accepts and sends pictures."""

    block_images: Annotated[
        Switch,
        Meta(description="Send no picture to any model; `inspect_image` refuses."),
        ProjectRule("stricter", (True, False)),
    ] = False
    auto_resize: Annotated[
        Switch,
        Meta(description="Shrink a picture before it is sent to a model."),
        ProjectRule("stricter", (True, False)),
    ] = True
    fit: Annotated[
        Fit,
        Meta(
            description="How a picture is shrunk: `seed` tries a fixed list of sizes, `fast` does "
            "less work, `model` uses the limits of the model that gets the picture."
        ),
    ] = "seed"
    embedded: Annotated[
        Switch, Meta(description="If no key is set, use limner's own illustrator and vision model.")
    ] = True
    provider: Annotated[
        Words, Meta(description="The provider for a call that names none; `auto` chooses.")
    ] = "auto"
    fallback: Annotated[
        Names,
        Meta(
            description="The providers to try next, in this order, if `images.provider` fails "
            "and charges nothing."
        ),
    ] = ()
    accept: Annotated[
        Formats,
        Meta(description="The accepted input formats besides PNG, JPEG, GIF and WebP."),
        ONLY_SHRINK,
    ] = ("png", "jpeg", "gif", "webp")
    max_megapixels: Annotated[
        Megapixels,
        Meta(
            description="The most pixels of a picture, in millions. Above 100, `limner fit`, "
            "`inspect_image` and previews read a TIFF, PNG or JPEG in parts."
        ),
        ONLY_LOWER,
    ] = 100
    concurrency: Annotated[
        Count, Meta(description="How many pictures limner draws at the same time."), ONLY_LOWER
    ] = 8
    metadata: Annotated[
        Switch,
        Meta(
            description="Mark the files that limner saves as drawn, with prompt, model and handle."
        ),
        ProjectRule("stricter", (False, True)),
    ] = True
    tile: Annotated[
        Tile,
        Meta(
            description="`auto` also sends parts at full detail of a picture that would be shrunk "
            "to less than half."
        ),
        ProjectRule("stricter", ("off", "auto")),
    ] = "off"
    cache_answers: Annotated[
        Switch,
        Meta(
            description="Reuse the answer of a model to the same question, word for word, about "
            "the same picture."
        ),
    ] = False


class ModelRoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The model for each role, as `provider/id`."""

    vision: Annotated[Words | None, Meta(description="The model that looks at pictures.")] = None
    default: Annotated[Words | None, Meta(description="The model for everything else.")] = None


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The spending limits. limner does not start a call that would exceed one."""

    call_usd: Annotated[Usd | None, Meta(description="For one call."), ONLY_LOWER] = None
    session_usd: Annotated[Usd | None, Meta(description="For one session."), ONLY_LOWER] = None
    day_usd: Annotated[
        Usd | None, Meta(description="For one day (UTC), all sessions."), ONLY_LOWER
    ] = None


class ApprovalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When limner asks the user for approval."""

    policy: Annotated[
        Policy,
        Meta(
            description="`untrusted` asks before every paid call and every write outside the "
            "generated folder; `on-request` asks above `approval.above_usd` and outside the "
            "reach; `on-failure` asks once after a denial; `never` does not ask."
        ),
        ProjectRule("stricter", ("untrusted", "on-request", "on-failure", "never")),
    ] = "on-request"
    above_usd: Annotated[
        Usd, Meta(description="`on-request` asks before a call that costs more."), ONLY_LOWER
    ] = Decimal("1.00")


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for every tool."""

    timeout_s: Annotated[
        Seconds, Meta(description="How long a tool may run if it has no timeout of its own.")
    ] = 300


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for requests to the services of providers and models."""

    timeout_s: Annotated[
        Seconds,
        Meta(
            description="How long one request to a service may take, from the connection to the "
            "last byte of the response."
        ),
    ] = 900


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for conversations."""

    personality: Annotated[
        Words, Meta(description="The personality of a conversation that names none.")
    ] = "limner"
    max_requests: Annotated[
        Count, Meta(description="How many requests to the model one turn may make."), ONLY_LOWER
    ] = 100
    max_calls: Annotated[
        Count, Meta(description="How many tool calls one turn may make."), ONLY_LOWER
    ] = 200
    sandbox: Annotated[
        Sandbox,
        Meta(
            description="What a model may write: `read-only` nothing, `workspace-write` the "
            "generated, working and temporary folders, `danger-full-access` everything except "
            "system folders and places with secrets."
        ),
        ProjectRule("stricter", ("read-only", "workspace-write", "danger-full-access")),
    ] = "workspace-write"
    compact_at: Annotated[
        Share,
        Meta(
            description="How much of the model's context window a conversation may fill before "
            "limner summarizes it."
        ),
    ] = 0.8


class AppServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of `limner app-server`."""

    tool_timeout_s: Annotated[
        Seconds, Meta(description="How long a client may take to run a dynamic tool.")
    ] = 600


class McpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of `limner mcp`."""

    answer_within_s: Annotated[
        Seconds,
        Meta(description="After this time a running call returns a job handle."),
        FREE,
    ] = 45
    pictures: Annotated[
        PictureForm | None,
        Meta(
            description="How a result shows a picture: `inline`, as the `path` of its file, or "
            "`none`. If it is not set, in the way that the client can use."
        ),
    ] = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. ``home`` is limner's home folder, which no file can change."""

    home: Path
    store: Annotated[
        StoreAddress | None,
        Meta(
            description="The PostgreSQL database for sessions, ledger, jobs and the list of "
            "pictures, which a team shares, if not the SQLite file in the home. The password may "
            "be in `PGPASSWORD` or `~/.pgpass` instead."
        ),
    ] = None
    blobs: Annotated[
        BlobAddress | None,
        Meta(
            description="Where the bytes of pictures are stored, if not in the home: a bucket "
            "(`s3://`, `gs://`, `az://`) or a shared folder (`file:///`)."
        ),
    ] = None
    images: ImageSettings = ImageSettings()
    model_roles: ModelRoleSettings = ModelRoleSettings()
    budget: BudgetSettings = BudgetSettings()
    approval: ApprovalSettings = ApprovalSettings()
    tools: ToolSettings = ToolSettings()
    services: ServiceSettings = ServiceSettings()
    agent: AgentSettings = AgentSettings()
    appserver: AppServerSettings = AppServerSettings()
    mcp: McpSettings = McpSettings()
    models: tuple[CustomModel, ...] = ()


SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "images": ImageSettings,
    "model_roles": ModelRoleSettings,
    "budget": BudgetSettings,
    "approval": ApprovalSettings,
    "tools": ToolSettings,
    "services": ServiceSettings,
    "agent": AgentSettings,
    "appserver": AppServerSettings,
    "mcp": McpSettings,
}


# The settings of `Settings` itself, which belong to no section.
ALONE = ("store", "blobs")


class _AllSettings(Mapping[str, Setting]):
    """The settings of all sections by key.

    Python evaluates the types of a section when one of its settings is looked up: a program that
    leaves all settings as they are needs none.
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[type[msgspec.Struct], str]] = {
            f"{name}.{field}": (section, field)
            for name, section in SECTIONS.items()
            for field in section.__struct_fields__
        }
        self._places |= {name: (Settings, name) for name in ALONE}

    def __getitem__(self, key: str) -> Setting:
        section, name = self._places[key]
        field = _fields_of(section)[name]
        return Setting(key=key, annotation=field.type, default=field.default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def all_settings() -> Mapping[str, Setting]:
    """Every setting by its key, in the order of the reference."""
    return _AllSettings()


@cache
def _fields_of(section: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(section)}


def value_of(settings: Settings, key: str) -> Any:
    """The value of a setting by its key."""
    return attrgetter(key)(settings)
