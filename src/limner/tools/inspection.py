"""Pictures and a question -> a model's answer in words: the one way of every inspection.

The order of the checks is specified: the settings first, then the model, then the file. Nothing is
sent before its price is reserved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.catalogue.prices import PROMPT_WRAPPING_TOKENS, Quote
from limner.catalogue.tokens import UNKNOWN_TOKENS
from limner.errors import (
    NANO_PER_USD,
    CostSource,
    InputInvalid,
    ModelBadAnswer,
    ModelTimeout,
    ProviderError,
    UserError,
)
from limner.models import pricing
from limner.models.base import Model
from limner.models.registry import EMBEDDED, FoundModel, KnownModel, Registry
from limner.money.ledger import Money
from limner.money.paid_call import paid_call
from limner.net.waits import wait_text, waits_reported
from limner.pictures.request import Progress
from limner.storage.store import Transaction
from limner.tools.answer_cache import AnswerCache
from limner.tools.answer_schema import AnswerMismatch, parse_answer
from limner.tools.arguments import is_blank
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.consent import payer_for
from limner.tools.declaration import ImageText
from limner.tools.in_flight import InFlight
from limner.tools.picture_loader import LoadedPicture, PictureLoader
from limner.tools.regions import RegionArgument
from limner.wires.base import HANDLE_URL, Answer, ModelPicture, Prompt

TOOL = "inspect_image"
logger = logging.getLogger("limner.tools")
MAX_PATHS = 20
# Enough for a long answer and its reasoning; only used tokens are paid for.
MAX_OUTPUT_TOKENS = 8_192

BLOCKED = (
    "Image submission is disabled by settings (images.blockImages=true). "
    "Disable it to use inspect_image."
)
NO_REGISTRY = "Model registry is unavailable for inspect_image."
NO_MODELS = "No models available for inspect_image."
UNRESOLVED = "Unable to resolve a model for inspect_image."
FAILED = "inspect_image request failed."
ABORTED = "inspect_image request aborted."
NO_TEXT = "inspect_image model returned no text output."


class InspectArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `inspect_image`."""

    path: Annotated[
        ImageText,
        Meta(
            description="Path of the image file; a relative one is relative to the working "
            "folder. The handle of a picture works too."
        ),
    ]
    question: Annotated[str, Meta(description="What to find out about the picture.")]
    paths: Annotated[
        tuple[ImageText, ...],
        Meta(
            description="More image files to look at together with the first.",
            max_length=MAX_PATHS - 1,
        ),
    ] = ()
    region: (
        Annotated[RegionArgument, Meta(description="Only this part, in pixels of the original.")]
        | None
    ) = None
    schema: (
        Annotated[
            Mapping[str, Any],
            Meta(
                description="A JSON schema that the answer has to follow.",
                extra={"metavar": "FILE"},
            ),
        ]
        | None
    ) = None

    @property
    def files(self) -> tuple[str, ...]:
        """All pictures, the first one first."""
        return (self.path, *self.paths)


class InspectRequest(InspectArguments, frozen=True, kw_only=True):
    """The arguments, and what a person or a program can ask for besides."""

    model: (
        Annotated[
            str,
            Meta(
                description="The model to ask, as provider/id. By default the settings say.",
                extra={
                    "metavar": "NAME",
                    "only": "the user or the program decides it, not the model",
                },
            ),
        ]
        | None
    ) = None


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said about pictures.

    Attributes:
        text: the answer; with a schema the JSON text.
        value: the parsed answer if the caller gave a schema; it follows that schema.
        details: facts as JSON values. ``model`` answered; ``imagePath`` is the file or the handle,
            ``image`` the handle, ``mimeType`` the type that was sent. ``width``, ``height``,
            ``part`` and ``scale`` say how the sent pixels map to the original, if the picture was
            fitted; ``tiles`` has the same for each tile. ``note`` says what is special. With
            several pictures ``images`` has these facts for each. ``answer`` is the short answer of
            ``limner/eyes``, of at most 200 characters. ``usage`` has the tokens,
            ``stopped`` says that the answer was cut off, ``remembered`` that it was cached.
        cost_nano: what it cost, in nano-dollars.
        cost_source: how the cost is known.
        untrusted: a picture comes from outside; the model may repeat the text in it.
    """

    text: str
    value: object = None
    details: Mapping[str, object]
    cost_nano: int
    cost_source: CostSource
    untrusted: bool = True

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD


class PreparedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its pictures and the model that will be asked."""

    found: FoundModel
    loaded: Sequence[LoadedPicture]
    prompt: Prompt

    def quote(self, priced: Callable[[KnownModel], KnownModel]) -> Quote:
        """The most that the answer costs, with the model at the price that ``priced`` gives it."""
        return pricing.quote(priced(self.found.model), **_tokens(self.prompt, self.loaded))

    @property
    def details(self) -> dict[str, Any]:
        """What is known about the pictures and the model before the answer."""
        return {**_details(self.found.model, self.loaded, ""), **_notice(self.found)}


