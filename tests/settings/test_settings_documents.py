"""TOML files, read with the parser and, if they have nothing but plain texts, without it."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz import sample

from limner.errors import SettingsError
from limner.settings.documents import parse_toml

PATH = Path("config.toml")
pieces = st.sampled_from(
    [
        *("a", "b-c", "name", "é", " = ", "=", '"', '""', "'", "\\", "#", "[t]", "1.5", "true"),
        *("\n", "\r", "\t", "\u2028", "\xa0", "\x00", "two words"),
        *('\nname = "x"\n', 'b = "\N{SNOWMAN}"', 'b = "y"'),
    ]
)


@sample(500)
@given(st.lists(pieces, max_size=12).map("".join))
def test_a_document_is_read_as_its_parser_reads_it(text: str) -> None:
    try:
        expected = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        with pytest.raises(SettingsError, match=r"config\.toml is not valid TOML"):
            parse_toml(text, path=PATH)
    else:
        assert parse_toml(text, path=PATH) == expected


def test_plain_texts_keep_their_order_and_every_letter() -> None:
    text = '\nname = "Alt text"\n\ndescription = "It\'s one line: # no comment, [no table]."\n'
    assert list(parse_toml(text, path=PATH).items()) == [
        ("name", "Alt text"),
        ("description", "It's one line: # no comment, [no table]."),
    ]
