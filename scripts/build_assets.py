"""Six unpacked npm packages -> the picture pack in src/limner/illustrator/data.

Needed only to renew the pack; the results are committed. Usage, from the repository root::

    npm pack @iconify-json/fluent-emoji@1.2.7 && npm pack emojibase-data@17.0.0
    npm pack @iconify-json/noto@1.2.9 && npm pack @iconify-json/game-icons@1.2.4
    npm pack country-flag-icons@1.6.20 && npm pack @svg-maps/world@2.0.0
    # unpack each into a folder of its own, then
    .venv/bin/python scripts/build_assets.py FLUENT_EMOJI EMOJIBASE NOTO GAME_ICONS FLAGS MAPS

It writes four files; asset_anchors.py describes ``anchors.tsv``. ``words.xz`` has the names of the
pictures in other languages, one language a line. ``pictures.xz`` is a row of xz streams of about
forty drawings each, one drawing a line, so that reading one picture unpacks one stream.
``index.tsv`` has one line for each picture in the same order: name, title, group, box (the drawn
part of the square, in hundredths: left top right bottom), its main colours, where its stream lies
(offset and length), its line in that stream, its view box, and its tags.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import asset_anchors
import countries
import resvg_py
from game_silhouettes import SILHOUETTES, two_toned
from own_household import OWN_HOUSEHOLD
from own_pictures import OWN_PICTURES
from own_things import OWN_THINGS
from PIL import Image

from limner.illustrator.people import PEOPLE
from limner.illustrator.person_art import draw_person
from limner.illustrator.words import word_set

DATA = Path(__file__).resolve().parents[1] / "src" / "limner" / "illustrator" / "data"
PICTURES_A_STREAM = 40
PROBE_PX = 100
NEUTRAL = frozenset({"black", "white", "grey"})
SKIN_TONES = ("-light", "-medium-light", "-medium", "-medium-dark", "-dark")
HARD_ALPHA = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 127 0"

RENAMED = {"piata": "pinata"}
# Pictures of Noto Emoji that the other set does not have, with their groups.
FROM_NOTO = {
    "harp": "musical-instrument",
    "leafless-tree": "plant-other",
    "lighthouse": "place-building",
    "monarch-butterfly": "animal-bug",
    "orca": "animal-marine",
    "shovel": "tool",
    "treasure-chest": "other-object",
    "trombone": "musical-instrument",
}
LANGUAGES = word_set("da de es et fi fr hu it ja ko lt ms nb nl pl pt ru sv th uk vi zh")

# Names of the icon set that differ from the title the same emoji has in emojibase.
TITLES = {
    "blackbird": "black bird",
    "hugging-face": "smiling face with open hands",
    "keycap-asterisk": "keycap: *",
    "keycap-hashtag": "keycap: #",
    "knocked-out-face": "face with crossed-out eyes",
    "phoenix-bird": "phoenix",
    "pinata": "piñata",
    "pouting-face": "enraged face",
    "red-triangle": "red triangle pointed up",
    **{f"{who}-blonde-hair": f"{who}: blond hair" for who in ("man", "woman", "person")},
    **{f"{who}-deaf": f"deaf {who}" for who in ("man", "woman", "person")},
    **{
        f"{who}-{what}": f"{plural} {what.replace('-', ' ')}"
        for who, plural in (("man", "men"), ("woman", "women"), ("person", "people"))
        for what in ("with-bunny-ears", "wrestling")
    },
    **{
        f"person-{what}": what
        for what in (
            "elf",
            "fairy",
            "genie",
            "mage",
            "superhero",
            "supervillain",
            "vampire",
            "zombie",
        )
    },
    "man-merpeople": "merman",
    "woman-merpeople": "mermaid",
    "person-merpeople": "merperson",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture on its way into the pack."""

    name: str
    title: str
    group: str
    tags: tuple[str, ...]
    view_box: str
    body: str


def slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain.replace("'", "")).strip("-")


