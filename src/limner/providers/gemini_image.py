"""Nano Banana: a request -> Gemini's generateContent -> a picture, priced by its tokens.

The service reports most failures in a response with status 200: a finish reason, or a block
reason for the prompt. It may send drafts before the picture; the last picture counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import ImageModel
from limner.catalogue.prices import MAX_TOKENS, AreaTokensPrice
from limner.catalogue.sizes import Size, SizeRange
from limner.errors import BadProviderImage, LimnerError, ProviderRefused
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, send_with_retries, versioned
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    SourceImage,
)
from limner.providers.base import Connection
from limner.providers.model_inputs import COMMON_RATIOS, aspect_of, nearest_aspect_ratio
from limner.providers.specs import BUILT_IN
from limner.wires.base import ModelRequest

SPEC = BUILT_IN["gemini-image"]
API_VERSION = "v1beta"
# A 4K picture takes about a minute, and more if the model reasons first.
READ_TIMEOUT_S = 600.0
# Each part of a response may have a signature of the reasoning, of a megabyte or more.
MAX_JSON_BYTES = 16 * 1024 * 1024
WANTED = "candidates.content.parts.inlineData.data"
# The service's names for the tiers, by pixels; a model with only one tier takes no name.
TIERS = {275_000: "512", 1_100_000: "1K", 4_400_000: "2K", 17_600_000: "4K"}
# The extreme ones only if the model draws them.
ASPECT_RATIOS = (*COMMON_RATIOS, "1:4", "4:1", "1:8", "8:1")
REFUSALS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]


class GeminiImage:
    """Draws, and draws from pictures, with Google's Gemini image models."""

    batch_api = "gemini"

    def __init__(self, connection: Connection) -> None:
        base_url = versioned(connection.base_url, API_VERSION)
        self.service = Service(
            replace(connection, base_url=base_url),
            SPEC.vendor(connection),
            # A header, because URLs get into logs.
            headers={"x-goog-api-key": connection.key},
        )

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        model = _model(request)
        body = msgspec.json.encode(_body(request, model))

        async def attempt() -> Any:
            return await self.service.call(
                "POST",
                f"{self.service.base_url}/models/{quote(model.id, safe='')}:generateContent",
                body=body,
                read_timeout_s=READ_TIMEOUT_S,
                paid=True,
                wanted={WANTED},
                sink=sink,
                last=True,
                max_json_bytes=MAX_JSON_BYTES,
            )

        callbacks.progress(Progress(message=f"{SPEC.title} is drawing", elapsed_s=0.0))
        answer = as_object(await send_with_retries(attempt, self.service.clock))
        return await self.read_batched(answer, request, model, sink)

    def batch_request(self, request: ImageRequest) -> ModelRequest:
        """The request for Gemini's Batch API."""
        body = msgspec.json.encode(_body(request, _model(request)))
        return ModelRequest(path=":batchGenerateContent", pieces=(body,))

    async def read_batched(
        self, answer: Mapping[str, Any], request: ImageRequest, model: ImageModel, sink: Sink
    ) -> Receipt:
        """Read a response, alone or of a batch; raises as `Provider.generate`."""
        failure = self._failure(answer)
        cost_nano = _cost(model, answer.get("usageMetadata"), has_picture=failure is None)
        if failure is not None:
            if cost_nano is not None:
                failure.charge(cost_nano, "computed")
            raise failure
        if cost_nano is None:
            return Receipt(prompt_used=request.prompt)
        return Receipt(prompt_used=request.prompt, cost_nano=cost_nano, cost_source="computed")

    def _failure(self, answer: Mapping[str, Any]) -> LimnerError | None:
        """Why a response has no picture; None if it has one."""
        feedback = as_object(answer.get("promptFeedback"))
        blocked = feedback.get("blockReason")
        if isinstance(blocked, str):
            message = feedback.get("blockReasonMessage")
            return self._refused(blocked, message, feedback, stage="input")
        candidates = [as_object(item) for item in as_list(answer.get("candidates"))]
        for candidate in candidates:
            reason = candidate.get("finishReason")
            if isinstance(reason, str) and reason in REFUSALS:
                message = candidate.get("finishMessage") or _text(candidate)
                return self._refused(reason, message, candidate, stage="output")
        if any(_is_picture(part) for candidate in candidates for part in _parts(candidate)):
            return None
        return self._no_picture(candidates[0] if candidates else {})

    def _refused(
        self, reason: str, message: object, refusal: Mapping[str, Any], *, stage: str
    ) -> ProviderRefused:
        code = self.service.safe_text(reason)
        shown = self._safe_text(message)
        ratings = [as_object(rating) for rating in as_list(refusal.get("safetyRatings"))]
        categories = [
            self.service.safe_text(rating["category"])
            for rating in ratings
            if rating.get("blocked") is True and isinstance(rating.get("category"), str)
        ]
        extras = {"provider": SPEC.name, "provider_code": code, "stage": stage}
        return ProviderRefused(
            f"Google refused ({code}){': ' if shown else ''}{shown}",
            provider_message=shown or None,
            hint=self.service.vendor.rephrase,
            extras=extras | ({"categories": categories} if categories else {}),
        )

    def _no_picture(self, candidate: Mapping[str, Any]) -> BadProviderImage:
        reason = candidate.get("finishReason")
        code = self.service.safe_text(reason) if isinstance(reason, str) else None
        message = self._safe_text(candidate.get("finishMessage") or _text(candidate))
        return BadProviderImage(
            f"Google answered without a picture{f' ({code})' if code else ''}"
            f"{': ' if message else ''}{message}",
            hint="Ask for a picture, in other words." if code else None,
            extras={"provider": SPEC.name} | ({"provider_code": code} if code else {}),
        )

    def _safe_text(self, text: object) -> str:
        return self.service.safe_text(text)[:MAX_MESSAGE_CHARS] if isinstance(text, str) else ""


