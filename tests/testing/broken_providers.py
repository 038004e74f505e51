"""Providers that each break one rule of the contract, each under the contract suite.

`test_testing_contract.py` runs this module with pytest in a process of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

from atelier import SPEC, Atelier
from msgspec.structs import replace
from test_atelier import TestAtelier

from limner.errors import (
    BadProviderImage,
    ImageTooLarge,
    LimnerError,
    ProviderBadRequest,
    ProviderUnavailable,
)
from limner.plugins import Connection, HttpService, ImageRequest, ProviderCallbacks, Receipt, Sink


class Broken(Atelier):
    """Draws as it should, and then changes the failure."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.key = connection.key

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        try:
            return await super().generate(request, sink, callbacks)
        except LimnerError as error:
            raise self.changed(error) from error

    def changed(self, error: Any) -> Exception:
        return error


class Speechless(Broken):
    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        return replace(await super().generate(request, sink, callbacks), prompt_used=" ")


class Wasteful(Broken):
    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        receipt = await super().generate(request, sink, callbacks)
        sink.write(b"more")
        return receipt


class Confused(Broken):
    def changed(self, error: Any) -> Exception:
        return ProviderBadRequest("no") if error.extras.get("status") == 402 else error


class Crashing(Broken):
    def changed(self, error: Any) -> Exception:
        return KeyError("credit") if error.extras.get("status") == 402 else error


class Talkative(Broken):
    def changed(self, error: Any) -> Exception:
        error.hint = f"The key is {self.key}."
        return error


class Hasty(Broken):
    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/draw",
            body={},
            read_timeout_s=60,
            paid=True,
            wanted={"image"},
            sink=sink,
        )
        if not isinstance(answer, dict) or "image" not in answer:
            raise BadProviderImage("nothing", extras={"provider": "atelier"})
        return Receipt(prompt_used=request.prompt)


class Gloomy(Broken):
    def changed(self, error: Any) -> Exception:
        if error.extras.get("sent") is False:
            error.may_be_billed = True
        return error


class Insistent(Broken):
    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        try:
            return await super().generate(request, sink, callbacks)
        except ProviderUnavailable as error:
            if "in time" in error.message:
                return await super().generate(request, sink, callbacks)
            raise


class Careless(Broken):
    def changed(self, error: Any) -> Exception:
        if "broke off" in error.message:
            error.may_be_billed = False
        return error


class Trusting(Broken):
    def changed(self, error: Any) -> Exception:
        return ProviderUnavailable("try later") if isinstance(error, BadProviderImage) else error


class Overflowing(Broken):
    def changed(self, error: Any) -> Exception:
        return BadProviderImage("too long") if isinstance(error, ImageTooLarge) else error


class Stubborn(Broken):
    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        try:
            return await super().generate(request, sink, callbacks)
        except asyncio.CancelledError:
            return Receipt(prompt_used="done anyway")


class Leaky(Broken):
    """Sends its key in the body."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.service = HttpService(connection, SPEC, headers={})

    async def generate(self, request: ImageRequest, sink: Any, callbacks: Any) -> Receipt:
        told = replace(request, prompt=f"{request.prompt}, key {self.key}")
        return await super().generate(told, sink, callbacks)


class Uniform(Broken):
    """Its model has qualities, and no request says which one is wanted."""


def contract(build: type[Broken], **facts: Any) -> type[TestAtelier]:
    name = f"Test{build.__name__}"
    spec = replace(SPEC, build=build, models=(replace(SPEC.models[0], **facts),))
    return type(name, (TestAtelier,), {"spec": spec, "__module__": __name__})


TestSpeechless = contract(Speechless)
TestWasteful = contract(Wasteful)
TestConfused = contract(Confused)
TestCrashing = contract(Crashing)
TestTalkative = contract(Talkative)
TestHasty = contract(Hasty)
TestGloomy = contract(Gloomy)
TestInsistent = contract(Insistent)
TestCareless = contract(Careless)
TestTrusting = contract(Trusting)
TestOverflowing = contract(Overflowing)
TestStubborn = contract(Stubborn)
TestLeaky = contract(Leaky)
TestUniform = contract(Uniform, qualities={"standard": "broad brush", "hd": "fine brush"})
