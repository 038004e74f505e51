"""The batch APIs of three vendors over real sockets: files, batches and results, as they word them.

The requests of a batch are answered by the servers of the same vendors in `limner.testing.servers`,
so that a response is the same alone and in a batch.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from limner.testing.servers import anthropic_server
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_image_server import GeminiImageServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import (
    Gate,
    LocalServer,
    ReceivedRequest,
    Reply,
    json_reply,
)
from limner.testing.servers.openai_server import OpenAIServer, read_form
from limner.testing.servers.responses_server import ResponsesServer

Fate = Literal["ok", "failed", "expired"]
NOW = 1_790_000_000
# An edit pays for the picture that it starts from.
EDIT_USAGE = {
    "input_tokens": 1050,
    "input_tokens_details": {"text_tokens": 50, "image_tokens": 1000},
    "output_tokens": 439,
    "total_tokens": 1489,
}
TIME = "2026-09-21T14:13:20Z"


class Request(msgspec.Struct, frozen=True):
    """One request of a batch."""

    key: str
    path: str
    body: Any


class RemoteBatch(msgspec.Struct):
    """A batch that was created; ``polls`` are left until it has ended."""

    id: str
    tag: str
    model: str
    requests: list[Request]
    polls: int
    cancelled: bool = False

    @property
    def ended(self) -> bool:
        return self.polls <= 0


def accept(body: Any) -> Fate:
    """Every request succeeds."""
    return "ok"


def fates(*named: Fate) -> Callable[[Any], Fate]:
    """The fate of each request by the number of the question in it."""

    def fate(body: Any) -> Fate:
        text = json.dumps(body)
        for number, named_fate in enumerate(named):
            if f"Question {number}" in text:
                return named_fate
        return "ok"

    return fate


class BatchServer(LocalServer):
    """What the three have in common.

    Routes: "upload", "create", "list", "status", "cancel", "results".

    Attributes:
        batches: every batch that was created, the newest last.
        billed: the names of the requests that were answered, and so charged.
        fate: how a request ends, by its body.
        polls: how often a batch is asked for before it has ended.
        refusal: why every batch is refused as a whole.
        withheld: the requests of this route are processed, and their replies held.
        cut: the results stop after so many lines, at a gate.
        lost: the files of results are gone.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, RemoteBatch] = {}
        self.billed: list[str] = []
        self.fate: Callable[[Any], Fate] = accept
        self.polls = 1
        self.refusal: str | None = None
        self.withheld: dict[str, Gate] = {}
        self.cut: tuple[int, Gate] | None = None
        self.lost = False

    def answer(self, seen: ReceivedRequest) -> Reply:
        route = self.route(seen)
        reply: Reply = getattr(self, f"on_{route}")(seen)
        gate = self.withheld.get(route)
        return reply if gate is None else replace(reply, hold=gate)

    def on_any(self, seen: ReceivedRequest) -> Reply:
        return json_reply({"error": {"message": f"no route {seen.path}"}}, status=404)

    def keep(self, content: bytes, prefix: str) -> str:
        name = f"{prefix}{len(self.files) + 1}"
        self.files[name] = content
        return name

    def start(self, name: str, tag: str, model: str, requests: list[Request]) -> RemoteBatch:
        batch = RemoteBatch(name, tag, model, requests, 0 if self.refusal else self.polls)
        self.batches[name] = batch
        return batch

    def polled(self, name: str) -> RemoteBatch:
        batch = self.batches[name]
        if not batch.ended:
            batch.polls -= 1
            if batch.ended and not self.refusal:
                self.billed += [one.key for one in self.done(batch)]
        return batch

    def done(self, batch: RemoteBatch) -> list[Request]:
        return [one for one in batch.requests if self.fate_of(batch, one) == "ok"]

    def fate_of(self, batch: RemoteBatch, one: Request) -> Fate:
        """A batch that was cancelled has answered its first request."""
        if batch.cancelled and one is not batch.requests[0]:
            return "expired"
        return self.fate(one.body)

    def cancel(self, name: str) -> RemoteBatch:
        batch = self.batches[name]
        batch.cancelled, batch.polls = True, min(batch.polls, 1)
        return batch

    def lines(self, lines: list[bytes]) -> Reply:
        """Lines of results; a line ends with a line end."""
        if self.lost:
            return json_reply({"error": {"message": "No such File object"}}, status=404)
        pieces: list[bytes | Gate] = [*lines]
        if self.cut is not None and self.cut[0] < len(pieces):
            pieces.insert(*self.cut)
        return Reply(headers={"Content-Type": "application/x-ndjson"}, pieces=tuple(pieces))

    def response_of(self, server: LocalServer, path: str, body: Any) -> Any:
        """The JSON that a server of the same vendor answers with."""
        headers = {"authorization": "Bearer k", "x-goog-api-key": "k", "anthropic-version": "1"}
        seen = ReceivedRequest(
            method="POST", target=path, headers=headers, body=json.dumps(body).encode()
        )
        pieces = [piece for piece in server.answer(seen).pieces if isinstance(piece, bytes)]
        return json.loads(b"".join(pieces))

    @abstractmethod
    def on_results(self, seen: ReceivedRequest) -> Reply:
        """The reply with the results."""

    @property
    @abstractmethod
    def base_url(self) -> str:
        """The base URL as the vendor's own client wants it."""


