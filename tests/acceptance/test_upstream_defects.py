"""The defects that were seen in the tool this one succeeds: each would fail a test here."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import OPENAI_KEY, SPRING, Studio, picture, unlabelled

from limner import ToolCall, ToolResult
from limner.catalogue.images import picture_hosts
from limner.net.download import DownloadSource
from limner.storage.keys import Keys
from limner.storage.reach import Reach
from limner.testing.servers.http_server import (
    Gate,
    Reply,
    bytes_reply,
    cut_short,
    dropped,
    html_reply,
    json_reply,
)
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow


async def spent(studio: Studio) -> float:
    async with studio.open() as lim:
        return (await lim.spend()).total_usd


async def calls(studio: Studio, count: int, **arguments: Any) -> list[ToolResult]:
    """So many equal calls of one turn, all at once."""
    async with studio.open(at=SPRING) as lim:
        batch = [ToolCall(name="image_generate", arguments=arguments) for _ in range(count)]
        return await lim.registry().execute_parallel(batch, studio.context())


async def test_p1_a_long_revised_prompt_breaks_neither_the_json_nor_the_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.revised_prompt = 'He said "fox"\n' * 200
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    answer = json.loads(result.value)
    assert len(result.value) <= 1000
    assert (answer["cost_usd"], result.cost_usd) == (0.04, 0.04)
    assert answer["path"] == str(studio.files[0])
    assert result.cut_chars > 0
    assert "cut" in answer["prompt_used"]


async def test_p2_the_default_path_is_within_the_default_reach(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(prompt="a fox")
    assert result.ok


async def test_p2_a_denied_path_is_refused_before_paying(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(prompt="a fox", output_path="/etc/fox.png")
    assert (result.domain_code, result.cost_usd) == ("OUTPUT_PATH_DENIED", 0.0)
    assert openai.requests == []
    assert await spent(studio) == 0


async def test_p2_a_reach_without_the_generated_folder_refuses_before_paying(
    studio: Studio, openai: OpenAIServer
) -> None:
    nowhere = studio.context(reach=Reach(read=(), write=()))
    result = await studio.connect(openai).call(context=nowhere, prompt="a fox")
    assert result.domain_code == "OUTPUT_PATH_DENIED"
    assert openai.requests == []


async def test_p20_a_write_that_fails_after_paying_keeps_its_cost_and_the_picture(
    studio: Studio, openai: OpenAIServer
) -> None:
    target, gate = studio.cwd / "fox.png", Gate()
    drawn = openai.drawn({"model": "dall-e-3", "response_format": "b64_json"})
    openai.script("generate", Reply(pieces=(gate, *drawn.pieces), length=_length(drawn)))
    call = asyncio.ensure_future(
        studio.connect(openai).call(at=SPRING, prompt="a fox", output_path=str(target))
    )
    await openai.wait_until("generate")
    target.write_text("something else took the name")
    gate.open()
    result = await call
    assert (result.domain_code, result.billed, result.cost_usd) == ("OUTPUT_EXISTS", True, 0.04)
    assert Path(str(result.extras["kept_at"])).read_bytes() == openai.picture
    assert target.read_text() == "something else took the name"
    assert await spent(studio) == 0.04


def _length(reply: Reply) -> int:
    return sum(len(piece) for piece in reply.pieces if isinstance(piece, bytes))


async def test_p11_twenty_parallel_calls_on_the_default_path_give_twenty_files(
    studio: Studio, openai: OpenAIServer
) -> None:
    results = await calls(studio.connect(openai), 20, prompt="a fox")
    paths = [json.loads(result.value)["path"] for result in results]
    assert sorted(paths) == sorted(map(str, studio.files))
    assert len(set(paths)) == 20
    assert {unlabelled(path) for path in studio.files} == {openai.picture}


async def test_p12_forty_parallel_calls_under_a_cap_of_ten_cents_pay_exactly_two(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.env["LIMNER_BUDGET_SESSION_USD"] = "0.10"
    results = await calls(studio.connect(openai), 40, prompt="a fox")
    assert sum(result.ok for result in results) == 2
    assert {r.domain_code for r in results if not r.ok} == {"BUDGET_EXCEEDED"}
    assert len(openai.requests) == 2
    assert await spent(studio) == 0.08


async def test_p12_a_cap_for_the_day_holds_across_sessions(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.env["LIMNER_BUDGET_DAY_USD"] = "0.05"
    first = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    second = await studio.call(at=SPRING, prompt="a fox")
    assert (first.ok, second.domain_code) == (True, "BUDGET_EXCEEDED")
    assert "$0.04" in (second.error or "")
    assert "$0.05" in (second.error or "")
    assert "$0.01" in (second.error or "")


async def test_p14_calls_from_a_script_count_like_any_other(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open(at=SPRING, budget_usd="0.05") as lim:
        await lim.generate("a fox")
        with pytest.raises(Exception, match="program budget") as refused:
            await lim.generate("a fox")
    assert getattr(refused.value, "code", None) == "BUDGET_EXCEEDED"
    assert len(openai.requests) == 1


async def test_p14_a_budget_of_an_object_holds_for_every_turn_of_its_tools(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    call = ToolCall(name="image_generate", arguments={"prompt": "a fox"})
    async with studio.open(at=SPRING, budget_usd="0.05") as lim:
        registry = lim.registry()
        (first,) = await registry.execute_parallel([call], studio.context())
        (second,) = await registry.execute_parallel([call], studio.context())
    assert (first.ok, second.domain_code) == (True, "BUDGET_EXCEEDED")


async def test_p5_a_cancelled_call_stops_at_once_and_stays_counted(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.always("generate", Reply(hold=Gate()))
    cancel = asyncio.Event()
    context = studio.context(cancel=cancel)
    call = asyncio.ensure_future(
        studio.connect(openai).call(at=SPRING, context=context, prompt="a fox")
    )
    await openai.wait_until("generate")
    cancel.set()
    result = await call
    await openai.wait_for_hangup()
    assert (result.domain_code, result.billed, result.cost_usd, result.cost_source) == (
        "CANCELLED",
        True,
        0.04,
        "unknown",
    )
    assert studio.files == []
    assert await spent(studio) == 0.04


async def test_p5_a_cancelled_prediction_is_cancelled_at_replicate_and_costs_nothing(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.looks = 1_000
    cancel = asyncio.Event()
    context = studio.context(cancel=cancel)
    call = asyncio.ensure_future(studio.connect(replicate).call(context=context, prompt="a fox"))
    await replicate.wait_until("look")
    cancel.set()
    result = await call
    assert (result.domain_code, result.cost_usd) == ("CANCELLED", 0.0)
    assert [p["status"] for p in replicate.predictions.values()] == ["canceled"]
    assert await spent(studio) == 0


@pytest.mark.parametrize("status", ["canceled", "aborted"])
async def test_p6_a_prediction_that_ends_without_success_ends_the_call(
    studio: Studio, replicate: ReplicateServer, status: str
) -> None:
    replicate.looks, replicate.outcome = 1, status
    result = await studio.connect(replicate).call(prompt="a fox")
    assert result.domain_code == "IMAGE_GEN_PROVIDER_UNAVAILABLE"
    assert len(replicate.sent("look")) == 1


async def test_p7_a_webp_becomes_a_png_of_the_size_asked_for(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.file = bytes_reply(picture(768, 1344, kind="WEBP"))
    result = await studio.connect(replicate).call(prompt="a fox", size="1024x1792")
    answer = json.loads(result.value)
    with Image.open(answer["path"]) as image:
        assert (image.format, image.size) == ("PNG", (1024, 1792))
        # Covered and cropped from the middle, never stretched: red left, blue right.
        red: Any = image.getpixel((10, 900))
        blue: Any = image.getpixel((1010, 900))
    assert red[0] > 200
    assert blue[2] > 200
    assert answer["dimensions"] == {"width": 1024, "height": 1792}
    assert answer["drawn_size"] == "768x1344"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>not a picture</body></html>", picture()[:5000]],
    ids=["empty", "html", "truncated"],
)
async def test_p7_what_is_not_a_picture_is_an_error_that_keeps_its_cost(
    studio: Studio, replicate: ReplicateServer, body: bytes
) -> None:
    replicate.file = bytes_reply(body)
    result = await studio.connect(replicate).call(prompt="a fox")
    assert (result.domain_code, result.billed, result.cost_usd) == (
        "IMAGE_GEN_BAD_RESPONSE",
        True,
        0.003,
    )
    assert studio.files == []
    assert await spent(studio) == 0.003


async def test_p7_an_answer_without_a_picture_keeps_its_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.script("generate", json_reply({"created": 1, "data": []}))
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert (result.domain_code, result.billed, result.cost_usd) == (
        "IMAGE_GEN_BAD_RESPONSE",
        True,
        0.04,
    )


@pytest.mark.parametrize(
    ("reply", "code", "billed"),
    [
        (error_reply(400, "at most 1500 characters"), "IMAGE_GEN_BAD_REQUEST", False),
        (error_reply(400, "no", code="moderation_blocked"), "IMAGE_GEN_REJECTED", False),
        (error_reply(401, "bad key"), "IMAGE_GEN_AUTH", False),
        (error_reply(402, "pay first"), "IMAGE_GEN_PAYMENT_REQUIRED", False),
        (error_reply(403, "not you"), "IMAGE_GEN_AUTH", False),
        (error_reply(404, "no such model"), "IMAGE_GEN_BAD_REQUEST", False),
        (error_reply(409, "conflict"), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (error_reply(500, "oops"), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (html_reply(status=502), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (error_reply(503, "busy"), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (html_reply(status=504), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (dropped(), "IMAGE_GEN_PROVIDER_UNAVAILABLE", True),
        (
            cut_short(json_reply({"data": [{"b64_json": "A" * 4000}]})),
            "IMAGE_GEN_PROVIDER_UNAVAILABLE",
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_p9_p10_failures_are_told_apart_by_status_and_code_and_nothing_is_sent_twice(
    studio: Studio, openai: OpenAIServer, reply: Reply, code: str, billed: bool
) -> None:
    openai.always("generate", reply)
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert (result.domain_code, result.billed) == (code, billed)
    assert result.cost_usd == (0.04 if billed else 0.0)
    assert len(openai.requests) == 1
    assert await spent(studio) == result.cost_usd


async def test_p9_a_refused_connection_costs_nothing(studio: Studio) -> None:
    studio.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    result = await studio.call(at=SPRING, prompt="a fox")
    assert (result.domain_code, result.retryable, result.billed) == (
        "IMAGE_GEN_PROVIDER_UNAVAILABLE",
        True,
        False,
    )


async def test_p9_moderation_names_its_categories(studio: Studio, openai: OpenAIServer) -> None:
    openai.script(
        "generate",
        error_reply(
            400,
            "blocked",
            code="moderation_blocked",
            moderation_details={"categories": ["violence"], "moderation_stage": "input"},
        ),
    )
    result = await studio.connect(openai).call(prompt="a fox")
    assert result.extras["categories"] == ["violence"]


async def test_p3_a_tilde_is_the_home_and_makes_no_folder_of_that_name(
    studio: Studio, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", studio.env["HOME"])
    studio.connect(openai)
    async with studio.open(at=SPRING) as lim:
        drawn = await lim.generate("a fox", output_path="~/fox.png")
    assert drawn.path == Path(studio.env["HOME"], "fox.png")
    assert not (studio.cwd / "~").exists()


async def test_p3_a_relative_path_is_relative_to_the_context_not_the_process(
    studio: Studio, openai: OpenAIServer, anywhere: Any
) -> None:
    elsewhere = anywhere()
    result = await studio.connect(openai).call(prompt="a fox", output_path="art/fox.png")
    assert json.loads(result.value)["path"] == str(studio.cwd / "art" / "fox.png")
    assert list(elsewhere.iterdir()) == []


async def test_p4_a_key_only_in_the_key_file_is_enough(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    key = studio.env.pop("OPENAI_API_KEY")
    Keys(studio.home / "keys.toml", env={}).set("OPENAI_API_KEY", key)
    assert (await studio.call(prompt="a fox")).ok
    assert openai.requests[0].headers["authorization"] == f"Bearer {key}"


async def test_p4_a_key_only_in_the_environment_is_enough(
    studio: Studio, openai: OpenAIServer
) -> None:
    assert (await studio.connect(openai).call(prompt="a fox")).ok


async def test_p4_no_provider_is_reachable_through_the_registry(studio: Studio) -> None:
    studio.env["LIMNER_IMAGES_EMBEDDED"] = "false"
    async with studio.open() as lim:
        assert "image_generate" in [tool.name for tool in lim.registry().definitions()]
    assert (await studio.call(prompt="a fox")).domain_code == "IMAGE_GEN_NO_PROVIDER"


async def test_p22_auto_with_512_chooses_flux_when_both_keys_are_set(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    result = await studio.connect(openai, replicate).call(prompt="a fox", size="512x512")
    answer = json.loads(result.value)
    assert (answer["provider"], answer["dimensions"]) == (
        "replicate-flux",
        {"width": 512, "height": 512},
    )


async def test_p22_auto_with_a_size_no_keyed_provider_can_do_names_the_nearest(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(prompt="a fox", size="512x512")
    assert (result.code, result.domain_code) == ("input_invalid", "INVALID_SIZE_FOR_PROVIDER")
    assert "816x816" in (result.hint or "")


async def test_p22_an_unknown_provider_is_bad_input_that_names_the_known_ones(
    studio: Studio,
) -> None:
    result = await studio.call(prompt="a fox", provider="midjourney")
    assert (result.code, result.field) == ("input_invalid", "provider")
    assert "replicate-flux" in (result.error or "")


@pytest.mark.parametrize("prompt", ["", "  \n\t", 7, None, ["a fox"], "half \ud800"])
async def test_p22_a_prompt_that_is_no_text_is_bad_input(studio: Studio, prompt: Any) -> None:
    result = await studio.call(prompt=prompt)
    assert (result.code, result.field) == ("input_invalid", "prompt")


async def test_p25_an_existing_file_is_not_overwritten_unless_asked(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    assert (await studio.call(prompt="a hen", output_path="fox.png")).ok
    target = studio.cwd / "fox.png"
    before, sent = target.read_bytes(), len(openai.requests)
    refused = await studio.call(prompt="a fox", output_path="fox.png")
    assert (refused.domain_code, refused.cost_usd) == ("OUTPUT_EXISTS", 0.0)
    assert (target.read_bytes(), len(openai.requests)) == (before, sent)
    assert (await studio.call(prompt="a fox", output_path="fox.png", overwrite=True)).ok
    assert unlabelled(target) == openai.picture


@pytest.mark.parametrize("host", ["replicate.delivery", "pbxt.replicate.delivery"])
def test_p8_both_output_hosts_are_the_services_own(host: str) -> None:
    source = DownloadSource(
        base_url="https://api.replicate.com/v1", hosts=picture_hosts("replicate")
    )
    assert source.allows(host)


async def test_secrets_never_reach_the_model(studio: Studio, openai: OpenAIServer) -> None:
    openai.always("generate", error_reply(401, f"Incorrect API key provided: {OPENAI_KEY}"))
    result = await studio.connect(openai).call(prompt="a fox")
    assert OPENAI_KEY not in repr(result)
