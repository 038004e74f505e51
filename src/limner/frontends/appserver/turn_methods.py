"""`turn/start`, `turn/steer` and `turn/interrupt`: the input of a user -> turns of a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inputs import ParsedInput, parse_input, parse_tool_output
from limner.frontends.appserver.notifications import running_turn
from limner.frontends.appserver.protocol.base import Empty, TextInput
from limner.frontends.appserver.protocol.turns import (
    TurnInterruptParams,
    TurnStartParams,
    TurnStartResponse,
    TurnSteerParams,
    TurnSteerResponse,
)
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.thread import LiveThread, OnStarted
from limner.frontends.appserver.thread_options import resolve_turn_options
from limner.frontends.appserver.threads import ThreadTable

# A model request needs some input.
_NO_INPUT = TextInput(text="(The user begins without a word.)")


async def start(threads: ThreadTable, call: RpcCall, params: TurnStartParams) -> None:
    """Start a turn, or add the input to the running turn."""
    await start_turn(
        threads,
        params,
        on_started=lambda turn_id: call.answer(TurnStartResponse(turn=running_turn(turn_id))),
    )


async def start_turn(
    threads: ThreadTable, params: TurnStartParams, *, on_started: OnStarted
) -> None:
    """As `start`, without the response: the first protocol has another one.

    Raises:
        RpcError: the thread is not open, or the params are invalid.
        LimnerError: the turn cannot start, for example without a key.
    """
    thread = threads.get(params.thread_id)
    inputs = await _inputs(threads, thread, params)
    state = resolve_turn_options(thread.state, params, lim=threads.limner)
    if state != thread.state:
        await thread.save(state)
    thread.warn(*(warning for one in inputs for warning in one.warnings))
    await thread.start_turn(inputs, schema=_schema(params.output_schema), on_started=on_started)


async def steer(threads: ThreadTable, params: TurnSteerParams) -> TurnSteerResponse:
    """Add input to the running turn."""
    thread = threads.get(params.thread_id)
    parsed = await parse_input(
        params.input,
        lim=threads.limner,
        cwd=thread.cwd,
        client_id=params.client_user_message_id,
    )
    turn_id = thread.steer([parsed], expected=params.expected_turn_id)
    thread.warn(*parsed.warnings)
    return TurnSteerResponse(turn_id=turn_id)


async def interrupt(threads: ThreadTable, call: RpcCall, params: TurnInterruptParams) -> None:
    """Interrupt the running turn."""
    thread = threads.get(params.thread_id)
    running = thread.turn_id
    if running is None:
        raise invalid_request("no active turn to interrupt")
    if running != params.turn_id:
        raise invalid_request(f"expected active turn id {params.turn_id[:80]} but found {running}")
    call.answer(Empty())
    thread.interrupt()


async def _inputs(
    threads: ThreadTable, thread: LiveThread, params: TurnStartParams
) -> list[ParsedInput]:
    """The input of the user; the output of a tool that the model did not call comes before it."""
    lim, inputs = threads.limner, list[ParsedInput]()
    if params.tool_output is not None:
        inputs.append(await parse_tool_output(params.tool_output, lim=lim))
        await thread.session.note_untrusted()
    given = params.input
    if not (given or inputs) and not (await thread.session.about()).items:
        given = (_NO_INPUT,)
    if given:
        client_id = params.client_user_message_id
        inputs.append(await parse_input(given, lim=lim, cwd=thread.cwd, client_id=client_id))
    return inputs


def _schema(wanted: object) -> Mapping[str, Any] | None:
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        raise invalid_request("outputSchema must be a JSON schema, which is an object")
    return cast("dict[str, Any]", wanted)
