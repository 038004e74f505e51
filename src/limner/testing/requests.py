"""A provider's spec -> the sample requests of its contract tests."""

from __future__ import annotations

from limner.catalogue.images import ImageModel, Size
from limner.pictures.request import ImageRequest, SourceImage
from limner.providers.base import ProviderSpec
from limner.testing.sample_pictures import make_png

EDGE = 64
ORANGE, WHITE, CLEAR = b"\xe6\x5c\x00\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"


def sample_requests(spec: ProviderSpec) -> dict[str, ImageRequest]:
    """One request for each kind of work: ``drawing``, and ``editing`` if the provider can edit.

    The drawing goes to its first model. The edit, of two pictures and with a mask if the model
    takes one, goes to the first model that can edit.
    """
    requests = {"drawing": _request(spec.models[0])}
    for model in spec.models:
        if model.edit is not None:
            sources = (_picture(ORANGE), _picture(WHITE))[: model.edit.max_sources]
            mask = None if model.edit.mask is None else _picture(CLEAR)
            requests["editing"] = _request(model, sources=sources, mask=mask)
            break
    return requests


def _request(
    model: ImageModel, *, sources: tuple[SourceImage, ...] = (), mask: SourceImage | None = None
) -> ImageRequest:
    size = model.nearest_size(Size(1024, 1024))
    return ImageRequest(
        prompt="a fox in the snow",
        model=model.id,
        width=size.width,
        height=size.height,
        seed=7,
        sources=sources,
        mask=mask,
    )


def _picture(pixel: bytes) -> SourceImage:
    return SourceImage(
        handle=pixel.hex() * 8,
        mime="image/png",
        width=EDGE,
        height=EDGE,
        data=make_png(EDGE, EDGE, pixel=pixel),
    )
