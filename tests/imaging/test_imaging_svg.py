from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import decoded
from PIL import Image
from tests.fuzz import sample

from limner.errors import CorruptImage, ImageError, ImageTooLarge, UnsafeSvg
from limner.imaging.pool import Imaging
from limner.imaging.svg import Asset, mentioned_assets, mentioned_scenes, scene_key

RED, BLUE, CLEAR = (255, 0, 0, 255), (0, 0, 255, 255), (0, 0, 0, 0)
# Left half red, right half blue, in a box twice as wide as high.
FLAG = Asset(
    view_box="0 0 20 10",
    body='<g fill="url(#a)"><rect width="20" height="10"/></g>'
    '<linearGradient id="a"><stop offset="0.5" stop-color="red"/>'
    '<stop offset="0.5" stop-color="blue"/></linearGradient>',
)


async def drawn(
    imaging: Imaging,
    document: str,
    *,
    width: int = 100,
    height: int = 100,
    assets: Mapping[str, Asset] | None = None,
) -> Image.Image:
    return decoded(
        await imaging.render_svg(document, width=width, height=height, assets=assets or {})
    )


def svg(body: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{body}</svg>'


async def test_a_drawing_is_a_png_of_exactly_the_size_asked_for(imaging: Imaging) -> None:
    image = await drawn(
        imaging, svg('<rect width="50" height="100" fill="red"/>'), width=200, height=100
    )
    assert (image.format, image.mode, image.size) == ("PNG", "RGBA", (200, 100))
    # The square view box is centred in the wide picture; the rest is transparent.
    colours = [image.getpixel((x, 50)) for x in (25, 75, 125, 175)]
    assert colours == [CLEAR, RED, CLEAR, CLEAR]


@pytest.mark.parametrize(
    ("root", "corner", "middle"),
    [
        ('<svg width="10" height="10">', RED, RED),
        ('<svg width="10px" height=" 10.0 ">', RED, RED),
        ('<svg width="1e9" height="1e9" viewBox="0 0 10 10">', RED, RED),
        ('<svg viewBox="0 0 20 20" preserveAspectRatio="none">', CLEAR, RED),
        ('<svg width="100%">', CLEAR, CLEAR),
        ("<svg>", CLEAR, CLEAR),
        ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">', RED, RED),
        ('<s:svg xmlns:s="http://www.w3.org/2000/svg" viewBox="0 0 10 10">', RED, RED),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><svg viewBox='0 0 10 10'>", RED, RED),
    ],
)
async def test_the_view_box_or_else_the_documents_own_size_is_scaled(
    imaging: Imaging, root: str, corner: object, middle: object
) -> None:
    prefix = "s:" if root.startswith("<s:") else ""
    document = f'{root}<{prefix}rect width="10" height="10" fill="red"/></{prefix}svg>'
    image = await drawn(imaging, document)
    assert (image.getpixel((99, 99)), image.getpixel((49, 49))) == (corner, middle)


def ink(image: Image.Image) -> int:
    """How many pixels anything was drawn on."""
    return sum(image.getchannel("A").histogram()[1:])


@pytest.mark.parametrize("family", ["", "Arimo", "'No Such', sans-serif", "Helvetica, Arial"])
async def test_text_in_an_unknown_font_is_drawn_in_the_bundled_one(
    imaging: Imaging, family: str
) -> None:
    plain = await drawn(imaging, svg('<text y="50" font-size="30">Ag&amp;Ж</text>'))
    named = await drawn(
        imaging, svg(f'<text y="50" font-size="30" font-family="{family}">Ag&amp;Ж</text>')
    )
    assert ink(plain) > 400
    assert named.tobytes() == plain.tobytes()


@pytest.mark.parametrize(
    ("families", "alike"),
    [
        ("Georgia, serif", "Gelasio"),
        ("'Times New Roman', Georgia", "Tinos"),
        ("Palatino", "Lora"),
        ("Verdana", "Inter"),
        ("Impact", "Anton"),
        ("'Courier New', monospace", "JetBrains Mono"),
        ("Comic Sans MS", "Caveat"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        '<text y="50" font-size="30" font-family="{}">Ag</text>',
        '<text y="50" font-size="30" style="fill:#000; font-family: {}">Ag</text>',
        "<style>text {{ font-family: {}; }}</style><text y='50' font-size='30'>Ag</text>",
    ],
)
async def test_a_well_known_font_is_replaced_by_the_bundled_one_that_looks_alike(
    imaging: Imaging, text: str, families: str, alike: str
) -> None:
    named = await drawn(imaging, svg(text.format(families)))
    bundled = await drawn(imaging, svg(text.format(alike)))
    plain = await drawn(imaging, svg('<text y="50" font-size="30">Ag</text>'))
    assert named.tobytes() == bundled.tobytes()
    assert named.tobytes() != plain.tobytes()


def right_edge(image: Image.Image) -> int:
    box = image.getchannel("A").getbbox()
    assert box is not None
    return box[2]


async def test_an_emoji_is_drawn_in_its_colours_and_the_text_after_it_stays(
    imaging: Imaging,
) -> None:
    text = '<text y="50" font-size="9" font-family="Georgia">{}l</text>'
    family, flag, key, tone, heart, sign = [
        await drawn(imaging, svg(text.format(words)))
        for words in ("👨\u200d👩\u200d👧", "🇩🇪", "1\ufe0f\u20e3", "👍🏽", "❤\ufe0f", "❤")
    ]
    assert {right_edge(one) for one in (family, flag, key, tone, heart)} <= {11, 12}
    one, other = (picture.convert("RGB").getcolors(9999) for picture in (heart, sign))
    assert (len(one or []) > 1, other) == (True, [(10_000, (0, 0, 0))])


async def test_a_sign_does_not_change_the_font_of_its_line(imaging: Imaging) -> None:
    text = '<text y="50" font-size="20" font-family="Georgia">Agf{}</text>'
    plain, star = [await drawn(imaging, svg(text.format(sign))) for sign in ("", "★")]
    edge = right_edge(plain)
    assert (star.crop((0, 0, edge, 100)).tobytes(), right_edge(star) > edge + 9) == (
        plain.crop((0, 0, edge, 100)).tobytes(),
        True,
    )


async def test_a_sign_stands_in_its_line_and_keeps_the_colour_of_the_text(
    imaging: Imaging,
) -> None:
    text = '<text x="50" y="50" font-size="20" text-anchor="middle" fill="red">{}</text>'
    image = await drawn(imaging, svg(text.format("♞ ☑")))
    assert image.getchannel("R").getextrema() == (0, 255)
    assert image.getchannel("B").getextrema() == (0, 0)
    left, _, right, _ = image.getchannel("A").getbbox() or (0, 0, 0, 0)
    assert abs(left + right - 100) < 6


async def test_bold_text_is_bolder(imaging: Imaging) -> None:
    regular, bold = [
        ink(await drawn(imaging, svg(f'<text y="50" font-size="40" font-weight="{w}">Il</text>')))
        for w in (400, 700)
    ]
    assert bold > regular * 1.2


async def test_gradients_styles_clips_filters_and_uses_are_drawn(imaging: Imaging) -> None:
    document = svg(
        """
        <title>A test</title><metadata><x:y xmlns:x="urn:x"/></metadata>
        <style type="text/css"><![CDATA[
          .warm { fill: url(#g) } .cold > rect { fill: blue }
        ]]></style>
        <defs>
          <linearGradient id="g"><stop stop-color="red"/></linearGradient>
          <clipPath id="c"><rect width="50" height="100"/></clipPath>
          <filter id="f"><feFlood flood-color="blue"/></filter>
        </defs>
        <g clip-path="url('#c')"><rect class="warm" width="100" height="50"/></g>
        <g class="cold"><rect id="r" x="50" width="50" height="50"/></g>
        <rect y="50" width="50" height="50" filter="url(#f)" style="fill: red"/>
        <use xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="#r" y="50"/>
        """
    )
    image = await drawn(imaging, document)
    colours = [image.getpixel(place) for place in ((25, 25), (75, 25), (25, 75), (75, 75))]
    assert colours == [RED, BLUE, BLUE, BLUE]


async def test_notes_of_editors_are_dropped(imaging: Imaging) -> None:
    document = (
        '<svg viewBox="0 0 9 9" xmlns:inkscape="urn:inkscape" xmlns:sodipodi="urn:sodipodi">'
        '<sodipodi:namedview inkscape:zoom="2"><script/></sodipodi:namedview><!-- a note -->'
        '<rect width="9" height="9" fill="red" inkscape:label="x" data-x="y" aria-label="z"/></svg>'
    )
    assert (await drawn(imaging, document)).getpixel((50, 50)) == RED


async def test_the_first_of_two_elements_with_one_id_counts(imaging: Imaging) -> None:
    document = svg(
        '<defs><rect id="a" width="100" height="100" fill="red"/>'
        '<rect id="a" width="100" height="100" fill="blue"/></defs><use href="#a"/>'
    )
    assert (await drawn(imaging, document)).getpixel((50, 50)) == RED


@pytest.mark.parametrize(
    ("attributes", "row"),
    [
        ('size="100"', [RED, RED, BLUE, BLUE]),
        ('size="50"', [RED, BLUE, CLEAR, CLEAR]),
        ('x="50" size="50"', [CLEAR, CLEAR, RED, BLUE]),
        ('width="100" height="100"', [RED, RED, BLUE, BLUE]),
        ('size="100" flip="horizontal"', [BLUE, BLUE, RED, RED]),
        ('size="100" flip="vertical"', [RED, RED, BLUE, BLUE]),
        ('size="100" rotate="180"', [BLUE, BLUE, RED, RED]),
        ('size="100" rotate="180" flip="horizontal"', [RED, RED, BLUE, BLUE]),
        ('size="100" transform="translate(50)"', [CLEAR, CLEAR, RED, RED]),
        ('size="100" opacity="0"', [CLEAR] * 4),
    ],
)
async def test_an_asset_is_placed_by_name(
    imaging: Imaging, attributes: str, row: list[object]
) -> None:
    # At half the height of a box of 50 or 100, the flag is drawn in both cases.
    height = 25 if 'size="50"' in attributes else 50
    document = svg(f'<asset name="flag" {attributes}/>')
    image = await drawn(imaging, document, assets={"flag": FLAG})
    assert [image.getpixel((x, height)) for x in (12, 37, 62, 87)] == row


async def test_assets_keep_their_ids_to_themselves(imaging: Imaging) -> None:
    other = Asset("0 0 10 10", FLAG.body.replace("red", "lime").replace("blue", "lime"))
    document = svg(
        '<linearGradient id="a"><stop stop-color="black"/></linearGradient>'
        '<asset name="other" size="10"/><asset name="flag" y="10" size="40"/>'
        '<asset name="other" x="50" size="10"/>'
    )
    image = await drawn(imaging, document, assets={"flag": FLAG, "other": other})
    lime = (0, 255, 0, 255)
    assert [image.getpixel(place) for place in ((5, 5), (55, 5), (5, 30), (35, 30))] == [
        lime,
        lime,
        RED,
        BLUE,
    ]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ('<asset name="fox" size="9"/><asset name="owl"/>', "no asset is named 'fox', 'owl'"),
        ('<asset size="9"/>', "no asset is named ''"),
        ('<asset name="flag"/>', "width of <asset name='flag'> is missing: give a number"),
        ('<asset name="flag" size="big"/>', "width of <asset name='flag'> is 'big': give a number"),
        ('<asset name="flag" size="9" x="nan"/>', "x of <asset name='flag'> is 'nan'"),
        (
            '<asset name="flag" size="9" rotate="1e999"/>',
            "rotate of <asset name='flag'> is '1e999'",
        ),
        ('<asset name="flag" size="9" flip="up"/>', "flip of <asset> is 'up': use 'horizontal' or"),
        ('<asset name="flag" size="9" color="tael"/>', "color of <asset> is 'tael': use a name as"),
    ],
)
async def test_the_error_of_a_wrong_asset_element_says_what_to_fix(
    imaging: Imaging, element: str, message: str
) -> None:
    with pytest.raises(UnsafeSvg) as caught:
        await drawn(imaging, svg(element), assets={"flag": FLAG})
    assert caught.value.message.startswith(message)
    if "no asset" in message:
        assert caught.value.hint == "find names with `limner assets search WORD`"


