"""Black Forest Labs' API on this machine: tasks, looked at where they run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)

SOURCES = ("input_image", *(f"input_image_{number}" for number in range(2, 9)))
COMMON = {"prompt", "seed", "output_format", "safety_tolerance", "webhook_url", "webhook_secret"}
FLUX_2 = COMMON | {"width", "height", *SOURCES}
KONTEXT = COMMON | {"aspect_ratio", "prompt_upsampling", *SOURCES[:4]}
# What each endpoint takes, as https://api.bfl.ai/openapi.json says (read 2026-11-15).
FIELDS: Mapping[str, set[str]] = {
    "flux-2-pro": FLUX_2,
    "flux-2-max": FLUX_2,
    "flux-2-flex": FLUX_2 | {"prompt_upsampling", "guidance", "steps"},
    "flux-2-klein-9b": COMMON | {"width", "height", *SOURCES[:4]},
    "flux-2-klein-4b": COMMON | {"width", "height", *SOURCES[:4]},
    "flux-pro-1.1": COMMON | {"width", "height", "prompt_upsampling", "image_prompt"},
    "flux-pro-1.1-ultra": COMMON
    | {"aspect_ratio", "raw", "prompt_upsampling", "image_prompt", "image_prompt_strength"},
    "flux-kontext-pro": KONTEXT,
    "flux-kontext-max": KONTEXT,
    "flux-pro-1.0-fill": COMMON | {"image", "mask", "steps", "guidance", "prompt_upsampling"},
}


def error_reply(status: int, detail: Any, **headers: str) -> Reply:
    """An error as the service words it."""
    return json_reply({"detail": detail}, status=status, headers=headers)


def complaint(place: str, message: str) -> Reply:
    """A field that is wrong, as the framework behind the service says it."""
    return error_reply(422, [{"loc": ["body", place], "msg": message, "type": "value_error"}])


class BflServer(LocalServer):
    """Runs tasks. Routes: "create", "look" and "file".

    Attributes:
        looks: how often a task has to be looked at before it has ended.
        outcome: the status it ends with.
        more: what is said with every look besides.
        cost: the credits that the first answer tells.
        polling_url: where the first answer points, instead of to this server.
        output_url: where the picture is said to be.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.picture = picture
        self.looks = 1
        self.outcome = "Ready"
        self.running = "Pending"
        self.more: dict[str, Any] = {}
        self.cost: Any = 3.0
        self.polling_url: Any = None
        self.output_url: str | None = None
        self.tasks: dict[str, int] = {}
        self._ids = itertools.count(1)

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def route(self, seen: ReceivedRequest) -> str:
        match seen.method, seen.path.strip("/").split("/"):
            case "POST", ["v1", _]:
                return "create"
            case "GET", ["v1", "get_result"]:
                return "look"
            case "GET", ["results", _]:
                return "file"
            case _:
                return "unknown"

    def answer(self, seen: ReceivedRequest) -> Reply:
        route = self.route(seen)
        if route == "file":
            return self.file
        if not seen.headers.get("x-key"):
            return error_reply(403, "Not authenticated - Invalid Authentication")
        if route == "create":
            return self._create(seen.path.rpartition("/")[2], seen.json())
        if route == "look":
            return self._look(seen.query["id"][0])
        return error_reply(404, "Not Found")

    def begin(self) -> str:
        """A task, as if it had been asked for; its id."""
        one = f"{next(self._ids):08d}-0000-4000-8000-000000000000"
        self.tasks[one] = 0
        return one

    def _create(self, model: str, body: dict[str, Any]) -> Reply:
        if model not in FIELDS:
            return error_reply(404, "Not Found")
        for name in body:
            if name not in FIELDS[model]:
                return complaint(name, "Extra inputs are not permitted")
        one = self.begin()
        answer = {
            "id": one,
            "polling_url": self.polling_url or f"{self.base_url}/get_result?id={one}",
            "cost": self.cost,
            "input_mp": 0.0,
            "output_mp": 1.0,
        }
        return json_reply(answer)

    def _look(self, one: str) -> Reply:
        if one not in self.tasks:
            return json_reply({"id": one, "status": "Task not found", "result": None})
        self.tasks[one] += 1
        ended = self.tasks[one] >= self.looks
        sample = self.output_url or f"{self.origin}/results/sample.png"
        result = {"sample": sample, "prompt": "a fox", "seed": 42, "duration": 1.5}
        answer = {
            "id": one,
            "status": self.outcome if ended else self.running,
            "result": result if ended and self.outcome == "Ready" else None,
            "progress": None,
            "details": None,
        }
        return json_reply(answer | self.more)
