"""The three specifications as a table: each statement, and the test or the ruling for it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import msgspec
import pytest
from tests.wires.seed_schema import ROOT

TESTS = Path(__file__).parents[1]
GENERATE = "acceptance/test_seed_image_generate.py"
INSPECT = "acceptance/test_seed_inspect_image.py"
DEFECTS = "acceptance/test_upstream_defects.py"
LOOP = "agent/test_agent_loop.py"
HISTORIES = "acceptance/test_appserver_histories.py"
LADDER = "imaging/test_imaging_fit_ladder.py"
PREVIEW = "frontends/test_cli_terminal_text.py"
TOOLS = "frontends/appserver/test_appserver_tools.py"
SCHEMA = "frontends/appserver/test_appserver_v1_schema.py"
RESUME = "frontends/appserver/test_appserver_v1_resume.py"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of a specification.

    Attributes:
        says: the statement.
        file: the file of the test that shows it.
        test: the name of the test.
        ruling: how limner differs, and why; None if the statement is true as it stands.
    """

    says: str
    file: str
    test: str
    ruling: str | None = None


def true(says: str, file: str, test: str) -> Statement:
    return Statement(says=says, file=file, test=test)


def ruled(says: str, file: str, test: str, ruling: str) -> Statement:
    return Statement(says=says, file=file, test=test, ruling=ruling)


