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
    from limner.agent.session_export import ExportedSession
    from limner.agent.session_import import ImportedSession
    from limner.agents import Agent
    from limner.batches.records import Batch, BatchCounts, BatchStatus, RemoteBatch
    from limner.blocking import (
        BlockingPicture,
        batch,
        check,
        edit,
        evidence,
        fit,
        generate,
        inspect,
        picture,
        quote,
        render,
        run_rows,
        sheet,
        spend,
        take,
        transform,
    )
    from limner.catalogue.images import ImageModel
    from limner.catalogue.prices import FlatPrice, Quote
    from limner.catalogue.sizes import AnySize, Size
    from limner.client import Limner, StoredPicture, create_image_tools, tool
    from limner.content import Picture, Text
    from limner.errors import LimnerError
    from limner.eyes.differences import ScreenChange
    from limner.eyes.evidence import DrawingRecord, Evidence, RecordedThing
    from limner.frontends.codex import codex_thread
    from limner.frontends.remote.approvals import ApprovalRequest
    from limner.frontends.remote.client import Client, ThreadInfo, connect
    from limner.frontends.remote.events import RawNotification, Reconnected, RemoteEvent, TurnResult
    from limner.frontends.remote.threads import Thread, ThreadOptions, TurnOptions
    from limner.imaging.evidence import (
        Box,
        Code,
        Colour,
        Control,
        DetectedObject,
        GpsPosition,
        LabelledValue,
        Measurements,
        Origin,
        PageReading,
        Panel,
        Shape,
        Table,
        TextLine,
        Texture,
    )
    from limner.imaging.fit import Region
    from limner.imaging.fit.request import Fitted
    from limner.imaging.png_chunks import PngText
    from limner.imaging.provenance import Ingredient, Manifest
    from limner.imaging.transform import Mark
    from limner.money.records import LedgerRow, Spend, SpendLine, SpendSums
    from limner.pictures.fitting import FittedImage
    from limner.pictures.gc import FreedSpace
    from limner.pictures.lineage import Lineage, PictureRecord
    from limner.pictures.request import ImageRequest, Progress, Receipt
    from limner.providers.base import Connection, ProviderSpec
    from limner.providers.choice import Choice
    from limner.settings import Settings
    from limner.storage.reach import Reach
    from limner.tools.base import ApprovalPolicy, Question, Tool, ToolCall, ToolContext, ToolResult
    from limner.tools.contact_sheet import ContactSheet, SheetPicture
    from limner.tools.function_tools import FunctionTool, ToolOptions
    from limner.tools.image_input import ImageInput
    from limner.tools.inspection import Inspection
    from limner.tools.options import (
        CheckOptions,
        EditOptions,
        GenerateOptions,
        InspectOptions,
        RenderOptions,
        SheetOptions,
        TransformOptions,
    )
    from limner.tools.output_file import GeneratedImage
    from limner.tools.picture_check import CriterionVerdict, PictureCheck, PictureDifference
    from limner.tools.picture_info import PictureInfo, Provenance
    from limner.tools.planning import Plan
    from limner.tools.registry import ToolRegistry
    from limner.tools.transformation import TransformedImage
    from limner.wires.base import Usage

__version__ = "0.1.0"

