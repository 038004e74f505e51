"""Text editing of client configurations: whatever the file looks like, one entry changes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from tests.frontends.mcp.config_texts import (
    ENTRY,
    OURS,
    as_json,
    json_files,
    toml_files,
    without_blanks,
)
from tests.fuzz import examples

from limner.errors import InputInvalid
from limner.frontends.mcp import config_json
from limner.frontends.mcp.config_entry import is_ours, with_entry, without_entry
from limner.settings import config_toml
from limner.settings.config_syntax import Malformed, Syntax, look_up, put, read, remove

JSON, TOML = ("mcpServers", OURS), ("mcp_servers", OURS)
VALUE = {"command": "limner", "args": ["mcp"]}
INLINE = '"limner": {"command": "limner", "args": ["mcp"]}'
thorough = settings(
    max_examples=examples(30),
    # Odd files are many small choices, which takes longer than hypothesis likes.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@given(json_files("mcpServers"))
@example("{// \x1f\n}")
def test_a_json_file_is_its_old_self_again_after_install_and_uninstall(text: str) -> None:
    installed = with_entry(config_json, text, JSON, ENTRY)
    assert with_entry(config_json, installed, JSON, ENTRY) == installed
    assert without_entry(config_json, installed, JSON, before=text) == text
    if look_up(read(config_json, text), JSON[:1]):
        assert without_entry(config_json, installed, JSON, before=None) == text


@pytest.mark.slow
@thorough
@given(json_files("mcpServers", servers={OURS: as_json(ENTRY)}))
@example(f'{{"mcpServers":{{"a":null,// b\n"limner":{as_json(ENTRY)} /* c\n d */ ,\n}}}}')
def test_a_json_entry_is_taken_out_wherever_it_stands_and_nothing_else_is(text: str) -> None:
    start = text.index('"limner"')
    end = text.index(as_json(ENTRY), start) + len(as_json(ENTRY))
    around = without_blanks(text[:start] + text[end:])
    left = without_blanks(remove(config_json, text, JSON))
    commas = [at for at, character in enumerate(around) if character == ","]
    assert left in [around, *(around[:at] + around[at + 1 :] for at in commas)]


@pytest.mark.slow
@thorough
@given(json_files("mcpServers", servers={OURS: as_json(ENTRY)}))
def test_a_json_entry_is_brought_up_to_date_in_place(text: str) -> None:
    newer = {**ENTRY, "command": "/new/limner", "env": {"LIMNER_HOME": "/l"}}
    updated = with_entry(config_json, text, JSON, newer)
    assert look_up(read(config_json, updated), JSON) == newer


@thorough
@given(toml_files())
def test_a_toml_file_is_its_old_self_again_after_install_and_uninstall(text: str) -> None:
    installed = with_entry(config_toml, text, TOML, ENTRY)
    assert with_entry(config_toml, installed, TOML, ENTRY) == installed
    assert without_entry(config_toml, installed, TOML, before=text) == text
    if read(config_toml, text) or "#" in text:
        assert without_entry(config_toml, installed, TOML, before=None) == text


SPELLED = ["[mcp_servers.limner]\ncommand='limner' # c\nargs=['mcp']\n"]
SPELLED_WITH_TABLE = f"{SPELLED[0]}[mcp_servers.'limner'.env]\nA='b'\n"


@thorough
@given(toml_files(entry=[SPELLED_WITH_TABLE]))
def test_a_toml_entry_is_taken_out_wherever_it_stands_and_nothing_else_is(text: str) -> None:
    expected = without_blanks(text).replace(without_blanks(SPELLED_WITH_TABLE), "")
    assert without_blanks(remove(config_toml, text, TOML)) == expected


@thorough
@given(toml_files(entry=SPELLED))
def test_a_toml_entry_is_brought_up_to_date_and_keeps_its_comments(text: str) -> None:
    updated = with_entry(config_toml, text, TOML, {**VALUE, "command": "/n/limner", "t": 6})
    assert look_up(read(config_toml, updated), TOML) == {**VALUE, "command": "/n/limner", "t": 6}
    assert updated.count("#") == text.count("#")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "mcpServers": {\n    "limner": {\n      "a": 1\n    }\n  }\n}'),
        ('{"mcpServers":{"b":{}}}', '{"mcpServers":{"b":{}, "limner": {"a": 1}}}'),
        ('{"mcpServers": {"b": 1,}}', '{"mcpServers": {"b": 1, "limner": {"a": 1},}}'),
        (
            '{\n\t"mcpServers": {\n\t\t"b": {} // last\n\t}\n}\n',
            '{\n\t"mcpServers": {\n\t\t"b": {}, // last\n'
            '\t\t"limner": {\n\t\t\t"a": 1\n\t\t}\n\t}\n}\n',
        ),
        (
            '{\r\n "mcpServers": {\r\n  /* none */\r\n }\r\n}',
            '{\r\n "mcpServers": {\r\n  /* none */\r\n  "limner": {\r\n   "a": 1\r\n  }\r\n }\r\n}',
        ),
    ],
)
def test_a_new_json_entry_is_written_as_its_neighbours_are(before: str, after: str) -> None:
    assert put(config_json, before, JSON, {"a": 1}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f'{{"mcpServers": {{{INLINE}}}}}', '{"mcpServers": {}}'),
        (f'{{"mcpServers": {{\n{INLINE} ,\n}}}}', '{"mcpServers": {}}'),
        (f'{{"mcpServers": {{{INLINE} /* c */,}}}}', '{"mcpServers": { /* c */}}'),
        (f'{{"mcpServers": {{{INLINE}, "b": 1}}}}', '{"mcpServers": {"b": 1}}'),
        (
            f'{{"mcpServers": {{ // ours\n {INLINE}, "b": 1}}}}',
            '{"mcpServers": { // ours\n "b": 1}}',
        ),
        (
            f'{{"mcpServers": {{\n  "b": 1, // b\n  // ours\n  {INLINE}\n}}}}',
            '{"mcpServers": {\n  "b": 1 // b\n  // ours\n}}',
        ),
    ],
)
def test_a_json_entry_goes_with_its_line_and_its_comma(before: str, after: str) -> None:
    assert remove(config_json, before, JSON) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1", "a = 1\n\n[mcp_servers.limner]\nb = 1"),
        ("a = 1\n\n", "a = 1\n\n[mcp_servers.limner]\nb = 1\n\n"),
        ("mcp_servers.x.a = 1\n", "mcp_servers.x.a = 1\n\n[mcp_servers.limner]\nb = 1\n"),
        ("", "[mcp_servers.limner]\nb = 1\n"),
        ("a = 1\r\n", "a = 1\r\n\r\n[mcp_servers.limner]\r\nb = 1\r\n"),
    ],
)
def test_a_new_toml_table_comes_last(before: str, after: str) -> None:
    assert put(config_toml, before, TOML, {"b": 1}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\nmcp_servers.limner.command = 'x'\nb = 2\n", "a = 1\nb = 2\n"),
        ("[mcp_servers]\nlimner = { command = 'x' }\nb = {}\n", "[mcp_servers]\nb = {}\n"),
        ("[mcp_servers.limner]\ncommand = 'x'\n\n[b]\n", "[b]\n"),
        ("[a]\n[mcp_servers.limner]\ncommand = 'x'\n# end\n[b]\n", "[a]\n# end\n[b]\n"),
        ("[mcp_servers.limner.env]\nA = 'b'\n[c]\n\n[mcp_servers.limner]\nd = 1\n", "[c]\n"),
    ],
)
def test_a_toml_entry_is_found_however_it_is_spelled(before: str, after: str) -> None:
    assert remove(config_toml, before, TOML) == after


@pytest.mark.parametrize(
    ("syntax", "text", "problem"),
    [
        (config_json, '{"a": 1', "line 1, column 8: Expecting ',' delimiter"),
        (config_json, '{\n  "a": nul\n}', "line 2, column 8: Expecting value"),
        (config_json, "[]", "line 1: the file must contain one JSON object"),
        (config_json, '{"a": NaN}', "NaN is not JSON"),
        (config_json, "{,}", None),
        (config_json, '{"a": 1 /* }', None),
        (config_json, '{"mcpServers": []}', "'mcpServers' is not a table"),
        (config_json, '{"mcpServers": null}', "'mcpServers' is not a table"),
        (config_json, "[" * 100_000, None),
        (config_toml, "a = \nb = 1", "Invalid value (at line 1, column 5)"),
        (config_toml, "a = " + "[" * 100_000, None),
        (config_toml, "mcp_servers = 3\n", "'mcp_servers' is not a table"),
        (
            config_toml,
            "mcp_servers = { x = { command = 'x' } }\n",
            "its layout does not allow the entry to be added",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused_with_the_place(
    syntax: Syntax, text: str, problem: str | None
) -> None:
    keys = JSON if syntax is config_json else TOML
    with pytest.raises(Malformed) as caught:
        with_entry(syntax, text, keys, VALUE)
    assert problem is None or str(caught.value) == problem


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        (config_json, f'{{"mcpServers": {{{INLINE}, {INLINE}}}}}'),
        (config_toml, "mcp_servers = { limner = { command = 'limner', args = ['mcp'] }, b = {} }"),
    ],
)
def test_an_entry_that_cannot_be_taken_out_alone_is_left(syntax: Syntax, text: str) -> None:
    keys = JSON if syntax is config_json else TOML
    with pytest.raises(Malformed, match="without another change"):
        without_entry(syntax, text, keys, before=None)


def test_what_the_user_added_to_our_entry_stays() -> None:
    text = (
        '{"mcpServers": {"limner": {"command": "/old/limner", "args": ["mcp"], '
        '"env": {"K": "v"}, "timeout": 5}}}'
    )
    assert with_entry(config_json, text, JSON, ENTRY) == (
        '{"mcpServers": {"limner": {"command": "/opt/limner/bin/limner", "args": ["mcp"], '
        '"env": {"K": "v"}, "timeout": 5, "type": "stdio"}}}'
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/usr/bin/limner", "mcp"], True),
        (["C:\\Tools\\limner.EXE", "mcp"], True),
        (["/usr/bin/python3", "-m", "limner", "mcp"], True),
        (["uvx", "--from", "limner[mcp]", "limner", "mcp", "--http", "127.0.0.1:1"], True),
        (["npx", "-y", "@someone/limner-mcp"], False),
        (["limner-other", "mcp"], False),
        (["limner", "studio"], False),
        (["mcp", "limner"], False),
    ],
)
def test_only_what_starts_limner_s_server_is_ours(words: list[str], expected: bool) -> None:
    assert is_ours({"command": words[0], "args": words[1:]}) is expected


@pytest.mark.parametrize(
    "entry", [None, [], "limner mcp", {}, {"command": "limner"}, {"url": "u"}, {"args": "mcp"}]
)
def test_an_entry_of_another_shape_is_not_ours(entry: object) -> None:
    assert not is_ours(entry)


def test_a_server_of_another_kind_keeps_its_name() -> None:
    text = '{"mcpServers": {"limner": {"command": "npx", "args": ["limner-brushes"]}}}'
    for change in (
        lambda: with_entry(config_json, text, JSON, ENTRY),
        lambda: without_entry(config_json, text, JSON, before=None),
    ):
        with pytest.raises(InputInvalid) as caught:
            change()
        assert caught.value.hint == "Choose another name with --name."