async def test_an_asset_is_checked_like_any_document(imaging: Imaging) -> None:
    bad = Asset("0 0 9 9", '<image href="/etc/passwd"/>')
    with pytest.raises(UnsafeSvg, match="the asset 'bad' cannot be drawn: remove <image>"):
        await drawn(imaging, svg('<asset name="bad" size="9"/>'), assets={"bad": bad})


async def test_a_name_with_blanks_is_drawn(imaging: Imaging) -> None:
    image = await drawn(
        imaging, svg('<asset name="my flag" size="100"/>'), assets={"my flag": FLAG}
    )
    assert [image.getpixel((x, 50)) for x in (20, 80)] == [RED, BLUE]


async def test_a_colour_paints_an_asset_in_its_shades(imaging: Imaging) -> None:
    image = await drawn(
        imaging, svg('<asset name="flag" size="100" color="teal"/>'), assets={"flag": FLAG}
    )
    # Red is brighter than blue, so its shade of teal is brighter.
    assert [image.getpixel((x, 50)) for x in (20, 80)] == [(4, 95, 97, 255), (8, 71, 75, 255)]


async def test_a_shadow_lies_below_an_asset_also_if_it_is_turned(imaging: Imaging) -> None:
    for turn in ("", 'rotate="180"', 'flip="vertical"'):
        element = f'<asset name="flag" x="20" y="20" size="60" shadow="true" {turn}/>'
        image = await drawn(imaging, svg(element), assets={"flag": FLAG})
        alphas = [image.getpixel((50, y))[3] for y in (33, 66)]  # type: ignore[index]
        assert alphas[0] < 10 < alphas[1], turn


