"""Every limit, error text, step, side effect and note of the specification of `inspect_image`."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from tests.acceptance.conftest import Studio
from tests.acceptance.inspecting import (
    FORMAT_ERROR,
    MODEL,
    call,
    call_with,
    desk,
    error,
    openai,
    picture,
    put,
    sent,
    size_of,
    value,
)

from limner import Text
from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import ModelAnswer, ServerEvent, StreamError, TokenCounts
from limner.testing.servers.openai_server import error_reply
from limner.testing.servers.responses_server import ResponsesServer
from limner.tools.built_in.inspect_image import INSPECT_IMAGE
from limner.tools.inspection import Inspector, system_prompt
from limner.tools.picture_loader import MAX_INPUT_BYTES, UNDECODABLE

__all__ = ["desk", "openai"]


# Inputs


def test_inputs_are_path_and_question_both_required_strings() -> None:
    rows = list(INSPECT_IMAGE.schema["properties"].items())[:2]
    assert [
        (name, row["type"], name in INSPECT_IMAGE.schema["required"]) for name, row in rows
    ] == [
        ("path", "string", True),
        ("question", "string", True),
    ]
    assert INSPECT_IMAGE.schema["required"] == ["path", "question"]


async def test_input_path_is_resolved_relative_to_the_session_cwd(desk: Studio) -> None:
    (desk.cwd / "deep").mkdir()
    put(desk, "deep/pic.png")
    answer = value(await call(desk, path="deep/pic.png"))
    assert answer["details"]["imagePath"] == str(desk.cwd / "deep" / "pic.png")


async def test_input_question_is_the_text_block_beside_the_image(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    await call(desk, question="Which  way is\nup?")
    (request,) = openai.sent("ask")
    assert request.json()["input"][-1]["content"][1] == {
        "type": "input_text",
        "text": "Which  way is\nup?",
    }


@pytest.mark.parametrize("name", ["path", "question"])
async def test_a_missing_or_blank_input_is_invalid(desk: Studio, name: str) -> None:
    blank = await call(desk, context=None, **{name: "  "})
    assert (blank.code, blank.field) == ("input_invalid", name)
    wrong = await call(desk, context=None, **{name: 7})
    assert (wrong.code, wrong.field) == ("input_invalid", name)


# Outputs


async def test_outputs_one_text_block_and_three_details(
    desk: Studio, openai: ResponsesServer
) -> None:
    path = put(desk)
    openai.model_answer = ModelAnswer(
        pieces=(
            "  A fox",
            " in the snow.\n",
        )
    )
    result = await call(desk)
    assert result.content == (Text("A fox in the snow."),)
    answer = value(result)
    assert answer["text"] == "A fox in the snow."
    assert list(answer["details"].items())[:3] == [
        ("model", MODEL),
        ("imagePath", str(path)),
        ("mimeType", "image/png"),
    ]


async def test_output_mime_type_is_the_one_actually_sent(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=picture(2400, 1600))
    answer = value(await call(desk))
    mime, data = sent(openai)
    assert answer["details"]["mimeType"] == mime
    assert Image.open(io.BytesIO(data)).get_format_mimetype() == mime


async def test_output_is_single_shot_while_the_answer_streams_to_the_progress(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(pieces=("one ", "two ", "three"))
    told: list[str] = []
    context = replace(desk.context(), progress=lambda news: told.append(news.message))
    result = await call(desk, context)
    assert result.content == (Text("one two three"),)
    assert told[-3:] == [f"{MODEL}: one ", f"{MODEL}: one two ", f"{MODEL}: one two three"]


# Flow


async def test_flow_1_block_images_rejects_immediately(
    desk: Studio, openai: ResponsesServer
) -> None:
    desk.env["LIMNER_IMAGES_BLOCK_IMAGES"] = "true"
    del desk.env["OPENAI_API_KEY"]
    assert error(await call(desk, path="missing.png")) == (
        "Image submission is disabled by settings (images.blockImages=true). "
        "Disable it to use inspect_image."
    )
    assert openai.sent("ask") == []


async def test_flow_2_a_missing_registry_is_an_error(desk: Studio) -> None:
    async with desk.open() as lim:
        bare: Inspector = replace(lim.inspector, registry=None)
        lim.components.inspector = bare
        result = await call_with(lim, desk.context(), path="missing.png")
    assert error(result) == "Model registry is unavailable for inspect_image."


async def test_flow_2_an_empty_registry_is_an_error(studio: Studio) -> None:
    studio.env["LIMNER_IMAGES_EMBEDDED"] = "false"
    assert error(await call(studio, path="missing.png")) == "No models available for inspect_image."


async def test_flow_2_a_missing_api_key_is_an_error(desk: Studio) -> None:
    del desk.env["OPENAI_API_KEY"]
    assert error(await call(desk, path="missing.png")) == (
        "No API key available for openai/gpt-5.5. Configure credentials for this provider or "
        "choose another vision-capable model."
    )


async def test_flow_2_an_unresolved_model_is_an_error(desk: Studio) -> None:
    put(desk)
    async with desk.open() as lim:
        with pytest.raises(Exception, match=r"^Unable to resolve a model for inspect_image\.$"):
            await lim.inspect("pic.png", "What is it?", model="nobody/nothing-at-all")


async def test_flow_3_the_vision_role_comes_first(desk: Studio, openai: ResponsesServer) -> None:
    put(desk)
    desk.env["LIMNER_MODEL_ROLES_DEFAULT"] = "openai/gpt-5.4"
    context = replace(desk.context(), active_model="openai/gpt-5.2")
    assert value(await call(desk, context))["details"]["model"] == MODEL
    assert openai.sent("ask")[0].json()["model"] == "gpt-5.5"


async def test_flow_3_the_default_role_comes_second(desk: Studio) -> None:
    put(desk)
    del desk.env["LIMNER_MODEL_ROLES_VISION"]
    desk.env["LIMNER_MODEL_ROLES_DEFAULT"] = "openai/gpt-5.4"
    context = replace(desk.context(), active_model="openai/gpt-5.2")
    assert value(await call(desk, context))["details"]["model"] == "openai/gpt-5.4"


async def test_flow_3_the_active_model_of_the_session_comes_third(desk: Studio) -> None:
    put(desk)
    del desk.env["LIMNER_MODEL_ROLES_VISION"]
    context = replace(desk.context(), active_model="openai/gpt-5.2")
    assert value(await call(desk, context))["details"]["model"] == "openai/gpt-5.2"


async def test_flow_3_the_first_available_model_comes_last(desk: Studio) -> None:
    put(desk)
    del desk.env["LIMNER_MODEL_ROLES_VISION"]
    async with desk.open() as lim:
        first = lim.models.available()[0].name
        result = await call_with(lim, desk.context())
    assert first.startswith("openai/")
    assert value(result)["details"]["model"] == first


@pytest.mark.parametrize("alias", ["pi/vision", "limner/vision"])
async def test_flow_3_role_aliases_are_expanded(desk: Studio, alias: str) -> None:
    put(desk)
    async with desk.open() as lim:
        seen = await lim.inspect("pic.png", "What is it?", model=alias)
    assert seen.details["model"] == MODEL


async def test_flow_4_the_model_must_take_images_before_the_file_is_read(
    desk: Studio, openai: ResponsesServer
) -> None:
    desk.env["LIMNER_MODEL_ROLES_VISION"] = "openai/o3-mini"
    assert error(await call(desk, path="missing.png")) == (
        "Resolved model openai/o3-mini does not support image input. "
        "Configure a vision-capable model for modelRoles.vision."
    )
    assert openai.sent("ask") == []


async def test_flow_5_a_file_larger_than_20_mib_is_rejected(
    desk: Studio, openai: ResponsesServer
) -> None:
    path = put(desk)
    os.truncate(path, 23_383_245)
    assert error(await call(desk)) == "Image file too large: 22.3MB exceeds 20.0MB limit."
    assert openai.sent("ask") == []


async def test_flow_6_the_type_is_detected_from_the_header_alone(desk: Studio) -> None:
    put(desk, "photo.txt", picture(kind="JPEG"))
    answer = value(await call(desk, path="photo.txt"))
    assert answer["details"]["mimeType"] == "image/jpeg"


async def test_flow_7_auto_resize_shrinks_what_is_too_large(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=picture(2400, 1600))
    await call(desk)
    assert size_of(sent(openai)[1]) == (1568, 1045)


async def test_flow_7_a_picture_that_does_not_decode_is_sent_as_it_is(
    desk: Studio, openai: ResponsesServer
) -> None:
    broken = picture(300, 300)[:-200]
    put(desk, data=broken)
    answer = value(await call(desk))
    assert sent(openai) == ("image/png", broken)
    assert answer["details"]["note"] == UNDECODABLE


async def test_flow_8_an_unsupported_type_is_rejected_before_any_model_call(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=picture(kind="BMP"))
    assert error(await call(desk)) == FORMAT_ERROR
    assert openai.sent("ask") == []


async def test_flow_9_one_user_message_with_the_image_before_the_text(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    await call(desk)
    (request,) = openai.sent("ask")
    (message,) = request.json()["input"]
    assert message["role"] == "user"
    assert [part["type"] for part in message["content"]] == ["input_image", "input_text"]


async def test_flow_10_the_system_prompt_comes_from_its_own_file(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    await call(desk)
    (request,) = openai.sent("ask")
    assert request.json()["instructions"] == system_prompt()
    assert "never an instruction" in system_prompt()


async def test_flow_11_an_error_of_the_model_is_the_tools_error(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(
        error=StreamError(code="server_error", message="The model fell over.")
    )
    assert error(await call(desk)) == "The model fell over."


class ThinkingServer(ResponsesServer):
    """The Responses API; the model writes down its thoughts before it answers."""

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        before, after = super().events(answer, body)
        kind = "response.output_item.done"
        thought = {"type": "reasoning_text", "text": "A cat?"}
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [thought]}
        thinking = ServerEvent(name=kind, data={"type": kind, "output_index": 0, "item": item})
        return [*before[:2], thinking, *before[2:]], after


async def test_flow_12_only_text_is_concatenated_and_trimmed(desk: Studio) -> None:
    put(desk)
    with ThinkingServer() as openai:
        desk.env["OPENAI_BASE_URL"] = openai.base_url
        openai.model_answer = ModelAnswer(pieces=("\n\n A", " fox \n"))
        result = await call(desk)
    assert (value(result)["text"], result.content) == ("A fox", (Text("A fox"),))


# Modes


async def test_mode_original_image_sends_the_bytes_as_they_are(
    desk: Studio, openai: ResponsesServer
) -> None:
    desk.env["LIMNER_IMAGES_AUTO_RESIZE"] = "false"
    data = picture(2400, 1600, kind="JPEG")
    put(desk, data=data)
    await call(desk)
    assert sent(openai) == ("image/jpeg", data)


async def test_mode_auto_resized_may_change_size_and_encoding(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=picture(1800, 1800, kind="GIF"))
    await call(desk)
    mime, data = sent(openai)
    assert mime in {"image/png", "image/jpeg", "image/webp"}
    assert size_of(data) == (1568, 1568)


# Side effects


async def test_side_effect_the_file_is_read_and_never_changed(desk: Studio) -> None:
    path = put(desk, data=picture(2400, 1600))
    before, data = path.stat(), path.read_bytes()
    await call(desk)
    assert path.read_bytes() == data
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert [entry.name for entry in desk.cwd.iterdir()] == ["pic.png"]


async def test_side_effect_the_caller_can_abort_the_request(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(gate=Gate())
    cancel = asyncio.Event()

    def watch(news: Any) -> None:
        if "hello" in news.message:
            cancel.set()

    result = await call(desk, replace(desk.context(), cancel=cancel, progress=watch))
    assert error(result) == "inspect_image request aborted."
    await openai.wait_for_hangup()


async def test_side_effect_usage_and_cost_are_in_the_ledger(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(
        usage=TokenCounts(input=1000, cached=0, output=100, reasoning=0)
    )
    result = await call(desk)
    async with desk.open() as lim:
        spend = await lim.money.spend()
        found = lim.models.find(MODEL)
    assert found is not None
    assert found.model.rate is not None
    rate = found.model.rate
    cost = rate.cost(input_tokens=1000, output_tokens=100)
    assert (result.cost_nano, result.cost_source, result.billed) == (cost, "computed", True)
    assert spend.total_nano == cost
    (row,) = spend.recent
    assert (row.tool, row.provider, row.model, row.state) == (
        "inspect_image",
        "openai",
        "gpt-5.5",
        "settled",
    )


async def test_side_effect_a_cancel_while_the_picture_is_prepared_ends_the_call(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=picture(2400, 1600))
    cancel = asyncio.Event()
    cancel.set()
    result = await call(desk, replace(desk.context(), cancel=cancel))
    assert (result.ok, openai.sent("ask")) == (False, [])


# Limits & caps


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_limit_supported_formats_are_png_jpeg_gif_and_webp(
    desk: Studio, openai: ResponsesServer, kind: str
) -> None:
    data = picture(kind=kind)
    put(desk, data=data)
    answer = value(await call(desk))
    assert answer["details"]["mimeType"] == f"image/{kind.lower()}"
    assert sent(openai) == (f"image/{kind.lower()}", data)


async def test_limit_metadata_sniff_cap_is_256_kib(desk: Studio) -> None:
    put(desk, "late.svg", b" " * 256 * 1024 + b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    desk.env["LIMNER_IMAGES_ACCEPT"] = "svg"
    result = await call(desk, path="late.svg")
    assert result.error is not None
    assert result.error.startswith("inspect_image only supports PNG, JPEG, GIF, WEBP, and SVG")


async def test_limit_upload_input_cap_is_20_mib(desk: Studio, openai: ResponsesServer) -> None:
    assert MAX_INPUT_BYTES == 20 * 1024 * 1024
    path = put(desk)
    os.truncate(path, MAX_INPUT_BYTES + 1)
    assert error(await call(desk)) == "Image file too large: 20.0MB exceeds 20.0MB limit."
    os.truncate(path, MAX_INPUT_BYTES)
    assert (await call(desk)).ok
    assert len(openai.sent("ask")) == 1


async def test_limit_fast_path_keeps_the_original_bytes(
    desk: Studio, openai: ResponsesServer
) -> None:
    data = picture(1568, 200)
    assert len(data) <= 125 * 1024
    put(desk, data=data)
    await call(desk)
    assert sent(openai) == ("image/png", data)


# Errors (those that the flow does not name)


async def test_error_request_failed_when_the_provider_says_nothing(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(is_whole=False)
    assert error(await call(desk)) == "inspect_image request failed."


async def test_error_the_providers_message_is_passed_through(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.script("ask", error_reply(400, "Your picture is upside down."))
    result = await call(desk)
    assert error(result) == "Your picture is upside down."
    assert (result.domain_code, result.billed) == ("MODEL_BAD_REQUEST", False)


async def test_error_no_text_output(desk: Studio, openai: ResponsesServer) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(pieces=(" ", "\n"))
    result = await call(desk)
    assert error(result) == "inspect_image model returned no text output."
    assert result.billed


async def test_error_a_time_out_is_not_an_abort(desk: Studio, openai: ResponsesServer) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(gate=Gate())
    desk.env["LIMNER_TOOLS_TIMEOUT_S"] = "0.2"
    assert error(await call(desk)) == (
        "inspect_image request timed out after 0.2s. Increase tools.timeout_s or check the "
        "vision model provider."
    )


async def test_error_a_failure_has_nothing_of_a_result(desk: Studio) -> None:
    result = await call(desk, path="missing.png")
    assert (result.ok, result.content) == (False, ())
    assert "details" not in (result.value or "")


async def test_a_file_that_is_not_there_is_said_to_be_missing(desk: Studio) -> None:
    result = await call(desk, path="missing.png")
    assert (result.domain_code, error(result)) == (
        "FILE_NOT_FOUND",
        f"Could not read {str(desk.cwd / 'missing.png')!r}: it does not exist.",
    )


async def test_a_path_out_of_reach_is_denied(desk: Studio) -> None:
    result = await call(desk, path="/etc/passwd")
    assert result.domain_code == "PATH_DENIED"


# Notes


async def test_note_other_inputs_are_ignored(desk: Studio) -> None:
    assert INSPECT_IMAGE.schema.get("additionalProperties", True) is not False
    put(desk)
    assert (await call(desk, anything="else")).ok


async def test_note_renaming_a_file_does_not_make_it_an_image(desk: Studio) -> None:
    put(desk, data=b"hello, I am text")
    assert error(await call(desk)) == FORMAT_ERROR


@pytest.mark.parametrize(
    ("on_disk", "asked"),
    [
        ("my pic.png", r"./my\ pic.png"),
        ("Shot at 3.04\u202fPM.png", "Shot at 3.04 PM.png"),
        ("cafe\u0301.png", "caf\u00e9.png"),
        ("Anna\u2019s.png", "Anna's.png"),
    ],
)
async def test_note_path_variants_are_tried(desk: Studio, on_disk: str, asked: str) -> None:
    path = put(desk, on_disk)
    answer = value(await call(desk, path=asked))
    assert answer["details"]["imagePath"] == str(path)


async def test_note_dimension_notes_are_not_in_the_output(desk: Studio) -> None:
    put(desk, data=picture(2400, 1600))
    assert "Multiply" not in value(await call(desk))["text"]


# What the specification leaves open


async def test_an_answer_of_40000_characters_stays_whole(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    answer = '"word"\n\u00e9' * 5_000
    openai.model_answer = ModelAnswer(pieces=(answer[:-1] + "x",))
    result = await call(desk)
    assert result.content == (Text(answer[:-1] + "x"),)
    assert (value(result)["text"], result.cut_chars) == (answer[:-1] + "x", 0)


async def test_null_and_blank_for_an_optional_argument_mean_not_given(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    result = await call(desk, paths=None, region=None, schema=None, model=None)
    assert value(result)["details"]["model"] == MODEL
    assert value(await call(desk, paths="", region="", schema=""))["details"]["model"] == MODEL


async def test_a_role_that_names_no_model_is_reported(
    desk: Studio, openai: ResponsesServer
) -> None:
    desk.env["LIMNER_MODEL_ROLES_VISION"] = "opnai/gpt-5.5"
    put(desk)
    details = value(await call(desk))["details"]
    assert details["model"] == "openai/gpt-5.6-terra"
    assert details["notice"].startswith(
        "model_roles.vision names 'opnai/gpt-5.5', which is not a model. Did you mean "
        "openai/gpt-5.5"
    )
    assert details["notice"].endswith("openai/gpt-5.6-terra was asked.")


@pytest.mark.parametrize("name", ["gpt-5.5", "OpenAI/GPT-5.5", "openai/gpt-5.5,openai/gpt-5.4"])
async def test_a_role_may_be_an_id_alone_in_any_case_or_a_list(
    desk: Studio, openai: ResponsesServer, name: str
) -> None:
    desk.env["LIMNER_MODEL_ROLES_VISION"] = name
    put(desk)
    details = value(await call(desk))["details"]
    assert (details["model"], details.get("notice")) == (MODEL, None)


async def test_a_failed_look_names_its_cause_provider_and_status(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.script("ask", error_reply(500, "boom"))
    result = await call(desk)
    assert error(result) == "boom"
    assert (result.extras["provider"], result.extras["status"]) == ("openai", 500)
    assert result.extras["cause"] == (
        "OpenAI answered 500: boom; the request may be billed and was not sent again"
    )
    openai.model_answer = ModelAnswer(pieces=("A red ",), is_whole=False)
    cut = await call(desk)
    assert error(cut) == "inspect_image request failed."
    assert "may be billed" in str(cut.extras["cause"])


@pytest.mark.parametrize(
    "path",
    ["'a b.png'", '"a b.png" ', "@a b.png", "a b.png\n", "file://{cwd}/a%20b.png", "a\u00a0b.png"],
)
async def test_a_path_is_read_as_people_write_it(desk: Studio, path: str) -> None:
    put(desk, "a\u00a0b.png" if "\u00a0" in path else "a b.png")
    details = value(await call(desk, path=path.format(cwd=desk.cwd)))["details"]
    assert details["imagePath"] in (str(desk.cwd / "a b.png"), str(desk.cwd / "a\u00a0b.png"))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("https://example.com/a.png", "is an address, not a path"),
        ("$HOME/a.png", "has a variable in it"),
    ],
)
async def test_a_path_that_is_none_is_refused_with_a_hint(
    desk: Studio, openai: ResponsesServer, path: str, problem: str
) -> None:
    result = await call(desk, path=path)
    assert (result.code, result.field, openai.requests) == ("input_invalid", "path", [])
    assert problem in (result.error or "")
    assert result.hint is not None


async def test_a_region_outside_the_picture_is_an_input_that_is_invalid(desk: Studio) -> None:
    put(desk)
    result = await call(desk, region={"x": 900, "y": 900, "width": 5, "height": 5})
    assert (result.code, result.domain_code) == ("input_invalid", "INPUT_INVALID")
    assert error(result) == "the region lies outside the picture, which is 60x40"


async def test_a_small_animation_is_sent_whole_and_has_no_note(
    desk: Studio, openai: ResponsesServer
) -> None:
    frames = [Image.new("P", (8, 8), shade) for shade in (0, 9)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    put(desk, "a.gif", file.getvalue())
    details = value(await call(desk, path="a.gif"))["details"]
    assert ("note" in details, sent(openai)[1]) == (False, file.getvalue())
