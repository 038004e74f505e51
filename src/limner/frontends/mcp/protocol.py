"""The revisions of MCP -> what the client of one request can do, and what it may receive.

Clients of the four older revisions start a session with `initialize`. Since 2026-07-28 each request
stands alone and says itself which revision and which capabilities its client has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from limner.net.jsonrpc import INVALID_PARAMS, RpcError

SESSION_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
# The first revisions with hints about tools and messages in progress notifications, with batches of
# messages, with titles, structured content and questions to the user, and with kinds of questions.
WITH_HINTS = WITH_BATCHES = "2025-03-26"
WITH_STRUCTURE = WITH_QUESTIONS = "2025-06-18"
WITH_MODES = "2025-11-25"

TASKS = "io.modelcontextprotocol/tasks"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

PARSE_ERROR = -32700
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

MAX_NAME_CHARS = 200


class _Implementation(msgspec.Struct):
    name: str
    version: str = ""


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: _Implementation


class ConnectedClient(msgspec.Struct, frozen=True, kw_only=True):
    """The client of a session, or of one request that stands alone.

    Attributes:
        revision: the revision of the protocol that client and server use.
        capabilities: what the client can do.
        name: the name that the client gives itself.
    """

    revision: str
    capabilities: Mapping[str, Any]
    name: str = ""

    @property
    def is_stateless(self) -> bool:
        """Whether each of its requests stands alone."""
        return self.revision == STATELESS

    @property
    def takes_structure(self) -> bool:
        """Whether a result may have structured content."""
        return self.revision >= WITH_STRUCTURE

    @property
    def takes_tasks(self) -> bool:
        """Whether the client polls for the result of a slow call by itself."""
        return self.is_stateless and TASKS in _mapping(self.capabilities.get("extensions"))

    @property
    def takes_questions(self) -> bool:
        """Whether the client can ask the user by a form."""
        offered = self.capabilities.get("elicitation")
        if self.revision < WITH_QUESTIONS or not isinstance(offered, dict):
            return False
        # Clients of the first revision with questions declare no modes: they have forms.
        return "form" in offered or "url" not in offered

    @property
    def names_roots(self) -> bool:
        """Whether the client answers a request for its folders.

        The official Python client of the first revision says so, but stops to read if it is asked.
        """
        if self.is_stateless or not isinstance(self.capabilities.get("roots"), dict):
            return False
        return (self.name, self.revision) != ("mcp", SESSION_REVISIONS[0])


def opening_client(params: Mapping[str, Any]) -> ConnectedClient:
    """The client that sends `initialize`.

    Raises:
        RpcError: the params are wrong.
    """
    try:
        opening = msgspec.convert(params, _Initialize)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid request parameters: {error}") from error
    wanted = opening.protocol_version
    return ConnectedClient(
        revision=wanted if wanted in SESSION_REVISIONS else SESSION_REVISIONS[-1],
        capabilities=opening.capabilities,
        name=opening.client_info.name[:MAX_NAME_CHARS],
    )


def meta_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the params of a request say about the request itself."""
    return _mapping(params.get("_meta"))


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether the params of a request say which revision it has."""
    return VERSION_KEY in meta_of(params)


def stateless_client(params: Mapping[str, Any]) -> ConnectedClient:
    """The client of a request that stands alone.

    Raises:
        RpcError: the server does not have that revision, or a field is missing or wrong.
    """
    meta = meta_of(params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    revision, capabilities = meta[VERSION_KEY], meta[CAPABILITIES_KEY]
    if not isinstance(revision, str) or not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, "params._meta has a field of the wrong type")
    check_version(revision)
    name = _mapping(meta.get(CLIENT_KEY)).get("name")
    return ConnectedClient(
        revision=revision,
        capabilities=cast("dict[str, Any]", capabilities),
        name=name[:MAX_NAME_CHARS] if isinstance(name, str) else "",
    )


def check_version(revision: str) -> None:
    """Refuse a revision that has no requests that stand alone.

    Raises:
        RpcError: the server does not have it.
    """
    if revision != STATELESS:
        supported = {"supported": [STATELESS], "requested": revision}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)


def progress_token(params: Mapping[str, Any]) -> str | int | None:
    """The token of the progress notifications that the client wants, if it wants any."""
    token = meta_of(params).get("progressToken")
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