def simplify_filter(element: ET.Element) -> None:
    """Leave out the steps of an exported filter that change nothing, and soften its edges.

    The export starts every filter by blending the drawing with nothing. Its inner shadows work
    on an alpha channel stretched to on or off, which leaves saw teeth along the edges.
    """
    steps = list(element)
    nothing = next((s for s in steps if s.tag == "feFlood" and s.get("flood-opacity") == "0"), None)
    blend = next((s for s in steps if s.tag == "feBlend" and s.get("in") == "SourceGraphic"), None)
    same_as: dict[str, str] = {}
    if nothing is not None and blend is not None and blend.get("in2") == nothing.get("result"):
        element.remove(nothing)
        element.remove(blend)
        same_as[blend.get("result", "")] = "SourceGraphic"
    for step in list(element):
        if step.tag == "feColorMatrix" and step.get("values") == HARD_ALPHA:
            following = list(element)[list(element).index(step) + 1]
            following.set("in", "SourceAlpha")
            same_as[step.get("result", "")] = "SourceAlpha"
            element.remove(step)
    for step in element:
        if step.get("in2") in same_as:
            step.set("in2", same_as[step.get("in2", "")])
    used = {step.get(key) for step in element for key in ("in", "in2")}
    for step in element:
        if "result" in step.attrib and step.get("result") not in used:
            del step.attrib["result"]


def references(element: ET.Element) -> Iterator[str]:
    for key, value in element.attrib.items():
        yield from re.findall(r"url\(#([^)]+)\)", value)
        if key == "href":
            yield value.removeprefix("#")


def drop_unused(root: ET.Element) -> None:
    used = {target for element in root.iter() for target in references(element)}
    for parent in list(root.iter()):
        for child in list(parent):
            if parent.tag == "defs" and child.get("id") not in used:
                parent.remove(child)


def rename_ids(root: ET.Element, name: str) -> None:
    """Give the parts of a picture ids that no other picture and no caller's drawing has."""
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    new = {old: f"limner-{name}-{number}" for number, old in enumerate(dict.fromkeys(ids))}
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, new[value])
            elif key == "href":
                element.set(key, "#" + new[value.removeprefix("#")])
            else:
                element.set(key, re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{new[m[1]]})", value))


def clean(name: str, body: str) -> str:
    root = ET.fromstring(f"<svg>{body}</svg>")
    for element in root.iter():
        if element.tag == "filter":
            simplify_filter(element)
        if element.attrib.pop("style", None) == "mask-type:alpha":
            element.set("mask-type", "alpha")
    drop_unused(root)
    for element in list(root.iter()):
        for child in list(element):
            if child.tag == "defs" and not len(child):
                element.remove(child)
    rename_ids(root, name)
    text = "".join(ET.tostring(child, encoding="unicode") for child in root)
    return text.replace(" />", "/>").replace("\n", " ")


