"""`turn/start`, `turn/steer`, `turn/interrupt`: what users say, and when they have had enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inputs import ParsedInput, read_input, read_tool_output
from limner.frontends.appserver.notifications import running
from limner.frontends.appserver.protocol.base import Empty, TextInput
from limner.frontends.appserver.protocol.turns import (
    TurnInterruptParams,
    TurnStartParams,
    TurnStartResponse,
    TurnSteerParams,
    TurnSteerResponse,
)
from limner.frontends.appserver.rpc_errors import refusal
from limner.frontends.appserver.thread import Begun, LiveThread
from limner.frontends.appserver.thread_options import agree_for_turn
from limner.frontends.appserver.threads import ThreadTable

# A model has to be told something.
_WORDLESS = TextInput(text="(The user begins without a word.)")


async def start(threads: ThreadTable, call: RpcCall, params: TurnStartParams) -> None:
    """Begin a turn, or join the one that is under way."""
    await begin(
        threads,
        params,
        begun=lambda turn_id: call.answer(TurnStartResponse(turn=running(turn_id))),
    )


async def begin(threads: ThreadTable, params: TurnStartParams, *, begun: Begun) -> None:
    """As `start`, for whoever answers in other words.

    Raises:
        RpcError: the thread is not open, or what is wanted is not of the right shape.
        LimnerError: no turn can begin, as without a key.
    """
    thread = threads.get(params.thread_id)
    said = await _said(threads, thread, params)
    kept = agree_for_turn(thread.kept, params, lim=threads.limner)
    if kept != thread.kept:
        await thread.keep(kept)
    thread.warn(*(warning for one in said for warning in one.warnings))
    await thread.say(said, schema=_schema(params.output_schema), begun=begun)


async def steer(threads: ThreadTable, params: TurnSteerParams) -> TurnSteerResponse:
    """Say something in the middle of a turn."""
    thread = threads.get(params.thread_id)
    said = await read_input(
        params.input,
        lim=threads.limner,
        cwd=thread.cwd,
        client_id=params.client_user_message_id,
    )
    turn_id = thread.steer([said], expected=params.expected_turn_id)
    thread.warn(*said.warnings)
    return TurnSteerResponse(turn_id=turn_id)


async def interrupt(threads: ThreadTable, call: RpcCall, params: TurnInterruptParams) -> None:
    """End the turn that is under way."""
    thread = threads.get(params.thread_id)
    now = thread.turn_id
    if now is None:
        raise refusal("no active turn to interrupt")
    if now != params.turn_id:
        raise refusal(f"expected active turn id {params.turn_id[:80]} but found {now}")
    call.answer(Empty())
    thread.interrupt()


async def _said(
    threads: ThreadTable, thread: LiveThread, params: TurnStartParams
) -> list[ParsedInput]:
    """What the user says, and before it what a tool says that nobody called."""
    lim, said = threads.limner, list[ParsedInput]()
    if params.tool_output is not None:
        said.append(await read_tool_output(params.tool_output, lim=lim))
        await thread.session.note_untrusted()
    given = params.input
    if not (given or said) and not (await thread.session.about()).items:
        given = (_WORDLESS,)
    if given:
        client_id = params.client_user_message_id
        said.append(await read_input(given, lim=lim, cwd=thread.cwd, client_id=client_id))
    return said


def _schema(wanted: object) -> Mapping[str, Any] | None:
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        raise refusal("outputSchema must be a JSON schema, which is an object")
    return cast("dict[str, Any]", wanted)
