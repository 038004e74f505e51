"""A request to Google's image models -> a picture, as Google words it."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from limner.testing.servers.gemini_server import error_reply
from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    json_reply,
)

_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent")

# Eleven words of prompt, some thinking, and a picture of 1K with a few words beside it.
USAGE = {
    "promptTokenCount": 11,
    "candidatesTokenCount": 1150,
    "totalTokenCount": 1498,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
    "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1120}],
    "thoughtsTokenCount": 337,
}
# Fields of Google's other API, which this one refuses.
UNSUPPORTED = {"outputMimeType", "outputCompressionQuality", "imageOutputOptions"}


class GeminiImageServer(LocalServer):
    """Draws the same picture every time, after its ``drafts``. Its only route is "generate"."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.drafts: tuple[bytes, ...] = ()
        self.usage: Any = USAGE

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        return "generate"

    def answer(self, seen: ReceivedRequest) -> Reply:
        match = _PATH.fullmatch(seen.path)
        if seen.method != "POST" or match is None:
            return error_reply(404, "NOT_FOUND", f"no route {seen.path}")
        if "x-goog-api-key" not in seen.headers:
            return error_reply(403, "PERMISSION_DENIED", "Unregistered callers may not")
        config = seen.json()["generationConfig"]
        if "IMAGE" not in config.get("responseModalities", ()):
            return json_reply(
                response_json({"content": {"parts": [{"text": "A fox."}]}}, self.usage)
            )
        if problem := _objection(match[1], config.get("imageConfig", {})):
            return error_reply(400, "INVALID_ARGUMENT", problem)
        return self.drawn()

    def drawn(self) -> Reply:
        """The reply with the pictures."""
        pictures = (*self.drafts, self.picture)
        # The word marks the place of the base64; real signatures are that long.
        parts: list[Any] = [{"inlineData": {"mimeType": "image/jpeg", "data": "HERE"}}] * len(
            pictures
        )
        parts = [*parts[:-1], parts[-1] | {"thoughtSignature": "c2lnbmF0dXJl" * 200_000}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        between = json.dumps(response_json(candidate, self.usage), indent=1).encode().split(b"HERE")
        pieces: list[bytes] = []
        for text, picture in zip(between, (*pictures, b""), strict=True):
            pieces += [text, base64.b64encode(picture)]
        return Reply(headers={"Content-Type": "application/json"}, pieces=tuple(pieces))


def response_json(candidate: dict[str, Any], usage: Any = None) -> dict[str, Any]:
    """The JSON of a response with one candidate."""
    answer = {
        "candidates": [{"index": 0, **candidate}],
        "modelVersion": "gemini-test",
        "responseId": "r1",
    }
    return answer | ({} if usage is None else {"usageMetadata": usage})


def _objection(model: str, config: dict[str, Any]) -> str | None:
    """Why the real service refuses a request for a picture."""
    if UNSUPPORTED & set(config):
        return "parameter is not supported in Gemini API"
    size = config.get("imageSize")
    takes_sizes = "lite" not in model and "2.5" not in model
    if size is not None and not takes_sizes:
        return "imageSize is not supported by this model"
    legal = [None, "1K", "2K", "4K", *(["512"] if "3.1-flash-image" in model else [])]
    return None if size in legal else f"imageSize {size} is not supported"