_HOMES = {
    "Agent": "limner.agents",
    "AnySize": "limner.catalogue.sizes",
    "ApprovalPolicy": "limner.tools.base",
    "ApprovalRequest": "limner.frontends.remote.approvals",
    "Batch": "limner.batches.records",
    "BatchCounts": "limner.batches.records",
    "BatchStatus": "limner.batches.records",
    "BlockingPicture": "limner.blocking",
    "Box": "limner.imaging.evidence",
    "CheckOptions": "limner.tools.options",
    "Choice": "limner.providers.choice",
    "Client": "limner.frontends.remote.client",
    "Code": "limner.imaging.evidence",
    "Colour": "limner.imaging.evidence",
    "Compacted": "limner.agent.events",
    "Compacting": "limner.agent.events",
    "Connection": "limner.providers.base",
    "ContactSheet": "limner.tools.contact_sheet",
    "Control": "limner.imaging.evidence",
    "CriterionVerdict": "limner.tools.picture_check",
    "DetectedObject": "limner.imaging.evidence",
    "DrawingRecord": "limner.eyes.evidence",
    "EditOptions": "limner.tools.options",
    "Event": "limner.agent.events",
    "Evidence": "limner.eyes.evidence",
    "ExportedSession": "limner.agent.session_export",
    "Fitted": "limner.imaging.fit.request",
    "FittedImage": "limner.pictures.fitting",
    "FlatPrice": "limner.catalogue.prices",
    "FreedSpace": "limner.pictures.gc",
    "FunctionTool": "limner.tools.function_tools",
    "GenerateOptions": "limner.tools.options",
    "GeneratedImage": "limner.tools.output_file",
    "GpsPosition": "limner.imaging.evidence",
    "ImageInput": "limner.tools.image_input",
    "ImageModel": "limner.catalogue.images",
    "ImageRequest": "limner.pictures.request",
    "ImportedSession": "limner.agent.session_import",
    "Ingredient": "limner.imaging.provenance",
    "InputAdded": "limner.agent.events",
    "InspectOptions": "limner.tools.options",
    "Inspection": "limner.tools.inspection",
    "ItemAdded": "limner.agent.events",
    "LabelledValue": "limner.imaging.evidence",
    "LedgerRow": "limner.money.records",
    "Limner": "limner.client",
    "LimnerError": "limner.errors",
    "Lineage": "limner.pictures.lineage",
    "Manifest": "limner.imaging.provenance",
    "Mark": "limner.imaging.transform",
    "Measurements": "limner.imaging.evidence",
    "Origin": "limner.imaging.evidence",
    "PageReading": "limner.imaging.evidence",
    "Panel": "limner.imaging.evidence",
    "Picture": "limner.content",
    "PictureCheck": "limner.tools.picture_check",
    "PictureDifference": "limner.tools.picture_check",
    "PictureInfo": "limner.tools.picture_info",
    "PictureRecord": "limner.pictures.lineage",
    "Plan": "limner.tools.planning",
    "PngText": "limner.imaging.png_chunks",
    "Progress": "limner.pictures.request",
    "Provenance": "limner.tools.picture_info",
    "ProviderSpec": "limner.providers.base",
    "Question": "limner.tools.base",
    "Quote": "limner.catalogue.prices",
    "RawNotification": "limner.frontends.remote.events",
    "Reach": "limner.storage.reach",
    "Receipt": "limner.pictures.request",
    "Reconnected": "limner.frontends.remote.events",
    "RecordedThing": "limner.eyes.evidence",
    "Region": "limner.imaging.fit",
    "RemoteBatch": "limner.batches.records",
    "RemoteEvent": "limner.frontends.remote.events",
    "RenderOptions": "limner.tools.options",
    "Retrying": "limner.agent.events",
    "ScreenChange": "limner.eyes.differences",
    "Settings": "limner.settings",
    "Shape": "limner.imaging.evidence",
    "SheetOptions": "limner.tools.options",
    "SheetPicture": "limner.tools.contact_sheet",
    "Size": "limner.catalogue.sizes",
    "Spend": "limner.money.records",
    "SpendLine": "limner.money.records",
    "SpendSums": "limner.money.records",
    "StoredPicture": "limner.client",
    "Table": "limner.imaging.evidence",
    "Text": "limner.content",
    "TextDelta": "limner.agent.events",
    "TextLine": "limner.imaging.evidence",
    "Texture": "limner.imaging.evidence",
    "Thread": "limner.frontends.remote.threads",
    "ThreadInfo": "limner.frontends.remote.client",
    "ThreadOptions": "limner.frontends.remote.threads",
    "Tool": "limner.tools.base",
    "ToolCall": "limner.tools.base",
    "ToolContext": "limner.tools.base",
    "ToolFinished": "limner.agent.events",
    "ToolOptions": "limner.tools.function_tools",
    "ToolProgress": "limner.agent.events",
    "ToolRegistry": "limner.tools.registry",
    "ToolResult": "limner.tools.base",
    "ToolStarted": "limner.agent.events",
    "TransformOptions": "limner.tools.options",
    "TransformedImage": "limner.tools.transformation",
    "TurnEnded": "limner.agent.events",
    "TurnOptions": "limner.frontends.remote.threads",
    "TurnResult": "limner.frontends.remote.events",
    "TurnStarted": "limner.agent.events",
    "Usage": "limner.wires.base",
    "UsageUpdated": "limner.agent.events",
    "batch": "limner.blocking",
    "check": "limner.blocking",
    "codex_thread": "limner.frontends.codex",
    "connect": "limner.frontends.remote.client",
    "create_image_tools": "limner.client",
    "edit": "limner.blocking",
    "evidence": "limner.blocking",
    "fit": "limner.blocking",
    "generate": "limner.blocking",
    "inspect": "limner.blocking",
    "picture": "limner.blocking",
    "quote": "limner.blocking",
    "render": "limner.blocking",
    "run_rows": "limner.blocking",
    "sheet": "limner.blocking",
    "spend": "limner.blocking",
    "take": "limner.blocking",
    "tool": "limner.client",
    "transform": "limner.blocking",
}

