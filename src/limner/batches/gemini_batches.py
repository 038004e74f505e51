"""Gemini's Batch API: requests -> a file -> a batch -> a file of results.

The requests are always a file: the service cannot send many pictures inside its own answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from limner.batches.remote_api import (
    FILE_TIMEOUT_S,
    MAX_PAGES,
    BatchApi,
    LineResult,
    RemoteStatus,
    RemoteSubmission,
    count,
    json_lines,
)
from limner.errors import BadProviderImage
from limner.json_shapes import as_list, as_object
from limner.net.json_pictures import LastPicture, read_json_with_pictures

MIME = "application/jsonl"
ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})


class GeminiBatches(BatchApi):
    """``/upload/v1beta/files``, ``models/<id>:batchGenerateContent`` and ``/batches``."""

    wanted = frozenset({"response.candidates.content.parts.inlineData.data"})

    async def upload(self, submission: RemoteSubmission) -> str:
        """Upload the requests as JSON Lines: one request names the file, another one has it."""
        content = json_lines(
            [({"key": one.key}, "request", one.body) for one in submission.requests]
        )
        base, _, version = self.service.base_url.rpartition("/")
        start = {
            "Content-Type": "application/json",
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": MIME,
        }
        named = msgspec.json.encode({"file": {"displayName": submission.tag, "mimeType": MIME}})
        async with self.service.transfer(
            "POST",
            f"{base}/upload/{version}/files",
            content=named,
            headers=start,
            read_timeout_s=FILE_TIMEOUT_S,
        ) as response:
            url = response.headers.get("x-goog-upload-url", "")
        if not self.service.is_own(url):
            raise BadProviderImage(f"{self.service.vendor.title} named no URL for an upload")
        send = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        async with self.service.transfer(
            "POST", url, content=content, headers=send, read_timeout_s=FILE_TIMEOUT_S
        ) as response:
            answer = as_object(await read_json_with_pictures(response.aiter_bytes()))
        return self._id(as_object(answer.get("file")).get("name"))

    async def create(self, submission: RemoteSubmission, input_file: str) -> RemoteStatus:
        """Create the batch, with our tag as its display name."""
        body = {
            "batch": {"displayName": submission.tag, "inputConfig": {"fileName": input_file}},
        }
        path = f"/models/{quote(submission.model, safe='')}:batchGenerateContent"
        return self._status(await self._ask("POST", path, body=body, paid=True))

    async def find(self, tag: str, keys: Sequence[str], *, since_s: float) -> RemoteStatus | None:
        """Look for the tag in the names of the newest batches."""
        path = "/batches?pageSize=100"
        for _ in range(MAX_PAGES):
            page = await self._ask("GET", path)
            for batch in map(as_object, as_list(page.get("operations"))):
                if as_object(batch.get("metadata")).get("displayName") == tag:
                    return self._status(batch)
            token = page.get("nextPageToken")
            if not isinstance(token, str) or not token:
                return None
            path = f"/batches?pageSize=100&pageToken={quote(token, safe='')}"
        return None

    async def status(self, remote_id: str) -> RemoteStatus:
        """The batch now."""
        return self._status(await self._ask("GET", f"/{remote_id}"))

    async def cancel(self, remote_id: str) -> None:
        """Ask Google to stop."""
        await self._ask("POST", f"/{remote_id}:cancel")

    def result_url(self, result: str) -> str:
        """The content of a file."""
        return f"{self.service.base_url}/{result}:download?alt=media"

    def read_line(self, line: Mapping[str, Any], picture: LastPicture) -> LineResult:
        """A line of the results."""
        key, response = self._id(line.get("key")), as_object(line.get("response"))
        if response:
            return LineResult(key=key, response=response, picture=picture)
        error = as_object(line.get("error"))
        return LineResult(
            key=key,
            picture=picture,
            code=self._text(error.get("status")) or self._text(str(error.get("code", "failed"))),
            message=self._text(error.get("message")),
        )

    def _status(self, batch: Mapping[str, Any]) -> RemoteStatus:
        facts = as_object(batch.get("metadata"))
        word = self._text(facts.get("state")).rpartition("STATE_")[2]
        stats = as_object(facts.get("batchStats"))
        done = count(stats.get("successfulRequestCount"))
        output = as_object(facts.get("output")) or as_object(batch.get("response"))
        file = output.get("responsesFile")
        results = (file,) if isinstance(file, str) and file else ()
        error = self._text(as_object(batch.get("error")).get("message"))
        return RemoteStatus(
            remote_id=self._id(batch.get("name")),
            word=word.lower(),
            ended=word in ENDED,
            done=done,
            failed=count(stats.get("failedRequestCount")),
            results=results,
            failure=(error or "the batch failed") if word == "FAILED" and not results else None,
            is_uncertain=not results and (done > 0 or word in ("SUCCEEDED", "PARTIALLY_SUCCEEDED")),
        )
