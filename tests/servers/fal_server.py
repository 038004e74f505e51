"""fal's queue on this machine: a place in it, its status, its result, its cancellation."""

from __future__ import annotations

import base64
import itertools
from typing import Any, Literal

from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)


def error_reply(status: int, detail: Any, **headers: str) -> Reply:
    """An error as the service words it."""
    return json_reply({"detail": detail}, status=status, headers=headers)


class FalServer(LocalServer):
    """Keeps a queue. Routes: "submit", "status", "result", "cancel" and "file".

    Attributes:
        looks: how often a request has to be looked at before it is done.
        outcome: the answer to who fetches the result, unless that is a picture.
        error: what the status says beside being done, where the model failed.
        cancelled: what a cancellation is answered with.
        delivery: how the picture is handed over.
        addresses: what the first answer tells besides, or instead.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.picture = picture
        self.looks = 1
        self.outcome: Reply | None = None
        self.error: str | None = None
        self.cancelled = json_reply({"status": "OK"})
        self.delivery: Literal["url", "data"] = "url"
        self.more: dict[str, Any] = {}
        self.addresses: dict[str, Any] = {}
        self.output_url: str | None = None
        self.places: dict[str, int] = {}
        self._ids = itertools.count(1)

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        match seen.method, seen.path.strip("/").split("/"):
            case "POST", [_, _, *_]:
                return "submit"
            case "GET", [*_, "requests", _, "status"]:
                return "status"
            case "GET", [*_, "requests", _]:
                return "result"
            case "PUT", [*_, "requests", _, "cancel"]:
                return "cancel"
            case "GET", ["files", _]:
                return "file"
            case _:
                return "unknown"

    def answer(self, seen: ReceivedRequest) -> Reply:
        route = self.route(seen)
        if route == "file":
            return self.file
        if not seen.headers.get("authorization", "").startswith("Key "):
            return error_reply(401, "Authentication is required to access this application.")
        if route == "submit":
            return self._submit(seen)
        parts = seen.path.strip("/").split("/")
        if route == "unknown" or (one := parts[parts.index("requests") + 1]) not in self.places:
            return error_reply(404, "Request not found")
        if route == "cancel":
            return self.cancelled
        return self._status(seen, one) if route == "status" else self._result()

    def begin(self) -> str:
        """A request, as if it had been submitted; its id."""
        one = f"{next(self._ids):08d}-0000-4000-8000-000000000000"
        self.places[one] = 0
        return one

    def status_url(self, one: str, *, app: str = "fal-ai/flux-2-pro") -> str:
        """Where a request is looked at; the endpoint behind owner and app does not matter."""
        return f"{self.base_url}/{app}/requests/{one}/status"

    def _addresses(self, status_url: str) -> dict[str, Any]:
        base = status_url.removesuffix("/status")
        told = {"response_url": base, "status_url": status_url, "cancel_url": f"{base}/cancel"}
        return told | self.addresses

    def _submit(self, seen: ReceivedRequest) -> Reply:
        one = self.begin()
        # A base URL may have a path of its own before the owner and the app.
        *prefix, owner, app = self._application(seen)
        status_url = f"{'/'.join([self.origin, *prefix])}/{owner}/{app}/requests/{one}/status"
        answer = {"status": "IN_QUEUE", "request_id": one, "queue_position": 2}
        return json_reply(answer | self._addresses(status_url))

    def _application(self, seen: ReceivedRequest) -> list[str]:
        parts = seen.path.strip("/").split("/")
        return parts[:3] if parts[0] == "v1" else parts[:2]

    def _status(self, seen: ReceivedRequest, one: str) -> Reply:
        self.places[one] += 1
        told = {"request_id": one} | self._addresses(f"{self.origin}{seen.path}")
        if self.places[one] < self.looks:
            return json_reply({"status": "IN_PROGRESS", "logs": None} | told, status=202)
        done = {"status": "COMPLETED", "logs": None, "metrics": {"inference_time": 1.5}} | told
        return json_reply(done | ({} if self.error is None else {"error": self.error}))

    def _result(self) -> Reply:
        if self.outcome is not None:
            return self.outcome
        data = f"data:image/png;base64,{base64.b64encode(self.picture).decode()}"
        url = data if self.delivery == "data" else self.output_url
        picture = {
            "url": url or f"{self.origin}/files/out.png",
            "content_type": "image/png",
            "width": 1024,
            "height": 1024,
        }
        answer = {"images": [picture], "seed": 42, "has_nsfw_concepts": [False], "prompt": "a fox"}
        return json_reply(answer | self.more)