class Inspector(msgspec.Struct, frozen=True, kw_only=True):
    """Answers questions about pictures.

    ``registry`` is None if the program has no models. ``connect`` builds the client of a model.
    ``caches`` says that all answers are cached. ``timeout_s`` is the time limit of the model's
    answer. ``session_id`` is the session that pays for a call that names none.
    """

    registry: Registry | None
    connect: Callable[[KnownModel], Model]
    loader: PictureLoader
    money: Money
    approval: ApprovalPolicy
    cache: AnswerCache
    caches: bool
    in_flight: InFlight
    block_images: bool
    timeout_s: float
    session_id: str

    async def inspect(self, request: InspectRequest, context: ToolContext) -> Inspection:
        """Check, read, fit, reserve, ask, settle.

        Raises:
            LimnerError: it failed; the error carries what was spent. Each failure that the
                specification names has its own message.
        """
        _check_texts(request)
        with self.in_flight.track():
            found = self._find_model(request, context)
            loaded = await self._load(request, context, found.model)
            is_ours = await self.loader.pictures.drawn_here(one.handle for one in loaded)
            prompt = _prompt(request, loaded, found)
            try:
                inspection = await self._recall_or_ask(found, prompt, loaded, context)
            except ProviderError as error:
                error.untrusted |= not is_ours  # the service may repeat the text in the picture
                raise
            details = {**inspection.details, **_notice(found)}
            return replace(inspection, details=details, untrusted=not is_ours)

    async def quote(self, request: InspectRequest, context: ToolContext) -> int:
        """The most that `inspect` can cost with the same arguments, in nano-dollars.

        Raises:
            LimnerError: `inspect` would raise it before paying.
        """
        return (await self.prepare(request, context)).quote(lambda model: model).nano

    async def prepare(self, request: InspectRequest, context: ToolContext) -> PreparedQuestion:
        """Everything that a model is asked; nothing is sent.

        Raises:
            LimnerError: `inspect` would raise it before paying.
        """
        _check_texts(request)
        found = self._find_model(request, context)
        loaded = await self._load(request, context, found.model)
        return PreparedQuestion(found=found, loaded=loaded, prompt=_prompt(request, loaded, found))

    def _find_model(self, request: InspectRequest, context: ToolContext) -> FoundModel:
        if self.block_images:
            raise UserError(BLOCKED, code="IMAGES_BLOCKED")
        return self.find_model(request.model, active=context.active_model)

    def find_model(self, named: str | None = None, *, active: str | None = None) -> FoundModel:
        """The model to ask: it takes pictures, and its key is set.

        Raises:
            UserError: there is none, or the named one cannot be asked.
        """
        if self.registry is None:
            raise UserError(NO_REGISTRY, code="NO_MODEL")
        if not self.registry.has_available():
            raise UserError(NO_MODELS, code="NO_MODEL", hint="Set a key, as in OPENAI_API_KEY=…")
        found = self._resolve(self.registry, named, active)
        model = found.model
        if not model.takes_images:
            raise UserError(
                f"Resolved model {model.name} does not support image input. "
                "Configure a vision-capable model for modelRoles.vision.",
                code="MODEL_CANNOT_SEE",
                hint="`limner models --vision` lists those that can.",
            )
        if self.registry.key(model) is None:
            raise UserError(
                f"No API key available for {model.name}. Configure credentials for this provider "
                "or choose another vision-capable model.",
                code="NO_API_KEY",
                hint=f"Set {model.key_env}, or store it: limner keys set {model.key_env}",
            )
        return found

    def _resolve(self, registry: Registry, named: str | None, active: str | None) -> FoundModel:
        if named is None:
            if (chosen := registry.resolve(active=active)) is not None:
                return chosen
            raise UserError(UNRESOLVED, code="NO_MODEL")
        if (found := registry.find(named)) is not None:
            return found
        near = " or ".join(registry.near(named))
        raise UserError(
            UNRESOLVED, code="NO_MODEL", hint=f"There is no model {named[:80]!r} here. Try {near}."
        )

    async def _load(
        self, request: InspectRequest, context: ToolContext, model: KnownModel
    ) -> Sequence[LoadedPicture]:
        context.progress(Progress(message="Reading", elapsed_s=0))
        return [
            await self.loader.load(
                path,
                context,
                model=model.facts,
                region=request.region,
                images_in_request=len(request.files),
                # limner's own model measures the file itself, with its EXIF data.
                as_it_is=model.api == EMBEDDED,
            )
            for path in request.files
        ]

    async def _recall_or_ask(
        self,
        found: FoundModel,
        prompt: Prompt,
        loaded: Sequence[LoadedPicture],
        context: ToolContext,
    ) -> Inspection:
        """The cached answer, or a new one."""
        # A row of a batch that was paid for and interrupted gets its answer here.
        if not self.caches and context.terms is None:
            return await self._ask(found.model, prompt, loaded, context, keep=None)
        key = self.cache.key(found.model.name, prompt)
        if (known := await self.cache.recall(key)) is not None:
            logger.debug("%s: the answer of %s is in the cache", TOOL, found.model.name)
            return Inspection(
                text=known,
                value=answer_value(known, prompt.schema, found.model),
                details={**_details(found.model, loaded, known), "remembered": True},
                cost_nano=0,
                cost_source="table",
            )
        keep = partial(self.cache.keep, key)
        return await self._ask(found.model, prompt, loaded, context, keep=keep)

    async def _ask(
        self,
        model: KnownModel,
        prompt: Prompt,
        loaded: Sequence[LoadedPicture],
        context: ToolContext,
        *,
        keep: Callable[[str], Callable[[Transaction], None]] | None,
    ) -> Inspection:
        tokens = _tokens(prompt, loaded)
        quote = pricing.quote(model, **tokens)
        payer = payer_for(
            context,
            self.approval,
            self.money,
            what=f"Asking {model.name}",
            session_id=self.session_id,
        )
        with self._specified_errors(model):
            client = self.connect(model)
        async with paid_call(
            self.money,
            quote,
            payer=payer,
            tool=TOOL,
            provider=model.provider,
            model=model.id,
            cancel_message=ABORTED,
        ) as call:
            self.in_flight.check_open()
            paid = replace(quote, nano=call.cost_nano)
            length = pricing.answer_tokens(model, quote, reserved_nano=paid.nano, **tokens)
            prompt = replace(prompt, max_output_tokens=length)
            with call.announced(None), self._specified_errors(model):
                answer = await self._answer(client, model, prompt, context)
            call.received(*pricing.price(model, answer.usage, paid))
            text = answer.text.strip()
            try:
                value = answer_value(text, prompt.schema, model)
            except ModelBadAnswer:
                await call.settle(None)
                raise
            # In one transaction: a crash cannot lose an answer that is paid for.
            await call.settle(None, also=None if keep is None else keep(text))
        return Inspection(
            text=text,
            value=value,
            details=_details(model, loaded, text, answer),
            cost_nano=call.cost_nano,
            cost_source=call.cost_source,
        )

    async def _answer(
        self, client: Model, model: KnownModel, prompt: Prompt, context: ToolContext
    ) -> Answer:
        start_s, so_far = time.monotonic(), ""

        def say(message: str) -> None:
            context.progress(Progress(message=message, elapsed_s=time.monotonic() - start_s))

        def report(text: str) -> None:
            nonlocal so_far
            so_far += text
            say(f"{model.name}: {so_far}")

        loads_ocr = model.api == EMBEDDED and self.loader.pictures.must_load_ocr
        say(f"Asking {model.name}" + (", which may have to load its OCR" if loads_ocr else ""))
        with waits_reported(lambda error, wait_s: say(wait_text(error, wait_s))):
            return await client.ask(prompt, timeout_s=self.timeout_s, on_text=report)

    @contextmanager
    def _specified_errors(self, model: KnownModel) -> Generator[None]:
        """Give errors of the service the words of the specification."""
        try:
            yield
        except ProviderError as error:
            error.extras = {"provider": model.provider, "cause": error.message, **error.extras}
            error.message = self._specified_message(error)
            error.args = (error.message,)
            raise

    def _specified_message(self, error: ProviderError) -> str:
        if isinstance(error, ModelTimeout):
            return (
                f"inspect_image request timed out after {self.timeout_s:g}s. Increase "
                "tools.timeout_s or check the vision model provider."
            )
        return error.provider_message or FAILED


