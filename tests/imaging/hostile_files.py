"""A type and a number -> a hostile file of that type, always the same one."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from hostile_anatomy import Number, anatomy, mend, png_chunks
from hostile_bombs import BOMBS
from hostile_seeds import KINDS, seeds
from imaging_samples import chunk

Mutator = Callable[[random.Random, str, bytes], bytes]

_BOMB_SHARE = 0.08
# A mutation that repeats a part stops at this many bytes.
_MOST_BYTES = 1 << 20
_LETTERS = b"0123456789.-e#%, aAzZmMcC:;()/=url"
_WORDS = (b"0", b"-1", b"1e9", b"-1e308", b"nan", b"2147483648", b"99999999999999999999", b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileFile:
    """One case: its seed file, the mutations, and the bytes."""

    kind: str
    number: int
    recipe: str
    data: bytes

    @property
    def name(self) -> str:
        """The name of the case, which also reproduces it."""
        return f"{self.kind}:{self.number}"


def hostile_file(kind: str, number: int) -> HostileFile:
    """Case ``number`` of a type."""
    healthy = seeds(kind)
    rng = random.Random(f"{kind}:{number}")
    if rng.random() < _BOMB_SHARE:
        bomb = rng.choice(BOMBS[kind])
        steps, data = [_spoken(bomb)], bomb(rng)
    else:
        origin = rng.randrange(len(healthy))
        steps, data = [f"seed {origin}"], healthy[origin]
        for mutate in rng.choices(_MUTATORS, weights=_WEIGHTS, k=rng.choice([1, 1, 1, 1, 2, 2, 4])):
            steps.append(_spoken(mutate))
            data = mutate(rng, kind, data)
        # Unmended too, since a decoder may also fail at its own checks.
        if rng.random() < 0.75:
            data = mend(kind, data)
    return HostileFile(kind=kind, number=number, recipe=", ".join(steps), data=data)


def _spoken(step: Callable[..., bytes]) -> str:
    return step.__name__.strip("_").replace("_", " ")


def _run(rng: random.Random, data: bytes) -> tuple[int, int]:
    """A stretch of a few bytes, or of many."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 2, 4, 16, 200, 5_000]))


def _noise(rng: random.Random, kind: str, size: int) -> bytes:
    """Anything at all; for a text, characters that mean something in it."""
    if kind == "svg" and rng.random() < 0.8:
        return bytes(rng.choices(_LETTERS, k=size))
    return rng.choice([rng.randbytes(size), rng.choice([b"\0", b"\xff", b"\x80", b"A"]) * size])


def _flip_bits(rng: random.Random, kind: str, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20]) if out else 0):
        # A text has no eighth bit.
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(7 if kind == "svg" else 8)
    return bytes(out)


def _overwrite_a_run(rng: random.Random, kind: str, data: bytes) -> bytes:
    start, end = _run(rng, data)
    return data[:start] + _noise(rng, kind, end - start) + data[end:]


def _insert_a_run(rng: random.Random, kind: str, data: bytes) -> bytes:
    start, end = _run(rng, data)
    return (
        data[:start] + rng.choice([_noise(rng, kind, end - start), data[start:end]]) + data[start:]
    )


def _delete_a_run(rng: random.Random, kind: str, data: bytes) -> bytes:
    start, end = _run(rng, data)
    return data[:start] + data[end:]


def _truncate(rng: random.Random, kind: str, data: bytes) -> bytes:
    """At any place, near the start, near the end, or around the border of a part."""
    border = rng.choice(rng.choice(anatomy(kind, data).parts)) + rng.choice([-1, 0, 0, 1, 4, 8])
    places = [rng.randrange(len(data) + 1), rng.randrange(64), len(data) - rng.randrange(64)]
    return data[: max(0, rng.choice([*places, border, border]))]


def _set_numbers(rng: random.Random, kind: str, data: bytes) -> bytes:
    """Lengths, offsets, edges and types become extreme, or point at other parts."""
    found = anatomy(kind, data)
    chosen = rng.sample(found.numbers, min(len(found.numbers), rng.choice([1, 1, 2, 4])))
    # From the back, so that a number of another length moves none of the others.
    for number in sorted(chosen, key=lambda number: -number.start):
        end = number.start + number.size
        value = _extreme(rng, number, data, rng.choice(found.parts)[0])
        data = data[: number.start] + value + data[end:]
    return data


