"""Pictures for AI agents: make them, look at them, carry them through every protocol.

Importing limner loads nothing else; each name is loaded when it is first used.
"""

from __future__ import annotations

# Type checkers take this for true; importing `typing` for it would double the cost of the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from limner.agent.events import (
        Compacted,
        Compacting,
        Event,
        InputAdded,
        ItemAdded,
        Retrying,
        TextDelta,
        ToolFinished,
        ToolProgress,
        ToolStarted,
        TurnEnded,
        TurnStarted,
        UsageUpdated,
    )
    from limner.agents import Agent
    from limner.blocking import (
        BlockingPicture,
        edit,
        fit,
        generate,
        inspect,
        picture,
        quote,
        spend,
        take,
    )
    from limner.catalogue.images import ImageModel
    from limner.catalogue.prices import FlatPrice
    from limner.catalogue.sizes import AnySize
    from limner.client import Limner, StoredPicture, create_image_tools, tool
    from limner.content import Picture, Text
    from limner.errors import LimnerError
    from limner.frontends.codex import codex_thread
    from limner.frontends.remote.approvals import ApprovalRequest
    from limner.frontends.remote.client import connect
    from limner.frontends.remote.events import RawNotification, Reconnected, RemoteEvent, TurnResult
    from limner.imaging.fit import Region
    from limner.money.records import Spend
    from limner.pictures.fitting import FittedImage
    from limner.pictures.request import ImageRequest, Progress, Receipt
    from limner.providers.base import Connection, ProviderSpec
    from limner.settings import Settings
    from limner.tools.base import Question, Tool, ToolCall, ToolContext, ToolResult
    from limner.tools.image_input import ImageInput
    from limner.tools.inspection import Inspection
    from limner.tools.output_file import GeneratedImage
    from limner.tools.picture_info import PictureInfo
    from limner.tools.planning import Plan
    from limner.tools.registry import ToolRegistry

__version__ = "0.1.0"

_HOMES = {
    "Agent": "limner.agents",
    "AnySize": "limner.catalogue.sizes",
    "ApprovalRequest": "limner.frontends.remote.approvals",
    "BlockingPicture": "limner.blocking",
    "Compacted": "limner.agent.events",
    "Compacting": "limner.agent.events",
    "Connection": "limner.providers.base",
    "Event": "limner.agent.events",
    "FittedImage": "limner.pictures.fitting",
    "FlatPrice": "limner.catalogue.prices",
    "GeneratedImage": "limner.tools.output_file",
    "ImageInput": "limner.tools.image_input",
    "ImageModel": "limner.catalogue.images",
    "ImageRequest": "limner.pictures.request",
    "InputAdded": "limner.agent.events",
    "Inspection": "limner.tools.inspection",
    "ItemAdded": "limner.agent.events",
    "Limner": "limner.client",
    "LimnerError": "limner.errors",
    "Picture": "limner.content",
    "PictureInfo": "limner.tools.picture_info",
    "Plan": "limner.tools.planning",
    "Progress": "limner.pictures.request",
    "ProviderSpec": "limner.providers.base",
    "Question": "limner.tools.base",
    "RawNotification": "limner.frontends.remote.events",
    "Receipt": "limner.pictures.request",
    "Reconnected": "limner.frontends.remote.events",
    "Region": "limner.imaging.fit",
    "RemoteEvent": "limner.frontends.remote.events",
    "Retrying": "limner.agent.events",
    "Settings": "limner.settings",
    "Spend": "limner.money.records",
    "StoredPicture": "limner.client",
    "Text": "limner.content",
    "TextDelta": "limner.agent.events",
    "Tool": "limner.tools.base",
    "ToolCall": "limner.tools.base",
    "ToolContext": "limner.tools.base",
    "ToolFinished": "limner.agent.events",
    "ToolProgress": "limner.agent.events",
    "ToolRegistry": "limner.tools.registry",
    "ToolResult": "limner.tools.base",
    "ToolStarted": "limner.agent.events",
    "TurnEnded": "limner.agent.events",
    "TurnResult": "limner.frontends.remote.events",
    "TurnStarted": "limner.agent.events",
    "UsageUpdated": "limner.agent.events",
    "codex_thread": "limner.frontends.codex",
    "connect": "limner.frontends.remote.client",
    "create_image_tools": "limner.client",
    "edit": "limner.blocking",
    "fit": "limner.blocking",
    "generate": "limner.blocking",
    "inspect": "limner.blocking",
    "picture": "limner.blocking",
    "quote": "limner.blocking",
    "spend": "limner.blocking",
    "take": "limner.blocking",
    "tool": "limner.client",
}

__all__ = [
    "Agent",
    "AnySize",
    "ApprovalRequest",
    "BlockingPicture",
    "Compacted",
    "Compacting",
    "Connection",
    "Event",
    "FittedImage",
    "FlatPrice",
    "GeneratedImage",
    "ImageInput",
    "ImageModel",
    "ImageRequest",
    "InputAdded",
    "Inspection",
    "ItemAdded",
    "Limner",
    "LimnerError",
    "Picture",
    "PictureInfo",
    "Plan",
    "Progress",
    "ProviderSpec",
    "Question",
    "RawNotification",
    "Receipt",
    "Reconnected",
    "Region",
    "RemoteEvent",
    "Retrying",
    "Settings",
    "Spend",
    "StoredPicture",
    "Text",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFinished",
    "ToolProgress",
    "ToolRegistry",
    "ToolResult",
    "ToolStarted",
    "TurnEnded",
    "TurnResult",
    "TurnStarted",
    "UsageUpdated",
    "codex_thread",
    "connect",
    "create_image_tools",
    "edit",
    "fit",
    "generate",
    "inspect",
    "picture",
    "quote",
    "spend",
    "take",
    "tool",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - `import limner` stays as cheap as a name

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
