"""OpenAI's Batch API: requests -> a file -> a batch -> files of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limner.batches.remote_api import (
    CLOCK_SLACK_S,
    FILE_TIMEOUT_S,
    MAX_PAGES,
    BatchApi,
    LineResult,
    RemoteStatus,
    RemoteSubmission,
    count,
    json_lines,
)
from limner.json_shapes import as_list, as_object
from limner.net.http import MultipartForm, Upload
from limner.net.json_pictures import LastPicture

TAG = "limner"
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
# The responses of requests that succeeded have this status.
OK = 200


class OpenAIBatches(BatchApi):
    """``/files`` and ``/batches``; the batch of images, edits and responses."""

    wanted = frozenset({"response.body.data.b64_json"})

    async def upload(self, submission: RemoteSubmission) -> str:
        """Upload the requests as JSON Lines."""
        lines = [
            ({"custom_id": one.key, "method": "POST", "url": submission.path}, "body", one.body)
            for one in submission.requests
        ]
        file = Upload(
            field="file",
            filename=f"{submission.tag}.jsonl",
            mime="application/jsonl",
            data=json_lines(lines),
        )
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/files",
            form=MultipartForm(fields={"purpose": "batch"}, uploads=[file]),
            read_timeout_s=FILE_TIMEOUT_S,
        )
        return self._id(as_object(answer).get("id"))

    async def create(self, submission: RemoteSubmission, input_file: str) -> RemoteStatus:
        """Create the batch, with our tag in its metadata."""
        body = {
            "input_file_id": input_file,
            "endpoint": submission.path,
            "completion_window": "24h",
            "metadata": {TAG: submission.tag},
        }
        return self._status(await self._ask("POST", "/batches", body=body, paid=True))

    async def find(self, tag: str, keys: Sequence[str], *, since_s: float) -> RemoteStatus | None:
        """Look for the tag in the metadata of the newest batches."""
        path = "/batches?limit=100"
        for _ in range(MAX_PAGES):
            page = await self._ask("GET", path)
            batches = [as_object(one) for one in as_list(page.get("data"))]
            for batch in batches:
                if as_object(batch.get("metadata")).get(TAG) == tag:
                    return self._status(batch)
            oldest_s = count(batches[-1].get("created_at")) if batches else 0
            if page.get("has_more") is not True or oldest_s < since_s - CLOCK_SLACK_S:
                return None
            path = f"/batches?limit=100&after={self._id(batches[-1].get('id'))}"
        return None

    async def status(self, remote_id: str) -> RemoteStatus:
        """The batch now."""
        return self._status(await self._ask("GET", f"/batches/{remote_id}"))

    async def cancel(self, remote_id: str) -> None:
        """Ask OpenAI to stop; this takes up to ten minutes."""
        await self._ask("POST", f"/batches/{remote_id}/cancel")

    def result_url(self, result: str) -> str:
        """The content of a file."""
        return f"{self.service.base_url}/files/{result}/content"

    def read_line(self, line: Mapping[str, Any], picture: LastPicture) -> LineResult:
        """A line of the output file or of the error file."""
        key = self._id(line.get("custom_id"))
        response = as_object(line.get("response"))
        body = as_object(response.get("body"))
        if response.get("status_code") == OK:
            return LineResult(key=key, response=body, picture=picture)
        error = as_object(body.get("error")) or as_object(line.get("error"))
        return LineResult(
            key=key,
            picture=picture,
            code=self._text(error.get("code") or error.get("type")) or "failed",
            message=self._text(error.get("message")),
        )

    def _status(self, batch: Mapping[str, Any]) -> RemoteStatus:
        word = self._text(batch.get("status"))
        counts = as_object(batch.get("request_counts"))
        files = [batch.get(name) for name in ("output_file_id", "error_file_id")]
        results = tuple(file for file in files if isinstance(file, str) and file)
        errors = [as_object(one) for one in as_list(as_object(batch.get("errors")).get("data"))]
        failure = self._text(errors[0].get("message")) if errors else ""
        done = count(counts.get("completed"))
        return RemoteStatus(
            remote_id=self._id(batch.get("id")),
            word=word,
            ended=word in ENDED,
            done=done,
            failed=count(counts.get("failed")),
            results=results,
            failure=(failure or "the batch failed") if word == "failed" else None,
            is_uncertain=done > 0 and not isinstance(batch.get("output_file_id"), str),
        )
