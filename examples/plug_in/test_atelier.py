from atelier import SPEC

from limner.testing import HttpStage, ProviderContract


class TestAtelier(ProviderContract):
    spec = SPEC

    def stage(self) -> HttpStage:
        return HttpStage(
            "POST /draw",
            good=lambda picture: {"image": picture.base64, "revised_prompt": "a fox"},
        )
