"""The reference page of the app-server's protocol, from the types that its schemas come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol import base, items
from limner.frontends.appserver.protocol.base import PROTOCOL_VERSION
from limner.frontends.appserver.protocol.notifications import NOTIFICATIONS, OUR_NOTIFICATIONS
from limner.frontends.appserver.protocol.server_requests import SERVER_REQUESTS
from limner.frontends.appserver.v1 import approvals as first_approvals
from limner.frontends.appserver.v1 import events as first_events
from limner.frontends.appserver.v1.types import METHODS as FIRST_METHODS

Lines = Iterator[str]

INTRODUCTION = f"""\
# App-server protocol

`limner app-server` speaks the protocol of the Codex app-server, version 2 as of {PROTOCOL_VERSION}:
one JSON object for each line or frame, without the member `jsonrpc`. A client that works with
Codex works here. `limner app-server generate-json-schema --out DIR` writes a schema for everything
below, under the names that Codex gives them. Members that are not listed are ignored.

What is marked *experimental* needs `capabilities.experimentalApi` in `initialize`; what is marked
*limner* is known here only.
"""

DIFFERENCES = """
## Answers of a client's tool

A client answers `item/tool/call` with `{"contentItems": [...], "success": true}`. A single text
reaches the model as a string, everything else as an array. Beyond what Codex does:

- `success: false` is told to the model, in words before what the tool said.
- The message of a JSON-RPC error is told to the model, without keys and not at any length.
- `inputImage` may have a `detail` (`auto`, `low`, `high`, `original`; `high` where there is none)
  and a `label`, which the model reads before the picture.
- A `file:` address, or what is no address at all, fails the call as a remote address does, and
  never reaches the model. `limner://image/<sha256>` names a picture that is here already.
- A picture that does not decode is replaced by words that say why; the rest of the answer stays.
- An answer of another shape fails the call, and the words say what is wrong and show the right one.

## Tools of a namespace

Few model services know namespaces, so a model calls a tool of one as `namespace__name`. Where that
has more than 64 characters or is taken, its end is a digest. A deferred tool is found with
`tool_search` and can be called from then on.

## Pictures in threads

A thread that is read, resumed or forked has its pictures inline, as data URLs, the newest first, up
to 32 MiB of base64 in one answer. Older ones keep the address `limner://image/<sha256>`, and the
`result` of an `imageGeneration` is empty. Page through a long thread with `thread/turns/list` and
`thread/items/list`: each page has the whole room again.
"""

FIRST = """
## The first protocol

Until March 2026 Codex had another protocol on the same connection: conversations, listeners and
events. limner serves it beside the second one, on the same threads: what is begun with one goes on
with the other, and clients of both may listen to the same conversation.

- A client is told what happens after `addConversationListener`. Whoever opens a conversation is
  told `session_configured`, and a `warning` for each wish that has no effect, in any case.
- `resumeConversation` takes `path` before `conversationId` before a non-empty `history`. What was
  said so far is in `initialMessages`, one event for each item; an item that no event can say all of
  is there as a `raw_response_item`.
- Items of a `history` are checked against the schema that Codex published; both forms of an output
  are taken, `{"body": ...}` and the bare string or array.
- `profile` is a personality, `config` has dotted settings, `includeApplyPatchTool` only earns a
  warning. `dynamicTools`, as in `thread/start`, may be among them; calls come as `item/tool/call`.
- `sendUserTurn` may leave out what is not to change.
- `rolloutPath` is a file that names the conversation, so that it is found again by that path
  whatever was said since. The conversation itself is in the store: `limner sessions export ID`
  writes all of it.
- A conversation that was put away is taken out again by `resumeConversation`.
- `interruptConversation` is answered when the turn has ended.
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
    yield "\nA member that a client may leave out is followed by `?`. What the server sends has "
    yield "every member, null where there is nothing to say.\n"
    yield "\n### Experimental members\n\n| method | members |\n|---|---|\n"
    for name, method in METHODS.items():
        members, ours = sorted(method.experimental_fields), method.our_fields
        shown = [f"`{m}`{' (*limner*)' if m in ours else ''}" for m in members]
        if shown:
            yield f"| `{name}` | {', '.join(shown)} |\n"
    yield "\nThose that are not among the params above are accepted and not read.\n"
    yield "\n## Notifications\n\n| method | what it says | members |\n|---|---|---|\n"
    for name, kind in NOTIFICATIONS.items():
        ours = "*limner*. " if name in OUR_NOTIFICATIONS else ""
        yield f"| `{name}` | {ours}{_summary(kind)} | {_members(kind, sent=True)} |\n"
    yield "\n## Questions of the server\n\n| method | params | answer |\n|---|---|---|\n"
    for name, asked in SERVER_REQUESTS.items():
        params, answer = _members(asked.params, sent=True), _members(asked.response)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield from _union("Items of a thread", items.ThreadItem, sent=True)
    yield from _union("What a user says", base.UserInput)
    yield from _union("What a client's tool says", base.ContentItem)
    yield DIFFERENCES
    yield from _first_protocol()


def _first_protocol() -> Lines:
    yield FIRST
    yield "\n### Its methods\n\n| method | params | answer |\n|---|---|---|\n"
    for name, served in FIRST_METHODS.items():
        params, answer = _members(served.params), _members(served.result, sent=True)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield "\n### Its events\n\nEach comes as `{id, msg, conversationId}`: `id` is the turn's, "
    yield "empty outside one, and `msg` has a `type` and these members.\n\n"
    yield "| notification | what it says | members of `msg` |\n|---|---|---|\n"
    for name, kind in first_events.NOTIFICATIONS.items():
        yield f"| `{name}` | {_summary(kind)} | {_members(kind, sent=True)} |\n"
    yield "\n### Its questions\n\n| method | params | answer |\n|---|---|---|\n"
    for name, asked in first_approvals.SERVER_REQUESTS.items():
        params, answer = _members(asked.params, sent=True), _members(asked.response)
        yield f"| `{name}` | {params} | {answer} |\n"
    yield "\n`decision` is `approved`, `approved_for_session`, `denied` or `abort`.\n"


def _union(title: str, union: Any, *, sent: bool = False) -> Lines:
    yield f"\n## {title}\n\n| type | what it is | members |\n|---|---|---|\n"
    for kind in get_args(union):
        tag = kind.__struct_config__.tag
        yield f"| `{tag}` | {_summary(kind)} | {_members(kind, sent=sent)} |\n"


def _members(kind: Any, *, sent: bool = False) -> str:
    """The members of a type; of several types, what each is told by."""
    if not isinstance(kind, type):
        tags = [one.__struct_config__.tag for one in get_args(kind)]
        return f"`type`: {', '.join(f'`{tag}`' for tag in tags)}"
    fields = msgspec.structs.fields(kind)
    return ", ".join(f"`{f.encode_name}`{'' if sent or f.required else '?'}" for f in fields)


def _summary(kind: Any) -> str:
    """The first line of a type's docstring. A type whose name says everything has none."""
    return (kind.__doc__ or "").strip().partition("\n")[0].replace("``", "`")
