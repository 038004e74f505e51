"""OpenRouter's Image API on this machine."""

from __future__ import annotations

import base64
import json
from typing import Any

from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    json_reply,
)

USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 1120,
    "total_tokens": 1131,
    "cost": 0.0336165,
    "is_byok": False,
    "cost_details": {
        "upstream_inference_cost": None,
        "upstream_inference_prompt_cost": 0.0000165,
        "upstream_inference_completions_cost": 0.0336,
    },
    "completion_tokens_details": {"image_tokens": 1120, "reasoning_tokens": 0},
}


def error_reply(status: int, message: str, **metadata: Any) -> Reply:
    """An error as OpenRouter words it: its code is the status, in a number."""
    error = {"code": status, "message": message, "metadata": metadata}
    return json_reply({"error": error, "user_id": "user_1"}, status=status)


class OpenRouterServer(LocalServer):
    """Draws the same picture every time. Its one route is "generate"."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.usage: Any = USAGE

    @property
    def base_url(self) -> str:
        return f"{self.origin}/api/v1"

    def route(self, seen: ReceivedRequest) -> str:
        return "generate"

    def answer(self, seen: ReceivedRequest) -> Reply:
        if (seen.method, seen.path.removeprefix("/api")) != ("POST", "/v1/images"):
            return error_reply(404, f"No route {seen.method} {seen.path}")
        if not seen.headers.get("authorization", "").startswith("Bearer "):
            return error_reply(401, "No auth credentials found")
        body = seen.json()
        if "x" in body.get("size", "") and ("aspect_ratio" in body or "resolution" in body):
            return error_reply(400, "size conflicts with aspect_ratio or resolution")
        return self.drawn()

    def drawn(self) -> Reply:
        """The answer to a request that is accepted."""
        item = {"b64_json": "HERE", "media_type": "image/png"}
        usage = {} if self.usage is None else {"usage": self.usage}
        before, after = json.dumps({"created": 1748372400, "data": [item], **usage}).split("HERE")
        return Reply(
            headers={"Content-Type": "application/json"},
            pieces=(before.encode(), base64.b64encode(self.picture), after.encode()),
        )