def _extreme(rng: random.Random, number: Number, data: bytes, part: int) -> bytes:
    if number.order == "text":
        return rng.choice([*_WORDS, b"%d" % part, b"%d" % rng.randrange(300)])
    most = 256**number.size - 1
    old = int.from_bytes(data[number.start : number.start + number.size], number.order)
    edges = (0, 1, most, most - 1, most // 2, most // 2 + 1, 9_900, 65_500, len(data), part)
    near = (old - 1, old + 1, old * 2, rng.randrange(most + 1), rng.randrange(20))
    return (rng.choice([*edges, *near]) & most).to_bytes(number.size, number.order)


def _swap_parts(rng: random.Random, kind: str, data: bytes) -> bytes:
    (start, end), (later, last) = sorted(rng.choices(anatomy(kind, data).parts, k=2))
    if later < end:
        return data
    return data[:start] + data[later:last] + data[end:later] + data[start:end] + data[last:]


def _repeat_a_part(rng: random.Random, kind: str, data: bytes) -> bytes:
    start, end = rng.choice(anatomy(kind, data).parts)
    times = min(rng.choice([1, 1, 2, 30, 1_000]), _MOST_BYTES // max(1, end - start))
    return data[:end] + data[start:end] * times + data[end:]


def _drop_a_part(rng: random.Random, kind: str, data: bytes) -> bytes:
    start, end = rng.choice(anatomy(kind, data).parts)
    return data[:start] + data[end:]


def _ruin_a_part(rng: random.Random, kind: str, data: bytes) -> bytes:
    """Noise in one part and nowhere else; a small part is hit as often as a large one."""
    start, end = rng.choice(anatomy(kind, data).parts)
    ruin = rng.choice([_flip_bits, _overwrite_a_run])
    return data[:start] + ruin(rng, kind, data[start:end]) + data[end:]


def _repack_a_part(rng: random.Random, kind: str, data: bytes) -> bytes:
    """A PNG chunk with other contents but the right length; of pixels, before they are packed."""
    whole = list(png_chunks(data)) if kind == "png" else []
    if not whole:
        return _ruin_a_part(rng, kind, data)
    start, name, end = rng.choice(whole)
    body, ruin = data[start + 8 : end - 4], rng.choice([*_BLIND, _flip_bits])
    if name == b"IDAT":
        body = zlib.compress(ruin(rng, kind, _inflated(body)), 1)
    else:
        body = ruin(rng, kind, body)
    return data[:start] + chunk(name, body) + data[end:]


def _inflated(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, _MOST_BYTES)
    except zlib.error:
        # An earlier mutation was here.
        return packed


def _splice_with_another_type(rng: random.Random, kind: str, data: bytes) -> bytes:
    """The beginning of one and the end of the other, or one inside the other."""
    other = rng.choice(seeds(rng.choice(KINDS)))
    at, cut = rng.choice(rng.choice(anatomy(kind, data).parts)), rng.randrange(len(other))
    return rng.choice([data[:at] + other[cut:], data[:at] + other + data[at:], data + other])


def _append_a_tail(rng: random.Random, kind: str, data: bytes) -> bytes:
    return data + rng.choice([bytes(1 << 20), _noise(rng, kind, 300), data])


_BLIND: tuple[Mutator, ...] = (_flip_bits, _overwrite_a_run, _insert_a_run, _delete_a_run)
_SHARES: dict[Mutator, int] = {
    _flip_bits: 3,
    _overwrite_a_run: 2,
    _insert_a_run: 2,
    _delete_a_run: 2,
    _truncate: 3,
    _set_numbers: 6,
    _swap_parts: 2,
    _repeat_a_part: 2,
    _drop_a_part: 2,
    _ruin_a_part: 6,
    _repack_a_part: 3,
    _splice_with_another_type: 1,
    _append_a_tail: 1,
}
_MUTATORS, _WEIGHTS = list(_SHARES), list(_SHARES.values())
