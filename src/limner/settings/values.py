"""What can be set: a section for each part of the program, a type and a sentence for each key."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from limner.settings.custom_models import CustomModel
from limner.settings.fields import MAX_USD, Setting

# The title of a type is what an error message asks for.
Switch = Annotated[bool, Meta(title="true or false")]
Words = Annotated[str, Meta(title="a text", min_length=1)]
Count = Annotated[int, Meta(title="a whole number from 1 to 1024", ge=1, le=1024)]
Seconds = Annotated[float, Meta(title="a number of seconds above 0", gt=0, le=1e9)]
Share = Annotated[float, Meta(title="a number above 0 and at most 1", gt=0, le=1)]
Usd = Annotated[
    Decimal, Meta(title=f"an amount in dollars from 0 to {MAX_USD:,}, nine decimals at most")
]
Fit = Annotated[Literal["seed", "fast", "model"], Meta(title="seed, fast or model")]
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
Names = Annotated[tuple[Words, ...], Meta(title="a list of providers")]
Formats = Annotated[
    tuple[Format, ...], Meta(title=f"a list of {', '.join(get_args(Format))}", min_length=1)
]


class ImageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How pictures are made, taken in and sent."""

    block_images: Annotated[
        Switch, Meta(description="Send no picture to any model; `inspect_image` refuses.")
    ] = False
    auto_resize: Annotated[
        Switch, Meta(description="Make a picture smaller before it is sent to a model.")
    ] = True
    fit: Annotated[
        Fit,
        Meta(
            description="How a picture is made smaller: `seed` walks a fixed ladder of candidates, "
            "`fast` does less work, `model` aims at the limits of the model it is for."
        ),
    ] = "seed"
    embedded: Annotated[
        Switch, Meta(description="Draw and look with what limner carries, where no key is set.")
    ] = True
    provider: Annotated[
        Words, Meta(description="Who draws when a call names nobody; `auto` chooses.")
    ] = "auto"
    fallback: Annotated[
        Names,
        Meta(
            description="Who draws instead, one after the other, where `images.provider` fails "
            "and that cost nothing."
        ),
    ] = ()
    accept: Annotated[
        Formats, Meta(description="The formats taken in beside PNG, JPEG, GIF and WebP.")
    ] = ("png", "jpeg", "gif", "webp")
    concurrency: Annotated[Count, Meta(description="How many pictures are drawn at once.")] = 8
    metadata: Annotated[
        Switch, Meta(description="Write prompt, model and handle into the PNG files limner saves.")
    ] = True
    tile: Annotated[
        Tile,
        Meta(
            description="`auto` also sends a picture that would be shrunk to less than half in "
            "parts, at full detail."
        ),
    ] = "off"
    cache_answers: Annotated[
        Switch,
        Meta(
            description="Answer a question about a picture that was asked before, word for word, "
            "of the same model, with the answer it gave."
        ),
    ] = False


class ModelRoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which model does what, as `provider/id`."""

    vision: Annotated[Words | None, Meta(description="The model that looks at pictures.")] = None
    default: Annotated[Words | None, Meta(description="The model for everything else.")] = None


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent. What would go over is not begun."""

    call_usd: Annotated[Usd | None, Meta(description="For one call.")] = None
    session_usd: Annotated[Usd | None, Meta(description="For one session.")] = None
    day_usd: Annotated[Usd | None, Meta(description="For one day (UTC), all sessions.")] = None


class ApprovalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When the user is asked first."""

    policy: Annotated[
        Policy,
        Meta(
            description="`untrusted` asks before every paid call and every write outside the "
            "generated folder; `on-request` asks above `approval.above_usd` and outside the "
            "reach; `on-failure` asks once when something was denied; `never` asks nothing."
        ),
    ] = "on-request"
    above_usd: Annotated[
        Usd, Meta(description="The price of a call above which `on-request` asks.")
    ] = Decimal("1.00")


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every tool."""

    timeout_s: Annotated[
        Seconds, Meta(description="How long a tool may run that names no limit of its own.")
    ] = 300


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation with a model is held."""

    personality: Annotated[
        Words, Meta(description="Who is talked to when nobody says: the name of a personality.")
    ] = "limner"
    max_requests: Annotated[
        Count, Meta(description="How often the model may be asked in one turn.")
    ] = 100
    max_calls: Annotated[
        Count, Meta(description="How many tools the model may call in one turn.")
    ] = 200
    sandbox: Annotated[
        Sandbox,
        Meta(
            description="What a model may write: `read-only` nothing, `workspace-write` the "
            "generated, working and temporary folders, `danger-full-access` all but system "
            "folders and places that hold secrets."
        ),
    ] = "workspace-write"
    compact_at: Annotated[
        Share,
        Meta(
            description="How much of the model's window a conversation may fill before it is "
            "summed up."
        ),
    ] = 0.8


class AppServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How `limner app-server` treats its clients."""

    tool_timeout_s: Annotated[
        Seconds, Meta(description="How long a client may take to answer a call of its own tool.")
    ] = 600


class McpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How `limner mcp` answers."""

    answer_within_s: Annotated[
        Seconds,
        Meta(description="After how long a call that still runs is answered with a job handle."),
    ] = 45


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. ``home`` is ``$LIMNER_HOME``, which no file can change."""

    home: Path
    images: ImageSettings = ImageSettings()
    model_roles: ModelRoleSettings = ModelRoleSettings()
    budget: BudgetSettings = BudgetSettings()
    approval: ApprovalSettings = ApprovalSettings()
    tools: ToolSettings = ToolSettings()
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
    "agent": AgentSettings,
    "appserver": AppServerSettings,
    "mcp": McpSettings,
}


@cache
def all_settings() -> Mapping[str, Setting]:
    """Every setting by its key, in the order of the reference."""
    return {
        f"{name}.{field.name}": Setting(
            key=f"{name}.{field.name}", annotation=field.type, default=field.default
        )
        for name, section in SECTIONS.items()
        for field in msgspec.structs.fields(section)
    }
