"""One message's bytes <-> a request, a notification or an answer, with what it carries unread.

Not quite JSON-RPC: the member `jsonrpc` is neither sent nor needed, and kinds are told apart by
their members. What a message carries stays `msgspec.Raw`, a view of the bytes that came in, until
whoever knows its type reads it: nothing is copied on the way, and nothing unknown is built.

The values of this package are structs of msgspec and not data classes, which take a hundred times
as long to define: a client waits for a server to start.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

RequestId: TypeAlias = str | int
Data: TypeAlias = bytes | bytearray

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
OVERLOADED = -32001

# A tool may answer with several pictures of 30 MB each, in one line.
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
# Three bytes of JSON can become seventy of memory, so a long message may hold text, not structure.
MAX_VALUES = 2_000_000
_SHORT_BYTES = 1024 * 1024
_MAX_NAME_BYTES = 1024
_INT64 = range(-(2**63), 2**63)

_encoder = msgspec.json.Encoder()


class RpcError(Exception):
    """An error as it crosses the wire, whichever side says it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class RpcRequest(msgspec.Struct, frozen=True):
    """Somebody wants an answer. ``params`` is None where there are none, or null."""

    id: RequestId
    method: str
    params: Raw | None = None


class Notification(msgspec.Struct, frozen=True):
    """Somebody tells something."""

    method: str
    params: Raw | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a request."""

    id: RequestId
    result: Raw


class ErrorResponse(msgspec.Struct, frozen=True):
    """The other answer to a request."""

    id: RequestId
    error: RpcError


class InvalidMessage(msgspec.Struct, frozen=True):
    """Bytes that are no message, and why: dropped, and said in the log."""

    reason: str


class OversizedMessage(InvalidMessage, frozen=True):
    """A message with more in it than is read; what it begins with may say whose it is."""


Message: TypeAlias = RpcRequest | Notification | Response | ErrorResponse | InvalidMessage

_ABSENT = Raw(b"")


class _Envelope(msgspec.Struct):
    id: Raw = _ABSENT
    method: Raw = _ABSENT
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class _Error(msgspec.Struct):
    code: int
    message: str
    data: Raw = _ABSENT


_envelope = msgspec.json.Decoder(_Envelope)


def parse(data: Data) -> Message:
    """Tell what kind of message it is, as upstream does: by the first kind whose members fit.

    So an id that is neither a text nor a 64-bit number makes a notification of a request.
    """
    if len(data) > _SHORT_BYTES and sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        return OversizedMessage(f"more than {MAX_VALUES:,} values")
    try:
        envelope = _envelope.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        return InvalidMessage(f"not a JSON object: {error}")
    except RecursionError:
        return InvalidMessage("nested too deeply")
    number = _id(envelope.id)
    method = _read(envelope.method, str)
    if method is not None:
        params = None if _is_nothing(envelope.params) else envelope.params
        return (
            Notification(method, params) if number is None else RpcRequest(number, method, params)
        )
    if number is None:
        return InvalidMessage("neither a request nor an answer")
    return _answer(number, envelope)


def _answer(number: RequestId, envelope: _Envelope) -> Response | ErrorResponse | InvalidMessage:
    if memoryview(envelope.result).nbytes:
        return Response(number, envelope.result)
    error = _read(envelope.error, _Error, max_bytes=MAX_MESSAGE_BYTES)
    if error is None:
        return InvalidMessage("an id without method, result or error")
    data = None if _is_nothing(error.data) else error.data
    return ErrorResponse(number, RpcError(error.code, error.message, data))


def _id(raw: Raw) -> RequestId | None:
    found = _read(raw, RequestId)
    return None if isinstance(found, int) and found not in _INT64 else found


def _read(raw: Raw, kind: Any, *, max_bytes: int = _MAX_NAME_BYTES) -> Any:
    if not 0 < memoryview(raw).nbytes <= max_bytes:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _is_nothing(raw: Raw) -> bool:
    size = memoryview(raw).nbytes
    return size == 0 or (size == 4 and bytes(raw) == b"null")


_LEADING = re.compile(
    rb"""\s*[{,]\s*"(id|method|jsonrpc)"\s*:\s*("[^"\\\x00-\x1f]{0,256}"|-?\d{1,19})(?=\s*[,}])"""
)
_ANSWERING = re.compile(rb'\s*[{,]\s*"(?:result|error)"\s*:')


def glance(head: bytes) -> RpcRequest | Response | None:
    """Whose message this is the beginning of, where its first members say so.

    For messages too long to be read: a request can still be refused, an answer still be counted.
    Neither carries anything.
    """
    found: dict[bytes, bytes] = {}
    at = 0
    while member := _LEADING.match(head, at):
        found[member[1]] = member[2]
        at = member.end()
    number = _id(Raw(found.get(b"id", b"")))
    method = _read(Raw(found.get(b"method", b"")), str)
    if number is None:
        return None
    if method is not None:
        return RpcRequest(number, method)
    return Response(number, _ABSENT) if _ANSWERING.match(head, at) else None


def encode_response(number: RequestId, result: object) -> bytes:
    """An answer."""
    return _encode({"id": number, "result": result})


def encode_error(number: RequestId, error: RpcError) -> bytes:
    """The other answer."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _encode({"error": body, "id": number})


def encode_request(number: RequestId, method: str, params: object) -> bytes:
    """A request to a client."""
    return _encode({"method": method, "id": number, "params": params})


def encode_notification(method: str, params: object) -> bytes:
    """A notification, with the time it is sent beside what it says."""
    return _encode({"method": method, "params": params, "emittedAtMs": time.time_ns() // 1_000_000})


def _encode(message: dict[str, object]) -> bytes:
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 holds half characters, which many clients cannot read.
        plain = json.dumps(msgspec.to_builtins(message), ensure_ascii=False, separators=(",", ":"))
        return plain.encode("utf-8", "replace")
