"""A request that a service refused -> the pictures that later requests leave out.

A service may refuse a picture that is valid and within its documented limits. Every turn sends the
history again, so that one picture would end the conversation. Therefore limner quarantines what a
service refused: the next request leaves it out. The picture itself stays in history.
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

# None is a failure in the middle of an answer, which has a code and no status. The statuses for an
# unknown model or a forbidden method say nothing about pictures.
_STATUSES = frozenset({None, 400, 413, 415, 422})
_MENTIONS_PICTURE = re.compile(r"image|picture|pixel|base64|\bmedia", re.IGNORECASE)

Suspicion = Literal["suspect", "quarantined"]


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """Which pictures each model's service accepted or refused."""

    store: Store
    clock: Callable[[], datetime]

    def accept(self, tx: Transaction, sent: Sequence[str], *, model: str) -> None:
        """Record that the service answered a request with these pictures."""
        for handle in sent:
            tx.run("verdict_accepted", handle=handle, model=model, now_ms=self._now_ms())

    async def refused(
        self, error: ProviderError, sent: Sequence[str], *, model: str
    ) -> tuple[str, ...]:
        """Quarantine the pictures that may have caused a refusal.

        Only pictures that the service never accepted are candidates. If the service speaks of a
        picture but not of which one, the newer half of the candidates is quarantined, and the next
        request tries the rest. If it does not say what is wrong, all candidates become suspects,
        and are quarantined if that happens again.

        Args:
            error: the refusal.
            sent: the handles of the request's pictures, oldest first.
            model: ``provider/id``.

        Returns:
            The pictures that are quarantined now. If there are none, the service would refuse the
            request again, and the caller should raise the error.
        """
        if not sent or not is_about_the_request(error):
            return ()
        is_about_picture = _mentions_picture(error)
        reason = " ".join((error.provider_message or error.message).split())[:MAX_REASON_CHARS]
        now_ms = self._now_ms()

        def judge(tx: Transaction) -> tuple[str, ...]:
            def note(handles: Sequence[str], state: Suspicion) -> tuple[str, ...]:
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
            suspects = doubtful if is_about_picture else [one for one in doubtful if one in before]
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
    """Whether a service refused the content of a request, and not its sender."""
    return isinstance(error, ProviderBadRequest) and error.extras.get("status") in _STATUSES


def _mentions_picture(error: ProviderError) -> bool:
    """Whether the code or the message of the service mentions a picture."""
    texts = (str(error.extras.get("provider_code", "")), error.provider_message or "")
    return any(_MENTIONS_PICTURE.search(text) for text in texts)
