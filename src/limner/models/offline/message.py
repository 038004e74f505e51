"""A request and the pictures of its conversation -> the forms of the message that rules look at."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limner.models.offline import phrases
from limner.models.offline.album import Album, AlbumPicture, called
from limner.models.offline.draw_requests import without_place
from limner.models.offline.sources import Document
from limner.models.offline.transcript import UserRequest
from limner.wires.base import ToolOffer

_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class OfflineMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a request.

    Attributes:
        words: all of it.
        plain: without polite words, and without ``output_path``.
        low: the same in small letters, with "it" in place of each file that is named.
        pointing: as ``low``, in the user's letters.
        output_path: the file for a picture.
        named: the pictures that are named.
        attached: the pictures in the same message.
        document: the document in the same message.
        album: the pictures of the conversation.
        tools: the tools that are offered, by name.
    """

    words: str
    plain: str
    low: str
    pointing: str
    output_path: str | None
    named: tuple[AlbumPicture, ...]
    attached: tuple[AlbumPicture, ...]
    document: Document | None
    album: Album
    tools: Mapping[str, ToolOffer]

    @property
    def is_question(self) -> bool:
        """Whether it asks something."""
        return self.words.rstrip().endswith("?") or bool(phrases.QUESTION.match(self.low))

    @property
    def pictures(self) -> tuple[AlbumPicture, ...]:
        """The pictures that are meant: named, in the message, by place, or the newest."""
        if self.named or self.attached:
            return self.named or self.attached
        if phrases.LAST_TWO.search(self.low):
            return self.album.newest_two()
        places = [phrases.ORDINALS[found["which"]] for found in phrases.ORDINAL.finditer(self.low)]
        by_place = [one for at in places if (one := self.album.at(at)) is not None]
        newest = self.album.newest
        return tuple(by_place) or (() if newest is None else (newest,))


def read_message(
    request: UserRequest, album: Album, tools: Mapping[str, ToolOffer]
) -> OfflineMessage:
    """The message of a request, or of one step of it."""
    words = " ".join(request.words.translate(_STRAIGHT).split())
    plain, output_path = without_place(_without_polite_words(words))
    pointing = phrases.NAMED.sub("it", phrases.WEB.sub("it", plain))
    return OfflineMessage(
        words=words,
        plain=plain,
        low=pointing.lower(),
        pointing=pointing,
        output_path=output_path,
        named=tuple(album.find(called(name)) for name in _names_in(plain)),
        attached=tuple(map(album.find, request.attached)),
        document=request.document,
        album=album,
        tools=tools,
    )


def split_steps(words: str) -> list[tuple[str, str]]:
    """The parts of a request that may be steps of their own, each after the words that join it."""
    quoted = [found.span() for found in phrases.QUOTED.finditer(words)]
    parts, joint_before, begin = list[tuple[str, str]](), "", 0
    for joint in phrases.FOLLOW_UP.finditer(words):
        if not any(start <= joint.start() < end for start, end in quoted):
            parts.append((joint_before, words[begin : joint.start()]))
            joint_before, begin = joint[0], joint.end()
    return [*parts, (joint_before, words[begin:])]


def _without_polite_words(words: str) -> str:
    opened = phrases.OPENING.sub("", words, count=1) if phrases.OPENING.match(words) else words
    return phrases.CLOSING.sub("", opened).strip(" .!?,;:")


def _names_in(words: str) -> list[str]:
    """The files and handles that are named, in their order, each once."""
    local = phrases.WEB.sub(" ", words)
    found = (next(filter(None, match.groups())) for match in phrases.NAMED.finditer(local))
    return list(dict.fromkeys(found))
