"""The user's text and the known pictures -> the intent, or that no rule matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from limner.models.offline import phrases
from limner.models.offline.album import Album, AlbumPicture, called
from limner.models.offline.draw_requests import DrawIntent, read_draw, without_place
from limner.models.offline.transcript import UserRequest

WHAT_IS_IT = "What is in this picture?"
NOTHING_YET = "There is no picture in this conversation yet. Draw one, or name a file."
NEEDS_TWO = "It takes two pictures to compare. Draw another one, or name two files."
NO_WEB = "I do not open addresses on the web. Save the picture as a file and name that."
WELCOME = "You are welcome."


class LookIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A question about pictures."""

    pictures: tuple[AlbumPicture, ...]
    question: str


class ShowIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A picture is to be seen again."""

    picture: AlbumPicture


class ChangeIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A picture is to become another.

    Attributes:
        picture: the one that is there.
        request: all that was said.
        words: what was said of its content; empty where only its shape is to change.
        shape: what was said of its shape, as `phrases.SHAPING` found it.
        again: the same is to be tried once more.
        pixels: its pixels are to change, which no new drawing does.
        output_path: where the new one is saved, where that was said.
    """

    picture: AlbumPicture
    request: str
    words: str = ""
    shape: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    again: bool = False
    pixels: bool = False
    output_path: str | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it is only to be saved somewhere."""
        return not (self.words or self.shape or self.again)


class WhereIntent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a picture is and what it cost."""

    picture: AlbumPicture