IMAGE_GENERATE = (
    true(
        "name, toolset, maxResultChars", GENERATE, "test_tool_surface_name_toolset_and_result_size"
    ),
    true(
        "five parameters with their defaults",
        GENERATE,
        "test_parameters_are_the_table_in_its_order_with_its_defaults",
    ),
    true("prompt is required", GENERATE, "test_parameter_prompt_is_required"),
    true(
        "output_path defaults to generated/<timestamp>.png",
        GENERATE,
        "test_parameter_output_path_defaults_to_a_timestamp_in_the_generated_folder",
    ),
    ruled(
        "size is one of four",
        GENERATE,
        "test_parameter_size_is_sent_and_measured",
        "Other sizes and shapes are accepted if the provider can draw them.",
    ),
    true("quality is standard or hd", GENERATE, "test_parameter_quality_takes_no_other_word"),
    true(
        "the value has five members",
        GENERATE,
        "test_return_shape_has_the_five_members_first_and_in_order",
    ),
    true(
        "cost_usd is at the top level too",
        GENERATE,
        "test_return_shape_cost_usd_is_also_at_the_top_level",
    ),
    true(
        "prompt_used is the revised prompt",
        GENERATE,
        "test_return_shape_a_revised_prompt_is_not_masked",
    ),
    true(
        "prompt_used echoes the prompt for Flux",
        GENERATE,
        "test_return_shape_prompt_used_echoes_the_prompt_for_flux",
    ),
    true("openai-dalle is DALL-E 3", GENERATE, "test_provider_matrix_openai_dalle_sends_dalle_3"),
    ruled(
        "replicate-flux draws all sizes for $0.003",
        GENERATE,
        "test_provider_matrix_replicate_flux_does_every_size_for_a_flat_price",
        "Flux takes aspect ratios: the nearest one is drawn and fitted to the exact size.",
    ),
    true("Flux ignores quality", GENERATE, "test_provider_matrix_replicate_flux_ignores_quality"),
    true("six prices of DALL-E 3", GENERATE, "test_dalle_3_pricing"),
    ruled(
        "auto takes openai-dalle, then replicate-flux",
        GENERATE,
        "test_auto_pick_takes_openai_dalle_first_while_it_lived",
        "DALL-E 3 is retired, so today auto takes openai-image first.",
    ),
    ruled(
        "without a key: IMAGE_GEN_NO_PROVIDER",
        GENERATE,
        "test_error_code_image_gen_no_provider",
        "By default the embedded illustrator draws; images.embedded = false gives this error.",
    ),
    true("INVALID_SIZE_FOR_PROVIDER", GENERATE, "test_error_code_invalid_size_for_provider"),
    true("IMAGE_GEN_REJECTED", GENERATE, "test_error_code_image_gen_rejected"),
    true("IMAGE_GEN_QUOTA_EXCEEDED", GENERATE, "test_error_code_image_gen_quota_exceeded"),
    true(
        "IMAGE_GEN_PROVIDER_UNAVAILABLE", GENERATE, "test_error_code_image_gen_provider_unavailable"
    ),
    true("OUTPUT_PATH_DENIED", GENERATE, "test_error_code_output_path_denied"),
    true("quality is sent to DALL-E", GENERATE, "test_parameter_quality_is_sent"),
    true(
        "an optional parameter may be absent",
        GENERATE,
        "test_null_and_blank_for_an_optional_parameter_mean_not_given",
    ),
    true(
        "prompt_used is what DALL-E made of the prompt",
        GENERATE,
        "test_return_shape_prompt_used_is_the_revised_prompt_of_dalle",
    ),
    true(
        "auto takes replicate-flux if only its key is set",
        GENERATE,
        "test_auto_pick_takes_replicate_flux_when_only_its_key_is_set",
    ),
    true(
        "auto without any key has no provider",
        GENERATE,
        "test_auto_pick_without_any_key_is_no_provider",
    ),
    ruled(
        "auto today",
        GENERATE,
        "test_auto_pick_takes_openai_image_first_today",
        "DALL-E 3 is retired, so today auto takes openai-image first.",
    ),
    true("Flux is polled", GENERATE, "test_limitation_flux_polls"),
    true(
        "an output path is checked before paying",
        GENERATE,
        "test_an_output_path_that_is_none_is_refused_before_paying",
    ),
    true("the first example", GENERATE, "test_example_basic_generation"),
    true("the second example", GENERATE, "test_example_hd_portrait_with_explicit_provider"),
    ruled(
        "no editing",
        GENERATE,
        "test_limitation_generation_is_from_text_alone",
        "Editing is a tool of its own, image_edit.",
    ),
    ruled(
        "cloud providers only",
        GENERATE,
        "test_limitation_cloud_only_is_lifted_by_the_embedded_illustrator",
        "A fresh machine draws with the embedded illustrator; local servers work by name.",
    ),
    true("no retry on a rejection", GENERATE, "test_limitation_no_retry_on_a_policy_rejection"),
    ruled(
        "the file is always a PNG",
        GENERATE,
        "test_limitation_png_only_whatever_the_extension",
        "True for the tool; the command line writes the format that the name asks for.",
    ),
    ruled(
        "Flux is polled for 120 s",
        "acceptance/test_recovery.py",
        "test_a_time_out_may_be_billed_names_its_job_and_is_recovered_later",
        "The job survives its time-out and can be recovered.",
    ),
    true(
        "twenty calls at once on the default path give twenty files",
        "acceptance/test_upstream_defects.py",
        "test_p11_twenty_parallel_calls_on_the_default_path_give_twenty_files",
    ),
    true(
        "the file is written whole or not at all",
        "storage/test_storage_files.py",
        "test_a_write_that_fails_half_way_leaves_nothing",
    ),
    true(
        "a toolset decides which tools a turn may call",
        "tools/test_tools_registry.py",
        "test_a_tool_that_may_not_run_does_not_run",
    ),
    true(
        "a factory makes the list of tools",
        GENERATE,
        "test_tool_surface_name_toolset_and_result_size",
    ),
    true(
        "the value is a JSON string of at most 1,000 characters",
        DEFECTS,
        "test_p1_a_long_revised_prompt_breaks_neither_the_json_nor_the_cost",
    ),
    true(
        "the limit of a result works together with the budget of the turn",
        "tools/test_tools_registry.py",
        "test_what_short_answers_leave_of_the_turn_goes_to_long_ones",
    ),
    ruled(
        "provider is openai-dalle, replicate-flux or auto",
        DEFECTS,
        "test_p22_an_unknown_provider_is_bad_input_that_names_the_known_ones",
        "There are more providers; a name that is none of them is refused.",
    ),
    true("512x512 is for Flux only", GENERATE, "test_error_code_invalid_size_for_provider"),
    true("dimensions are those of the file", GENERATE, "test_parameter_size_is_sent_and_measured"),
    true(
        "the cost is added to the spend of the session",
        LOOP,
        "test_the_cost_of_a_turn_is_that_of_the_ledger",
    ),
    true(
        "replicate-flux is Flux Schnell",
        GENERATE,
        "test_provider_matrix_replicate_flux_is_flux_schnell",
    ),
    true(
        "a provider is available if its variable is set",
        DEFECTS,
        "test_p4_a_key_only_in_the_environment_is_enough",
    ),
    true(
        "without provider it is auto",
        GENERATE,
        "test_auto_pick_takes_openai_dalle_first_while_it_lived",
    ),
    true(
        "IMAGE_GEN_QUOTA_EXCEEDED for a rate limit",
        GENERATE,
        "test_error_code_image_gen_quota_exceeded_by_a_rate_limit",
    ),
    true(
        "IMAGE_GEN_PROVIDER_UNAVAILABLE after 120 s",
        "providers/test_providers_replicate_flux.py",
        "test_after_two_minutes_the_job_is_left_running_and_can_be_recovered",
    ),
    true(
        "toolset.yaml and fs_reach of a personality hold",
        LOOP,
        "test_a_personality_offers_its_toolset_and_writes_within_its_reach",
    ),
)

