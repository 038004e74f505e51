"""The recorded table: every page has rows, every row is good, and the page shows these rows."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

from tests.ecosystem.pages import all_pages
from tests.ecosystem.report import PAGE, page_of, read_results
from tests.ecosystem.scripted_model import ScriptedModel, SeenPicture, read_request

from limner.testing.sample_pictures import make_png
from limner.testing.servers.http_server import ReceivedRequest

PIXEL = b64encode(make_png(1, 1, pixel=b"\xff\0\0\xff")).decode()
SHOWN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def test_every_program_of_every_page_has_a_good_row() -> None:
    rows = read_results().rows
    counts = {page.name: len(page.programs) for page in all_pages()}
    assert {name: sum(row.page == name for row in rows) for name in counts} == counts
    assert [row.line() for row in rows if not row.is_good] == []


def test_the_page_shows_the_recorded_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(read_results())


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
