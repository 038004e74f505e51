from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from limner.errors import SettingsError
from limner.settings import (
    AgentSettings,
    ApprovalSettings,
    AppServerSettings,
    BudgetSettings,
    ImageSettings,
    McpSettings,
    ModelRoleSettings,
    Settings,
    ToolSettings,
    all_settings,
    load,
    load_with_sources,
)


class Place:
    """A home, a working folder and an environment that nothing else has touched."""

    def __init__(self, tmp_path: Path) -> None:
        self.home, self.cwd = tmp_path / "home", tmp_path / "work"
        self.home.mkdir()
        self.cwd.mkdir()
        self.env = {"LIMNER_HOME": str(self.home), "PATH": "/usr/bin"}

    def user_file(self, text: str) -> Path:
        path = self.home / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def project_file(self, text: str) -> Path:
        path = self.cwd / "limner.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, flags: dict[str, object] | None = None, **variables: str) -> Settings:
        return load(env={**self.env, **variables}, cwd=self.cwd, flags=flags)

    def refusal(
        self, flags: dict[str, object] | None = None, **variables: str
    ) -> tuple[str, str | None]:
        with pytest.raises(SettingsError) as caught:
            self.load(flags, **variables)
        return caught.value.message, caught.value.hint


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_files_and_variables_the_defaults_hold(place: Place) -> None:
    assert place.load() == Settings(
        home=place.home,
        images=ImageSettings(
            block_images=False,
            auto_resize=True,
            fit="seed",
            embedded=True,
            provider="auto",
            accept=("png", "jpeg", "gif", "webp"),
            concurrency=8,
            tile="off",
        ),
        model_roles=ModelRoleSettings(vision=None, default=None),
        budget=BudgetSettings(call_usd=None, session_usd=None, day_usd=None),
        approval=ApprovalSettings(policy="on-request", above_usd=Decimal("1.00")),
        tools=ToolSettings(timeout_s=300),
        agent=AgentSettings(
            personality="limner",
            max_requests=100,
            max_calls=200,
            sandbox="workspace-write",
            compact_at=0.8,
        ),
        appserver=AppServerSettings(tool_timeout_s=600),
        mcp=McpSettings(answer_within_s=45),
    )


def test_a_later_layer_wins_and_says_so(place: Place) -> None:
    user = place.user_file(
        '[images]\nfit = "fast"\nprovider = "a"\nconcurrency = 2\n[tools]\ntimeout_s = 1.5\n'
    )
    project = place.project_file('[images]\ntile = "off"\nconcurrency = 1\n')
    loaded = load_with_sources(
        env={**place.env, "LIMNER_IMAGES_CONCURRENCY": "4", "LIMNER_BUDGET_DAY_USD": "5"},
        cwd=place.cwd,
        flags={"budget.day_usd": "6", "budget.call_usd": None},
    )
    assert loaded.settings == Settings(
        home=place.home,
        images=ImageSettings(fit="fast", provider="a", concurrency=4),
        budget=BudgetSettings(day_usd=Decimal(6)),
        tools=ToolSettings(timeout_s=1.5),
    )
    given = {key: source for key, source in loaded.sources.items() if source != "default"}
    assert given == {
        "images.fit": str(user),
        "images.provider": str(user),
        "images.tile": str(project),
        "images.concurrency": "LIMNER_IMAGES_CONCURRENCY",
        "budget.day_usd": "flags",
        "tools.timeout_s": str(user),
    }
    assert list(loaded.sources) == list(all_settings())


@pytest.mark.parametrize(
    ("variable", "text", "section", "value"),
    [
        ("LIMNER_IMAGES_BLOCK_IMAGES", "true", "images", ImageSettings(block_images=True)),
        ("LIMNER_IMAGES_BLOCK_IMAGES", "1", "images", ImageSettings(block_images=True)),
        ("LIMNER_IMAGES_BLOCK_IMAGES", "", "images", ImageSettings()),
        ("LIMNER_IMAGES_EMBEDDED", "False", "images", ImageSettings(embedded=False)),
        ("LIMNER_IMAGES_EMBEDDED", " 0 ", "images", ImageSettings(embedded=False)),
        ("LIMNER_IMAGES_ACCEPT", "png, heic,", "images", ImageSettings(accept=("png", "heic"))),
        ("LIMNER_IMAGES_CONCURRENCY", "16", "images", ImageSettings(concurrency=16)),
        ("LIMNER_TOOLS_TIMEOUT_S", "0.5", "tools", ToolSettings(timeout_s=0.5)),
        (
            "LIMNER_MODEL_ROLES_VISION",
            "openai/gpt-5.5",
            "model_roles",
            ModelRoleSettings(vision="openai/gpt-5.5"),
        ),
        ("LIMNER_AGENT_COMPACT_AT", "1", "agent", AgentSettings(compact_at=1)),
        ("LIMNER_APPSERVER_TOOL_TIMEOUT_S", "5", "appserver", AppServerSettings(tool_timeout_s=5)),
        ("LIMNER_MCP_ANSWER_WITHIN_S", "0.5", "mcp", McpSettings(answer_within_s=0.5)),
        ("LIMNER_APPROVAL_POLICY", "never", "approval", ApprovalSettings(policy="never")),
        (
            "LIMNER_BUDGET_SESSION_USD",
            "0.10",
            "budget",
            BudgetSettings(session_usd=Decimal("0.10")),
        ),
    ],
)
def test_a_variable_is_read_as_what_its_setting_takes(
    place: Place, variable: str, text: str, section: str, value: object
) -> None:
    assert getattr(place.load(None, **{variable: text}), section) == value