async def test_a_filter_of_the_document_may_reach_outside_the_asset(imaging: Imaging) -> None:
    shifted = '<filter id="f"><feOffset dx="0" dy="5"/></filter>'
    element = '<asset name="flag" x="0" y="0" size="80" filter="url(#f)"/>'
    image = await drawn(imaging, svg(shifted + element), assets={"flag": FLAG})
    assert [image.getpixel((20, y)) for y in (23, 63)] == [CLEAR, RED]


async def test_a_scene_fills_the_drawing_or_its_box(imaging: Imaging) -> None:
    scenes = {scene_key("a beach"): FLAG}
    image = await drawn(imaging, svg('<scene name="a beach"/>'), assets=scenes)
    assert [image.getpixel((x, y)) for x, y in ((5, 5), (95, 95))] == [RED, BLUE]
    box = '<scene name="a beach" x="50" y="50" width="50" height="50"/>'
    image = await drawn(imaging, svg(box), assets=scenes)
    assert [image.getpixel((x, x)) for x in (40, 60, 95)] == [CLEAR, RED, BLUE]


async def test_a_scene_may_have_assets_in_it(imaging: Imaging) -> None:
    room = Asset(view_box="0 0 10 10", body='<asset name="flag" size="10"/>')
    assets = {scene_key("room"): room, "flag": FLAG}
    image = await drawn(imaging, svg('<scene name="room"/>'), assets=assets)
    assert [image.getpixel((x, 50)) for x in (20, 80)] == [RED, BLUE]


