"""The recorded table: every page has rows, every row is good, and the page shows these rows."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

from tests.ecosystem import conformance
from tests.ecosystem.agents import AGENTS
from tests.ecosystem.codex_race import RUNS
from tests.ecosystem.pages import all_pages
from tests.ecosystem.report import PAGE, page_of, read_results
from tests.ecosystem.scripted_model import ScriptedModel, SeenPicture, read_request
from tests.ecosystem.sdk_clients import VERSIONS

from limner.testing.sample_pictures import make_png
from limner.testing.servers.http_server import ReceivedRequest

PIXEL = b64encode(make_png(1, 1, pixel=b"\xff\0\0\xff")).decode()
SHOWN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def test_every_program_of_every_page_has_a_good_row() -> None:
    rows = read_results().rows
    counts = {page.name: len(page.programs) for page in all_pages()}
    assert {name: sum(row.page == name for row in rows) for name in counts} == counts
    assert [row.line() for row in rows if not row.is_good] == []


def test_every_page_and_agent_was_run_with_a_slow_picture_and_every_page_with_approval() -> None:
    rows = read_results().rows
    firsts = {page.name for page in all_pages()} | {agent.name for agent in AGENTS}
    slow = {row.page: row.slow for row in rows if row.slow}
    assert {*slow} == firsts
    assert [one for one in slow.values() if not one.startswith("90 s: paid 1x, delivered")] == []
    approved = {row.page: row.approval for row in rows if row.approval}
    assert approved == {page.name: "no: paid 0x; yes: paid 1x" for page in all_pages()}


def test_codex_on_a_busy_machine_always_had_the_tools() -> None:
    installed, *_ = read_results().races
    assert (installed.runs, installed.there) == (RUNS, RUNS)


def test_the_official_clients_of_every_release_got_what_they_asked_for() -> None:
    clients = read_results().clients
    assert [client.version for client in clients] == [*VERSIONS]
    assert [client.line() for client in clients if not client.is_good] == []


def test_every_conformance_check_that_fails_wants_a_fixture_of_the_suite() -> None:
    record = conformance.read_record()
    assert [check for check in record.failures if check.wants is None] == []
    assert {*record.counts} == {
        f"{transport} {name}"
        for transport in conformance.TRANSPORTS
        for name in (*conformance.REVISIONS, conformance.TASKS)
    }


def test_the_pages_show_what_was_recorded() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(read_results())
    record = conformance.read_record()
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page(record)


def test_the_programs_of_the_pages_are_python() -> None:
    for page in all_pages():
        for program in (*page.programs, *page.approvals):
            if not program.is_shell:
                compile(program.code, page.name, "exec")


def test_the_scripted_model_finds_pictures_and_base64_in_text() -> None:
    result = {"role": "tool", "tool_call_id": "1", "content": f"{{'data': '{'iVBORw0K' * 60}'}}"}
    user = {"role": "user", "content": [{"type": "text", "text": "Look."}, SHOWN]}
    seen = read_request("chat", {"messages": [result, user]}, size_bytes=0)
    assert seen.pictures == (
        SeenPicture(mime="image/png", size_bytes=len(b64decode(PIXEL)), width=1, height=1),
    )
    assert seen.leaked_chars == 480


def test_the_scripted_model_refuses_a_picture_in_a_tool_message_as_openai_does() -> None:
    message = {"role": "tool", "tool_call_id": "1", "content": [SHOWN]}
    request = ReceivedRequest(
        method="POST",
        target="/v1/chat/completions",
        headers={},
        body=json.dumps({"model": "gpt-5.5", "messages": [message]}).encode(),
    )
    reply = ScriptedModel([], picture=b"").answer(request)
    assert reply.status == 400
    assert "Image URLs are only allowed for messages with role" in str(reply.pieces)