def test_files_and_flags_may_spell_keys_in_camel_case(place: Place) -> None:
    place.user_file('[images]\nblockImages = true\n[modelRoles]\nvision = "a/b"\n')
    settings = place.load({"images.autoResize": False})
    assert settings == Settings(
        home=place.home,
        images=ImageSettings(block_images=True, auto_resize=False),
        model_roles=ModelRoleSettings(vision="a/b"),
    )


def test_money_is_kept_as_it_was_written(place: Place) -> None:
    place.project_file('[budget]\ncall_usd = 0.1\nsession_usd = 3\nday_usd = "0.123456789"\n')
    assert place.load({"approval.above_usd": 0.3}) == Settings(
        home=place.home,
        budget=BudgetSettings(
            call_usd=Decimal("0.1"), session_usd=Decimal(3), day_usd=Decimal("0.123456789")
        ),
        approval=ApprovalSettings(above_usd=Decimal("0.3")),
    )


@pytest.mark.parametrize(
    "amount",
    ["-0.01", "nan", "inf", "-inf", "1000000.01", "1e999999", "0.0000000001", "ten", "true"],
)
def test_an_amount_nobody_could_mean_is_refused(place: Place, amount: str) -> None:
    assert place.refusal({"budget.day_usd": amount}) == (
        "flags: budget.day_usd must be an amount in dollars from 0 to 1,000,000, "
        f"nine decimals at most, not {amount!r}",
        None,
    )


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (
            "[images]\nblock_image = true",
            "images.block_image is not a setting",
            "Did you mean images.block_images?",
        ),
        ('[image]\nfit = "fast"', "image.fit is not a setting", "Did you mean images.fit?"),
        (
            "approval = 3",
            "approval must be a table",
            "It has approval.policy, approval.above_usd.",
        ),
        ("[images.fit]\nx = 1", "images.fit must be seed, fast or model", None),
        (
            '[images]\nfit = "sead"',
            "images.fit must be seed, fast or model, not 'sead'",
            "Did you mean seed?",
        ),
        ('[images]\nembedded = "true"', "images.embedded must be true or false, not 'true'", None),
        ("[images]\nembedded = 1", "images.embedded must be true or false", None),
        (
            "[images]\nconcurrency = 0",
            "images.concurrency must be a whole number from 1 to 1024",
            None,
        ),
        (
            "[images]\nconcurrency = 2.5",
            "images.concurrency must be a whole number from 1 to 1024",
            None,
        ),
        ('[images]\nprovider = ""', "images.provider must be a text, not ''", None),
        (
            '[images]\naccept = ["png", "jpg"]',
            "images.accept must be a list of png, jpeg, gif, webp, avif, bmp, heic, ico, pdf, svg, "
            "tiff, not 'jpg'",
            "Did you mean jpeg?",
        ),
        (
            '[images]\nfallback = ["fal", ""]',
            "images.fallback must be a list of providers, not ''",
            None,
        ),
        ("[images]\nfallback = 3", "images.fallback must be a list of providers", None),
        (
            "[agent]\ncompact_at = 0",
            "agent.compact_at must be a number above 0 and at most 1",
            None,
        ),
        (
            "[agent]\ncompact_at = 1.1",
            "agent.compact_at must be a number above 0 and at most 1",
            None,
        ),
        (
            '[agent]\nsandbox = "readonly"',
            "agent.sandbox must be read-only, workspace-write or danger-full-access, "
            "not 'readonly'",
            "Did you mean read-only?",
        ),
        ("[tools]\ntimeout_s = 0", "tools.timeout_s must be a number of seconds above 0", None),
        ("[tools]\ntimeout_s = inf", "tools.timeout_s must be a number of seconds above 0", None),
        ("[tools]\ntimeout_s = nan", "tools.timeout_s must be a number of seconds above 0", None),
        (
            "[images]\nblockImages = true\nblock_images = true",
            "images.block_images appears twice",
            None,
        ),
    ],
)
def test_a_mistake_in_a_file_names_the_file_the_key_and_the_way_out(
    place: Place, text: str, problem: str, hint: str | None
) -> None:
    path = place.project_file(text)
    assert place.refusal() == (f"{path}: {problem}", hint)