def answer_value(text: str, schema: Mapping[str, Any] | None, model: KnownModel) -> object:
    """The parsed answer, or None without a schema."""
    if not text:
        raise ModelBadAnswer(NO_TEXT, code="MODEL_NO_TEXT")
    if schema is None:
        return None
    try:
        return parse_answer(text, schema)
    except AnswerMismatch as error:
        raise ModelBadAnswer(
            f"The answer of {model.name} does not follow the schema: {error}.",
            hint='extras["answer"] has the answer. Simplify the schema, or name another model.',
            extras={"answer": text},
        ) from error


@cache
def system_prompt() -> str:
    """The instructions of a model, before the pictures and the question."""
    return files("limner.tools").joinpath("inspect_image.md").read_text(encoding="utf-8").strip()


def _prompt(request: InspectRequest, loaded: Sequence[LoadedPicture], found: FoundModel) -> Prompt:
    """One user message: the pictures, the question, and how their pixels map to the originals."""
    pictures: dict[str, ModelPicture] = {}
    content: list[dict[str, Any]] = []
    for one in loaded:
        for number, picture in enumerate(one.model_pictures):
            name = f"{one.handle}-{number}" if number else one.handle
            pictures[name] = picture
            content.append({"type": "input_image", "image_url": f"{HANDLE_URL}{name}"})
    content.append({"type": "input_text", "text": request.question})
    if len(content) > 2 or request.region is not None:
        content.append({"type": "input_text", "text": _legend(loaded)})
    return Prompt(
        items=[{"type": "message", "role": "user", "content": content}],
        pictures=pictures,
        instructions=system_prompt(),
        schema=request.schema,
        effort=found.effort,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )


