"""`limner generate`: words in, a path out."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from tests.acceptance.conftest import OPENAI_KEY, REPLICATE_KEY, picture, unlabelled
from tests.acceptance.hardship import held_back
from tests.frontends.cli_process import CommandLine, Done

from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

RED = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9" fill="red"/></svg>'
OFFLINE_NOTE = (
    "Drawn offline by limner's illustrator from ready-made vector pictures. "
    "For a model that paints anything, set OPENAI_API_KEY.\n"
)


def timeless(text: str) -> str:
    return re.sub(r"\d+\.\d s", "N s", text)


def test_the_path_is_all_of_standard_output(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "a fox", "--provider", "openai-image")
    (path,) = cli.studio.files
    assert unlabelled(path) == openai.picture
    assert (done.status, done.out) == (0, f"{path}\n")
    assert timeless(done.err) == (
        "1024x1024 · openai-image (gpt-image-2.5-flare) · $0.01342 · N s\n"
    )


def test_json_is_the_value_of_the_tool(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "a fox", "--provider", "openai-image", "--json")
    assert (done.status, done.err) == (0, "")
    assert done.json == {
        "path": str(cli.studio.files[0]),
        "dimensions": {"width": 1024, "height": 1024},
        "cost_usd": 0.01342,
        "provider": "openai-image",
        "prompt_used": "a fox",
        "cost_source": "computed",
        "model": "gpt-image-2.5-flare",
        "image": sha256(openai.picture).hexdigest(),
    }


def test_a_picture_that_was_drawn_offline_says_so_and_what_it_left_out(cli: CommandLine) -> None:
    done = cli.run("generate", "a cat and a zorgblat and a dog")
    assert (done.status, done.out) == (0, f"{cli.studio.files[0]}\n")
    assert timeless(done.err) == (
        "1024x1024 · illustrator (limner-illustrator) · $0.00 · N s\n"
        f"{OFFLINE_NOTE}Left out: zorgblat.\n"
    )


def test_size_quality_provider_and_model_reach_the_service(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    openai.picture = picture(1792, 1024)
    cli.studio.connect(openai)
    drawing = ["--size", "1792x1024", "--quality", "hd"]
    service = ["--provider", "openai-dalle", "--model", "dall-e-3"]
    done = cli.run("generate", "a fox", *drawing, *service, "--json")
    (sent,) = openai.requests
    assert sent.json() == {
        "model": "dall-e-3",
        "prompt": "a fox",
        "size": "1792x1024",
        "quality": "hd",
        "n": 1,
        "response_format": "b64_json",
    }
    assert done.json["dimensions"] == {"width": 1792, "height": 1024}
    assert (done.json["cost_usd"], done.json["prompt_used"]) == (0.12, "A fox, revised")


def test_the_seed_reaches_the_service_and_comes_back(
    cli: CommandLine, replicate: ReplicateServer
) -> None:
    cli.studio.connect(replicate)
    done = cli.run("generate", "a fox", "--provider", "replicate-flux", "--seed", "7", "--json")
    assert replicate.sent("create")[0].json()["input"]["seed"] == 7
    assert done.json["seed"] == 7


def test_an_output_path_may_hold_anything_and_is_replaced_only_when_told_to(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    words = ["generate", "a fox", "--provider", "openai-image", "--out", "my fox/Füchse 狐.png"]
    path = cli.studio.cwd / "my fox" / "Füchse 狐.png"
    path.parent.mkdir()
    path.write_text("mine")
    refused = cli.run(*words, "--json")
    assert (refused.status, refused.error["code"]) == (2, "OUTPUT_EXISTS")
    assert (path.read_text(), openai.requests) == ("mine", [])
    done = cli.run(*words, "--overwrite")
    assert (done.status, done.out) == (0, f"{path}\n")
    assert unlabelled(path) == openai.picture


def test_a_prompt_can_come_from_standard_input(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    prompt = "a fox\nand a crow,\n  in the manner of Dürer"
    cli.run("generate", "-", "--provider", "openai-image", stdin=f"\ufeff{prompt}\n".encode())
    assert openai.requests[0].json()["prompt"] == prompt


def test_a_blank_prompt_is_refused(cli: CommandLine) -> None:
    refusal = Done(status=2, err="limner: prompt is required and must not be blank\n")
    assert cli.run_all(["generate", ""], ["generate", " \n"], ["generate", "-"]) == [refusal] * 3


def test_a_prompt_is_needed(cli: CommandLine) -> None:
    assert cli.run("generate") == Done(
        status=2, err='limner: give a prompt\n  For example: limner generate "a robot"\n'
    )


def test_a_prompt_that_is_not_text_is_refused(cli: CommandLine) -> None:
    refusal = Done(status=2, err="limner: the prompt is not UTF-8 text\n")
    assert cli.run("generate", b"caf\xe9") == refusal
    assert cli.run("generate", "-", stdin=b"caf\xe9") == refusal


def test_a_very_long_prompt_is_refused_before_anything_is_sent(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "-", "--provider", "openai-image", stdin=b"fox " * 100_000)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("limner: prompt has 399,999 characters; ")
    assert openai.requests == []


def test_an_svg_document_is_rendered_from_a_file_or_from_standard_input(cli: CommandLine) -> None:
    (cli.studio.cwd / "red.svg").write_text(f"\ufeff{RED}", encoding="utf-8")
    from_file = cli.run("generate", "--svg", "red.svg", "--size", "64x64", "--json")
    from_pipe = cli.run("generate", "--svg", "-", "--size", "64x64", "--json", stdin=RED.encode())
    assert from_file.json["image"] == from_pipe.json["image"]
    assert from_file.json["prompt_used"] == "SVG document red.svg"


def test_an_svg_document_that_cannot_be_read_is_refused(cli: CommandLine) -> None:
    (cli.studio.cwd / "latin.svg").write_bytes(b"<svg>\xe9</svg>")
    refused = cli.run_all(
        ["generate", "--svg", "none.svg"],
        ["generate", "--svg", "."],
        ["generate", "--svg", "latin.svg"],
        ["generate", "-", "--svg", "-"],
    )
    assert [(done.status, done.out, done.err) for done in refused] == [
        (2, "", "limner: 'none.svg' cannot be read: No such file or directory\n"),
        (2, "", "limner: '.' cannot be read: Is a directory\n"),
        (2, "", "limner: the SVG document is not UTF-8 text\n"),
        (
            2,
            "",
            "limner: the prompt and the SVG document cannot both come from standard input\n",
        ),
    ]


def test_a_dry_run_tells_the_price_and_does_nothing(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    words = ["generate", "a fox", "--provider", "openai-dalle", "--out", "fox.png", "--dry-run"]
    done = cli.run(*words)
    assert (done.status, done.out) == (0, "$0.04\n")
    assert done.err.startswith("1024x1024 · openai-dalle (dall-e-3)\n")
    value = cli.run(*words, "--json").json
    value.pop("notice")  # there is one since the model was retired
    assert value == {
        "cost_usd": 0.04,
        "exact": True,
        "cost_source": "table",
        "provider": "openai-dalle",
        "model": "dall-e-3",
        "dimensions": {"width": 1024, "height": 1024},
        "quality": "standard",
        "output_path": str(cli.studio.cwd / "fox.png"),
    }
    assert openai.requests == []
    assert not cli.studio.home.exists()


def test_a_price_that_depends_on_the_prompt_is_told_as_the_most(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "a fox", "--provider", "openai-image", "--dry-run")
    assert done.out == "at most $0.013515\n"


def test_a_budget_is_kept_before_anything_is_sent(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "a fox", "--provider", "openai-image", "--budget", "0.01", "--json")
    assert (done.status, done.error["code"]) == (5, "BUDGET_EXCEEDED")
    assert openai.requests == []


def test_debug_shows_requests_and_answers_beside_the_result(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run("generate", "a fox", "--provider", "openai-image", "--debug")
    assert done.out == f"{cli.studio.files[0]}\n"
    request, answer, facts = done.err.splitlines()
    assert request.startswith(f"> POST {openai.base_url}/images/generations ")
    assert '"prompt":"a fox"' in request
    assert answer.startswith(f"< 200 POST {openai.base_url}/images/generations ")
    assert facts.startswith("1024x1024 · ")


def test_no_secret_is_ever_shown(
    cli: CommandLine, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    cli.studio.connect(openai, replicate)
    openai.script(
        "generate",
        error_reply(401, f"Incorrect key: {OPENAI_KEY}", headers={"X-Echo": OPENAI_KEY}),
    )
    replicate.error, replicate.outcome = f"the token {REPLICATE_KEY} is wrong", "failed"
    for provider in ("openai-image", "replicate-flux"):
        done = cli.run("generate", "a fox", "--provider", provider, "--debug", "--json")
        shown = done.out + done.err
        assert done.status == 3
        assert "•••" in done.error["message"]
        assert "authorization: '•••'" in done.err
        assert OPENAI_KEY not in shown
        assert REPLICATE_KEY not in shown


def test_what_a_server_says_cannot_take_over_the_terminal(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.script("generate", error_reply(400, "\x1b]0;mine\x07\x1b[2Jgone\r"))
    done = cli.run("generate", "a fox", "--provider", "openai-image")
    assert done == Done(
        status=3,
        err="limner: OpenAI answered 400: \\u001b]0;mine\\u0007\\u001b[2Jgone\n",
    )


def test_the_note_about_keys_is_shown_once_a_day(cli: CommandLine) -> None:
    first = cli.run("generate", "a robot")
    second = cli.run("generate", "a robot")
    assert ("OPENAI_API_KEY" in first.err, "OPENAI_API_KEY" in second.err) == (True, False)
    assert "OPENAI_API_KEY" in cli.run("generate", "a robot", "--json").json["note"]


def test_the_name_of_the_file_decides_its_format_and_that_is_said(cli: CommandLine) -> None:
    done = cli.run("generate", "a robot", "--out", "robot.jpg")
    assert "Saved as JPEG." in done.err.splitlines()
    refused = cli.run("generate", "a robot", "--out", "robot.gif", "--json")
    assert (refused.status, refused.error["message"]) == (2, "limner does not write GIF files")


async def test_of_two_processes_with_one_file_only_the_first_pays(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    words = ["generate", "a fox", "--provider", "openai-image", "--out", "fox.png"]
    first = cli.start(*words)
    await openai.wait_until("generate")
    path = cli.studio.cwd / "fox.png"
    assert cli.run(*words) == Done(
        status=2,
        err=f"limner: {path} is being drawn by another call; nothing was sent\n"
        "  Choose another path, or ask for several pictures in one call.\n",
    )
    gate.open()
    assert first.end().out == f"{path}\n"
    assert len(openai.sent("generate")) == 1
    assert cli.run("spend", "--json").json["total_usd"] == 0.013515