__all__ = [
    "Agent",
    "AnySize",
    "ApprovalPolicy",
    "ApprovalRequest",
    "Batch",
    "BatchCounts",
    "BatchStatus",
    "BlockingPicture",
    "Box",
    "CheckOptions",
    "Choice",
    "Client",
    "Code",
    "Colour",
    "Compacted",
    "Compacting",
    "Connection",
    "ContactSheet",
    "Control",
    "CriterionVerdict",
    "DetectedObject",
    "DrawingRecord",
    "EditOptions",
    "Event",
    "Evidence",
    "ExportedSession",
    "Fitted",
    "FittedImage",
    "FlatPrice",
    "FreedSpace",
    "FunctionTool",
    "GenerateOptions",
    "GeneratedImage",
    "GpsPosition",
    "ImageInput",
    "ImageModel",
    "ImageRequest",
    "ImportedSession",
    "Ingredient",
    "InputAdded",
    "InspectOptions",
    "Inspection",
    "ItemAdded",
    "LabelledValue",
    "LedgerRow",
    "Limner",
    "LimnerError",
    "Lineage",
    "Manifest",
    "Mark",
    "Measurements",
    "Origin",
    "PageReading",
    "Panel",
    "Picture",
    "PictureCheck",
    "PictureDifference",
    "PictureInfo",
    "PictureRecord",
    "Plan",
    "PngText",
    "Progress",
    "Provenance",
    "ProviderSpec",
    "Question",
    "Quote",
    "RawNotification",
    "Reach",
    "Receipt",
    "Reconnected",
    "RecordedThing",
    "Region",
    "RemoteBatch",
    "RemoteEvent",
    "RenderOptions",
    "Retrying",
    "ScreenChange",
    "Settings",
    "Shape",
    "SheetOptions",
    "SheetPicture",
    "Size",
    "Spend",
    "SpendLine",
    "SpendSums",
    "StoredPicture",
    "Table",
    "Text",
    "TextDelta",
    "TextLine",
    "Texture",
    "Thread",
    "ThreadInfo",
    "ThreadOptions",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFinished",
    "ToolOptions",
    "ToolProgress",
    "ToolRegistry",
    "ToolResult",
    "ToolStarted",
    "TransformOptions",
    "TransformedImage",
    "TurnEnded",
    "TurnOptions",
    "TurnResult",
    "TurnStarted",
    "Usage",
    "UsageUpdated",
    "batch",
    "check",
    "codex_thread",
    "connect",
    "create_image_tools",
    "edit",
    "evidence",
    "fit",
    "generate",
    "inspect",
    "picture",
    "quote",
    "render",
    "run_rows",
    "sheet",
    "spend",
    "take",
    "tool",
    "transform",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - `import limner` stays as cheap as a name

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
