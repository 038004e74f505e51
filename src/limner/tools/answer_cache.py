"""A model, its pictures and a question -> the answer that it gave before, if answers are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime

import msgspec

from limner.storage.store import Store, Transaction
from limner.wires.base import Prompt


class AnswerCache(msgspec.Struct, frozen=True, kw_only=True):
    """Stored answers. A question that differs in anything is another question."""

    store: Store
    clock: Callable[[], datetime]

    def key(self, model: str, prompt: Prompt) -> str:
        """The key of a question: the model, the words and the bytes of the pictures."""
        pictures = {
            name: (picture.mime, hashlib.sha256(picture.data).hexdigest(), picture.detail)
            for name, picture in prompt.pictures.items()
        }
        asked = (model, prompt.items, pictures, prompt.instructions, prompt.schema, prompt.effort)
        return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()

    async def recall(self, key: str) -> str | None:
        """The answer, if it was given before."""
        row = await self.store.read(lambda tx: tx.one("answer_get", key=key))
        return None if row is None else row["text"]

    def keep(self, key: str, text: str) -> Callable[[Transaction], None]:
        """What stores an answer in a transaction."""
        now_ms = int(self.clock().timestamp() * 1000)

        def work(tx: Transaction) -> None:
            tx.run("answer_add", key=key, text=text, created_ms=now_ms)

        return work
