"""Secrets do not survive, however they are spelled."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from limner.net.redaction import MARK, drop_userinfo, header_secrets, mask_secrets, redact

# What an Authorization header can hold.
secrets = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=6, max_size=40)
words = st.text(max_size=40)


def spellings(secret: str) -> list[str]:
    escaped = "".join(f"\\u{ord(character):04x}" for character in secret)
    return [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(json.dumps(secret))[1:-1],
        secret.replace("/", "\\/"),
        escaped,
        escaped.upper().replace("\\U", "\\u"),
        secret[:3] + escaped[18:],
        quote(secret, safe=""),
        quote(quote(secret, safe=""), safe=""),
        "".join(f"%{ord(character):02X}" for character in secret),
    ]


@given(secret=secrets, before=words, after=words)
def test_property_a_registered_secret_never_survives(secret: str, before: str, after: str) -> None:
    for spelling in spellings(secret):
        shown = redact(f"{before}{spelling}{after}", [secret])
        assert secret not in shown
        assert spelling not in shown


@given(one=secrets, more=secrets, text=words)
def test_property_a_secret_that_begins_with_another_leaves_no_end_behind(
    one: str, more: str, text: str
) -> None:
    assert redact(f"<{one}{more}>", [one, one + more]) == f"<{MARK}>"


@given(text=st.text(st.sampled_from("abc dé—…🦊.,"), max_size=100), secret=secrets)
def test_property_ordinary_text_is_left_alone(text: str, secret: str) -> None:
    assume(secret not in text)
    assert redact(text, [secret]) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Incorrect API key provided: sk-proj-abc***********wxyz. Find yours",
            f"Incorrect API key provided: {MARK} Find yours",
        ),
        ("token r8_0123456789abcdefABCDEF rejected", f"token {MARK} rejected"),
        ("Authorization: Bearer abc.def-ghi/jkl=", f"Authorization: Bearer {MARK}"),
        ("authorization: 'bearer xyz12345'", f"authorization: 'bearer {MARK}'"),
        ("not a Bearer abc.def-ghi here", f"not a Bearer {MARK} here"),
        ("a bearer of good news", "a bearer of good news"),
        ("https://h/p?key=abc&size=1", f"https://h/p?key={MARK}&size=1"),
        ("https://h/p?sig=a%2Bb%3D&se=2026", f"https://h/p?sig={MARK}&se=2026"),
        ('{"api_key": "hunter2", "n": 1}', f'{{"api_key": "{MARK}", "n": 1}}'),
        ("X-Api-Token=abc", f"X-Api-Token={MARK}"),
        ("desk-chair for 1500 characters", "desk-chair for 1500 characters"),
        ("the key to the city, a token of love", "the key to the city, a token of love"),
        ("", ""),
    ],
)
def test_what_looks_like_a_key_is_marked(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
def test_a_picture_in_base64_is_marked(prefix: str) -> None:
    picture = base64.b64encode(bytes(range(256)) * 4).decode()
    for spelling in (picture, picture.replace("/", "\\/")):
        assert redact(f'{{"b64_json": "{prefix}{spelling}"}}') == f'{{"b64_json": "{MARK}"}}'


def test_a_word_in_place_of_a_key_marks_nothing() -> None:
    assert redact("a fox, none of it", ["", "x", "none", "EMPTY"]) == "a fox, none of it"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://artist:pass77@host:1/v1?q=a@b", "http://host:1/v1?q=a@b"),
        ("see https://token@host and ftp://a:b@c", "see https://host and ftp://c"),
        ("http://u:p@ss@host/", "http://host/"),
        ("HTTPS://U:P@host", "HTTPS://host"),
        ("mail ada@host, http://host/@ada", "mail ada@host, http://host/@ada"),
    ],
)
def test_a_url_loses_its_user_and_its_password(text: str, shown: str) -> None:
    assert drop_userinfo(text) == shown
    assert redact(text) == shown


def test_only_headers_that_are_known_to_be_harmless_are_no_secrets() -> None:
    pair = base64.b64encode(b"artist:plantedpass").decode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "limner/1",
        "x-key": "plain-looking-key",
        "Authorization": f"Basic {pair}",
        "Cookie": "session=abc",
    }
    assert header_secrets(headers) == (
        "plain-looking-key",
        pair,
        "artist:plantedpass",
        "plantedpass",
        "session=abc",
    )
    assert header_secrets({"Authorization": "Basic !"}) == ("!",)
    only_user = base64.b64encode(b"sk-user-key:").decode()
    assert header_secrets({"Authorization": f"Basic {only_user}"})[-1] == "sk-user-key"


REVISED = (
    "A poster that says password=open, token=fox and sk-live-looking-text, "
    "next to an ollama, a lm-studio and http://a:b@c"
)


def test_a_result_loses_secrets_and_nothing_that_only_looks_like_one() -> None:
    dummies = ["ollama", "lm-studio", "open", "fox", "sk-0123"]
    assert mask_secrets(REVISED, dummies) == REVISED
    assert mask_secrets(f"{REVISED} Zz0123456789", [*dummies, "Zz0123456789"]) == f"{REVISED} •••"
    assert mask_secrets(r"a Zz\/0123\u003d", ["Zz/0123="]) == "a •••"
    assert mask_secrets("a Zz%2F0123%3D", ["Zz/0123="]) == "a •••"