@pytest.mark.parametrize(
    "rule",
    [
        "font: 40px sans-serif",
        "font: bold 40px/1.2 Arial, sans-serif",
        "font: italic 700 40px / 1.2 'Times New Roman'",
        "font:40px",
    ],
)
async def test_the_short_form_of_a_font_keeps_the_text(imaging: Imaging, rule: str) -> None:
    text = '<text y="60" class="a">WW</text>'
    for body in (f"<style>.a{{{rule}}}</style>{text}", text.replace("class", f'style="{rule}" id')):
        _, top, right, bottom = (await drawn(imaging, svg(body))).getbbox() or (0, 0, 0, 0)
        assert 25 <= bottom - top <= 40, rule
        assert right > 50, rule


def test_scenes_are_found_in_the_text_of_a_document() -> None:
    document = "<svg><scene name='beach'/><asset name='cat'/><scene x='1' name='night sky'/></svg>"
    assert mentioned_scenes(document) == {"beach", "night sky"}


def test_assets_are_found_in_the_text_of_a_document() -> None:
    document = """<svg><asset name="a"/><asset
        x='1' name = 'b' /><s:asset name="c"></s:asset><assets name="no"/><g name="no"/>"""
    assert mentioned_assets(document) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "the SVG document is not well-formed: no element found"),
        ("a fox", "the SVG document is not well-formed: syntax error: line 1, column 0"),
        (
            "<svg><g></svg>",
            "the SVG document is not well-formed: mismatched tag: line 1, column 10",
        ),
        ("<svg><a:b/></svg>", "the SVG document is not well-formed: unbound prefix"),
        ("<svg>&nbsp;</svg>", "the SVG document is not well-formed: undefined entity"),
        ("<html/>", "the root element is <html>, not <svg>"),
        (
            '<svg xmlns="urn:other"/>',
            "the root element <svg> is of the namespace 'urn:other', not of",
        ),
        ("<svg>\ud800</svg>", "the picture does not decode: 'utf-8' codec can't encode"),
    ],
)
async def test_a_broken_document_is_corrupt_and_says_where(
    imaging: Imaging, document: str, message: str
) -> None:
    with pytest.raises(CorruptImage) as caught:
        await drawn(imaging, document)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (4097, 10), (10, 10**9)])
async def test_only_a_sensible_size_is_drawn(imaging: Imaging, size: tuple[int, int]) -> None:
    with pytest.raises(ImageTooLarge, match="a drawing may be 1 to 4096 pixels on each side"):
        await drawn(imaging, svg(""), width=size[0], height=size[1])


tags = st.sampled_from(["svg", "g", "rect", "text", "use", "style", "asset", "script", "!--", "?x"])
pieces = st.one_of(
    tags.map(lambda tag: f"<{tag}>"),
    tags.map(lambda tag: f"</{tag}>"),
    st.sampled_from(['<rect id="a" fill="url(#a)"/>', '<use href="#a"/>', "&lt;", "&#0;", "]]>"]),
    st.text(max_size=8),
)


@sample(100)
@given(st.lists(pieces, max_size=12))
async def test_property_any_text_is_a_picture_or_an_image_error(
    imaging: Imaging, parts: list[str]
) -> None:
    try:
        image = await drawn(imaging, f"<svg>{''.join(parts)}</svg>", width=8, height=8)
    except ImageError:
        return
    assert image.size == (8, 8)
