"""`limner edit`, and what all commands that draw take: sets, shapes, partial pictures, others."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from tests.frontends.cli_process import CommandLine

from limner.testing.servers.openai_server import OpenAIServer, error_reply, read_form
from limner.testing.servers.replicate_server import ReplicateServer


@pytest.fixture
def desk(cli: CommandLine, openai: OpenAIServer) -> CommandLine:
    cli.studio.connect(openai)
    for name in ("photo.png", "logo.png"):
        Image.new("RGB", (600, 400), "teal").save(cli.studio.cwd / name)
    return cli


def test_a_picture_is_changed_and_written_where_it_was_asked_for(
    desk: CommandLine, openai: OpenAIServer
) -> None:
    done = desk.run(
        *("edit", "photo.png", "a red sofa", "--reference", "logo.png"),
        *("--region", "10,20,300,200", "--out", "red.png"),
    )
    assert (done.status, done.out) == (0, f"{desk.studio.cwd / 'red.png'}\n")
    form = read_form(openai.sent("edit")[0])
    assert form.fields["prompt"] == "a red sofa"
    assert [part.field for part in form.files] == ["image[]", "image[]", "mask"]


@pytest.mark.slow
def test_the_price_of_an_edit_is_told_for_free(desk: CommandLine, openai: OpenAIServer) -> None:
    done = desk.run("edit", "photo.png", "a red sofa", "--dry-run", "--json")
    plain = desk.run("generate", "a red sofa", "--size", "1536x1024", "--dry-run", "--json")
    assert done.json["cost_usd"] > plain.json["cost_usd"] > 0
    assert openai.requests == []


@pytest.mark.slow
def test_several_pictures_are_a_line_each(desk: CommandLine) -> None:
    done = desk.run("generate", "a fox", "--count", "3", "--out", "fox.png")
    assert done.status == 0
    assert [Path(line).name for line in done.out.splitlines()] == [
        "fox.png",
        "fox-1.png",
        "fox-2.png",
    ]
    assert done.err.splitlines()[0].startswith("1024x1024 · openai-image (gpt-image-2.5-flare) · $")


def test_the_price_of_a_set_is_that_of_all_of_it(desk: CommandLine) -> None:
    one = desk.run("generate", "a fox", "--dry-run", "--json").json["cost_usd"]
    three = desk.run("generate", "a fox", "--count", "3", "--dry-run", "--json").json["cost_usd"]
    assert three == pytest.approx(3 * one)


def test_a_shape_stands_for_a_size(desk: CommandLine) -> None:
    done = desk.run("generate", "a fox", "--size", "16:9", "--dry-run", "--json")
    assert done.json["dimensions"] == {"width": 1360, "height": 768}


@pytest.mark.slow
def test_another_provider_draws_where_the_first_fails_for_free(
    desk: CommandLine, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    desk.studio.connect(replicate)
    openai.always("generate", error_reply(401, "Oops."))
    done = desk.run(
        "generate", "a fox", "--provider", "openai-image", "--fallback", "replicate-flux"
    )
    assert done.status == 0
    assert "openai-image failed: OpenAI answered 401: Oops." in done.err


@pytest.mark.slow
def test_unfinished_pictures_are_shown_in_a_terminal(
    desk: CommandLine, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = (desk.studio.cwd / "photo.png").read_bytes()
    monkeypatch.setattr(openai, "draft", lambda _: draft)
    terminal = desk.in_terminal("generate", "a fox", "--partial", "2")
    done = terminal.end()
    assert done.status == 0
    assert terminal.sent.count("▀") > 100
    (request,) = openai.sent("generate")
    assert request.json()["partial_images"] == 2


def test_a_transparent_background_is_asked_for(desk: CommandLine, openai: OpenAIServer) -> None:
    desk.run("generate", "a sticker", "--background", "transparent")
    assert openai.sent("generate")[0].json()["background"] == "transparent"


def test_what_a_provider_cannot_do_is_refused_and_one_that_can_is_named(
    desk: CommandLine, openai: OpenAIServer
) -> None:
    done = desk.run("generate", "a fox", "--negative", "snow", "--json")
    assert (done.status, done.error["code"]) == (2, "PROVIDER_CANNOT")
    assert "takes no negative prompt" in done.error["message"]
    assert " can" in done.error["hint"]
    assert openai.requests == []
