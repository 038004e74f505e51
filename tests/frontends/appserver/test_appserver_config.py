"""Settings over the wire: what is in force and why, and what a client may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.servers.appserver_process import KEY, Client, Refused, Stage

CONFLICT = "Configuration was modified since last read. Fetch latest version and retry."
FILE = """\
# Mine.
[images]
fit = "fast"  # quick

[budget]
day_usd = 5
"""


def config_file(stage: Stage) -> Path:
    return stage.home / "config.toml"


async def write(client: Client, path: str, value: Any, **more: Any) -> Any:
    params = {"keyPath": path, "value": value, "mergeStrategy": "replace", **more}
    return await client.request("config/value/write", **params)


async def refusal(client: Client, path: str, value: Any, **more: Any) -> tuple[str, str]:
    """The code and the message of a refused write."""
    with pytest.raises(Refused) as refused:
        await write(client, path, value, **more)
    error = refused.value
    assert error.code == -32600
    assert error.data is not None
    return error.data["config_write_error_code"], error.message


async def test_a_client_reads_the_settings_with_their_layers_and_origins(stage: Stage) -> None:
    models = config_file(stage).read_text()
    config_file(stage).write_text(FILE + models)
    (stage.cwd / "limner.toml").write_text("[budget]\nday_usd = 2\n")
    stage.env |= {"LIMNER_APPROVAL_POLICY": "never"}
    async with stage.piped() as client:
        read = await client.request("config/read", includeLayers=True)
        brief = await client.request("config/read")
    config, origins = read["config"], read["origins"]
    assert (config["model"], config["model_provider"]) == ("gpt-5.4", "openai")
    assert (config["approval_policy"], config["sandbox_mode"]) == ("never", "workspace-write")
    assert (config["images"]["fit"], config["budget"]["day_usd"]) == ("fast", 2.0)
    user, project, flags = (
        {"type": "user", "file": str(config_file(stage)), "profile": None},
        {"type": "project", "dotCodexFolder": str(stage.cwd)},
        {"type": "sessionFlags"},
    )
    assert {name: origin["name"] for name, origin in origins.items()} == {
        "images.fit": user,
        "budget.day_usd": project,
        "approval.policy": flags,
        "approval_policy": flags,
        **{name: origins[name]["name"] for name in origins if name.startswith("model")},
    }
    layers = {layer["name"]["type"]: layer for layer in read["layers"]}
    assert [layer["name"]["type"] for layer in read["layers"]] == [
        "sessionFlags",
        "project",
        "user",
    ]
    assert layers["user"]["config"]["budget"] == {"day_usd": 5.0}
    assert layers["user"]["version"] == origins["images.fit"]["version"]
    assert brief["layers"] is None


async def test_a_client_writes_settings_into_the_users_file_and_keeps_its_comments(
    stage: Stage,
) -> None:
    models = config_file(stage).read_text()
    config_file(stage).write_text(FILE + models)
    async with stage.piped() as client:
        first = await write(client, "images.fit", "model")
        second = await client.request(
            "config/batchWrite",
            edits=[
                {"keyPath": "budget", "value": {"day_usd": 1.5}, "mergeStrategy": "upsert"},
                {"keyPath": "images.blockImages", "value": True, "mergeStrategy": "upsert"},
                {"keyPath": "agent.compact_at", "value": 0.5, "mergeStrategy": "upsert"},
            ],
            expectedVersion=first["version"],
        )
        config = (await client.request("config/read"))["config"]
        await write(client, "agent.compact_at", None, expectedVersion=second["version"])
        warned = client.told("configWarning")
    assert first == {
        "status": "ok",
        "version": first["version"],
        "filePath": str(config_file(stage)),
        "overriddenMetadata": None,
    }
    assert (config["budget"]["day_usd"], config["agent"]["compact_at"]) == (1.5, 0.5)
    edited = FILE.replace('"fast"', '"model"').replace("= 5", "= 1.5")
    edited = edited.replace("[images]\n", "[images]\nblock_images = true\n")
    assert config_file(stage).read_text().startswith(edited)
    assert models.strip() in config_file(stage).read_text()
    assert warned[0] == {
        "summary": "images.fit: the change is in force after a restart of the app-server.",
        "details": None,
    }


async def test_a_written_model_and_policy_are_in_force_for_the_next_thread(stage: Stage) -> None:
    del stage.env["LIMNER_MODEL_ROLES_DEFAULT"]
    stage.env["OPENAI_API_KEY"] = KEY
    async with stage.piped() as client:
        await client.request(
            "config/batchWrite",
            edits=[
                {"keyPath": "model", "value": "gpt-5.5", "mergeStrategy": "replace"},
                {
                    "keyPath": "model_reasoning_effort",
                    "value": "low",
                    "mergeStrategy": "replace",
                },
                {"keyPath": "approval_policy", "value": "untrusted", "mergeStrategy": "replace"},
            ],
        )
        started = await client.request("thread/start")
        config = (await client.request("config/read"))["config"]
        listed = await client.request("model/list")
    assert (started["model"], started["reasoningEffort"]) == ("gpt-5.5", "low")
    assert started["approvalPolicy"] == "untrusted"
    assert (config["model"], config["model_reasoning_effort"]) == ("gpt-5.5", "low")
    assert [one["model"] for one in listed["data"] if one["isDefault"]] == ["gpt-5.5"]
    written = config_file(stage).read_text()
    assert 'default = "openai/gpt-5.5:low"' in written
    assert client.told("configWarning") == []


WRONG: list[tuple[str, Any, str, str]] = [
    ("", 1, "configValidationError", "keyPath must not be empty"),
    ("a..b", 1, "configValidationError", "keyPath segments must not be empty"),
    ("images.fits", "x", "configSchemaUnknownKey", "Did you mean images.fit?"),
    ("features.apps", True, "configSchemaUnknownKey", "features.apps is not a setting"),
    ("OPENAI_API_KEY", "sk-1", "configSchemaUnknownKey", "Keys are no settings"),
    ("models", [], "configSchemaUnknownKey", "by hand"),
    ("model", 5, "configValidationError", "model is a text"),
    ("images.fit", "small", "configValidationError", "must be seed, fast or model"),
    ("approval_policy", "never", "configValidationError", "only make approval.policy stricter"),
    ("sandbox_mode", "danger-full-access", "configValidationError", "agent.sandbox stricter"),
    ("budget.day_usd", 6, "configValidationError", "only make budget.day_usd stricter"),
    ("budget.day_usd", None, "configValidationError", "only make budget.day_usd stricter"),
    ("blobs", "s3://bucket", "configValidationError", "Only the user can change blobs"),
]


async def test_a_write_that_is_wrong_or_unsafe_changes_nothing(stage: Stage) -> None:
    text = FILE + config_file(stage).read_text()
    config_file(stage).write_text(text)
    good = {"keyPath": "images.tile", "value": "off", "mergeStrategy": "replace"}
    async with stage.piped() as client:
        for path, value, code, words in WRONG:
            refused, message = await refusal(client, path, value)
            assert (refused, words in message) == (code, True), message
            bad = {"keyPath": path, "value": value, "mergeStrategy": "replace"}
            await client.refusal("config/batchWrite", edits=[good, bad])
            assert config_file(stage).read_text() == text


@pytest.mark.slow
async def test_a_write_says_that_another_program_or_a_variable_was_stronger(stage: Stage) -> None:
    stage.env |= {"LIMNER_IMAGES_FIT": "seed"}
    async with stage.piped() as client:
        written = await write(client, "images.fit", "fast")
        text = config_file(stage).read_text() + "# changed by hand\n"
        config_file(stage).write_text(text)
        version = written["version"]
        refused = await refusal(client, "images.tile", "off", expectedVersion=version)
        elsewhere = await refusal(client, "images.tile", "off", filePath=str(stage.cwd / "x.toml"))
    overridden = written["overriddenMetadata"]
    assert (written["status"], overridden["effectiveValue"]) == ("okOverridden", "seed")
    assert overridden["message"] == "Overridden by session flags: LIMNER_IMAGES_FIT"
    assert overridden["overridingLayer"]["name"] == {"type": "sessionFlags"}
    assert refused == ("configVersionConflict", CONFLICT)
    assert elsewhere == ("configLayerReadonly", "Only writes to the user config are allowed")
    assert config_file(stage).read_text() == text
