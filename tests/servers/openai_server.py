"""OpenAI's images endpoint on this machine: `python -m tests.servers.openai_server --help`."""

from __future__ import annotations

import base64
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.servers.wire import (
    Reply,
    Seen,
    WireServer,
    arguments,
    bytes_reply,
    json_reply,
    run,
)

USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"text_tokens": 50, "image_tokens": 0},
    "output_tokens": 439,
    "total_tokens": 489,
}


def error_reply(status: int, message: str, *, code: str | None = None, **more: Any) -> Reply:
    """An error as OpenAI words it."""
    headers = more.pop("headers", {})
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json_reply({"error": {**error, **more}}, status=status, headers=headers)


class OpenAIServer(WireServer):
    """Draws the same picture every time. Routes: "generate" and "file"."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.revised_prompt: str | None = "A fox, revised"
        self.usage: Any = USAGE

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def route(self, seen: Seen) -> str:
        return "file" if seen.path.startswith("/files/") else "generate"

    def answer(self, seen: Seen) -> Reply:
        if self.route(seen) == "file":
            return self.file
        if (seen.method, seen.path) != ("POST", "/v1/images/generations"):
            return error_reply(404, f"Invalid URL ({seen.method} {seen.path})")
        if not seen.headers.get("authorization", "").startswith("Bearer "):
            return error_reply(401, "You didn't provide an API key.")
        return self.drawn(seen.json())

    def drawn(self, body: dict[str, Any]) -> Reply:
        """The answer to a request that is accepted."""
        is_dalle = body["model"] == "dall-e-3"
        item: dict[str, Any] = {}
        if is_dalle and self.revised_prompt is not None:
            item["revised_prompt"] = self.revised_prompt
        if body.get("response_format") == "url":
            item["url"] = f"{self.origin}/files/picture.png"
            return json_reply({"created": 1715600000, "data": [item]})
        extras = {} if is_dalle else {"usage": self.usage, "output_format": "png"}
        before, after = json.dumps(
            {"created": 1715600000, "data": [item | {"b64_json": "HERE"}], **extras}
        ).split("HERE")
        return Reply(
            headers={"Content-Type": "application/json"},
            pieces=(before.encode(), self._base64, after.encode()),
        )

    @cached_property
    def _base64(self) -> bytes:
        return base64.b64encode(self.picture)


def main() -> None:
    args = arguments(__doc__ or "").parse_args()
    server = OpenAIServer(Path(args.picture).read_bytes(), port=args.port)
    run(server, held_routes=["generate"] if args.hold else [])


if __name__ == "__main__":
    main()
