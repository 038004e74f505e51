"""What the author of a plug-in imports: a service that draws, or a tool -> a plug-in of limner.

A package names its `ProviderSpec` under the entry-point group ``limner.providers``, and a tool
under ``limner.tools``. `limner.testing` has the tests of the provider contract.
"""

from limner.catalogue.images import EditRule, ImageModel
from limner.catalogue.prices import (
    FlatPrice,
    Free,
    PerMegapixelPrice,
    PerSizePrice,
    PriceRequest,
    Quote,
    ReportedPrice,
    SizePrice,
    UnknownPrice,
    cost_of_dollars,
)
from limner.catalogue.sizes import AnySize, ListedSizes, Size, SizeRange
from limner.net.clock import Clock
from limner.net.failures import Vendor
from limner.net.http import MultipartForm, Upload
from limner.net.json_pictures import Marker
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    RemoteJob,
    SourceImage,
)
from limner.providers.base import Connection, Provider, ProviderSpec, Resumable
from limner.providers.http_service import HttpService
from limner.providers.jobs import JobProvider, JobStatus
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.declaration import ToolDeclaration

__all__ = [
    "AnySize",
    "Clock",
    "Connection",
    "EditRule",
    "FlatPrice",
    "Free",
    "HttpService",
    "ImageModel",
    "ImageRequest",
    "JobProvider",
    "JobStatus",
    "ListedSizes",
    "Marker",
    "MultipartForm",
    "Outcome",
    "PerMegapixelPrice",
    "PerSizePrice",
    "PriceRequest",
    "Progress",
    "Provider",
    "ProviderCallbacks",
    "ProviderSpec",
    "Quote",
    "Receipt",
    "RemoteJob",
    "ReportedPrice",
    "Resumable",
    "Sink",
    "Size",
    "SizePrice",
    "SizeRange",
    "SourceImage",
    "Tool",
    "ToolContext",
    "ToolDeclaration",
    "ToolHints",
    "UnknownPrice",
    "Upload",
    "Vendor",
    "cost_of_dollars",
]
