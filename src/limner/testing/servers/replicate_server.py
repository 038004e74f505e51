"""A request to Replicate -> a prediction and its picture, as Replicate words it."""

from __future__ import annotations

import base64
import itertools
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)

PAGE = 100
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"


def error_reply(status: int, detail: str, *, title: str = "", **headers: str) -> Reply:
    """An error as Replicate words it (RFC 7807)."""
    problem = {"title": title or "Error", "detail": detail, "status": status}
    return json_reply(problem, status=status, headers=headers)


class ReplicateServer(LocalServer):
    """Runs predictions. Routes: "create", "look", "cancel", "list", "model" and "file".

    Attributes:
        models: what is known of each model, by ``owner/name`` or ``owner/name/version``.
        looks: how often a prediction has to be looked at before it has ended.
        outcome: the status it ends with.
        error: what it says then, unless it succeeded.
        delivery: how the picture is handed over.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.picture = picture
        self.looks = 0
        self.outcome = "succeeded"
        self.error: str | None = None
        self.delivery: Literal["url", "single url", "data", "none"] = "url"
        self.output_url: str | None = None
        self.models: dict[str, dict[str, Any]] = {}
        self.predictions: dict[str, dict[str, Any]] = {}
        self._ids = itertools.count(1)
        self._looked: dict[str, int] = {}

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def route(self, seen: ReceivedRequest) -> str:
        match seen.method, seen.path.strip("/").split("/"):
            case "POST", ["v1", "models", _, _, "predictions"] | ["v1", "predictions"]:
                return "create"
            case "GET", ["v1", "models", _, _] | ["v1", "models", _, _, "versions", _]:
                return "model"
            case "POST", ["v1", "predictions", _, "cancel"]:
                return "cancel"
            case "GET", ["v1", "predictions", _]:
                return "look"
            case "GET", ["v1", "predictions"]:
                return "list"
            case "GET", ["files", _]:
                return "file"
            case _:
                return "unknown"

    def answer(self, seen: ReceivedRequest) -> Reply:
        route = self.route(seen)
        if route == "file":
            return self.file
        if not seen.headers.get("authorization", "").startswith("Bearer "):
            return error_reply(401, "You did not pass an authentication token")
        parts = seen.path.strip("/").split("/")
        if route == "create":
            named = "/".join(parts[2:4]) or seen.json()["version"].partition(":")[0]
            return self._create(named, seen.json()["input"])
        if route == "model":
            return self._model("/".join(part for part in parts[2:] if part != "versions"))
        if route == "list":
            return self._list(seen)
        if route == "unknown" or parts[2] not in self.predictions:
            return error_reply(404, "The requested resource could not be found.")
        return self._cancel(parts[2]) if route == "cancel" else self._look(parts[2])

    def add(self, model: str, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A prediction, as if it had been started; more fields overrule."""
        one = f"p{next(self._ids):012d}"
        url = f"{self.base_url}/predictions/{one}"
        prediction = {
            "id": one,
            "model": model,
            "version": "hidden",
            "status": "starting",
            "input": inputs,
            "output": None,
            "logs": "",
            "error": None,
            "metrics": None,
            "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "started_at": None,
            "completed_at": None,
            "urls": {"get": url, "cancel": f"{url}/cancel"},
        } | more
        self.predictions[one] = prediction
        self._looked[one] = 0
        return prediction

    def _create(self, model: str, inputs: dict[str, Any]) -> Reply:
        prediction = self.add(model, inputs)
        if self.looks == 0:
            self._end(prediction)
        return json_reply(prediction, status=201)

    def _model(self, name: str) -> Reply:
        if name not in self.models:
            return error_reply(404, "The requested resource could not be found.")
        return json_reply(self.models[name])

    def _look(self, one: str) -> Reply:
        prediction = self.predictions[one]
        self._looked[one] += 1
        if prediction["status"] in ("starting", "processing"):
            prediction["status"] = "processing"
            if self._looked[one] >= self.looks:
                self._end(prediction)
        return json_reply(prediction)

    def _cancel(self, one: str) -> Reply:
        prediction = self.predictions[one]
        if prediction["status"] in ("starting", "processing"):
            prediction["status"] = "canceled"
        return json_reply(prediction)

    def _list(self, seen: ReceivedRequest) -> Reply:
        after, before = (
            datetime.fromisoformat(seen.query.get(name, [default])[0])
            for name, default in (("created_after", FIRST), ("created_before", LAST))
        )
        newest_first = [
            prediction
            for prediction in reversed(self.predictions.values())
            if after <= _created(prediction) < before
        ]
        start = int(seen.query.get("cursor", ["0"])[0])
        more = start + PAGE < len(newest_first)
        query = {name: values[0] for name, values in seen.query.items()}
        cursor = f"{self.base_url}/predictions?{urlencode(query | {'cursor': start + PAGE})}"
        page = newest_first[start : start + PAGE]
        return json_reply({"previous": None, "next": cursor if more else None, "results": page})

    def _end(self, prediction: dict[str, Any]) -> None:
        prediction["status"] = self.outcome
        prediction["error"] = self.error
        if self.outcome == "succeeded":
            prediction["output"] = self._output()

    def _output(self) -> Any:
        url = self.output_url or f"{self.origin}/files/out-0.png"
        data = f"data:image/png;base64,{base64.b64encode(self.picture).decode()}"
        return {"url": [url], "single url": url, "data": [data], "none": []}[self.delivery]


def _created(prediction: dict[str, Any]) -> datetime:
    """When it was created; a time that a test made unreadable counts as now."""
    try:
        return datetime.fromisoformat(prediction["created_at"])
    except ValueError:
        return datetime.now(UTC)