class OpenAIBatchServer(BatchServer):
    """``/v1/files`` and ``/v1/batches``."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(picture, **rest)
        self.images, self.responses = OpenAIServer(picture), ResponsesServer()
        self.edits = OpenAIServer(picture)
        self.edits.usage = EDIT_USAGE

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def route(self, seen: ReceivedRequest) -> str:
        match (seen.method, *seen.path.removeprefix("/v1/").split("/")):
            case ("POST", "files"):
                return "upload"
            case ("POST", "batches"):
                return "create"
            case ("GET", "batches"):
                return "list"
            case ("GET", "batches", _):
                return "status"
            case ("POST", "batches", _, "cancel"):
                return "cancel"
            case ("GET", "files", _, "content"):
                return "results"
            case _:
                return "any"

    def on_upload(self, seen: ReceivedRequest) -> Reply:
        form = read_form(seen)
        assert form.fields == {"purpose": "batch"}
        [file] = form.files
        name = self.keep(file.data, "file-in")
        return json_reply(
            {
                "id": name,
                "object": "file",
                "bytes": len(file.data),
                "created_at": NOW,
                "filename": file.filename,
                "purpose": "batch",
                "status": "processed",
            }
        )

    def on_create(self, seen: ReceivedRequest) -> Reply:
        body = seen.json()
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        requests = [Request(line["custom_id"], line["url"], line["body"]) for line in lines]
        assert {one.path for one in requests} == {body["endpoint"]}
        assert len({one.body["model"] for one in requests}) == 1
        assert body["completion_window"] == "24h"
        name = f"batch_{len(self.batches) + 1}"
        tag = body["metadata"]["limner"]
        batch = self.start(name, tag, body["input_file_id"], requests)
        return json_reply(self.shown(batch))

    def on_list(self, seen: ReceivedRequest) -> Reply:
        newest = [self.shown(batch) for batch in reversed(self.batches.values())]
        return json_reply({"object": "list", "data": newest, "has_more": False})

    def on_status(self, seen: ReceivedRequest) -> Reply:
        return json_reply(self.shown(self.polled(seen.path.split("/")[-1])))

    def on_cancel(self, seen: ReceivedRequest) -> Reply:
        return json_reply(self.shown(self.cancel(seen.path.split("/")[-2])))

    def on_results(self, seen: ReceivedRequest) -> Reply:
        kind, _, name = seen.path.split("/")[-2].partition("-")
        batch = self.batches[name]
        wants_done = kind == "output"
        chosen = [one for one in batch.requests if (one in self.done(batch)) == wants_done]
        # A request that expired has no line here: the vendor says that it may be missing.
        return self.lines([json.dumps(self.line(batch, one)).encode() + b"\n" for one in chosen])

    def line(self, batch: RemoteBatch, one: Request) -> Any:
        line: dict[str, Any] = {"id": f"batch_req_{one.key}", "custom_id": one.key, "error": None}
        fate = self.fate_of(batch, one)
        if fate == "expired":
            error = {"code": "batch_expired", "message": "This request could not be executed."}
            return line | {"response": None, "error": error}
        if fate == "failed":
            problem = {"message": "Your request was rejected", "code": "moderation_blocked"}
            body: Any = {"error": problem | {"type": "image_generation_user_error", "param": None}}
            return line | {"response": {"status_code": 400, "request_id": "r", "body": body}}
        if one.path == "/v1/images/edits":
            pieces = self.edits.drawn(one.body, kind="image_edit").pieces
            body = json.loads(b"".join(piece for piece in pieces if isinstance(piece, bytes)))
            assert all(image["image_url"].startswith("data:") for image in one.body["images"])
        else:
            server = self.responses if one.path == "/v1/responses" else self.images
            body = self.response_of(server, one.path, one.body)
        return line | {"response": {"status_code": 200, "request_id": "r", "body": body}}

    def shown(self, batch: RemoteBatch) -> dict[str, Any]:
        done = self.done(batch) if batch.ended and not self.refusal else []
        failed = len(batch.requests) - len(done) if batch.ended else 0
        word = ("cancelled" if batch.cancelled else "completed") if batch.ended else "in_progress"
        shown: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.requests[0].path,
            "input_file_id": batch.model,
            "completion_window": "24h",
            "status": "failed" if self.refusal else word,
            "created_at": NOW,
            "metadata": {"limner": batch.tag},
            "request_counts": {
                "total": len(batch.requests),
                "completed": len(done),
                "failed": failed,
            },
        }
        if self.refusal:
            error = {"code": "invalid", "message": self.refusal, "line": 1, "param": None}
            return shown | {"errors": {"object": "list", "data": [error]}}
        if done:
            shown["output_file_id"] = f"output-{batch.id}"
        if failed:
            shown["error_file_id"] = f"error-{batch.id}"
        return shown


class AnthropicBatchServer(BatchServer):
    """``/v1/messages/batches``."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(picture, **rest)
        self.messages = AnthropicServer()

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        match (seen.method, *seen.path.removeprefix("/v1/messages/batches").split("/")[1:]):
            case ("POST",):
                return "create"
            case ("GET",):
                return "list"
            case ("GET", _):
                return "status"
            case ("POST", _, "cancel"):
                return "cancel"
            case ("GET", _, "results"):
                return "results"
            case _:
                return "any"

    def on_create(self, seen: ReceivedRequest) -> Reply:
        if "anthropic-version" not in seen.headers:
            return anthropic_server.error_reply(400, "invalid_request_error", "no version")
        lines = seen.json()["requests"]
        requests = [Request(line["custom_id"], "/v1/messages", line["params"]) for line in lines]
        assert not any(one.body.get("stream") for one in requests)
        batch = self.start(f"msgbatch_{len(self.batches) + 1}", "", "", requests)
        return json_reply(self.shown(batch))

    def on_list(self, seen: ReceivedRequest) -> Reply:
        newest = [self.shown(batch) for batch in reversed(self.batches.values())]
        # The caller waits for the end of a batch without knowing its id.
        for batch in self.batches.values():
            self.polled(batch.id)
        return json_reply({"data": newest, "has_more": False, "first_id": None, "last_id": None})

    def on_status(self, seen: ReceivedRequest) -> Reply:
        return json_reply(self.shown(self.polled(seen.path.split("/")[-1])))

    def on_cancel(self, seen: ReceivedRequest) -> Reply:
        return json_reply(self.shown(self.cancel(seen.path.split("/")[-2])))

    def on_results(self, seen: ReceivedRequest) -> Reply:
        batch = self.batches[seen.path.split("/")[-2]]
        return self.lines(
            [
                json.dumps({"custom_id": one.key, "result": self.result(batch, one)}).encode()
                + b"\n"
                for one in reversed(batch.requests)
            ]
        )

    def result(self, batch: RemoteBatch, one: Request) -> Any:
        match self.fate_of(batch, one):
            case "expired":
                return {"type": "canceled" if batch.cancelled else "expired"}
            case "failed":
                error = {"type": "invalid_request_error", "message": "image exceeds 10 MB"}
                return {
                    "type": "errored",
                    "error": {"type": "error", "error": error, "request_id": "req_1"},
                }
            case _:
                message = self.response_of(self.messages, one.path, one.body)
                return {"type": "succeeded", "message": message}

    def shown(self, batch: RemoteBatch) -> dict[str, Any]:
        fates = [self.fate_of(batch, one) for one in batch.requests] if batch.ended else []
        expired = fates.count("expired")
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.ended else "in_progress",
            "request_counts": {
                "processing": 0 if batch.ended else len(batch.requests),
                "succeeded": fates.count("ok"),
                "errored": fates.count("failed"),
                "canceled": expired if batch.cancelled else 0,
                "expired": 0 if batch.cancelled else expired,
            },
            "created_at": "2999-01-01T00:00:00Z",
            "expires_at": "2999-01-02T00:00:00Z",
            "ended_at": TIME if batch.ended else None,
            "archived_at": None,
            "cancel_initiated_at": TIME if batch.cancelled else None,
            "results_url": f"{self.origin}/v1/messages/batches/{batch.id}/results"
            if batch.ended
            else None,
        }


