"""The reference page of the app-server's protocol, from the types that its schemas come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from limner.frontends.appserver import tool_specs
from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol import base, items
from limner.frontends.appserver.protocol.base import OUR_NOTIFICATIONS, PROTOCOL_VERSION
from limner.frontends.appserver.protocol.notifications import NOTIFICATIONS
from limner.frontends.appserver.protocol.server_requests import SERVER_REQUESTS, Decision
from limner.frontends.appserver.protocol.startup import UNSERVED
from limner.frontends.appserver.v1 import approvals as first_approvals
from limner.frontends.appserver.v1 import events as first_events
from limner.frontends.appserver.v1.types import METHODS as FIRST_METHODS

Lines = Iterator[str]

INTRODUCTION = f"""\
# App-server protocol

`limner app-server` speaks the protocol of the Codex app-server, version 2 as of {PROTOCOL_VERSION}:
one JSON object for each line or frame, without the member `jsonrpc`. The official SDK of Codex
works here; the methods of Codex that limner does not serve are listed below. `limner app-server
generate-json-schema --out DIR` writes a schema for everything below, under the names that Codex
uses. Members that are not listed are ignored.

A connection begins with the request `initialize`. Then the client may send anything; the
notification `initialized` is accepted, and the server does not wait for it.

Methods and members marked *experimental* need `capabilities.experimentalApi` in `initialize`. Those
marked *limner* exist only in limner.
"""

DIFFERENCES = """
## Answers of a client's tool

A client answers `item/tool/call` with `{"contentItems": [...], "success": true}`. A single text
reaches the model as a string, everything else as an array. Beyond what Codex does:

- If `success` is false, the model reads a text that says so before the output.
- If the client answers with a JSON-RPC error, the model reads its message, shortened and without
  keys.
- `inputImage` may have a `detail` (`auto`, `low`, `high` or `original`; the default is `high`) and
  a `label`, which the model reads before the picture.
- A `file:` URL, or a string that is not a URL, fails the call as a remote URL does, and never
  reaches the model. `limner://image/<sha256>` names a stored picture.
- A picture that does not decode is replaced by a text that says why; the rest of the answer stays.
- An answer of another form fails the call. The model reads what is wrong and the right form.

## Tools of a namespace

Few model providers have namespaces, so a model calls a tool of one as `namespace__name`. If that
has more than 64 characters or is taken, it ends in a digest. The model finds a deferred tool with
`tool_search` and can call it from then on.

## Pictures in threads

A thread that is read, resumed or forked has its pictures inline as data URLs, the newest first, up
to 32 MiB of base64 in one response. Older ones keep the URL `limner://image/<sha256>`, and the
`result` of an `imageGeneration` is empty. Page through a long thread with `thread/turns/list` and
`thread/items/list`: each page has 32 MiB of its own.
"""

FIRST = """
## The first protocol

Until March 2026 Codex had another protocol on the same connection: conversations, listeners and
events. limner serves both protocols on the same threads. A thread that was started with one can be
resumed with the other, and clients of both can subscribe to the same conversation.

- A client gets events after `addConversationListener`. The client that opens a conversation always
  gets `session_configured`, and a `warning` for each option that has no effect.
- `resumeConversation` uses `path`, else `conversationId`, else a non-empty `history`. The history
  of the conversation is in `initialMessages`, one event for each item. An item that no event can
  carry completely is a `raw_response_item`.
- Items of a `history` are stored as they came. An item that is not valid is left out with a
  warning. Both forms of an output are accepted: `{"body": ...}` and the bare string or array.
- `profile` is a personality, `config` has dotted settings, `includeApplyPatchTool` only causes a
  warning. `dynamicTools` is accepted as in `thread/start`; calls come as `item/tool/call`.
- `sendUserTurn` may leave out options that do not change.
- `rolloutPath` is a file that names the conversation, so that a client can find it by that path at
  any time. The conversation itself is in the store: `limner sessions export ID` writes all of it.