@pytest.mark.parametrize("text", ["[zebra]", "[zebra]\nstripes = 1", "zebra = 1", "home = '/x'"])
def test_what_resembles_no_setting_is_answered_with_all_of_them(place: Place, text: str) -> None:
    place.user_file(text)
    message, hint = place.refusal()
    assert message.endswith("is not a setting")
    assert hint == f"The settings are {', '.join(all_settings())}."


def test_a_key_cannot_write_to_the_terminal(place: Place) -> None:
    path = place.project_file('"\\u001b[2J\\n" = 1')
    message, _ = place.refusal()
    assert message == f"{path}: \\u001b[2J\\n is not a setting"


def test_an_empty_table_of_a_known_section_is_fine(place: Place) -> None:
    place.project_file("[images]\n[modelRoles]\n")
    assert place.load() == Settings(home=place.home)


def test_toml_that_does_not_parse_names_the_file_and_the_line(place: Place) -> None:
    path = place.project_file('[images]\nfit = "fast"\nprovider = auto\n')
    assert place.refusal() == (
        f"{path} is not valid TOML: Invalid value (at line 3, column 12)",
        None,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe",
        b"a = " + b"[" * 100_000,
        b"a = 0x" + b"f" * 100_000,
        b"a = 1e99999999999999999999999",
        b"#" * 300_000,
    ],
    ids=["no text", "deep", "long number", "large number", "large file"],
)
def test_a_hostile_file_is_refused(place: Place, data: bytes) -> None:
    path = place.cwd / "limner.toml"
    path.write_bytes(data)
    message, _ = place.refusal()
    assert message.startswith(str(path))


def test_a_byte_order_mark_is_no_mistake(place: Place) -> None:
    (place.cwd / "limner.toml").write_bytes(b"\xef\xbb\xbf[images]\r\nmetadata = false\r\n")
    assert place.load().images.metadata is False


def test_a_folder_in_place_of_a_file_is_no_file(place: Place) -> None:
    (place.cwd / "limner.toml").mkdir()
    assert place.load() == Settings(home=place.home)


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("LIMNER_IMAGES_BLOCKIMAGES", "LIMNER_IMAGES_BLOCK_IMAGES"),
        ("LIMNER_IMAGE_FIT", "LIMNER_IMAGES_FIT"),
        ("LIMNER_BUDGETS_DAY_USD", "LIMNER_BUDGET_DAY_USD"),
    ],
)
def test_a_misspelt_variable_is_answered_with_the_nearest(
    place: Place, variable: str, near: str
) -> None:
    assert place.refusal(None, **{variable: "1"}) == (
        f"{variable} is not a setting",
        f"Did you mean {near}?",
    )


def test_an_unknown_variable_of_a_known_section_is_a_mistake(place: Place) -> None:
    assert place.refusal(LIMNER_TOOLS_ZEBRA="1") == ("LIMNER_TOOLS_ZEBRA is not a setting", None)


def test_variables_that_are_no_settings_are_left_alone(place: Place) -> None:
    assert place.load(LIMNER_FUZZ="long", LIMNER_SOMETHING="x", OTHER="y") == Settings(
        home=place.home
    )


def test_every_setting_is_documented() -> None:
    rows: list[tuple[str, Any]] = [(s.description, s.wanted) for s in all_settings().values()]
    assert all(description.endswith(".") and wanted for description, wanted in rows)
    assert [s.variable for s in all_settings().values()][:2] == [
        "LIMNER_IMAGES_BLOCK_IMAGES",
        "LIMNER_IMAGES_AUTO_RESIZE",
    ]


@pytest.mark.parametrize(
    "address",
    ["s3://bucket", "s3://b-1.x/team/pictures", "gs://b/x", "az://c", "file:///srv/share"],
)
def test_the_place_of_blobs_belongs_to_no_section(place: Place, address: str) -> None:
    assert place.load(LIMNER_BLOBS=address).blobs == address
    (place.home / "config.toml").write_text(f'blobs = "{address}"\n')
    assert place.load() == Settings(home=place.home, blobs=address)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://AKIA:secret@bucket/x", "s3://…@bucket/x"),
        ("http://bucket", "http://bucket"),
        ("s3://", "s3://"),
        ("s3://bucket/a?key=b", "s3://bucket/a?key=b"),
        ("file://host/folder", "file://host/folder"),
    ],
)
def test_another_address_of_blobs_is_refused_without_its_password(
    place: Place, address: str, shown: str
) -> None:
    message, _ = place.refusal(LIMNER_BLOBS=address)
    assert message == (
        "LIMNER_BLOBS: blobs must be an address such as s3://bucket/folder, gs://…, az://… or "
        f"file:///folder, not {shown!r}"
    )