class SayIntent(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing to do, but something to answer."""

    words: str


class HelpIntent(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody says hello, or wants to know what this can do."""


class UnclearIntent(msgspec.Struct, frozen=True, kw_only=True):
    """No rule understands it."""


Wish = (
    DrawIntent
    | LookIntent
    | ShowIntent
    | ChangeIntent
    | WhereIntent
    | SayIntent
    | HelpIntent
    | UnclearIntent
)


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, in the forms that rules look at.

    Attributes:
        words: all of it.
        plain: without what is polite, and without ``output_path``.
        pointing: the same with "it" in place of each file that is named.
        output_path: where a picture is to be saved.
        named: the pictures that are named.
        attached: the pictures in the same message.
        album: the pictures there are.
    """

    words: str
    plain: str
    pointing: str
    output_path: str | None
    named: tuple[AlbumPicture, ...]
    attached: tuple[AlbumPicture, ...]
    album: Album

    @property
    def low(self) -> str:
        return self.pointing.lower()

    @property
    def is_question(self) -> bool:
        return self.words.rstrip().endswith("?") or bool(phrases.QUESTION.match(self.low))

    def meant(self) -> tuple[AlbumPicture, ...]:
        """The pictures that are spoken of: named, in the message, by place, or the newest."""
        if self.named or self.attached:
            return self.named or self.attached
        if phrases.LAST_TWO.search(self.low):
            return self.album.newest_two()
        places = [phrases.ORDINALS[found["which"]] for found in _ordinals(self.low)]
        by_place = [one for at in places if (one := self.album.at(at)) is not None]
        newest = self.album.newest
        return tuple(by_place) or (() if newest is None else (newest,))


def understand(request: UserRequest, album: Album) -> Wish:
    """What a request asks for; the first rule that knows it decides."""
    words = " ".join(request.words.translate(_STRAIGHT).split())
    plain, output_path = without_place(plainly(words))
    asked = _Asked(
        words=words,
        plain=plain,
        pointing=phrases.NAMED.sub("it", phrases.WEB.sub("it", plain)),
        output_path=output_path,
        named=tuple(album.find(called(name)) for name in names_in(plain)),
        attached=tuple(map(album.find, request.attached)),
        album=album,
    )
    wishes = (rule(asked) for rule in _RULES)
    return next((wish for wish in wishes if wish is not None), UnclearIntent())


def plainly(words: str) -> str:
    """The words without what is only polite."""
    opened = phrases.OPENING.sub("", words, count=1) if phrases.OPENING.match(words) else words
    return phrases.CLOSING.sub("", opened).strip(" .!?,;:")


def clauses(words: str) -> tuple[str, str | None]:
    """A request, and what is to follow it where it asks for one thing after another."""
    spans = [found.span() for found in phrases.QUOTED.finditer(words)]
    for joint in phrases.FOLLOW_UP.finditer(words):
        if not any(start <= joint.start() < end for start, end in spans):
            return words[: joint.start()], words[joint.end() :]
    return words, None


def names_in(words: str) -> list[str]:
    """The files and handles that are named, in their order, each once."""
    local = phrases.WEB.sub(" ", words)
    found = (next(filter(None, match.groups())) for match in phrases.NAMED.finditer(local))
    return list(dict.fromkeys(found))


def _ordinals(low: str) -> Sequence[re.Match[str]]:
    return list(phrases.ORDINAL.finditer(low))


def _small_talk(asked: _Asked) -> Wish | None:
    if phrases.THANKS.fullmatch(asked.words.lower()) and not asked.attached:
        return SayIntent(words=WELCOME)
    is_greeting = not asked.plain and not asked.attached and asked.output_path is None
    return HelpIntent() if is_greeting or phrases.HELP.fullmatch(asked.low) else None


def _where(asked: _Asked) -> Wish | None:
    newest = asked.album.newest
    if newest is None or not phrases.WHERE.fullmatch(asked.low):
        return None
    return WhereIntent(picture=(asked.meant() or (newest,))[0])


def _compare(asked: _Asked) -> Wish | None:
    is_comparison = phrases.COMPARE.match(asked.low)
    if not is_comparison and not phrases.WHICH.match(asked.low):
        return None
    pictures = asked.meant()
    if len(pictures) == 1:
        others = [one for one in asked.album.newest_two() if one != pictures[0]]
        named = bool(asked.named or asked.attached)
        pictures = (*pictures, *others[-1:]) if named else (*others[:1], *pictures)
    if len(pictures) > 1:
        return LookIntent(pictures=pictures, question=asked.words)
    return SayIntent(words=NEEDS_TWO) if is_comparison else None


def _show(asked: _Asked) -> Wish | None:
    if not phrases.SHOW.fullmatch(asked.low):
        return None
    pictures = asked.meant()
    if not pictures:
        return SayIntent(words=NOTHING_YET)
    # A file that is not in the conversation can be looked at, but not brought back.
    return ShowIntent(picture=pictures[0]) if pictures[0].handle else None


def _change(asked: _Asked) -> Wish | None:
    shape, rest = _shaping(asked.pointing)
    again = phrases.AGAIN.fullmatch(asked.low) is not None
    pixels = phrases.PIXELS.match(asked.low) is not None
    only_outside = not rest and bool(shape or asked.output_path)
    if not (again or pixels or only_outside or phrases.CHANGE.match(asked.low)):
        return None
    pictures = asked.meant()
    if not pictures:
        # One can "paint the town" without a picture, but not "make the sky green".
        return None if asked.low.startswith("paint the") else SayIntent(words=NOTHING_YET)
    return ChangeIntent(
        picture=pictures[0],
        request=asked.words,
        words="" if again else rest,
        shape=shape,
        again=again,
        pixels=pixels,
        output_path=asked.output_path,
    )


def _shaping(plain: str) -> tuple[dict[str, str], str]:
    """What is said of a picture's shape, and what else is said."""
    parts = [part for part in re.split(r" ?(?:,|\band\b) ?", plain) if part]
    for number, part in enumerate(parts):
        if found := phrases.SHAPING.fullmatch(part.lower()):
            said = {name: value for name, value in found.groupdict().items() if value}
            return said, " and ".join(parts[:number] + parts[number + 1 :])
    return {}, plain


def _draw(asked: _Asked) -> Wish | None:
    wish = read_draw(asked.plain)
    if wish is None or asked.output_path is None:
        return wish
    return replace(wish, options={**wish.options, "output_path": asked.output_path})


def _look(asked: _Asked) -> Wish | None:
    pictures = asked.meant()
    is_look = asked.is_question or phrases.LOOK.match(asked.low) is not None
    here = asked.named or asked.attached
    if pictures and (is_look or here):
        question = WHAT_IS_IT if asked.low in ("", "it") else asked.words
        return LookIntent(pictures=pictures, question=question)
    if is_look and phrases.WEB.search(asked.words):
        return SayIntent(words=NO_WEB)
    is_about_one = re.search(rf"\b{phrases.IT}\b", asked.low) is not None
    return SayIntent(words=NOTHING_YET) if is_look and is_about_one else None


def _fragment(asked: _Asked) -> Wish | None:
    newest = asked.album.newest
    if newest is None or newest.order is None or not phrases.FRAGMENT.match(asked.low):
        return None
    return ChangeIntent(picture=newest, request=asked.words, words=asked.plain)


_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_RULES: Sequence[Callable[[_Asked], Wish | None]] = (
    _small_talk,
    _where,
    _compare,
    _show,
    _change,
    _draw,
    _look,
    _fragment,
)
