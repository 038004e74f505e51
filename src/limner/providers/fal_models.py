"""fal's models: which of its endpoints a request goes to, and what that one takes.

A model has an endpoint for drawing and others for drawing from pictures, each with fields of its
own; they were read from the types of the vendor's own client.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from limner.pictures.order import ImageRequest
from limner.providers.model_inputs import ModelInputs


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, and what it takes."""

    path: str
    inputs: ModelInputs


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one model; ``editing_several`` where several pictures have their own."""

    drawing: Way
    editing: Way | None = None
    editing_several: Way | None = None

    def of(self, request: ImageRequest) -> Way:
        """The endpoint for a request."""
        if len(request.sources) > 1 and self.editing_several is not None:
            return self.editing_several
        return self.editing if request.sources and self.editing is not None else self.drawing


_RATIOS = ("1:1", "21:9", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "9:21")
_PNG = {"output_format": "png"}
_ONE_PNG = {**_PNG, "num_images": 1}

_SIZED = ModelInputs(edges="together", fixed=_ONE_PNG)
_FLUX_2 = ModelInputs(edges="together", fixed=_PNG)
_FLUX_2_EDIT = replace(_FLUX_2, source="image_urls", several="list")
_KONTEXT = ModelInputs(ratios=_RATIOS, fixed=_ONE_PNG)
_BANANA = ModelInputs(
    ratios=(
        *("1:1", "21:9", "16:9", "3:2", "4:3", "5:4", "4:5", "3:4", "2:3", "9:16"),
        *("4:1", "1:4", "8:1", "1:8"),
    ),
    fixed={**_ONE_PNG, "resolution": "1K"},
)

# What most models take; what one does not know it leaves aside.
OTHER = replace(_SIZED, negative_prompt=True)


def _drawing(path: str, inputs: ModelInputs) -> Ways:
    return Ways(drawing=Way(path=path, inputs=inputs))


def _flux_2(path: str) -> Ways:
    return Ways(
        drawing=Way(path=path, inputs=_FLUX_2),
        editing=Way(path=f"{path}/edit", inputs=_FLUX_2_EDIT),
    )


def _kontext(path: str) -> Ways:
    several = replace(_KONTEXT, source="image_urls", several="list")
    return Ways(
        drawing=Way(path=f"{path}/text-to-image", inputs=_KONTEXT),
        editing=Way(path=path, inputs=replace(_KONTEXT, source="image_url")),
        editing_several=Way(path=f"{path}/multi", inputs=several),
    )


WAYS: Mapping[str, Ways] = {
    "fal-ai/flux-2-pro": _flux_2("fal-ai/flux-2-pro"),
    "fal-ai/flux-2-max": _flux_2("fal-ai/flux-2-max"),
    "fal-ai/flux/schnell": _drawing("fal-ai/flux/schnell", _SIZED),
    "fal-ai/flux/dev": _drawing("fal-ai/flux/dev", _SIZED),
    "fal-ai/flux-pro/v1.1": _drawing("fal-ai/flux-pro/v1.1", _SIZED),
    "fal-ai/flux-pro/v1.1-ultra": _drawing(
        "fal-ai/flux-pro/v1.1-ultra", ModelInputs(ratios=_RATIOS, fixed=_ONE_PNG)
    ),
    "fal-ai/flux-pro/kontext": _kontext("fal-ai/flux-pro/kontext"),
    "fal-ai/flux-pro/kontext/max": _kontext("fal-ai/flux-pro/kontext/max"),
    "fal-ai/flux-pro/v1/fill": _drawing(
        "fal-ai/flux-pro/v1/fill",
        ModelInputs(source="image_url", mask="mask_url", needs_mask=True, fixed=_ONE_PNG),
    ),
    "fal-ai/nano-banana-2": Ways(
        drawing=Way(path="fal-ai/nano-banana-2", inputs=_BANANA),
        editing=Way(
            path="fal-ai/nano-banana-2/edit",
            inputs=replace(_BANANA, source="image_urls", several="list"),
        ),
    ),
    # Left to itself it rewrites the prompt.
    "fal-ai/ideogram/v3": _drawing(
        "fal-ai/ideogram/v3",
        ModelInputs(
            edges="together",
            negative_prompt=True,
            fixed={"num_images": 1, "rendering_speed": "BALANCED", "expand_prompt": False},
        ),
    ),
}
