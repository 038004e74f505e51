"""The embedded illustrator as a provider: a request -> a PNG drawn on this machine, for free."""

from __future__ import annotations

from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks, Receipt
from limner.providers.base import Connection, Illustrate


class Illustrator:
    """Draws without a network or a key."""

    def __init__(self, illustrate: Illustrate) -> None:
        self._illustrate = illustrate

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises what the illustrator raises."""
        callbacks.progress(Progress(message="The illustrator is drawing", elapsed_s=0.0))
        png, facts, scene = await self._illustrate(request)
        sink.write(png)
        return Receipt(prompt_used=request.prompt, cost_nano=0, extras=facts, scene=scene)


def build(connection: Connection) -> Illustrator:
    """Build the provider as every other one, from a connection."""
    return Illustrator(connection.illustrate)