def icons(folder: Path) -> dict[str, tuple[str, str]]:
    """Every icon without the skin tones: its view box and body."""
    data = json.loads((folder / "icons.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[str, str]] = {}
    name: str
    for name, icon in data["icons"].items():
        toned = any(
            name.endswith(tone) and name.removesuffix(tone) in data["icons"] for tone in SKIN_TONES
        )
        if not toned and not icon.get("hidden"):
            size = f"0 0 {icon.get('width', 32)} {icon.get('height', 32)}"
            found[RENAMED.get(name, name)] = (size, icon["body"])
    return found


def from_set(fluent: Path, emojibase: Path) -> Iterator[Picture]:
    rows = json.loads((emojibase / "en" / "data.json").read_text(encoding="utf-8"))
    groups = json.loads((emojibase / "meta" / "groups.json").read_text(encoding="utf-8"))
    by_slug = {slug(row["label"]): row for row in rows}
    by_slug |= {name: row for name, t in TITLES.items() for row in rows if row["label"] == t}
    for name, (view_box, body) in icons(fluent).items():
        row = by_slug[name]
        yield Picture(
            name=name,
            title=row["label"],
            group=groups["subgroups"][str(row["subgroup"])],
            tags=tuple(row.get("tags", ())),
            view_box=view_box,
            body=clean(name, body),
        )


def our_own(fluent: Path) -> Iterator[Picture]:
    found = icons(fluent)

    def place(match: re.Match[str]) -> str:
        name, x, y, size = match.groups()
        scale = float(size) / 32
        return f'<g transform="translate({x} {y}) scale({scale:g})">{found[name][1]}</g>'

    asset = re.compile(r'<asset name="([^"]+)" x="([^"]+)" y="([^"]+)" size="([^"]+)"/>')
    for own in (*OWN_PICTURES, *OWN_THINGS, *OWN_HOUSEHOLD):
        yield Picture(
            name=own.name,
            title=own.title,
            group=own.group,
            tags=tuple(own.tags.split(",")),
            view_box="0 0 32 32",
            body=clean(own.name, asset.sub(place, own.body)),
        )


def from_noto(noto: Path) -> Iterator[Picture]:
    data = json.loads((noto / "icons.json").read_text(encoding="utf-8"))
    for name, group in FROM_NOTO.items():
        edge = data.get("width", 128)
        yield Picture(
            name=name,
            title=name.replace("-", " "),
            group=group,
            tags=tuple(name.split("-")),
            view_box=f"0 0 {edge} {edge}",
            body=clean(name, data["icons"][name]["body"]),
        )


def from_game_icons(folder: Path) -> Iterator[Picture]:
    data = json.loads((folder / "icons.json").read_text(encoding="utf-8"))
    for group, colours in SILHOUETTES.items():
        for colour, listed in colours.items():
            for entry in listed.split():
                name, _, icon = entry.partition("=")
                body = two_toned(data["icons"][icon or name]["body"], colour)
                yield Picture(
                    name=name,
                    title=name.replace("-", " "),
                    group=group,
                    tags=(*name.split("-"), "silhouette"),
                    view_box="0 0 512 512",
                    body=clean(name, body),
                )


def from_countries(emojibase: Path, flags: Path, maps: Path) -> Iterator[Picture]:
    """A flag on its pole and an outline for each country, and one of Europe."""
    rows = json.loads((emojibase / "en" / "data.json").read_text(encoding="utf-8"))
    labels = {row["tags"][0]: row["label"] for row in rows if row["label"].startswith("flag: ")}
    for path in sorted(flags.joinpath("3x2").glob("*.svg")):
        if path.stem in labels:
            country = labels[path.stem].removeprefix("flag: ")
            yield _of_country("flag", country, countries.flag(path.read_text(encoding="utf-8")))
    found = countries.outlines(maps / "index.js")
    for code, (_, rings) in found.items():
        if code.upper() in labels:
            country = labels[code.upper()].removeprefix("flag: ")
            yield _of_country("map", country, countries.country_map(rings))
    yield _of_country("map", "Europe", countries.europe(found))


def _of_country(what: str, country: str, body: str) -> Picture:
    name = slug(f"{what} of {country}")
    return Picture(
        name=name,
        title=f"{what} of {country}",
        group=f"country-{what}",
        tags=(what, "country", *slug(country).split("-")),
        view_box="0 0 32 32" if what == "flag" else "0 0 100 100",
        body=clean(name, body),
    )


def people(known: set[str]) -> Iterator[Picture]:
    """Whole people; the set has some of them as heads, and those stay."""
    for name, person in PEOPLE.items():
        if name not in known:
            drawn = draw_person(person).asset
            yield Picture(
                name=name,
                title=name.replace("-", " "),
                group="person-role",
                tags=(*name.split("-"), "person", "whole"),
                view_box=drawn.view_box,
                body=clean(name, drawn.body),
            )


def write_words(emojibase: Path, pictures: list[Picture]) -> None:
    """The titles of the pictures in other languages: language, then word=title."""
    rows = json.loads((emojibase / "en" / "data.json").read_text(encoding="utf-8"))
    titles = {picture.title for picture in pictures}
    english = {row["hexcode"]: row["label"] for row in rows if row["label"] in titles}
    lines: list[str] = []
    for language in sorted(LANGUAGES):
        rows = json.loads((emojibase / language / "data.json").read_text(encoding="utf-8"))
        words = {
            row["label"].lower(): english[row["hexcode"]]
            for row in rows
            if row["hexcode"] in english and row["label"].lower() != english[row["hexcode"]]
        }
        named = (f"{word}={title}" for word, title in words.items() if "=" not in word)
        lines.append("\t".join((language, *named)))
    raw = ("\n".join(lines) + "\n").encode()
    (DATA / "words.xz").write_bytes(lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME))


def rendered(picture: Picture) -> Image.Image:
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{picture.view_box}" width="{PROBE_PX}" '
        f'height="{PROBE_PX}">{picture.body}</svg>'
    )
    png = resvg_py.svg_to_bytes(svg_string=document)
    return Image.open(io.BytesIO(png)).convert("RGBA")


