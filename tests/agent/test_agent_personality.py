"""Folders of personalities: parsed, checked, found by id, and confined."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from limner.agent.personality import SHIPPED, Personalities, Personality, PersonalityListing
from limner.client import Limner, create_image_tools
from limner.errors import InputInvalid, SettingsError
from limner.storage.reach import Reach

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "personalities.md"


class Shelf:
    """A user's folder of personalities."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.personalities = Personalities(folder)

    def put(self, name: str, **files: str) -> Path:
        """A folder with these files; ``toolset_yaml`` is the text of ``toolset.yaml``."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        for file, text in {"SOUL_md": "You paint.", **files}.items():
            (folder / file.replace("_", ".")).write_text(text, encoding="utf-8")
        return folder

    def refusal(self, name: str) -> tuple[str, str | None]:
        with pytest.raises(SettingsError) as caught:
            self.personalities.get(name)
        return caught.value.message, caught.value.hint


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "personalities")


WHOLE = {
    "name": "The Painter",
    "description": "Paints.",
    "model": "openai/gpt-5.5:high",
    "read": ("~", "${CWD}"),
    "write": ("${self}/out",),
    "sandbox": "workspace-write",
    "approval": "untrusted",
    "budget_usd": Decimal("0.5"),
}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "config_toml",
            'name = "The Painter"\ndescription = "Paints."\nmodel = "openai/gpt-5.5:high"\n'
            'sandbox = "workspace-write"\napproval = "untrusted"\nbudget_usd = 0.5\n'
            '[fs_reach]\nread = ["~", "${CWD}"]\nwrite = ["${self}/out"]\n',
        ),
        (
            "config_yaml",
            "name: The Painter\ndescription: Paints.\nmodel: openai/gpt-5.5:high\n"
            "sandbox: workspace-write\napproval: untrusted\nbudget_usd: 0.5\n"
            "fs_reach:\n  read:\n    - ~\n    - ${CWD}\n  write: ['${self}/out']\n",
        ),
        (
            "config_yaml",
            "name: The Painter\ndescription: Paints.\nmodel: openai/gpt-5.5:high\n"
            "sandbox: workspace-write\napproval: untrusted\nbudgetUsd: '0.50'\n"
            "fs_reach.read: [~, '${CWD}']\nfsReach.write:\n- ${self}/out\n",
        ),
    ],
    ids=["toml", "yaml", "flat yaml"],
)
def test_a_personality_is_the_same_in_toml_and_in_yaml(shelf: Shelf, file: str, text: str) -> None:
    folder = shelf.put(
        "painter", toolset_yaml="- image_generate\n- inspect_image # looks\n", **{file: text}
    )
    assert shelf.personalities.get("painter") == Personality(
        id="painter",
        soul="You paint.",
        folder=folder,
        toolset=("image_generate", "inspect_image"),
        **WHOLE,
    )


def test_a_soul_is_enough(shelf: Shelf) -> None:
    folder = shelf.put("p-1", SOUL_md="\ufeff\n# Painter\n\nYou paint.\n\n")
    assert shelf.personalities.get("p-1") == Personality(
        id="p-1", name="p-1", description="", soul="# Painter\n\nYou paint.", folder=folder
    )


def test_its_reach_is_what_a_reach_is_made_of(shelf: Shelf, tmp_path: Path) -> None:
    shelf.put("painter", config_toml='[fs_reach]\nread = ["${self}"]\nwrite = ["${CWD}/out"]\n')
    painter = shelf.personalities.get("painter")
    assert painter.read is not None
    assert painter.write is not None
    reach = Reach.from_lists(
        read=painter.read,
        write=painter.write,
        home=tmp_path,
        cwd=tmp_path / "here",
        self_dir=painter.folder,
    )
    assert (reach.read, reach.write) == ((painter.folder,), (tmp_path / "here" / "out",))


@pytest.mark.parametrize(
    ("text", "names"),
    [("[]", ()), ("- a\n- b\n- a\n", ("a", "b")), ("- no\n- 1\n", ("no", "1"))],
)
def test_a_toolset_is_a_list_of_names_and_may_be_empty(
    shelf: Shelf, text: str, names: tuple[str, ...]
) -> None:
    shelf.put("painter", toolset_yaml=text)
    assert shelf.personalities.get("painter").toolset == names


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("", ""),
        ("# - image_generate\n", ""),
        ("image_generate", ", not 'image_generate'"),
        ("tools: [image_generate]", ""),
        ("- image_generate\n- [b]\n", ""),
        ("- image_generate\n- rm -rf\n", ", not 'rm -rf'"),
        ("- ''", ", not ''"),
    ],
)
def test_a_toolset_that_is_no_list_of_names_is_refused(
    shelf: Shelf, text: str, trouble: str
) -> None:
    path = shelf.put("painter", toolset_yaml=text) / "toolset.yaml"
    assert shelf.refusal("painter") == (
        f"{path}: toolset must be a list of tool names{trouble}",
        None,
    )


LINE = "one line of text, 300 characters at most"


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("modle: a/b", "modle is not a setting", "Did you mean model?"),
        (
            "fs_reach: {reed: [/]}",
            "fs_reach.reed is not a setting",
            "Did you mean fs_reach.read?",
        ),
        ("fs_reach: /", "fs_reach must be a table", "It has fs_reach.read, fs_reach.write."),
        ("fs_reach: {read: /a}", "fs_reach.read must be a list of folders, not '/a'", None),
        ("name: [a]", f"name must be {LINE}", None),
        ("name:", f"name must be {LINE}, not ''", None),
        ('name: "a\\nb"', f"name must be {LINE}, not 'a\\nb'", None),
        ('model: "a/b\\e[2J"', f"model must be {LINE}, not 'a/b\\x1b[2J'", None),
        (
            "sandbox: read_only",
            "sandbox must be read-only, workspace-write or danger-full-access, not 'read_only'",
            "Did you mean read-only?",
        ),
        (
            "approval: always",
            "approval must be untrusted, on-failure, on-request or never, not 'always'",
            None,
        ),
        (
            "budget_usd: -1",
            "budget_usd must be an amount in dollars from 0 to 1,000,000, nine decimals at most, "
            "not '-1'",
            None,
        ),
        (
            "fs_reach.read: [/a]\nfs_reach: {read: [/b]}",
            "fs_reach.read appears twice",
            None,
        ),
    ],
)
def test_a_mistake_in_a_config_names_the_file_the_key_and_the_way_out(
    shelf: Shelf, text: str, problem: str, hint: str | None
) -> None:
    path = shelf.put("painter", config_yaml=text) / "config.yaml"
    assert shelf.refusal("painter") == (f"{path}: {problem}", hint)


def test_what_resembles_no_key_is_answered_with_all_of_them_and_so_does_the_guide(
    shelf: Shelf,
) -> None:
    shelf.put("painter", config_toml="zebra = 1")
    _, hint = shelf.refusal("painter")
    keys = "name, description, model, fs_reach.read, fs_reach.write, sandbox, approval, budget_usd"
    assert hint == f"The settings are {keys}."
    guide = GUIDE.read_text(encoding="utf-8")
    assert [key for key in keys.split(", ") if f"| `{key}` |" not in guide] == []


def test_one_config_file_is_enough(shelf: Shelf) -> None:
    folder = shelf.put("painter", config_toml="", config_yaml="")
    assert shelf.refusal("painter") == (
        f"{folder} has both config.toml and config.yaml",
        "Keep one of the two.",
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config_yaml": "- a"}, "{folder}/config.yaml must be a table of keys"),
        ({"config_yaml": ""}, "{folder}/config.yaml must be a table of keys"),
        (
            {"config_yaml": "a: !x b"},
            "{folder}/config.yaml is not valid YAML: tags are not supported (at line 1, column 4)",
        ),
        (
            {"config_toml": "a = "},
            "{folder}/config.toml is not valid TOML: Invalid value (at end of document)",
        ),
        ({"SOUL_md": " \n"}, "{folder}/SOUL.md is empty"),
        ({"SOUL_md": "a" * 70_000}, "{folder}/SOUL.md is longer than 65,536 bytes"),
        ({"toolset_yaml": "#" * 70_000}, "{folder}/toolset.yaml is longer than 65,536 bytes"),
    ],
)
def test_a_broken_file_is_refused_by_name(
    shelf: Shelf, files: dict[str, str], message: str
) -> None:
    folder = shelf.put("painter", **files)
    assert shelf.refusal("painter") == (message.format(folder=folder), None)


def test_a_soul_that_is_no_text_is_refused(shelf: Shelf) -> None:
    folder = shelf.put("painter")
    (folder / "SOUL.md").write_bytes(b"\xff\xfe")
    assert shelf.refusal("painter") == (
        f"{folder}/SOUL.md is not text in UTF-8: invalid start byte",
        None,
    )


def test_a_folder_without_a_soul_is_an_error(shelf: Shelf) -> None:
    folder = shelf.put("painter", config_toml="")
    (folder / "SOUL.md").unlink()
    assert shelf.refusal("painter") == (
        f"{folder} has no SOUL.md",
        "Write the system prompt of the personality there.",
    )


@pytest.mark.parametrize("name", ["SOUL.md", "config.toml", "config.yaml", "toolset.yaml"])
def test_a_file_may_be_a_symlink_within_the_folder_and_never_out_of_it(
    shelf: Shelf, tmp_path: Path, name: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("- a\n", encoding="utf-8")
    folder = shelf.put("painter", README_md="- a\n")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    assert shelf.refusal("painter") == (
        f"{folder / name} is a symlink that leads out of its folder",
        None,
    )
    if name in ("SOUL.md", "toolset.yaml"):
        (folder / name).unlink()
        (folder / name).symlink_to("README.md")
        assert shelf.personalities.get("painter").id == "painter"


def test_a_sibling_whose_name_begins_alike_is_out_of_the_folder(shelf: Shelf) -> None:
    other = shelf.put("painter-2")
    folder = shelf.put("painter")
    (folder / "SOUL.md").unlink()
    (folder / "SOUL.md").symlink_to(other / "SOUL.md")
    message, _ = shelf.refusal("painter")
    assert message == f"{folder / 'SOUL.md'} is a symlink that leads out of its folder"


def test_a_pipe_is_not_waited_for_and_a_folder_is_no_file(shelf: Shelf) -> None:
    pipe, folder = shelf.put("piper"), shelf.put("painter")
    (pipe / "SOUL.md").unlink()
    os.mkfifo(pipe / "SOUL.md")
    (folder / "toolset.yaml").mkdir()
    for personality in (pipe, folder):
        message, _ = shelf.refusal(personality.name)
        assert "cannot be read: " in message


def test_the_folder_of_a_personality_may_be_a_symlink_of_the_user(
    shelf: Shelf, tmp_path: Path
) -> None:
    elsewhere = Shelf(tmp_path / "dotfiles").put("painter", toolset_yaml="- a")
    shelf.folder.mkdir()
    (shelf.folder / "me").symlink_to(elsewhere)
    me = shelf.personalities.get("me")
    assert (me.id, me.toolset, me.folder) == ("me", ("a",), shelf.folder / "me")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("ilustrator", "Did you mean illustrator?"),
        ("Limner", "Did you mean limner?"),
        ("painters", "Did you mean painter?"),
        ("", "There are alt-text, illustrator, limner, painter, screenshot-reviewer."),
        ("../painter", "Did you mean painter?"),
        ("/etc", "There are alt-text, illustrator, limner, painter, screenshot-reviewer."),
        ("painter/", "Did you mean painter?"),
        (".", "There are alt-text, illustrator, limner, painter, screenshot-reviewer."),
        ("x\0" * 99, "There are alt-text, illustrator, limner, painter, screenshot-reviewer."),
    ],
)
def test_an_unknown_id_is_answered_with_the_nearest(shelf: Shelf, asked: str, hint: str) -> None:
    shelf.put("painter")
    with pytest.raises(InputInvalid) as caught:
        shelf.personalities.get(asked)
    error = caught.value
    assert (error.code, error.field, error.hint) == ("NO_SUCH_PERSONALITY", "personality", hint)
    assert error.message == f"There is no personality {asked[:80]!r}."


def test_a_users_personality_wins_over_one_that_is_shipped_even_when_it_is_broken(
    shelf: Shelf,
) -> None:
    assert shelf.personalities.get("limner").folder == SHIPPED / "limner"
    mine = shelf.put("limner", SOUL_md="Mine.")
    assert shelf.personalities.get("limner").soul == "Mine."
    (mine / "config.toml").write_text("zebra = 1", encoding="utf-8")
    assert shelf.refusal("limner")[0] == f"{mine}/config.toml: zebra is not a setting"


def test_all_of_them_are_listed_with_what_is_wrong_with_the_others(shelf: Shelf) -> None:
    good, broken = shelf.put("zoe"), shelf.put("limner", config_toml="zebra = 1")
    shelf.put("My Painter")
    (shelf.folder / ".git").mkdir()
    (shelf.folder / "README.md").write_text("notes", encoding="utf-8")
    personalities, problems = shelf.personalities.all()
    assert [personality.folder for personality in personalities] == [
        SHIPPED / "alt-text",
        SHIPPED / "illustrator",
        SHIPPED / "screenshot-reviewer",
        good,
    ]
    assert [(problem.message, problem.hint) for problem in problems] == [
        (
            f"{shelf.folder}: 'My Painter' cannot be the name of a personality",
            "Use the letters a to z, digits, - and _, 64 of them at most.",
        ),
        (
            f"{broken}/config.toml: zebra is not a setting",
            "The settings are name, description, model, fs_reach.read, fs_reach.write, sandbox, "
            "approval, budget_usd.",
        ),
    ]


def test_a_folder_of_personalities_that_is_a_file_is_an_error(shelf: Shelf) -> None:
    shelf.folder.write_text("", encoding="utf-8")
    assert shelf.refusal("limner") == (f"{shelf.folder} cannot be read: Not a directory", None)


def test_those_that_are_shipped_only_ever_tighten(shelf: Shelf, tmp_path: Path) -> None:
    everyone = shelf.personalities.all()
    assert everyone == PersonalityListing(everyone.personalities, [])
    facts = {
        each.id: (each.toolset, each.sandbox, each.approval, each.budget_usd, each.model)
        for each in everyone.personalities
    }
    assert facts == {
        "alt-text": (("inspect_image",), "read-only", None, None, None),
        "illustrator": (
            ("image_generate", "image_edit", "inspect_image", "image_recall"),
            None,
            None,
            None,
            None,
        ),
        "limner": (None, None, None, None, None),
        "screenshot-reviewer": (("inspect_image", "image_recall"), "read-only", None, None, None),
    }
    assert all(each.name and each.description for each in everyone.personalities)


def test_those_that_are_shipped_name_tools_that_exist(shelf: Shelf, tmp_path: Path) -> None:
    lim = Limner(env={"LIMNER_HOME": str(tmp_path)}, cwd=tmp_path)
    known = {tool.name for tool in create_image_tools(lim)} | {"image_recall"}
    named = {name for each in shelf.personalities.all()[0] for name in each.toolset or ()}
    assert named - known == set()


def test_a_personality_that_was_read_before_is_read_again_after_a_change(shelf: Shelf) -> None:
    """Also if the new file has the size and the time of the old one."""
    soul = shelf.put("painter", SOUL_md="You paint.") / "SOUL.md"
    before = shelf.personalities.get("painter").soul
    old = soul.stat()
    soul.write_text("You print.", encoding="utf-8")
    os.utime(soul, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert (before, shelf.personalities.get("painter").soul) == ("You paint.", "You print.")


def test_a_personality_is_the_same_value_while_its_files_stay() -> None:
    """The files that limner ships are older than a few seconds."""
    personalities = Personalities(SHIPPED)
    name = personalities.all().personalities[0].id
    assert personalities.get(name) == personalities.get(name)