INSPECT_IMAGE = (
    true(
        "two required inputs",
        INSPECT,
        "test_inputs_are_path_and_question_both_required_strings",
    ),
    true(
        "path is relative to the session's folder",
        INSPECT,
        "test_input_path_is_resolved_relative_to_the_session_cwd",
    ),
    true("one text block, three details", INSPECT, "test_outputs_one_text_block_and_three_details"),
    true("the text is the whole answer", INSPECT, "test_an_answer_of_40000_characters_stays_whole"),
    true(
        "mimeType is the type that was sent",
        INSPECT,
        "test_output_mime_type_is_the_one_actually_sent",
    ),
    ruled(
        "single-shot, not streamed",
        INSPECT,
        "test_output_is_single_shot_while_the_answer_streams_to_the_progress",
        "The answer streams to the progress display only.",
    ),
    ruled(
        "the question preview has 100 columns",
        PREVIEW,
        "test_the_question_preview_is_100_columns_wide",
        "The caps are for the preview in a conversation; a person reads whole answers.",
    ),
    true(
        "4 lines collapsed",
        PREVIEW,
        "test_the_collapsed_output_has_4_lines_and_says_how_many_more",
    ),
    true("16 lines expanded", PREVIEW, "test_the_expanded_output_has_16_lines"),
    true("120 columns a line", PREVIEW, "test_each_line_is_at_most_120_columns_wide"),
    true("model \u00b7 mimeType below", PREVIEW, "test_a_short_output_is_whole"),
    true("blockImages rejects first", INSPECT, "test_flow_1_block_images_rejects_immediately"),
    true("no registry", INSPECT, "test_flow_2_a_missing_registry_is_an_error"),
    true("no models", INSPECT, "test_flow_2_an_empty_registry_is_an_error"),
    true("no key", INSPECT, "test_flow_2_a_missing_api_key_is_an_error"),
    true("no resolved model", INSPECT, "test_flow_2_an_unresolved_model_is_an_error"),
    true("vision role first", INSPECT, "test_flow_3_the_vision_role_comes_first"),
    true("default role second", INSPECT, "test_flow_3_the_default_role_comes_second"),
    true("active model third", INSPECT, "test_flow_3_the_active_model_of_the_session_comes_third"),
    true("first available last", INSPECT, "test_flow_3_the_first_available_model_comes_last"),
    true("aliases are expanded", INSPECT, "test_flow_3_role_aliases_are_expanded"),
    true(
        "a name is resolved to a model",
        INSPECT,
        "test_a_role_may_be_an_id_alone_in_any_case_or_a_list",
    ),
    true(
        "the model must take images",
        INSPECT,
        "test_flow_4_the_model_must_take_images_before_the_file_is_read",
    ),
    true("20 MiB at most", INSPECT, "test_limit_upload_input_cap_is_20_mib"),
    ruled(
        "PNG, JPEG, GIF and WEBP by content",
        INSPECT,
        "test_limit_supported_formats_are_png_jpeg_gif_and_webp",
        "images.accept can add formats.",
    ),
    true("256 KiB are read to detect it", INSPECT, "test_limit_metadata_sniff_cap_is_256_kib"),
    ruled(
        "a picture that does not decode is sent as it is",
        INSPECT,
        "test_flow_7_a_picture_that_does_not_decode_is_sent_as_it_is",
        "details say so, and above the pixel cap it is refused from its header.",
    ),
    true(
        "another type is an error before any call",
        INSPECT,
        "test_flow_8_an_unsupported_type_is_rejected_before_any_model_call",
    ),
    true(
        "the image comes before the text",
        INSPECT,
        "test_flow_9_one_user_message_with_the_image_before_the_text",
    ),
    true("one system prompt", INSPECT, "test_flow_10_the_system_prompt_comes_from_its_own_file"),
    true(
        "telemetry has the kind inspect_image",
        "models/test_models_telemetry.py",
        "test_a_call_is_one_span_with_names_and_numbers",
    ),
    true(
        "an error of the model is the tool's",
        INSPECT,
        "test_flow_11_an_error_of_the_model_is_the_tools_error",
    ),
    true("only text, trimmed", INSPECT, "test_flow_12_only_text_is_concatenated_and_trimmed"),
    true(
        "autoResize off sends the original",
        INSPECT,
        "test_mode_original_image_sends_the_bytes_as_they_are",
    ),
    true(
        "autoResize may re-encode", INSPECT, "test_mode_auto_resized_may_change_size_and_encoding"
    ),
    true("the file is only read", INSPECT, "test_side_effect_the_file_is_read_and_never_changed"),
    true("the caller can abort", INSPECT, "test_side_effect_the_caller_can_abort_the_request"),
    ruled(
        "preparing a picture cannot be cancelled",
        INSPECT,
        "test_side_effect_a_cancel_while_the_picture_is_prepared_ends_the_call",
        "A cancel ends the call at any time, and nothing is sent.",
    ),
    true("a failure is an error", INSPECT, "test_error_a_failure_has_nothing_of_a_result"),
    true(
        "imagePath is the resolved path", INSPECT, "test_outputs_one_text_block_and_three_details"
    ),
    true("model is provider/id", INSPECT, "test_flow_3_the_vision_role_comes_first"),
    true(
        "1568x1568, 500 KiB, quality 75",
        LADDER,
        "test_the_defaults_are_1568_by_1568_500_kib_and_quality_75",
    ),
    ruled(
        "fast path within a quarter of the bytes",
        LADDER,
        "test_the_fast_path_ends_at_one_byte_over_a_quarter_of_the_byte_limit",
        "The picture must be upright, too.",
    ),
    true("qualities 70, 60, 50, 40", LADDER, "test_the_quality_ladder_is_70_60_50_40"),
    true(
        "dimensions by 1.0 to 0.25, at least 100 pixels",
        LADDER,
        "test_the_dimension_ladder_is_100_75_50_35_25_percent_with_a_floor_of_100_pixels",
    ),
    true(
        "the first pass keeps the smallest of three",
        LADDER,
        "test_the_first_pass_keeps_the_smallest_of_png_jpeg_and_webp",
    ),
    true("fallbacks are JPEG and WebP", LADDER, "test_a_fallback_is_never_a_png"),
    true(
        "request failed without a message",
        INSPECT,
        "test_error_request_failed_when_the_provider_says_nothing",
    ),
    true(
        "the provider's message is passed through",
        INSPECT,
        "test_error_the_providers_message_is_passed_through",
    ),
    true(
        "the question is the text beside the image",
        INSPECT,
        "test_input_question_is_the_text_block_beside_the_image",
    ),
    true(
        "a missing or blank input is invalid", INSPECT, "test_a_missing_or_blank_input_is_invalid"
    ),
    true(
        "a larger file is refused before a request",
        INSPECT,
        "test_flow_5_a_file_larger_than_20_mib_is_rejected",
    ),
    true(
        "the type comes from the header",
        INSPECT,
        "test_flow_6_the_type_is_detected_from_the_header_alone",
    ),
    true(
        "autoResize shrinks what is too large",
        INSPECT,
        "test_flow_7_auto_resize_shrinks_what_is_too_large",
    ),
    true(
        "usage and cost are recorded",
        INSPECT,
        "test_side_effect_usage_and_cost_are_in_the_ledger",
    ),
    true("the fast path keeps the bytes", INSPECT, "test_limit_fast_path_keeps_the_original_bytes"),
    true("a time-out is no abort", INSPECT, "test_error_a_time_out_is_not_an_abort"),
    true("a missing file", INSPECT, "test_a_file_that_is_not_there_is_said_to_be_missing"),
    true("a path out of reach", INSPECT, "test_a_path_out_of_reach_is_denied"),
    true(
        "the fast path ends at the width",
        LADDER,
        "test_the_fast_path_ends_at_one_pixel_over_the_width",
    ),
    true(
        "the width is limited first",
        LADDER,
        "test_the_width_is_limited_first_then_the_height_rounded_half_up",
    ),
    true(
        "the smallest candidate is sent if all are over the limit",
        LADDER,
        "test_the_smallest_candidate_is_sent_if_every_rung_is_over_the_limit",
    ),
    true("no text output", INSPECT, "test_error_no_text_output"),
    ruled(
        "only path and question are read",
        INSPECT,
        "test_note_other_inputs_are_ignored",
        "Unknown inputs are ignored; paths, region and schema are optional extras.",
    ),
    true(
        "a name does not make an image",
        INSPECT,
        "test_note_renaming_a_file_does_not_make_it_an_image",
    ),
    true("path variants of macOS", INSPECT, "test_note_path_variants_are_tried"),
    true(
        "no dimension notes in the output",
        INSPECT,
        "test_note_dimension_notes_are_not_in_the_output",
    ),
)