def _legend(loaded: Sequence[LoadedPicture]) -> str:
    """Names each picture, and says how to compute a point of the original."""
    lines: list[str] = []
    for one in loaded:
        for number, fit in enumerate(one.fits):
            part = fit.fit.part
            lines.append(
                f"Picture {len(lines) + 1}: {'a part of ' if number else ''}{one.path.name}, "
                f"{part.width}x{part.height} from {part.x},{part.y} of "
                f"{fit.fit.original_width}x{fit.fit.original_height}, shown at "
                f"{fit.width}x{fit.height}. For a point of the original take x times "
                f"{fit.fit.scale_x:.4g} plus {part.x}, and y times {fit.fit.scale_y:.4g} plus "
                f"{part.y}."
            )
        if not one.fits:
            lines.append(f"Picture {len(lines) + 1}: {one.path.name}.")
    return "\n".join(lines)


def _check_texts(request: InspectRequest) -> None:
    for name in ("path", "question"):
        if is_blank(getattr(request, name)):
            raise InputInvalid(f"{name} is required and must not be blank", field=name)


def _tokens(prompt: Prompt, loaded: Sequence[LoadedPicture]) -> dict[str, int]:
    """The most tokens that the request and its answer can have."""
    return {
        "input_tokens": _input_tokens(prompt, loaded),
        "output_tokens": prompt.max_output_tokens,
    }


def _input_tokens(prompt: Prompt, loaded: Sequence[LoadedPicture]) -> int:
    """The most input tokens that the request can have."""
    texts = [prompt.instructions or "", *_texts(prompt)]
    # A token is at least one byte.
    words = sum(len(text.encode(errors="replace")) for text in texts)
    picture_tokens = sum(
        len(one.model_pictures) * UNKNOWN_TOKENS if one.tokens is None else one.tokens
        for one in loaded
    )
    return PROMPT_WRAPPING_TOKENS + words + picture_tokens


def _texts(prompt: Prompt) -> list[str]:
    parts = [part for item in prompt.items for part in item["content"]]
    return [part["text"] for part in parts if "text" in part]


def _notice(found: FoundModel) -> dict[str, str]:
    """What the caller should know about the choice of the model."""
    unused = [str(one) for one in found.unknown if one.by != "active"]
    return {"notice": f"{' '.join(unused)} {found.model.name} was asked."} if unused else {}


def _short(model: KnownModel, text: str) -> dict[str, str]:
    """The short answer, which limner's own model puts first in its text."""
    if model.api != EMBEDDED:
        return {}
    from limner.eyes.model import short_answer  # noqa: PLC0415 - other models do not need it

    found = short_answer(text)
    return {} if found is None else {"answer": found}


def _details(
    model: KnownModel,
    loaded: Sequence[LoadedPicture],
    text: str,
    answer: Answer | None = None,
) -> dict[str, Any]:
    """The three specified members first; of several pictures, each has its own in ``images``."""
    first, *others = [one.details for one in loaded]
    details: dict[str, Any] = {"model": model.name, **first, **_short(model, text)}
    if others:
        details["images"] = [first, *others]
    if answer is not None and answer.usage is not None:
        details["usage"] = {
            k: v for k, v in msgspec.to_builtins(answer.usage).items() if v is not None
        }
    if answer is not None and answer.stop == "length":
        details["stopped"] = "The answer was cut off at its longest."
    return details
