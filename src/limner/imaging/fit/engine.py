"""A picture and a request -> what is sent: the original where it fits, else an encoding of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec

from limner.imaging.fit.encoders import Candidate
from limner.imaging.fit.faithful import encode_once
from limner.imaging.fit.ladder import descend
from limner.imaging.fit.quick import encode_quickly
from limner.imaging.fit.request import FitRequest, Fitted
from limner.imaging.fit.source import Source
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits
from limner.imaging.readers import Opened


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """Fits pictures inside one worker; ``aside`` is its second thread."""

    aside: ThreadPoolExecutor
    limits: WorkerLimits

    def fit(
        self, data: bytes, request: FitRequest, *, opened: tuple[Format, Opened] | None = None
    ) -> tuple[Fitted, bytes]:
        """What is to be sent; ``opened`` is the first page of it, where that was opened before.

        Raises:
            ImageError: the bytes are not a picture that can be sent.
        """
        source = Source(
            data,
            region=request.region,
            limits=self.limits,
            page=request.page,
            opened=opened if request.page == 1 else None,
        )
        original = Candidate(source.mime, data, source.size)
        may_stay = _needs_no_change(source, request)
        if may_stay and request.passes(source.mime, len(data)):
            return _described(source, original, untouched=True)
        match request.mode:
            case "seed":
                chosen = descend(source, request, self.aside)
            case "fast":
                chosen = encode_once(source, request)
            case "quick":
                chosen = encode_quickly(source, request, self.aside)
                if may_stay and len(data) <= min(len(chosen.data), request.max_bytes):
                    return _described(source, original, untouched=True)
        return _described(source, chosen, untouched=False)


def _needs_no_change(source: Source, request: FitRequest) -> bool:
    """Whether the picture is whole, upright, within the box and of a type that may be sent."""
    return (
        source.is_whole
        and source.is_upright
        and request.holds(source.size)
        and source.mime in request.formats
    )


def _described(source: Source, chosen: Candidate, *, untouched: bool) -> tuple[Fitted, bytes]:
    width, height = chosen.size
    fitted = Fitted(
        mime=chosen.mime,
        width=width,
        height=height,
        original_width=source.size[0],
        original_height=source.size[1],
        part=source.part,
        animated=source.animated,
        pages=source.pages,
        untouched=untouched,
    )
    return fitted, chosen.data
