"""The Flux family on Replicate: a request -> a prediction of one of its models.

The fields of each model come from the models' own schemas; the catalogue has the date.
"""

from __future__ import annotations

from collections.abc import Mapping

from limner.providers.base import Connection
from limner.providers.model_inputs import ModelInputs
from limner.providers.replicate_api import Predictions

ASPECT_RATIOS = ("1:1", "16:9", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21")
# The newer models know two more shapes; 1.1 [pro] lacks the longest.
PRO_ASPECT_RATIOS = ("1:1", "16:9", "2:3", "3:2", "4:5", "5:4", "9:16", "3:4", "4:3")
ALL_ASPECT_RATIOS = (*PRO_ASPECT_RATIOS, "21:9", "9:21")

_PNG = {"output_format": "png"}
_OPEN = ModelInputs(ratios=ASPECT_RATIOS, fixed={**_PNG, "num_outputs": 1})
_KONTEXT = ModelInputs(ratios=ALL_ASPECT_RATIOS, source="input_image", fixed=_PNG)
_FLUX_2 = ModelInputs(
    ratios=ALL_ASPECT_RATIOS,
    source="input_images",
    several="list",
    fixed={**_PNG, "resolution": "1 MP"},
)

INPUTS: Mapping[str, ModelInputs] = {
    "black-forest-labs/flux-schnell": _OPEN,
    "black-forest-labs/flux-dev": _OPEN,
    "black-forest-labs/flux-1.1-pro": ModelInputs(ratios=PRO_ASPECT_RATIOS, fixed=_PNG),
    "black-forest-labs/flux-1.1-pro-ultra": ModelInputs(ratios=ALL_ASPECT_RATIOS, fixed=_PNG),
    "black-forest-labs/flux-kontext-pro": _KONTEXT,
    "black-forest-labs/flux-kontext-max": _KONTEXT,
    "black-forest-labs/flux-2-pro": _FLUX_2,
    "black-forest-labs/flux-2-max": _FLUX_2,
    "black-forest-labs/flux-fill-pro": ModelInputs(
        source="image", mask="mask", needs_mask=True, fixed=_PNG
    ),
}


class ReplicateFlux(Predictions):
    """Draws with Flux."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, name="replicate-flux", known=INPUTS, artist="Flux")
