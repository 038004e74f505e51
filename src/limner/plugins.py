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
    ReportedPrice,
    SizePrice,
    UnknownPrice,
    cost_of_dollars,
)
from limner.catalogue.sizes import AnySize, ListedSizes, Size, SizeRange
from limner.net.http import MultipartForm, Upload
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
    "MultipartForm",
    "Outcome",
    "PerMegapixelPrice",
    "PerSizePrice",
    "Progress",
    "Provider",
    "ProviderCallbacks",
    "ProviderSpec",
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
    "cost_of_dollars",
]
