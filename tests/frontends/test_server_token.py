"""The token of a server on TCP: given, made, or none."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from limner.errors import ReachDenied, StorageError, UserError
from limner.frontends.server_token import ServerToken, TokenOptions, is_loopback, open_token
from limner.storage.home import Home
from limner.storage.reach import Reach

SECRET = "a-secret-of-some-length"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "limner-home")


@pytest.mark.parametrize(
    ("host", "loops"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.7", False),
        ("studio.lan", False),
        ("localhost.evil.example", False),
    ],
)
def test_only_loopback_addresses_stay_on_this_machine(host: str, loops: bool) -> None:
    assert is_loopback(host) is loops


def test_a_made_token_is_new_and_in_a_file_that_only_its_owner_can_read(home: Home) -> None:
    seen: list[str] = []
    for _ in range(2):
        with open_token(TokenOptions(), home=home, server="mcp", host="::1", port=8790) as token:
            assert token is not None
            assert token.file is not None
            assert token.file == home.tokens / "mcp-_1-8790"
            assert stat.S_IMODE(token.file.stat().st_mode) == 0o600
            assert token.file.read_text() == token.value
            assert token.value not in repr(token)
            seen.append(token.value)
        assert list(home.tokens.iterdir()) == []
    assert len(set(seen)) == 2
    assert min(map(len, seen)) >= 43


def test_a_token_that_another_server_wrote_is_left_alone(home: Home) -> None:
    with open_token(TokenOptions(), home=home, server="mcp", host="::1", port=1) as token:
        assert token is not None
        assert token.file is not None
        token.file.write_text("the token of the other one")
    assert token.file.read_text() == "the token of the other one"


def test_a_given_token_is_not_stored(home: Home) -> None:
    options = TokenOptions(given=SECRET)
    with open_token(options, home=home, server="mcp", host="0.0.0.0", port=1) as token:
        assert token == ServerToken(value=SECRET)
    assert not home.folder.exists()


def test_a_server_without_a_token_stays_on_this_machine(home: Home) -> None:
    options = TokenOptions(is_off=True)
    with open_token(options, home=home, server="mcp", host="127.0.0.1", port=1) as token:
        assert token is None
    with (
        pytest.raises(UserError, match="can be reached from other machines"),
        open_token(options, home=home, server="mcp", host="0.0.0.0", port=1),
    ):
        pass


def test_a_home_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError),
        open_token(TokenOptions(), home=Home(tmp_path / "file"), server="mcp", host="::1", port=1),
    ):
        pass


def test_the_file_wins_over_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}-of-the-file\n")
    env = {"TOKEN": f" {SECRET} "}
    read = TokenOptions.read
    assert read(file=file, variable="TOKEN", env=env, is_off=False).given == f"{SECRET}-of-the-file"
    assert read(file=None, variable="TOKEN", env=env, is_off=False).given == SECRET
    assert read(file=None, variable="TOKEN", env={}, is_off=False) == TokenOptions()
    assert read(file=None, variable="TOKEN", env={"TOKEN": " "}, is_off=True).is_off


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff" * 20, b"short"])
def test_a_file_without_a_good_token_is_a_mistake(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError):
        TokenOptions.read(file=file, variable="TOKEN", env={}, is_off=False)


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ([f"Bearer {SECRET}"], True),
        ([f"bearer  {SECRET} "], True),
        ([], False),
        ([""], False),
        (["Bearer"], False),
        ([SECRET], False),
        ([f"Basic {SECRET}"], False),
        ([f"Bearer {SECRET}x"], False),
        (["Bearer \udcff"], False),
        ([f"Bearer {SECRET}", f"Bearer {SECRET}"], False),
    ],
)
def test_one_header_with_the_token_authorizes(headers: list[str], passes: bool) -> None:
    assert ServerToken(value=SECRET).authorizes(headers) is passes


def test_no_model_reads_or_writes_a_token(home: Home, tmp_path: Path) -> None:
    reach = Reach.for_model(home=home.folder, cwd=tmp_path)
    with open_token(TokenOptions(), home=home, server="mcp", host="::1", port=1) as token:
        assert token is not None
        assert token.file is not None
        with pytest.raises(ReachDenied):
            reach.resolve_read(token.file, cwd=tmp_path)
        with pytest.raises(ReachDenied):
            reach.resolve_write(token.file, cwd=tmp_path)
