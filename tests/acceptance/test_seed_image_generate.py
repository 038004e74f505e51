"""Every row of the specification of `image_generate`, one test a row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from tests.acceptance.conftest import SPRING, Studio, picture, unlabelled

from limner import ToolCall, ToolResult, create_image_tools
from limner.testing.servers.http_server import json_reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.tools.built_in.image_generate import IMAGE_GENERATE


def value(result: ToolResult) -> dict[str, Any]:
    assert result.ok, result
    return json.loads(result.value)


def failure(result: ToolResult) -> tuple[str | None, str | None]:
    assert not result.ok, result
    return result.code, result.domain_code


def on_disk(answer: dict[str, Any]) -> tuple[str | None, tuple[int, int]]:
    with Image.open(answer["path"]) as image:
        return image.format, image.size


# Tool surface


def test_tool_surface_name_toolset_and_result_size() -> None:
    tool, *_ = create_image_tools()
    assert (tool.name, tool.toolset, tool.max_result_chars) == ("image_generate", "image", 1000)


# Parameters


def test_parameters_are_the_table_in_its_order_with_its_defaults() -> None:
    table = {
        name: (row["type"], name in IMAGE_GENERATE.schema["required"], row.get("default"))
        for name, row in list(IMAGE_GENERATE.schema["properties"].items())[:5]
    }
    assert table == {
        "prompt": ("string", True, None),
        "output_path": ("string", False, None),
        "size": ("string", False, "1024x1024"),
        "quality": ("string", False, "standard"),
        "provider": ("string", False, "auto"),
    }


async def test_parameter_prompt_is_required(studio: Studio) -> None:
    result = await studio.call()
    assert (result.code, result.field) == ("input_invalid", "prompt")


async def test_parameter_output_path_defaults_to_a_timestamp_in_the_generated_folder(
    studio: Studio, openai: OpenAIServer
) -> None:
    answer = value(await studio.connect(openai).call(at=SPRING, prompt="a fox"))
    expected = studio.home / "generated" / f"{int(SPRING.timestamp() * 1000)}.png"
    assert answer["path"] == str(expected)
    assert studio.files == [expected]


@pytest.mark.parametrize("size", ["1024x1024", "1024x1792", "1792x1024"])
async def test_parameter_size_is_sent_and_measured(
    studio: Studio, openai: OpenAIServer, size: str
) -> None:
    width, height = map(int, size.split("x"))
    openai.picture = picture(width, height)
    answer = value(await studio.connect(openai).call(at=SPRING, prompt="a fox", size=size))
    assert answer["dimensions"] == {"width": width, "height": height}
    assert openai.sent("generate")[0].json()["size"] == size


@pytest.mark.parametrize("quality", ["standard", "hd"])
async def test_parameter_quality_is_sent(
    studio: Studio, openai: OpenAIServer, quality: str
) -> None:
    value(await studio.connect(openai).call(at=SPRING, prompt="a fox", quality=quality))
    assert openai.sent("generate")[0].json()["quality"] == quality


@pytest.mark.parametrize("nothing", [None, "", " "])
async def test_null_and_blank_for_an_optional_parameter_mean_not_given(
    studio: Studio, openai: OpenAIServer, nothing: str | None
) -> None:
    others = [name for name in IMAGE_GENERATE.schema["properties"] if name != "prompt"]
    given: dict[str, Any] = dict.fromkeys(others, nothing)
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox", **given)
    assert value(result)["path"].startswith(str(studio.home / "generated"))


@pytest.mark.parametrize(
    "given",
    [
        {"size": "1024 x 1792"},
        {"size": "1024X1792"},
        {"size": "1024\u00d71792", "quality": "HD"},
        {"size": "1024x1792", "quality": " Standard ", "provider": "AUTO"},
        {"size": "1024x1792", "provider": "OpenAI-DALLE", "n": "1"},
    ],
)
async def test_near_misses_in_case_and_spacing_are_understood(
    studio: Studio, openai: OpenAIServer, given: dict[str, Any]
) -> None:
    openai.picture = picture(1024, 1792)
    answer = value(await studio.connect(openai).call(at=SPRING, prompt="a fox", **given))
    assert (answer["provider"], answer["dimensions"]["height"]) == ("openai-dalle", 1792)
    assert openai.sent("generate")[0].json()["quality"] in ("standard", "hd")


async def test_parameter_quality_takes_no_other_word(studio: Studio) -> None:
    result = await studio.call(prompt="a fox", quality="ultra")
    assert (result.code, result.field) == ("input_invalid", "quality")


# Return shape


async def test_return_shape_has_the_five_members_first_and_in_order(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert list(value(result))[:5] == [
        "path",
        "dimensions",
        "cost_usd",
        "provider",
        "prompt_used",
    ]


async def test_return_shape_cost_usd_is_also_at_the_top_level(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert (result.cost_usd, result.cost_source) == (0.04, "table")
    assert value(result)["cost_usd"] == 0.04


async def test_return_shape_prompt_used_is_the_revised_prompt_of_dalle(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.revised_prompt = "A serene fox in watercolour"
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert value(result)["prompt_used"] == "A serene fox in watercolour"


async def test_return_shape_a_revised_prompt_is_not_masked(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.revised_prompt = "A sk-ateboard in " + "z" * 200
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert value(result)["prompt_used"] == openai.revised_prompt


async def test_return_shape_prompt_used_echoes_the_prompt_for_flux(
    studio: Studio, replicate: ReplicateServer
) -> None:
    result = await studio.connect(replicate).call(prompt="a fox")
    assert value(result)["prompt_used"] == "a fox"


# Provider matrix


async def test_provider_matrix_openai_dalle_sends_dalle_3(
    studio: Studio, openai: OpenAIServer
) -> None:
    answer = value(await studio.connect(openai).call(prompt="a fox", provider="openai-dalle"))
    assert (answer["provider"], answer["model"]) == ("openai-dalle", "dall-e-3")
    assert openai.sent("generate")[0].json() == {
        "model": "dall-e-3",
        "prompt": "a fox",
        "size": "1024x1024",
        "quality": "standard",
        "response_format": "b64_json",
        "n": 1,
    }


@pytest.mark.parametrize("size", ["512x512", "1024x1024", "1024x1792", "1792x1024"])
async def test_provider_matrix_replicate_flux_does_every_size_for_a_flat_price(
    studio: Studio, replicate: ReplicateServer, size: str
) -> None:
    width, height = map(int, size.split("x"))
    result = await studio.connect(replicate).call(
        prompt="a fox", size=size, provider="replicate-flux"
    )
    answer = value(result)
    assert answer["dimensions"] == {"width": width, "height": height}
    assert on_disk(answer) == ("PNG", (width, height))
    assert (answer["provider"], answer["cost_usd"]) == ("replicate-flux", 0.003)


async def test_provider_matrix_replicate_flux_is_flux_schnell(
    studio: Studio, replicate: ReplicateServer
) -> None:
    answer = value(await studio.connect(replicate).call(prompt="a fox", provider="replicate-flux"))
    assert answer["model"] == "black-forest-labs/flux-schnell"
    (request,) = replicate.sent("create")
    assert request.path == "/v1/models/black-forest-labs/flux-schnell/predictions"


async def test_provider_matrix_replicate_flux_ignores_quality(
    studio: Studio, replicate: ReplicateServer
) -> None:
    answer = value(await studio.connect(replicate).call(prompt="a fox", quality="hd"))
    assert answer["cost_usd"] == 0.003
    assert "quality" not in replicate.sent("create")[0].json()["input"]


# DALL-E 3 pricing


@pytest.mark.parametrize(
    ("size", "quality", "usd"),
    [
        ("1024x1024", "standard", 0.04),
        ("1024x1024", "hd", 0.08),
        ("1024x1792", "standard", 0.08),
        ("1024x1792", "hd", 0.12),
        ("1792x1024", "standard", 0.08),
        ("1792x1024", "hd", 0.12),
    ],
)
async def test_dalle_3_pricing(
    studio: Studio, openai: OpenAIServer, size: str, quality: str, usd: float
) -> None:
    result = await studio.connect(openai).call(
        prompt="a fox", size=size, quality=quality, provider="openai-dalle"
    )
    assert result.cost_usd == value(result)["cost_usd"] == usd


# Auto-pick


@pytest.mark.parametrize("given", [{}, {"provider": "auto"}], ids=["omitted", "auto"])
async def test_auto_pick_takes_openai_dalle_first_while_it_lived(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer, given: dict[str, Any]
) -> None:
    studio.connect(openai, replicate)
    answer = value(await studio.call(at=SPRING, prompt="a fox", **given))
    assert answer["provider"] == "openai-dalle"


async def test_auto_pick_takes_openai_image_first_today(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    answer = value(await studio.connect(openai, replicate).call(prompt="a fox"))
    assert (answer["provider"], answer["model"]) == ("openai-image", "gpt-image-2.5-flare")


async def test_auto_pick_takes_replicate_flux_when_only_its_key_is_set(
    studio: Studio, replicate: ReplicateServer
) -> None:
    answer = value(await studio.connect(replicate).call(at=SPRING, prompt="a fox"))
    assert answer["provider"] == "replicate-flux"


async def test_auto_pick_without_any_key_is_no_provider(studio: Studio) -> None:
    studio.env["LIMNER_IMAGES_EMBEDDED"] = "false"
    result = await studio.call(prompt="a fox", provider="auto")
    assert failure(result) == ("not_available", "IMAGE_GEN_NO_PROVIDER")


# Error codes


async def test_error_code_image_gen_no_provider(studio: Studio) -> None:
    studio.env["LIMNER_IMAGES_EMBEDDED"] = "false"
    result = await studio.call(prompt="a fox")
    assert failure(result) == ("not_available", "IMAGE_GEN_NO_PROVIDER")
    assert result.error == "Neither OPENAI_API_KEY nor REPLICATE_API_TOKEN is set."


async def test_error_code_invalid_size_for_provider(studio: Studio, openai: OpenAIServer) -> None:
    result = await studio.connect(openai).call(
        prompt="a fox", size="512x512", provider="openai-dalle"
    )
    assert failure(result) == ("input_invalid", "INVALID_SIZE_FOR_PROVIDER")
    assert "1024x1024" in (result.hint or "")
    assert openai.requests == []


async def test_error_code_image_gen_rejected(studio: Studio, openai: OpenAIServer) -> None:
    openai.script(
        "generate", error_reply(400, "Your request was rejected.", code="content_policy_violation")
    )
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert failure(result) == ("execution_failed", "IMAGE_GEN_REJECTED")
    assert (result.retryable, result.billed, result.cost_usd) == (False, False, 0.0)
    assert len(openai.requests) == 1


async def test_error_code_image_gen_quota_exceeded(studio: Studio, openai: OpenAIServer) -> None:
    openai.always("generate", error_reply(429, "No quota.", code="insufficient_quota"))
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert failure(result) == ("execution_failed", "IMAGE_GEN_QUOTA_EXCEEDED")


async def test_error_code_image_gen_quota_exceeded_by_a_rate_limit(
    studio: Studio, openai: OpenAIServer
) -> None:
    # The service asks for a pause that is longer than a call waits.
    limited = error_reply(429, "Slow down.", code="rate_limit_exceeded")
    openai.always("generate", replace(limited, headers={**limited.headers, "Retry-After": "3600"}))
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert failure(result) == ("execution_failed", "IMAGE_GEN_QUOTA_EXCEEDED")
    assert (len(openai.requests), result.billed) == (1, False)


async def test_error_code_image_gen_provider_unavailable(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.always("generate", json_reply({"error": {"message": "boom"}}, status=500))
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert failure(result) == ("execution_failed", "IMAGE_GEN_PROVIDER_UNAVAILABLE")
    assert len(openai.requests) == 1


async def test_error_code_output_path_denied(studio: Studio, openai: OpenAIServer) -> None:
    result = await studio.connect(openai).call(
        at=SPRING, prompt="a fox", output_path="/opt/elsewhere/fox.png"
    )
    assert failure(result) == ("execution_failed", "OUTPUT_PATH_DENIED")
    assert openai.requests == []


# Examples


async def test_example_basic_generation(studio: Studio, openai: OpenAIServer) -> None:
    openai.revised_prompt = "A serene watercolor of a mountain lake"
    result = await studio.connect(openai).call(
        at=SPRING, prompt="A watercolor painting of a mountain lake at dawn"
    )
    answer = value(result)
    assert {name: answer[name] for name in list(answer)[:5]} == {
        "path": str(studio.files[0]),
        "dimensions": {"width": 1024, "height": 1024},
        "cost_usd": 0.04,
        "provider": "openai-dalle",
        "prompt_used": "A serene watercolor of a mountain lake",
    }


async def test_example_hd_portrait_with_explicit_provider(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.picture = picture(1024, 1792)
    target = studio.cwd / "headshot.png"
    result = await studio.connect(openai).call(
        prompt="Professional headshot, studio lighting, neutral background",
        size="1024x1792",
        quality="hd",
        provider="openai-dalle",
        output_path=str(target),
    )
    answer = value(result)
    assert {name: answer[name] for name in list(answer)[:4]} == {
        "path": str(target),
        "dimensions": {"width": 1024, "height": 1792},
        "cost_usd": 0.12,
        "provider": "openai-dalle",
    }
    assert unlabelled(target) == openai.picture
    assert "retired" in answer["notice"]


# Known limitations: lifted


@pytest.mark.slow
async def test_limitation_cloud_only_is_lifted_by_the_embedded_illustrator(
    studio: Studio,
) -> None:
    result = await studio.call(prompt="A watercolor painting of a mountain lake at dawn")
    answer = value(result)
    assert (answer["provider"], answer["cost_usd"]) == ("illustrator", 0.0)
    assert "OPENAI_API_KEY" in answer["note"]
    assert on_disk(answer) == ("PNG", (1024, 1024))


# Known limitations: kept


def test_limitation_generation_is_from_text_alone() -> None:
    assert {"image", "images", "mask", "reference"} & set(
        IMAGE_GENERATE.schema["properties"]
    ) == set()


async def test_limitation_no_retry_on_a_policy_rejection(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.outcome, replicate.error = "failed", "All generated images contained NSFW content"
    result = await studio.connect(replicate).call(prompt="a fox")
    assert failure(result) == ("execution_failed", "IMAGE_GEN_REJECTED")
    assert len(replicate.sent("create")) == 1


async def test_limitation_png_only_whatever_the_extension(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.picture = picture(kind="WEBP")
    replicate.delivery = "data"
    answer = value(await studio.connect(replicate).call(prompt="a fox", output_path="fox.jpg"))
    assert answer["path"] == str(studio.cwd / "fox.jpg")
    assert on_disk(answer) == ("PNG", (1024, 1024))


@pytest.mark.slow
async def test_limitation_flux_polls(studio: Studio, replicate: ReplicateServer) -> None:
    replicate.looks = 2
    value(await studio.connect(replicate).call(prompt="a fox"))
    assert len(replicate.sent("look")) == 2


# What the specification leaves open


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\u200d\ufeff"])
async def test_a_prompt_that_shows_nothing_is_refused_before_paying(
    studio: Studio, openai: OpenAIServer, blank: str
) -> None:
    result = await studio.connect(openai).call(at=SPRING, prompt=blank)
    assert (result.code, result.field, openai.requests) == ("input_invalid", "prompt", [])


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("https://example.com/x.png", "is an address, not a path"),
        ("data:image/png;base64,AAAA", "is an address, not a path"),
        ("file://elsewhere/x.png", "is an address, not a path"),
        ("$HOME/x.png", "has a variable in it"),
        ("${TMPDIR}/x.png", "has a variable in it"),
        ("C:\\Users\\me\\x.png", "is a path of Windows"),
        ("no-folder/", "there is no folder"),
        ("x" * 5_000 + ".png", "the path is too long"),
    ],
)
async def test_an_output_path_that_is_none_is_refused_before_paying(
    studio: Studio, openai: OpenAIServer, path: str, problem: str
) -> None:
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox", output_path=path)
    assert (result.code, result.field, openai.requests) == ("input_invalid", "output_path", [])
    assert problem in (result.error or "")
    if "address" in problem:
        assert result.hint == "Pictures are written to files: give the path of one."


@pytest.mark.parametrize(
    "path", ["{cwd}/a b.png\n", "'a b.png'", "@a b.png", "file://{cwd}/a%20b.png"]
)
async def test_an_output_path_is_read_as_people_write_it(
    studio: Studio, openai: OpenAIServer, path: str
) -> None:
    given = path.format(cwd=studio.cwd)
    answer = value(await studio.connect(openai).call(at=SPRING, prompt="x", output_path=given))
    assert answer["path"] == str(studio.cwd / "a b.png")


async def test_a_folder_as_output_path_means_in_here(studio: Studio, openai: OpenAIServer) -> None:
    folder = studio.cwd / "pictures"
    folder.mkdir()
    studio.connect(openai)
    stem = int(SPRING.timestamp() * 1000)
    one = value(await studio.call(at=SPRING, prompt="a fox", output_path="pictures"))
    assert one["path"] == str(folder / f"{stem}.png")
    more = value(await studio.call(at=SPRING, prompt="a fox", output_path="pictures/", n=2))
    assert sorted(each["path"] for each in more["pictures"]) == [
        str(folder / f"{stem}-1.png"),
        str(folder / f"{stem}-2.png"),
    ]


async def test_without_the_generated_folder_an_output_path_is_asked_for(
    studio: Studio, openai: OpenAIServer
) -> None:
    reach = replace(studio.context().reach, write=(studio.cwd,))
    context = replace(studio.context(), reach=reach)
    result = await studio.connect(openai).call(context=context, at=SPRING, prompt="a fox")
    assert failure(result) == ("execution_failed", "OUTPUT_PATH_DENIED")
    assert (result.error or "").startswith("output_path is required")
    assert str(studio.cwd) in (result.hint or "")


async def test_a_seed_that_was_not_sent_is_not_claimed(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        drawn = await lim.generate("a fox", provider="openai-image")
        info = await lim.picture(drawn).info()
    assert "'seed': None" in str(info)


async def test_the_context_of_a_limner_reaches_its_own_folders(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        calls = [ToolCall(name="image_generate", arguments={"prompt": "a fox"})]
        (result,) = await lim.registry().execute_parallel(calls, lim.context())
    assert value(result)["path"].startswith(str(studio.home / "generated"))