DYNAMIC_TOOLS = (
    true(
        "contentItems with text and pictures",
        TOOLS,
        "test_every_answer_of_a_client_becomes_an_item_and_an_output",
    ),
    true(
        "an output is a string or an array",
        "frontends/appserver/test_appserver_answers.py",
        "test_an_answer_is_kept_as_sent_and_reaches_the_model",
    ),
    ruled(
        "only text and pictures are supported",
        "frontends/appserver/test_appserver_sounds.py",
        "test_text_picture_and_sound_of_a_tool_reach_the_model_and_stay_as_sent",
        "Sounds are accepted, too, as in today's Codex.",
    ),
    true(
        "a picture whose data is not base64 becomes a text",
        "frontends/appserver/test_appserver_answers.py",
        "test_only_the_picture_that_does_not_decode_is_replaced",
    ),
    true(
        "the old shape is refused",
        TOOLS,
        "test_an_invalid_answer_fails_with_a_text_that_shows_the_right_form",
    ),
    true(
        "the model sees the picture of a client's tool",
        "acceptance/test_appserver_examples.py",
        "test_the_model_sees_the_picture_that_the_clients_tool_answers_with",
    ),
    ruled(
        "FunctionCallOutputPayload has body and success",
        SCHEMA,
        "test_property_whatever_the_schema_allows_is_answered_and_all_of_it_comes_back",
        "The real wire is a bare string or array: both are read, the wire form is written.",
    ),
    true("every kind of ResponseItem", SCHEMA, "test_every_kind_of_item_comes_back"),
    true("a history as it is", SCHEMA, "test_a_history_comes_back_word_for_word"),
    true(
        "what the schema refuses is refused",
        SCHEMA,
        "test_what_the_schema_refuses_is_refused_by_the_name_of_the_member",
    ),
    ruled(
        "resumeConversation by path, id or history",
        RESUME,
        "test_a_path_goes_before_an_id_and_an_id_before_a_history",
        "Upstream has removed v1; limner serves v1 and v2.",
    ),
    true("NewConversationParams hold", RESUME, "test_every_override_holds_for_what_goes_on"),
)


