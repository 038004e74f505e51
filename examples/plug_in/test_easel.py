from easel import SPEC

from limner.testing import HttpStage, ProviderContract


class TestEasel(ProviderContract):
    spec = SPEC

    def stage(self) -> HttpStage:
        return HttpStage(
            "POST /jobs",
            good=lambda _: {"id": "7", "state": "drawing"},
            also={
                "GET /jobs/7": lambda picture: {
                    "id": "7",
                    "state": "done",
                    "picture_url": picture.url,
                    "cost_usd": 0.04,
                }
            },
        )
