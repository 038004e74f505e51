"""Fields and files to be sent as ``multipart/form-data``, each file's bytes as they are."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import msgspec


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a form: under which name it is sent, what it is called and what it is."""

    field: str
    filename: str
    mime: str
    data: bytes


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What a form is filled in with; files of the same field come in this order.

    There is at least one file: a form without one would be sent in another encoding.
    """

    fields: Mapping[str, str | int | bool] = msgspec.field(
        default_factory=dict[str, str | int | bool]
    )
    uploads: Sequence[Upload]

    def files(self) -> list[tuple[str, tuple[str, io.BytesIO, str]]]:
        """The files as the HTTP client takes them.

        It reads them piece by piece while it sends, and what it reads from shares the bytes: no
        second copy of a picture comes into being.
        """
        return [(one.field, (one.filename, io.BytesIO(one.data), one.mime)) for one in self.uploads]
