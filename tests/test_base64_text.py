"""Both libraries encode the same, and refuse the same."""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.base64_text import decode_base64, encode_base64


def decoded(decode: Callable[[str], bytes], text: str) -> bytes | None:
    try:
        return decode(text)
    except (ValueError, msgspec.ValidationError):
        return None


@given(data=st.binary(max_size=200))
def test_property_what_was_encoded_is_decoded_from_text_and_from_bytes(data: bytes) -> None:
    text = encode_base64(data)
    assert text == base64.b64encode(data).decode()
    assert (decode_base64(text), decode_base64(text.encode())) == (data, data)


@given(text=st.text('AQz09+/=-_ \n"\\\u00e9', max_size=40))
def test_property_both_libraries_decode_and_refuse_the_same(text: str) -> None:
    pybase64 = import_module("pybase64")
    assert decoded(lambda one: pybase64.b64decode(one, validate=True), text) == decoded(
        lambda one: msgspec.convert(one, bytes), text
    )


@pytest.mark.parametrize("text", ["AAA", "AA==AAAA", "=AAA", "AA-_", "AA A", "A\u00e9AA", '"AAA"'])
def test_what_is_no_strict_base64_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_base64(text)
    with pytest.raises(ValueError, match=r"\w"):
        decode_base64(text.encode())
