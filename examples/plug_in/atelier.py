"""A provider for limner: the Atelier service, which draws one picture for each POST."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from limner import plugins


@dataclass
class Drawn:
    revised_prompt: str


class Atelier:
    def __init__(self, connection: plugins.Connection) -> None:
        self.service = plugins.HttpService(connection, SPEC)

    async def generate(
        self,
        request: plugins.ImageRequest,
        sink: plugins.Sink,
        callbacks: plugins.ProviderCallbacks,
    ) -> plugins.Receipt:
        body = {"prompt": request.prompt, "width": request.width, "height": request.height}
        drawn = await self.service.draw("/draw", Drawn, body=body, picture="image", sink=sink)
        return plugins.Receipt(prompt_used=self.service.safe_text(drawn.revised_prompt))


SPEC = plugins.ProviderSpec(
    name="atelier",
    title="Atelier",
    key_env="ATELIER_API_KEY",
    base_url_env="ATELIER_BASE_URL",
    base_url="https://api.atelier.example/v1",
    models=(
        plugins.ImageModel(
            provider="atelier",
            id="brush-1",
            title="Brush 1",
            sizes=plugins.AnySize(min_edge=64, max_edge=2048),
            price=plugins.FlatPrice(usd=Decimal("0.02")),
            max_prompt_chars=1_000,
            source="https://atelier.example/pricing",
            read=date(2026, 11, 16),
        ),
    ),
    build=Atelier,
)