def colour_word(red: int, green: int, blue: int) -> str:
    top, low = max(red, green, blue), min(red, green, blue)
    if top < 110 and low < 60 and blue == top:
        # The set draws its blacks as a very dark violet.
        return "black"
    if top - low < max(32, 0.24 * top):
        return "black" if top < 80 else "white" if low > 205 else "grey"
    pixel: Any = Image.new("RGB", (1, 1), (red, green, blue)).convert("HSV").getpixel((0, 0))
    hue = pixel[0] * 360 / 256
    if top < 190 and (12 <= hue < 50 or (hue < 12 and top - low < 0.6 * top)):
        return "brown"
    if (hue >= 285 or hue < 12) and low > 125:
        return "pink"
    bounds = ((12, "red"), (43, "orange"), (68, "yellow"), (170, "green"), (250, "blue"))
    for bound, word in bounds:
        if hue < bound:
            return word
    return "purple" if hue < 310 else "pink" if hue < 335 else "red"


def main_colours(image: Image.Image) -> str:
    every: Any = image.resize((24, 24)).get_flattened_data()
    pixels = [pixel for pixel in every if pixel[3] > 128]
    shares = Counter(colour_word(*pixel[:3]) for pixel in pixels)
    words = {word for word, count in shares.items() if count >= 0.25 * len(pixels)}
    # A red bicycle is red, although more of it is tyres.
    brightest = next((word for word, _ in shares.most_common() if word not in NEUTRAL), None)
    coloured = sum(count for word, count in shares.items() if word not in NEUTRAL)
    if brightest is not None and shares[brightest] >= 0.3 * coloured > 10:
        words.add(brightest)
    return " ".join(sorted(words, key=lambda word: (-shares[word], word)))


def _opaque(alpha: Any) -> int:
    return 255 if alpha > 24 else 0


def drawn_box(image: Image.Image) -> str:
    visible = image.getchannel("A").point(_opaque)
    box = visible.getbbox() or (0, 0, PROBE_PX, PROBE_PX)
    return " ".join(str(round(value * 100 / PROBE_PX)) for value in box)


def alike(picture: Picture) -> tuple[str, str]:
    """Sort key that puts pictures with much in common into one stream."""
    return picture.group, re.sub(r"^(man|woman|person)-(.+)", r"\2-\1", picture.name)


def write(pictures: list[Picture]) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    filters = [
        {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}
    ]
    lines: list[str] = []
    offset = 0
    with (DATA / "pictures.xz").open("wb") as pack:
        for start in range(0, len(pictures), PICTURES_A_STREAM):
            part = pictures[start : start + PICTURES_A_STREAM]
            raw = "".join(f"{picture.body}\n" for picture in part).encode()
            stream = lzma.compress(raw, check=lzma.CHECK_CRC32, filters=filters)
            pack.write(stream)
            for line, picture in enumerate(part):
                image = rendered(picture)
                fields = (
                    picture.name,
                    picture.title,
                    picture.group,
                    drawn_box(image),
                    main_colours(image),
                    f"{offset} {len(stream)} {line}",
                    picture.view_box,
                    ",".join(picture.tags),
                )
                lines.append("\t".join(fields))
            offset += len(stream)
    (DATA / "index.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    if len(sys.argv) != 7:
        sys.exit("usage: build_assets.py FLUENT_EMOJI EMOJIBASE NOTO GAME_ICONS FLAGS MAPS")
    fluent, emojibase, noto, game, flags, maps = map(Path, sys.argv[1:])
    found = [*from_set(fluent, emojibase), *our_own(fluent), *from_noto(noto)]
    found += [*from_game_icons(game), *from_countries(emojibase, flags, maps)]
    # The first set that has a name keeps it.
    found = list({picture.name: picture for picture in reversed(found)}.values())
    found += people({picture.name for picture in found})
    pictures = sorted(found, key=alike)
    write(pictures)
    write_words(emojibase, pictures)
    asset_anchors.main()
    size = sum(path.stat().st_size for path in DATA.iterdir())
    print(f"{len(pictures)} pictures, {size:,} bytes in {DATA}")


if __name__ == "__main__":
    main()
