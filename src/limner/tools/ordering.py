"""An order -> a plan: who draws it, what it costs and where it goes, decided before paying."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from limner.catalogue.images import Size
from limner.catalogue.prices import Quote
from limner.errors import InputInvalid
from limner.imaging.limits import DEFAULT_LIMITS
from limner.pictures.order import ImageRequest
from limner.providers.base import ProviderSpec
from limner.providers.choose import Choice, Wish, choose
from limner.storage.files import check_new
from limner.tools.base import ToolContext
from limner.tools.consent import Approval, writable

MAX_SEED = 2**31 - 1
DEFAULT_SIZE = Size(1024, 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the caller wants: every field of the right type, nothing decided yet."""

    prompt: str
    output_path: str | None = None
    size: Size = DEFAULT_SIZE
    quality: str = "standard"
    provider: str = "auto"
    model: str | None = None
    svg: str | None = None
    seed: int | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An order with everything decided. Without a target the picture gets a name of its own."""

    request: ImageRequest
    choice: Choice
    quote: Quote
    target: Path | None
    overwrite: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Turns orders into plans; it spends nothing, sends nothing and writes nothing."""

    specs: Mapping[str, ProviderSpec]
    key_of: Callable[[str], str | None]
    approval: Approval
    generated: Path

    async def plan(self, order: Order, context: ToolContext, *, today: date) -> Plan:
        """Decide, and check everything that can be checked for free.

        Raises:
            UserError: the order cannot be drawn as it is.
            ReachDenied: the output path may not be written.
            StorageError: it cannot be written.
        """
        _check_text(order)
        choice = choose(
            Wish(
                provider=order.provider,
                model=order.model,
                size=order.size,
                quality=order.quality,
                has_svg=order.svg is not None,
            ),
            specs=self.specs,
            key_of=self.key_of,
            today=today,
        )
        model = choice.model
        if len(order.prompt) > model.max_prompt_chars:
            raise InputInvalid(
                f"prompt has {len(order.prompt):,} characters; "
                f"{model.title} takes {model.max_prompt_chars:,}",
                field="prompt",
            )
        # A seed of our own makes a job whose id was lost findable among the service's jobs.
        seed = secrets.randbelow(MAX_SEED) if order.seed is None else order.seed
        return Plan(
            request=ImageRequest(
                prompt=order.prompt,
                model=model.id,
                width=order.size.width,
                height=order.size.height,
                quality=order.quality,
                seed=seed,
                svg=order.svg,
            ),
            choice=choice,
            quote=model.quote(order.size, order.quality, order.prompt),
            target=await self._target(order, context),
            overwrite=order.overwrite,
        )

    async def _target(self, order: Order, context: ToolContext) -> Path | None:
        if order.output_path is None:
            # The name is found when the picture is there; that one can be written is known now.
            some_name = context.reach.resolve_write(self.generated / "new.png", cwd=context.cwd)
            await asyncio.to_thread(check_new, some_name, overwrite=True)
            return None
        path = await writable(order.output_path, context, self.approval, generated=self.generated)
        await asyncio.to_thread(check_new, path, overwrite=order.overwrite)
        return path


def _check_text(order: Order) -> None:
    """Refuse what can neither be sent nor written down, and a document nobody will draw."""
    _size_bytes(order.prompt, field="prompt")
    most = DEFAULT_LIMITS.max_svg_bytes
    if order.svg is not None and _size_bytes(order.svg, field="svg") > most:
        raise InputInvalid(f"svg has more than {most:,} bytes", field="svg")


def _size_bytes(text: str, *, field: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InputInvalid(
            f"{field} holds half of a character at position {error.start}", field=field
        ) from None
