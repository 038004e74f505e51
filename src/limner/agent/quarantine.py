"""A request that a service refused -> the pictures that later requests go out without.

A service may refuse a picture that is whole and within its stated limits. Sent again with every
turn, that one picture would end the conversation. So what a service refused is set aside: nothing
is tried twice as it was, and the next request is without it. The picture itself stays in history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from limner.errors import ProviderBadRequest, ProviderError
from limner.pictures.placeholders import MAX_REASON_CHARS
from limner.storage.store import Store, Transaction

# None is a failure in the middle of an answer, which has only a code. An unknown model or a method
# that is not allowed says nothing about pictures.
_STATUSES = frozenset({None, 400, 413, 415, 422})
_NAMES_A_PICTURE = re.compile(r"image|picture|pixel|base64|\bmedia", re.IGNORECASE)

Guilt = Literal["suspect", "quarantined"]


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """What each model made of the pictures it was sent."""

    store: Store
    clock: Callable[[], datetime]

    async def accepted(self, sent: Sequence[str], *, model: str) -> None:
        """Note that a request with these pictures was answered."""
        if sent:
            now_ms = self._now_ms()

            def note(tx: Transaction) -> None:
                for handle in sent:
                    tx.run("verdict_accepted", handle=handle, model=model, now_ms=now_ms)

            await self.store.write(note)

    async def refused(
        self, error: ProviderError, sent: Sequence[str], *, model: str
    ) -> tuple[str, ...]:
        """Set aside what is to blame for a refusal.

        Only pictures that the model never accepted can be. Where the service names a picture but
        not which, the newer half of them is set aside, and what is left is tried in the next
        request. Where it does not say what is wrong at all, they fall under suspicion, and are set
        aside when that happens again.

        Args:
            error: what the service said.
            sent: the pictures of the request by handle, oldest first.
            model: who was asked, as ``provider/id``.

        Returns:
            The pictures that were set aside now. Where there are none, the request would be refused
            again as it is, and the error is the caller's to raise.
        """
        if not sent or not is_about_the_request(error):
            return ()
        named = _names_a_picture(error)
        reason = " ".join((error.provider_message or error.message).split())[:MAX_REASON_CHARS]
        now_ms = self._now_ms()

        def judge(tx: Transaction) -> tuple[str, ...]:
            def note(handles: Sequence[str], state: Guilt) -> tuple[str, ...]:
                for handle in handles:
                    tx.run(
                        "verdict_against",
                        handle=handle,
                        model=model,
                        state=state,
                        reason=reason,
                        now_ms=now_ms,
                    )
                return tuple(handles)

            before = _verdicts(tx, sent, model)
            doubtful = [handle for handle in sent if before.get(handle, "suspect") == "suspect"]
            suspects = doubtful if named else [one for one in doubtful if one in before]
            if suspects:
                return note(suspects[len(suspects) // 2 :], "quarantined")
            note(doubtful, "suspect")
            return ()

        return await self.store.write(judge)

    def _now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)


def _verdicts(tx: Transaction, handles: Sequence[str], model: str) -> dict[str, str]:
    wanted = msgspec.json.encode(handles).decode()
    return {
        row["handle"]: row["state"] for row in tx.all("verdicts_of", handles=wanted, model=model)
    }


def is_about_the_request(error: ProviderError) -> bool:
    """Whether a service refused what it was sent, and not who sent it."""
    return isinstance(error, ProviderBadRequest) and error.extras.get("status") in _STATUSES


def _names_a_picture(error: ProviderError) -> bool:
    """Whether the service speaks of a picture: by its code, or only in its own words."""
    said = (str(error.extras.get("provider_code", "")), error.provider_message or "")
    return any(_NAMES_A_PICTURE.search(words) for words in said)