def alternatives(name: str) -> list[str]:
    """The words or the kinds that a definition of the third seed allows."""
    found = ROOT["definitions"][name]
    forms = found.get("oneOf") or found.get("anyOf") or [found]
    return [
        word
        for form in forms
        for word in form.get("enum") or form.get("properties", {}).get("type", {}).get("enum", ())
    ]


# Every kind, action and content form of a history, and every member of the params.
IN_HISTORIES = (
    "ContentItem",
    "FunctionCallOutputContentItem",
    "LocalShellAction",
    "LocalShellStatus",
    "MessagePhase",
    "ReasoningItemContent",
    "ReasoningItemReasoningSummary",
    "ResponseItem",
    "WebSearchAction",
)
NOT_SENT = "No service reads it: Codex and limner keep it and do not send it."
UNREAD = {("ResponseItem", "ghost_snapshot"), ("ResponseItem", "other")}
RULED_OVERRIDES = {
    "includeApplyPatchTool": "limner has no such tool, and says so in a warning.",
    "profile": "A profile is a personality of limner.",
}
FROM_SCHEMA = (
    *(
        Statement(
            says=f"{name}: {word} reaches the model",
            file=HISTORIES,
            test="test_the_model_receives_what_it_receives_from_codex",
            ruling=NOT_SENT if (name, word) in UNREAD else None,
        )
        for name in IN_HISTORIES
        for word in alternatives(name)
    ),
    *(
        true(
            f"LocalShellAction.{member}",
            HISTORIES,
            "test_the_model_receives_what_it_receives_from_codex",
        )
        for form in ROOT["definitions"]["LocalShellAction"]["oneOf"]
        for member in form["properties"]
    ),
    *(
        true(
            f"FunctionCallOutputBody: {form['type']}",
            HISTORIES,
            "test_the_model_receives_what_it_receives_from_codex",
        )
        for form in ROOT["definitions"]["FunctionCallOutputBody"]["anyOf"]
    ),
    *(
        ruled(f"GhostCommit.{member}", SCHEMA, "test_a_history_comes_back_word_for_word", NOT_SENT)
        for member in ROOT["definitions"]["GhostCommit"]["properties"]
    ),
    true(
        "ThreadId is a string", RESUME, "test_a_path_goes_before_an_id_and_an_id_before_a_history"
    ),
    *(
        Statement(
            says=f"NewConversationParams: {name}",
            file="frontends/appserver/test_appserver_v1_conversations.py",
            test="test_every_wish_for_a_new_conversation_has_its_effect",
            ruling=RULED_OVERRIDES.get(name),
        )
        for name in ROOT["definitions"]["NewConversationParams"]["properties"]
    ),
    *(
        true(
            f"{name}: {word}",
            "acceptance/test_appserver_v1.py",
            "test_each_override_holds_in_each_way_to_go_on",
        )
        for name in ("AskForApproval", "SandboxMode")
        for word in alternatives(name)
    ),
    *(
        true(
            f"ResumeConversationParams: {name}",
            RESUME,
            "test_a_path_goes_before_an_id_and_an_id_before_a_history",
        )
        for name in ROOT["properties"]
    ),
    true(
        "v1 and v2 send the same history",
        HISTORIES,
        "test_the_first_version_of_the_protocol_is_the_same",
    ),
    true("a bad item refuses nothing else", SCHEMA, "test_one_bad_item_never_refuses_the_rest"),
    true(
        "compactPrompt sums up",
        "frontends/appserver/test_appserver_v1_conversations.py",
        "test_a_compact_prompt_is_what_sums_the_conversation_up",
    ),
)

TABLE = (*IMAGE_GENERATE, *INSPECT_IMAGE, *DYNAMIC_TOOLS, *FROM_SCHEMA)


@cache
def names_of_tests(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


@pytest.mark.parametrize("statement", TABLE, ids=lambda one: one.says)
def test_each_statement_has_its_test(statement: Statement) -> None:
    assert statement.test in names_of_tests(statement.file)


def test_no_statement_is_there_twice() -> None:
    assert len({one.says for one in TABLE}) == len(TABLE)
