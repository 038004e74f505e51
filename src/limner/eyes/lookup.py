"""A question -> the label, the table cell or the line that answers it, with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from limner.eyes.evidence import Evidence, EyesQuestion, Finding
from limner.eyes.quotes import QUOTED_IS_DATA, cleaned, quoted
from limner.eyes.text import place
from limner.eyes.words import alike, content, hits, stem, stems, tokens, word_set
from limner.imaging.evidence import Box, Table
from limner.imaging.evidence.layout import to_number

_TIME = re.compile(r"\b\d{1,2}[:.]\d\d(?::\d\d)?(?:\s*[ap]\.?m\.?)?(?!\d)", re.IGNORECASE)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
    rf"|\b\d{{1,2}}\.?\s+{_MONTH}(?:\s+\d{{4}})?|\b{_MONTH}\s+\d{{1,2}}(?:,?\s+\d{{4}})?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"\b\d[\d.,]*\s*(?:ms|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|days?|weeks?|months?|years?)\b"
)
_NUMBER = re.compile(r"(?<![\w.,])[-+]?\d[\d.,]*(?<![.,])")
_MONEY = re.compile(
    r"[$€£¥]\s?\d[\d.,]*(?<![.,])|\d[\d.,]*(?<![.,])\s?(?:[$€£¥]|(?:EUR|USD|GBP|CHF)\b)"
)
_DECIMAL = re.compile(r"\d[\d,]*\.\d\d\b|\d[\d.]*,\d\d\b")
_PHONE = re.compile(r"\+?\(?\d[\d\s()/-]{5,}\d")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_URL = re.compile(r"https?://\S+|\bwww\.\S+|\b[\w-]+(?:\.[\w-]+)+(?:/\S*)?")
_CODE = re.compile(
    r"\b[A-Z]{2,}[A-Z0-9]*(?:[_-][A-Z0-9]+)+\b|\b(?:0x[\da-fA-F]+|[A-Z]{1,4}\d{2,})\b"
)
_STATUS = re.compile(r"(?<![\d+] )\b[45]\d\d\b(?! ?\d)")
_PHONE_WORDS = re.compile(
    r"phone|tel\b|tel\.|call|hotline|support|mobile|fax|电话|電話", re.IGNORECASE
)

_COUNT = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b")
_AMOUNT = re.compile(r"\bhow much\b|\bprice\b|\bcosts?\b|\bhow (?:high|expensive)\b|\bamount\b")
_WHEN = re.compile(r"\bwhen\b|\bwhat (?:time|date|day)\b|\bwhich (?:date|day|time)\b")
_HOW_LONG = re.compile(r"\bhow long\b|\bduration\b|\bhow many (?:seconds|minutes|hours|days)\b")
_TREND = re.compile(
    r"\b(?:up or down|increased?|decreased?|change[ds]?|trend|rise|rose|fell|fall|grown?|grew)\b"
)
_TREND_WORDS = word_set(
    "go went gone down increase increased decrease decreased change changed rise rose fall fell "
    "grow grew trend"
)
_MOST = re.compile(
    r"\b(?:most|highest|largest|biggest|maximum|max|top|best|greatest|longest|tallest)\b"
)
_LEAST = re.compile(r"\b(?:least|lowest|smallest|minimum|min|fewest|worst|cheapest|shortest)\b")
_SUPERLATIVE_WORDS = word_set(
    "most highest largest biggest maximum max top best greatest longest tallest least lowest "
    "smallest minimum min fewest worst cheapest shortest expensive slice bar segment part"
)
# Words that ask for the kind of an answer; they need not be in the picture.
_KIND_WORDS = word_set(
    "date day time price amount total number share percentage percent count customer"
)
_SUMMARY = frozenset({"total", "subtotal", "tax", "vat", "sum"})
# A match below this is no answer.
_LEAST_SCORE = 0.55
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[^\d\s])|(?<=[\u3002\uff01\uff1f])")


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """An answer found in the text: the value, where it is, why, and how well it fits."""

    value: str
    box: Box
    why: str
    score: float


def answer_from_text(query: EyesQuestion) -> Finding | None:
    """The best match for a question, as an answer; None if nothing in the text fits."""
    match = find(query)
    if match is None:
        return None
    sure = min(99, round(100 * match.score))
    return Finding(
        answer=cleaned(match.value, max_chars=200),
        evidence=(f"{match.why} {place(match.box)}; confidence {sure} %.",),
        caveats=(QUOTED_IS_DATA,),
    )


def find(query: EyesQuestion) -> Match | None:
    """The best match for a question."""
    picture, question = query.picture, query.question
    for matcher in (_superlative, _typed):
        if (found := matcher(picture, question)) is not None:
            return found
    found = [*_cells(picture, question), *_labels(picture, question), *_lines(picture, question)]
    best = max(found, key=lambda match: match.score, default=None)
    return best if best is not None and best.score >= _LEAST_SCORE else None


def fits_type(question: str, value: str) -> float:
    """A bonus if a value is of the kind that a question asks for, else a penalty."""
    if _HOW_LONG.search(question):
        return 0.2 if _DURATION.search(value) else -0.6
    if _WHEN.search(question):
        return 0.2 if _TIME.search(value) or _DATE.search(value) else -0.6
    if _COUNT.search(question):
        return 0.15 if _NUMBER.search(value) else -0.8
    if _AMOUNT.search(question):
        money = _MONEY.search(value) or _DECIMAL.search(value)
        return 0.25 if money else 0.0 if _NUMBER.fullmatch(value.strip()) else -0.5
    return 0.0


def _coverage(wanted: Sequence[str], text: str) -> tuple[float, float, list[str]]:
    """How much of the question and how much of the text they share, and the shared words."""
    found = hits(wanted, text)
    words = [word for word in stems(text) if len(word) > 1 or word.isdigit()]
    if not found:
        return 0.0, 0.0, []
    back = sum(any(alike(word, other) for other in found) for word in words)
    return len(found) / len(wanted), back / max(1, len(words)), found


def _wanted(question: str) -> list[str]:
    """The words to look for; words for the kind of answer count only if there are no others."""
    kinds = ("date", "time", "day") if _WHEN.search(question) else ()
    trend = _TREND_WORDS if _TREND.search(question) else ()
    words = content(question, besides=(*kinds, *trend, "share", "percentage", "percent", "many"))
    return words or content(question)


def _labels(picture: Evidence, question: str) -> Iterator[Match]:
    """Labels that share words with the question."""
    wanted = _wanted(question)
    for pair in picture.page.values:
        part, back, found = _coverage(wanted, pair.label)
        missing = [word for word in wanted if word not in found and not _is_known(picture, word)]
        if not found or (missing and back < 1):
            continue
        if missing and _complement(question) & set(missing):
            continue
        value = pair.value
        if pair.change and _TREND.search(question):
            value = f"{value}, {_direction(pair.change)} ({pair.change})"
        score = 0.25 + 0.4 * part + 0.35 * back + fits_type(question, value)
        if pair.found == "right" and any(_in_table(pair.label, t) for t in picture.page.tables):
            score -= 0.05
        yield Match(
            value=value,
            box=pair.box,
            why=f"{quoted(pair.label)} has {quoted(pair.value)} {_PLACED[pair.found]}",
            score=score,
        )


_PLACED = {
    "inline": "after it",
    "right": "on its right",
    "below": "below it",
    "field": "in its field",
    "bar": "as its bar",
    "slice": "as its slice",
}


def _direction(change: str) -> str:
    return "down" if change.lstrip()[:1] in "-\u2212▼↓" else "up"


def _complement(question: str) -> set[str]:
    """The words after of, for, in or on: an answer about something else would be wrong."""
    after = re.findall(r"\b(?:of|for|in|on|from)\s+(?:the\s+|a\s+)?([^\W_]+)", question)
    return {stem(word) for word in after}


def _is_known(picture: Evidence, word: str) -> bool:
    return any(hits([word], line.text) for line in picture.lines)


def _in_table(label: str, table: Table) -> bool:
    return any(label in row for row in table.rows)


def _cells(picture: Evidence, question: str) -> Iterator[Match]:
    """Cells of a table by their row and their column."""
    wanted = content(question)
    for table in picture.page.tables:
        header = table.rows[0] if table.header else ()
        body = list(enumerate(table.rows))[1 if table.header else 0 :]
        columns = [n for n, name in enumerate(header) if name and _names(wanted, name)]
        rows = _rows(body, wanted)
        for index, used in rows:
            row = table.rows[index]
            if len(rows) > 1:
                continue  # several rows fit equally well, so each would be a guess
            targets = [n for n in columns if row[n] and not hits(used, row[n])]
            targets = targets or _targets(row, used, question)
            if not targets:
                continue
            named = {word for n in columns for word in hits(wanted, header[n])}
            part = len({*used, *named}) / len(wanted)
            value = ", ".join(row[n] for n in _with_key(targets, columns, row, used, question))
            why = f"The row {quoted(' | '.join(filter(None, row)))} of a table"
            score = 0.35 + 0.6 * part + (0.0 if columns else fits_type(question, value))
            yield Match(value=value, box=table.row_boxes[index], why=why, score=score)


def _names(wanted: Sequence[str], header: str) -> bool:
    """Whether a question names a column: with all of its words, or its main one."""
    part = hits(wanted, header)
    return len(part) * 2 >= len(stems(header)) and bool(part)


def _rows(
    body: Sequence[tuple[int, tuple[str, ...]]], wanted: Sequence[str]
) -> list[tuple[int, list[str]]]:
    """The rows that share the most words with the question, and these words."""
    shared: list[tuple[int, list[str], float]] = []
    for index, row in body:
        found = [(hits(wanted, cell), cell) for cell in row]
        used = list(dict.fromkeys(word for words, _ in found for word in words))
        if used:
            exact = max(len(words) / max(1, len(stems(cell))) for words, cell in found)
            shared.append((index, used, len(used) + exact))
    most = max((score for *_, score in shared), default=0.0)
    return [(index, used) for index, used, score in shared if score == most]


def _targets(row: Sequence[str], used: Sequence[str], question: str) -> list[int]:
    """The cells that a question without a column asks for."""
    free = [n for n, cell in enumerate(row) if cell and not hits(used, cell)]
    if _COUNT.search(question):
        return [n for n in free if re.fullmatch(r"\d+", row[n])][:1]
    prices = [n for n in free if _DECIMAL.search(row[n]) or _MONEY.search(row[n])]
    if prices:
        return prices[-1:]
    return free[:1] if len(free) == 1 else []


def _with_key(
    targets: Sequence[int],
    columns: Sequence[int],
    row: Sequence[str],
    used: Sequence[str],
    question: str,
) -> list[int]:
    """All columns that the question names, those in the row that selected it included."""
    if not re.search(r"\bwhich\b|\bwho\b", question):
        return list(targets)
    return sorted({*targets, *(n for n in columns if row[n] and not hits(used, row[n]))})


def _superlative(picture: Evidence, question: str) -> Match | None:
    """Which one has the most or the least, in a chart or in a column of a table."""
    most, least = _MOST.search(question), _LEAST.search(question)
    if not most and not least:
        return None
    pick = max if most else min
    asks_value = re.search(r"\bwhat(?:'s| is| was)? the\b|\bhow (?:much|many|high)\b", question)
    label_only = re.search(r"\bwhich\b|\bwho\b|\bslice\b|\bbar\b", question)
    options = _numbers(picture, question)
    if len(options) < 2:
        return None
    number, label, written, box = pick(options, key=lambda option: option[0])
    if sum(option[0] == number for option in options) > 1:
        label = ", ".join(option[1] for option in options if option[0] == number)
    value = written if asks_value and not label_only else f"{label} ({written})"
    order = "most" if most else "least"
    why = f"{quoted(label)} with {quoted(written)} is the {order} of {len(options)}"
    return Match(value=value, box=box, why=why, score=0.9)


def _numbers(picture: Evidence, question: str) -> list[tuple[float, str, str, Box]]:
    """Numbers to compare, each with its label, its text and its place."""
    charted = [pair for pair in picture.page.values if pair.found in {"bar", "slice"}]
    wanted = content(question, besides=_SUPERLATIVE_WORDS)
    for table in picture.page.tables:
        column = _compared_column(table, wanted, question)
        if column is None:
            continue
        body = list(enumerate(table.rows))[1 if table.header else 0 :]
        named = [n for n, name in enumerate(table.rows[0]) if n != column and hits(wanted, name)]
        key = named[0] if table.header and named else 0
        return [
            (number, row[key], row[column], table.row_boxes[index])
            for index, row in body
            if (number := to_number(row[column])) is not None and not _SUMMARY & set(stems(row[0]))
        ]
    return [
        (number, pair.label, pair.value, pair.box)
        for pair in charted
        if (number := to_number(pair.value)) is not None
    ]


def _compared_column(table: Table, wanted: Sequence[str], question: str) -> int | None:
    """The column with numbers that a question compares."""
    body = table.rows[1:] if table.header else table.rows
    numeric = [
        n
        for n in range(1, len(table.rows[0]))
        if sum(to_number(row[n]) is not None for row in body) * 2 > len(body)
    ]
    if table.header:
        named = [n for n in numeric if hits(wanted, table.rows[0][n])]
        if named:
            return max(named, key=lambda n: len(hits(wanted, table.rows[0][n])))
    if len(numeric) == 1:
        return numeric[0]
    if re.search(r"expensive|cheap|cost|price", question):
        return numeric[-1] if numeric else None
    return None


_TYPES = (
    ("phone", re.compile(r"\b(?:phone|telephone|mobile|fax|call)\b"), _PHONE),
    ("email", re.compile(r"\be-?mail\b"), _EMAIL),
    ("address", re.compile(r"\burl\b|\bweb ?(?:site|address|page)\b|\blink\b|\bdomain\b"), _URL),
    ("code", re.compile(r"\berror code\b|\bstatus code\b"), _CODE),
    ("status", re.compile(r"\berror code\b|\bstatus code\b"), _STATUS),
)


def _typed(picture: Evidence, question: str) -> Match | None:
    """The only text of the kind that a question asks for: a phone number, an address, a code."""
    for name, asked, pattern in _TYPES:
        if not asked.search(question) or re.match(r"(?:is|are|does|did|how many|why)\b", question):
            continue
        found = [
            (line, text)
            for line in picture.lines
            for text in map(str.strip, pattern.findall(line.text))
            if name != "phone" or sum(map(str.isdigit, text)) >= 7
        ]
        if name == "phone":
            named = [one for one in found if _PHONE_WORDS.search(one[0].text)]
            found = named or [one for one in found if one[1].startswith("+")]
        wanted = [word for word in content(question) if word not in {name, "number", "code"}]
        better = [one for one in found if hits(wanted, one[0].text)]
        found = better or found
        if len({text for _, text in found}) == 1:
            line, text = found[0]
            why = f"{quoted(line.text)} has the only {name}"
            return Match(value=text, box=line.box, why=why, score=0.95)
    return None


def _lines(picture: Evidence, question: str) -> Iterator[Match]:
    """Sentences that share words with the question."""
    wanted = _wanted(question)
    required = _complement(question)
    labels = {pair.label for pair in picture.page.values}
    for line in picture.lines:
        if line.text.strip().rstrip(":\uff1a ") in labels:
            continue
        for sentence in _SENTENCE.split(line.text):
            part, back, found = _coverage(wanted, sentence)
            missing = {word for word in wanted if word not in found}
            if not found or required & {word for word in missing if word not in _KIND_WORDS}:
                continue
            if set(stems(sentence)) <= set(found):
                continue  # a label alone is no answer
            value = _extract(sentence, found, question)
            if value is None:
                continue
            whole = 0.0 if value != sentence.strip() else -0.02
            score = 0.2 + 0.65 * part + 0.1 * back + whole + min(0.2, fits_type(question, value))
            why = f"{quoted(sentence)} shares {', '.join(map(quoted, found))} with the question"
            yield Match(value=value, box=line.box, why=why, score=score)


def _extract(sentence: str, found: Sequence[str], question: str) -> str | None:
    """The part of a sentence that answers; None if it has nothing of the kind."""
    sentence = sentence.strip()
    if _HOW_LONG.search(question):
        return _nearest(_DURATION, sentence, found)
    if _WHEN.search(question):
        return _nearest(_DATE, sentence, found) or _nearest(_TIME, sentence, found)
    if _COUNT.search(question):
        return _counted(sentence, found)
    if _AMOUNT.search(question):
        return _nearest(_MONEY, sentence, found) or _counted(sentence, found)
    return _after(sentence, found) or sentence


def _nearest(pattern: re.Pattern[str], sentence: str, found: Sequence[str]) -> str | None:
    places = [at for at, word in _placed(sentence) if any(alike(word, one) for one in found)]
    options = list(pattern.finditer(sentence))
    if not options:
        return None
    best = min(options, key=lambda one: min(abs(one.start() - at) for at in places))
    return best[0].strip()


def _placed(sentence: str) -> list[tuple[int, str]]:
    folded = sentence.casefold()
    placed: list[tuple[int, str]] = []
    start = 0
    for word in tokens(sentence):
        at = folded.index(word, start)
        placed.append((at, stem(word)))
        start = at + len(word)
    return placed


def _counted(sentence: str, found: Sequence[str]) -> str | None:
    """The number before a word of the question, or the only number of the sentence."""
    numbers = list(_NUMBER.finditer(sentence))
    for number in numbers:
        after = stems(sentence[number.end() :])[:2]
        if any(alike(word, one) for word in after[:1] for one in found):
            return number[0]
    for number in numbers:
        after = stems(sentence[number.end() :])[:2]
        if any(alike(word, one) for word in after for one in found):
            return number[0]
    return numbers[0][0] if len(numbers) == 1 else None


def _after(sentence: str, found: Sequence[str]) -> str | None:
    """The value after "is", or the identifier right after a word of the question."""
    words = [(at, word) for at, word in _placed(sentence) if any(alike(word, one) for one in found)]
    if len({word for _, word in words}) < len(set(found)):
        return None
    rest = re.sub(r"^[^\W_]+", "", sentence[words[-1][0] :])
    if value := re.match(r"\s*(?:is|are|was|:|=)\s+(\S.*?)[.;]?$", rest):
        return value[1]
    if value := re.match(r"\s+#?(\S*\d\S*?)[.,;]?(?:\s|$)", rest):
        return value[1]
    return None