def _model(request: ImageRequest) -> ImageModel:
    return next(row for row in SPEC.models if row.id == request.model)


def _body(request: ImageRequest, model: ImageModel) -> dict[str, Any]:
    # The encoder writes bytes as base64, so a picture is copied only once.
    parts = [{"inlineData": _blob(source)} for source in request.sources]
    return {
        "contents": [{"role": "user", "parts": [*parts, {"text": request.prompt}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": _image_config(request, model),
        },
    }


def _blob(source: SourceImage) -> dict[str, Any]:
    return {"mimeType": source.mime, "data": source.data}


def _image_config(request: ImageRequest, model: ImageModel) -> dict[str, str]:
    assert isinstance(model.sizes, SizeRange)
    assert isinstance(model.price, AreaTokensPrice)
    widest = model.sizes.max_ratio
    ratios = [ratio for ratio in ASPECT_RATIOS if 1 / widest <= aspect_of(ratio) <= widest]
    config = {"aspectRatio": nearest_aspect_ratio(request.width, request.height, ratios)}
    if len(model.price.rows) > 1:
        pixels = Size(request.width, request.height).pixels
        row = next(row for row in model.price.rows if pixels <= row.max_pixels)
        config["imageSize"] = TIERS[row.max_pixels]
    return config


def _parts(candidate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = as_object(candidate.get("content"))
    return [as_object(part) for part in as_list(content.get("parts"))]


def _is_picture(part: Mapping[str, Any]) -> bool:
    return as_object(part.get("inlineData")).get("data") is PICTURE


def _text(candidate: Mapping[str, Any]) -> str:
    """The text of the model without its reasoning."""
    texts = (part.get("text") for part in _parts(candidate) if part.get("thought") is not True)
    return " ".join(text for text in texts if isinstance(text, str)).strip()


class _Modality(msgspec.Struct, rename="camel"):
    modality: str
    token_count: Count = 0


class _Usage(msgspec.Struct, rename="camel"):
    """The token counts. The candidates' tokens include the tokens of pictures."""

    prompt_token_count: Count
    candidates_token_count: Count | None = None
    candidates_tokens_details: list[_Modality] | None = None
    thoughts_token_count: Count | None = None
    tool_use_prompt_token_count: Count | None = None
    total_token_count: Count | None = None


def _cost(model: ImageModel, report: object, *, has_picture: bool) -> int | None:
    """The cost of a response, in nano-dollars; None if its usage is missing or not valid."""
    assert isinstance(model.price, AreaTokensPrice)
    try:
        usage = msgspec.convert(report, _Usage)
    except msgspec.ValidationError:
        return None
    text_in = usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0)
    out, thoughts = usage.candidates_token_count or 0, usage.thoughts_token_count or 0
    if usage.total_token_count not in (None, text_in + out + thoughts):
        return None
    details = usage.candidates_tokens_details
    if details is None:
        # The service does not always split the output: with a picture, price all of it as one.
        image_out = out if has_picture else 0
    else:
        image_out = sum(one.token_count for one in details if one.modality == "IMAGE")
    if image_out > out or (has_picture and not image_out):
        return None
    return model.price.cost(
        text_in=text_in, text_out=out - image_out + thoughts, image_out=image_out
    )
