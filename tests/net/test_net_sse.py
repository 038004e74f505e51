"""Event streams by the rules of the HTML standard, however they are cut."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import ModelBadAnswer
from limner.net.sse import MAX_NAME_BYTES, EventStream, ServerSentEvent


def events(*chunks: bytes, **limits: int) -> list[ServerSentEvent]:
    stream = EventStream(**limits)
    return [event for chunk in chunks for event in stream.feed(chunk)]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_end_ends_a_line(end: str) -> None:
    text = end.join(["event: hello", "data: one", "data:two", "", "data: three", "", ""])
    assert events(text.encode()) == [
        ServerSentEvent("hello", "one\ntwo"),
        ServerSentEvent("message", "three"),
    ]


def test_a_byte_order_mark_comes_first_or_not_at_all() -> None:
    assert events(b"\xef\xbb", b"\xbfdata: a\n\n") == [ServerSentEvent("message", "a")]
    assert events(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [ServerSentEvent("message", "a")]


def test_comments_ids_and_unknown_fields_say_nothing() -> None:
    stream = b": ping\n\n:\n\nid: 7\nretry: 10\nwhat: ever\n\nid: 8\ndata: a\n\n"
    assert events(stream) == [ServerSentEvent("message", "a")]


def test_one_space_after_the_colon_is_not_part_of_the_value() -> None:
    assert events(b"data:  two spaces\n\n") == [ServerSentEvent("message", " two spaces")]


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert events(b"data\n\n", b"data\ndata\n\n") == [
        ServerSentEvent("message", ""),
        ServerSentEvent("message", "\n"),
    ]


def test_an_event_without_data_did_not_happen_and_its_name_is_forgotten() -> None:
    assert events(b"event: lost\n\ndata: a\n\n") == [ServerSentEvent("message", "a")]


def test_an_event_that_is_not_ended_did_not_happen() -> None:
    assert events(b"data: a\n\ndata: b\n") == [ServerSentEvent("message", "a")]


def test_bytes_that_are_no_text_are_marked_and_do_not_stop_the_stream() -> None:
    assert events(b"data: \xff\n\ndata: b\n\n") == [
        ServerSentEvent("message", "�"),
        ServerSentEvent("message", "b"),
    ]


@pytest.mark.parametrize(
    "endless",
    [b"data: " + b"x" * 200, b"data: 123456789\n" * 20, b"data:\n" * 200],
)
def test_an_event_that_does_not_end_is_not_kept_for_ever(endless: bytes) -> None:
    with pytest.raises(ModelBadAnswer, match="an event of more than 100 bytes"):
        events(endless, max_event_bytes=100)


@pytest.mark.parametrize("nothing", [b"x", b":", b"id: x", b"event: x"])
def test_what_says_nothing_is_not_kept_however_long_it_is(nothing: bytes) -> None:
    stream = EventStream(max_event_bytes=100)
    stream.feed(nothing)
    tracemalloc.start()
    try:
        for _ in range(1000):
            assert stream.feed(b"x" * 1000) == []
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    (event,) = stream.feed(b"\ndata: a\n\n")
    assert (event.data, len(event.name) <= MAX_NAME_BYTES) == ("a", True)


def test_the_limit_is_for_one_event_and_not_for_the_stream() -> None:
    stream = b"data: 0123456789\n\n" * 1000
    assert len(events(stream, max_event_bytes=100)) == 1000
    assert len(events(b": comment\n" * 1000 + stream, max_event_bytes=100)) == 1000


words = st.sampled_from([b"data", b"event", b"id: 1", b"[DONE]", b": ", b":", b" ", b"a"])
oddities = st.sampled_from([b"\n", b"\r", b"\r\n", b"\xc3", b"\xa9", b"\xef\xbb\xbf"])


@given(st.lists(words | oddities).map(b"".join), st.data())
def test_property_any_cutting_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert events(*chunks) == events(stream)
    assert events(*(stream[at : at + 1] for at in range(len(stream)))) == events(stream)


@given(st.binary())
def test_property_no_bytes_break_the_reader(stream: bytes) -> None:
    for event in events(stream):
        assert "\r" not in event.name
