"""One message's bytes <-> a request, a notification or a response, with its params undecoded.

The member `jsonrpc` is neither sent nor required; the other members tell the kinds apart. Params
and results stay `msgspec.Raw`, a view of the bytes that arrived, until the code that knows their
type decodes them: nothing is copied on the way, and nothing unknown is built.

The values here are structs of msgspec and not data classes, which take a hundred times as long to
define: a client waits for a server to start.
"""

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

RequestId: TypeAlias = str | int
Data: TypeAlias = bytes | bytearray

OVERLOADED = -32001
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# A tool may answer with several pictures of 30 MB each, in one message.
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
# Three bytes of JSON can become seventy of memory, so a long message may hold text, not structure.
MAX_VALUES = 2_000_000
# What is kept of a message that is too long to be decoded.
HEAD_BYTES = 4096
_MAX_NAME_BYTES = 1024
_INT64 = range(-(2**63), 2**63)

_encoder = msgspec.json.Encoder()


class RpcError(Exception):
    """A JSON-RPC error, sent or received. ``data`` is `Raw` if it was received."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class RpcRequest(msgspec.Struct, frozen=True):
    """The sender waits for a response. ``params`` is None if they are absent or null."""

    id: RequestId
    method: str
    params: Raw | None = None


class Notification(msgspec.Struct, frozen=True):
    """The sender waits for no response."""

    method: str
    params: Raw | None = None


class Response(msgspec.Struct, frozen=True):
    """The result of a request."""

    id: RequestId
    result: Raw


class ErrorResponse(msgspec.Struct, frozen=True):
    """A request failed."""

    id: RequestId
    error: RpcError


class InvalidMessage(msgspec.Struct, frozen=True):
    """Bytes that are not a message, and why not."""

    reason: str


class OversizedMessage(InvalidMessage, frozen=True):
    """A message with more values than are decoded; its first members may say what it is."""


class MessageHead(msgspec.Struct, frozen=True):
    """The first bytes of a message that was longer than allowed; the rest was not kept."""

    head: bytes
    max_bytes: int = MAX_MESSAGE_BYTES


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
    """Parse a message as the first kind whose members fit.

    So a request whose id is neither a text nor a 64-bit number becomes a notification.
    """
    # A shorter message cannot have so many.
    if len(data) > MAX_VALUES and sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        return OversizedMessage(f"more than {MAX_VALUES:,} values")
    try:
        envelope = _envelope.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        return InvalidMessage(f"not a JSON object: {error}")
    except RecursionError:
        return InvalidMessage("nested too deeply")
    request_id = _parse_id(envelope.id)
    method = _decode(envelope.method, str)
    if method is None:
        return _parse_response(request_id, envelope)
    params = None if _is_null(envelope.params) else envelope.params
    if request_id is None:
        return Notification(method, params)
    return RpcRequest(request_id, method, params)


def _parse_response(
    request_id: RequestId | None, envelope: _Envelope
) -> Response | ErrorResponse | InvalidMessage:
    if request_id is None:
        return InvalidMessage("neither a request nor an answer")
    if memoryview(envelope.result).nbytes:
        return Response(request_id, envelope.result)
    error = _decode(envelope.error, _Error, max_bytes=MAX_MESSAGE_BYTES)
    if error is None:
        return InvalidMessage("an id without method, result or error")
    data = None if _is_null(error.data) else error.data
    return ErrorResponse(request_id, RpcError(error.code, error.message, data))


def _parse_id(raw: Raw) -> RequestId | None:
    found = _decode(raw, RequestId)
    return None if isinstance(found, int) and found not in _INT64 else found


def _decode(raw: Raw, kind: Any, *, max_bytes: int = _MAX_NAME_BYTES) -> Any:
    if not 0 < memoryview(raw).nbytes <= max_bytes:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _is_null(raw: Raw) -> bool:
    size = memoryview(raw).nbytes
    return size == 0 or (size == 4 and bytes(raw) == b"null")


# Compiled at the first use, because that takes as long as loading a module.
_LEADING = (
    rb"""\s*[{,]\s*"(id|method|jsonrpc)"\s*:\s*("[^"\\\x00-\x1f]{0,256}"|-?\d{1,19})(?=\s*[,}])"""
)
_RESULT_OR_ERROR = rb'\s*[{,]\s*"(?:result|error)"\s*:'


def glance(head: bytes) -> RpcRequest | Response | None:
    """Identify a message by its first bytes, if its first members are enough.

    A message that is too long to decode can so still be refused or counted as a response. What is
    returned carries no params and no result.
    """
    found: dict[bytes, bytes] = {}
    leading, at = re.compile(_LEADING), 0
    while member := leading.match(head, at):
        found[member[1]] = member[2]
        at = member.end()
    request_id = _parse_id(Raw(found.get(b"id", b"")))
    method = _decode(Raw(found.get(b"method", b"")), str)
    if request_id is None:
        return None
    if method is not None:
        return RpcRequest(request_id, method)
    return Response(request_id, _ABSENT) if re.match(_RESULT_OR_ERROR, head[at:]) else None


def encode_request(request_id: RequestId, method: str, params: object) -> bytes:
    """Encode a request."""
    return _encode({"method": method, "id": request_id, "params": params})


def encode_notification(method: str, params: object = None, **members: object) -> bytes:
    """Encode a notification; ``members`` stand beside its params."""
    message: dict[str, object] = {"method": method}
    if params is not None:
        message["params"] = params
    return _encode(message | members)


def encode_response(request_id: RequestId, result: object) -> bytes:
    """Encode a response."""
    return _encode({"id": request_id, "result": result})


def encode_error(request_id: RequestId, error: RpcError) -> bytes:
    """Encode an error response."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _encode({"error": body, "id": request_id})


def _encode(message: dict[str, object]) -> bytes:
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 contains lone surrogates, which many peers cannot decode.
        import json  # noqa: PLC0415 - msgspec writes all other messages

        plain = json.dumps(msgspec.to_builtins(message), ensure_ascii=False, separators=(",", ":"))
        return plain.encode("utf-8", "replace")