- `resumeConversation` unarchives an archived conversation.
- `interruptConversation` is answered when the turn has ended.
"""


DECISIONS = f"""\
`decision` is {", ".join(f"`{one}`" for one in get_args(Decision))}. `accept` allows this once,
`acceptForSession` everything of this kind until the thread is closed. `decline` refuses it, and the
model goes on. `cancel` refuses it and interrupts the turn.
"""


def app_server() -> Lines:
    yield INTRODUCTION
    yield "\n## Methods\n\n| method | params | answer | how it differs from Codex |\n"
    yield "|---|---|---|---|\n"
    for name, method in METHODS.items():
        notes = ["*limner*."] if method.is_ours else []
        notes += ["*Experimental*."] if method.is_experimental else []
        params = "" if method.params is None else _members(method.params)
        answer = _members(method.result, sent=True)
        cells = [f"`{name}`", params, answer, " ".join([*notes, method.note])]
        yield f"| {' | '.join(cells)} |\n"
    yield "\nA member that a client may leave out is followed by `?`. The server always sends "
    yield "every member; its value may be null.\n"
    yield "\n### Experimental members\n\n| method | members |\n|---|---|\n"
    for name, method in METHODS.items():
        members, ours = sorted(method.experimental_fields), method.our_fields
        shown = [f"`{m}`{' (*limner*)' if m in ours else ''}" for m in members]
        if shown:
            yield f"| `{name}` | {', '.join(shown)} |\n"
    yield "\nMembers that are not among the params above are accepted and ignored.\n"
    yield "\n### Methods of Codex that are not served\n\n"
    yield "| methods that start with | why |\n|---|---|\n"
    for names, why in UNSERVED.items():
        yield f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {why} |\n"
    yield "\n## Notifications\n\n| method | meaning | members |\n|---|---|---|\n"
    for name, kind in NOTIFICATIONS.items():
        ours = "*limner*. " if name in OUR_NOTIFICATIONS else ""
        yield f"| `{name}` | {ours}{_summary(kind)} | {_members(kind, sent=True)} |\n"
    yield "\n## Requests of the server\n\n| method | params | answer |\n|---|---|---|\n"
    for name, request in SERVER_REQUESTS.items():
        params, answer = _members(request.params, sent=True), _members(request.response)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield f"\n{DECISIONS}"
    yield from _union("Tools of a client", tool_specs.DynamicToolSpec)
    yield "\nThese are the entries of `dynamicTools`, and the first of them those of `tools`. "
    yield "`inputSchema` is a JSON schema of the arguments; a tool with `deferLoading` is only "
    yield "called after the model has found it with `tool_search`.\n"
    yield from _union("Items of a thread", items.ThreadItem, sent=True)
    yield from _union("Input of a user", base.UserInput)
    yield from _union("Output of a client's tool", base.ContentItem)
    yield DIFFERENCES
    yield from _first_protocol()


def _first_protocol() -> Lines:
    yield FIRST
    yield "\n### Its methods\n\n| method | params | answer |\n|---|---|---|\n"
    for name, method in FIRST_METHODS.items():
        params, answer = _members(method.params), _members(method.result, sent=True)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield "\n### Its events\n\nEach comes as `{id, msg, conversationId}`: `id` is the turn's, "
    yield "empty outside one, and `msg` has a `type` and these members.\n\n"
    yield "| notification | meaning | members of `msg` |\n|---|---|---|\n"
    for name, kind in first_events.NOTIFICATIONS.items():
        yield f"| `{name}` | {_summary(kind)} | {_members(kind, sent=True)} |\n"
    yield "\n### Its requests to clients\n\n| method | params | answer |\n|---|---|---|\n"
    for name, request in first_approvals.SERVER_REQUESTS.items():
        params, answer = _members(request.params, sent=True), _members(request.response)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield "\n`decision` is `approved`, `approved_for_session`, `denied` or `abort`.\n"


def _union(title: str, union: Any, *, sent: bool = False) -> Lines:
    yield f"\n## {title}\n\n| type | meaning | members |\n|---|---|---|\n"
    for kind in get_args(union):
        tag = kind.__struct_config__.tag
        yield f"| `{tag}` | {_summary(kind)} | {_members(kind, sent=sent)} |\n"


def _members(kind: Any, *, sent: bool = False) -> str:
    """The members of a type; for a union, the tags of its types."""
    if not isinstance(kind, type):
        tags = [one.__struct_config__.tag for one in get_args(kind)]
        return f"`type`: {', '.join(f'`{tag}`' for tag in tags)}"
    fields = msgspec.structs.fields(kind)
    return ", ".join(f"`{f.encode_name}`{'' if sent or f.required else '?'}" for f in fields)


def _summary(kind: Any) -> str:
    """The first line of a type's docstring. A type whose name says everything has none."""
    return (kind.__doc__ or "").strip().partition("\n")[0].replace("``", "`")