class GeminiBatchServer(BatchServer):
    """``/upload/v1beta/files``, ``models/<id>:batchGenerateContent`` and ``/v1beta/batches``."""

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(picture, **rest)
        self.images, self.words = GeminiImageServer(picture), GeminiServer()

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        path = seen.path
        if path.startswith("/upload/v1beta/"):
            return "upload"
        if path.endswith(":batchGenerateContent"):
            return "create"
        if path == "/v1beta/batches":
            return "list"
        if path.endswith(":cancel"):
            return "cancel"
        if path.endswith(":download"):
            return "results"
        return "status" if path.startswith("/v1beta/batches/") else "any"

    def on_upload(self, seen: ReceivedRequest) -> Reply:
        headers: Mapping[str, str] = seen.headers
        if headers["x-goog-upload-command"] == "start":
            assert headers["x-goog-upload-protocol"] == "resumable"
            assert seen.json()["file"]["mimeType"] == "application/jsonl"
            url = f"{self.origin}/upload/v1beta/files?upload_id=u1"
            return json_reply({}, headers={"X-Goog-Upload-URL": url})
        assert headers["x-goog-upload-command"] == "upload, finalize"
        name = self.keep(seen.body, "files/in")
        file = {"name": name, "mimeType": "application/jsonl", "sizeBytes": str(len(seen.body))}
        return json_reply({"file": file}, headers={"X-Goog-Upload-Status": "final"})

    def on_create(self, seen: ReceivedRequest) -> Reply:
        asked = seen.json()["batch"]
        lines = self.files[asked["inputConfig"]["fileName"]].splitlines()
        model = seen.path.split("/")[-1].partition(":")[0]
        requests = [
            Request(line["key"], f"/v1beta/models/{model}:generateContent", line["request"])
            for line in map(json.loads, lines)
        ]
        name = f"batches/b{len(self.batches) + 1}"
        return json_reply(self.shown(self.start(name, asked["displayName"], model, requests)))

    def on_list(self, seen: ReceivedRequest) -> Reply:
        newest = [self.shown(batch) for batch in reversed(self.batches.values())]
        return json_reply({"operations": newest})

    def on_status(self, seen: ReceivedRequest) -> Reply:
        return json_reply(self.shown(self.polled(seen.path.removeprefix("/v1beta/"))))

    def on_cancel(self, seen: ReceivedRequest) -> Reply:
        self.cancel(seen.path.removeprefix("/v1beta/").removesuffix(":cancel"))
        return json_reply({})

    def on_results(self, seen: ReceivedRequest) -> Reply:
        assert seen.query == {"alt": ["media"]}
        name = seen.path.removeprefix("/v1beta/files/out-").removesuffix(":download")
        batch = self.batches[f"batches/{name}"]
        return self.lines(
            [json.dumps(self.line(batch, one)).encode() + b"\n" for one in batch.requests]
        )

    def line(self, batch: RemoteBatch, one: Request) -> Any:
        fate = self.fate_of(batch, one)
        if fate != "ok":
            error = {"code": 4 if fate == "expired" else 3, "message": f"The request {fate}."}
            return {"key": one.key, "error": error}
        draws = "IMAGE" in one.body["generationConfig"].get("responseModalities", ())
        server: LocalServer = self.images if draws else self.words
        # The vendor does not say which member comes first.
        return {"response": self.response_of(server, one.path, one.body), "key": one.key}

    def shown(self, batch: RemoteBatch) -> dict[str, Any]:
        done = self.done(batch) if batch.ended and not self.refusal else []
        word = "FAILED" if self.refusal else "CANCELLED" if batch.cancelled else "SUCCEEDED"
        facts: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{batch.model}",
            "displayName": batch.tag,
            "createTime": TIME,
            "updateTime": TIME,
            "state": f"BATCH_STATE_{word if batch.ended else 'RUNNING'}",
            "batchStats": {
                "requestCount": str(len(batch.requests)),
                "successfulRequestCount": str(len(done)),
                "failedRequestCount": str(len(batch.requests) - len(done) if batch.ended else 0),
            },
            "name": batch.id,
        }
        shown: dict[str, Any] = {"name": batch.id, "metadata": facts, "done": batch.ended}
        if self.refusal and batch.ended:
            shown["error"] = {"code": 3, "message": self.refusal}
        elif batch.ended:
            facts["output"] = {"responsesFile": f"files/out-{batch.id.removeprefix('batches/')}"}
        return shown
