"""Questions and texts -> the words that carry meaning, in one comparable form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def word_set(text: str) -> frozenset[str]:
    """The words of a text that lists them."""
    return frozenset(text.split())


# Words of questions that name no thing in a picture.
_EMPTY = word_set(
    """a about above all also am an and any appear appears are as at be been being below but by can
    chosen could currently display displayed did do does each entered exact exactly fill filled
    following for from get gets given had has have here how i if image in inside into is it its
    just keep kind let list listed long look looks lot many me mentioned mentions much my of on or
    our out over per photo picture please point print printed read reads say says screen screenshot
    see seen set shot should show showing shown shows so state stated such tell text than that the
    their them then there these they this those to typed under up us use used value values visible
    was we were what what's when where which who whose why will with within would write written
    wrote you your piece much name's"""
)
_IRREGULAR = {
    "took": "take",
    "taken": "take",
    "sold": "sell",
    "bought": "buy",
    "paid": "pay",
    "sent": "send",
    "left": "leave",
    "went": "go",
    "cost": "price",
    "costs": "price",
    "license": "licence",
    "telephone": "phone",
    "tel": "phone",
    "mail": "email",
    "e-mail": "email",
    "colour": "color",
    "colours": "color",
    "colors": "color",
    "cheque": "check",
    "customers": "customer",
    "qty": "quantity",
    "no": "number",
    "nr": "number",
    "sum": "total",
    "january": "jan",
    "february": "feb",
    "march": "mar",
    "april": "apr",
    "june": "jun",
    "july": "jul",
    "august": "aug",
    "september": "sep",
    "sept": "sep",
    "october": "oct",
    "november": "nov",
    "december": "dec",
    "monday": "mon",
    "tuesday": "tue",
    "wednesday": "wed",
    "thursday": "thu",
    "friday": "fri",
    "saturday": "sat",
    "sunday": "sun",
}


# The words come from pictures of strangers, so there is no end of them.
@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """A word without its ending, so that its forms are equal."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    word = _IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "aeiosl":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def tokens(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _TOKEN.findall(text.casefold())


def stems(text: str) -> list[str]:
    """The words of a text without their endings."""
    return [stem(word) for word in tokens(text)]


def content(question: str, *, besides: Iterable[str] = ()) -> list[str]:
    """The words of a question that name something, in order and once each."""
    empty = {*_EMPTY, *besides}
    return list(dict.fromkeys(stem(word) for word in tokens(question) if word not in empty))


def alike(one: str, other: str) -> bool:
    """Whether two words are equal, or differ by one letter as after a mistake of OCR."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < 5 or len(longer) - len(shorter) > 1 or any(map(str.isdigit, one + other)):
        return False
    start = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(shorter)
    )
    return shorter[start + (len(one) == len(other)) :] == longer[start + 1 :]


def hits(wanted: Iterable[str], text: str) -> list[str]:
    """The wanted words that a text has."""
    found = stems(text)
    return [word for word in wanted if any(alike(word, other) for other in found)]
