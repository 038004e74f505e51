"""Pictures and a question -> an answer: what ``limner/eyes`` does when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from limner.errors import ImageError, MissingExtra
from limner.eyes.evidence import Evidence
from limner.eyes.look import look
from limner.eyes.rules import needs_text
from limner.imaging.pool import Imaging, Source


class Eyes:
    """Looks at pictures through the workers of one `Imaging`, which others may share."""

    def __init__(self, imaging: Imaging) -> None:
        self._imaging = imaging

    async def see(self, sources: Sequence[Source], question: str) -> str:
        """Answer a question about one picture or several, in the order they are given.

        Raises:
            ImageError: one of them is no picture that can be decoded.
        """
        reads = needs_text(question)
        gathered = (self.gather(source, read_text=reads) for source in sources)
        return look(await asyncio.gather(*gathered), question)

    async def gather(self, source: Source, *, read_text: bool = True) -> Evidence:
        """Measure a picture and read its text; without the extra, say how to get it.

        Raises:
            ImageError: it is no picture that can be decoded.
        """
        measured = await self._imaging.measure(source)
        if not read_text:
            return Evidence(measured=measured, unread="it was not asked for")
        try:
            return Evidence(measured=measured, lines=await self._imaging.read_text(source))
        except MissingExtra as error:
            return Evidence(measured=measured, unread=f"{error.message}; run: {error.hint}")
        except ImageError as error:
            # It decoded a moment ago, so this is the time or the memory that reading takes.
            return Evidence(measured=measured, unread=error.message)
