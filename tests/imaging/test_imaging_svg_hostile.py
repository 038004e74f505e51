from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from imaging_samples import decoded

from limner.errors import ImageTooLarge, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.pool import Imaging

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


@pytest.fixture(autouse=True)
async def still_working(imaging: Imaging) -> AsyncIterator[None]:
    """After any document, the pool draws the next one."""
    yield
    png = await imaging.render_svg("<svg/>", width=2, height=1, assets={})
    assert decoded(png).size == (2, 1)


async def draw(imaging: Imaging, body: str, *, edge: int = 16) -> bytes:
    document = f'<svg viewBox="0 0 100 100" {XLINK}>{body}</svg>'
    return await imaging.render_svg(document, width=edge, height=edge, assets={})


@pytest.mark.parametrize(
    ("body", "culprit"),
    [
        (
            '<image href="https://example.com/a.png"/>',
            "remove <image>: pictures cannot be embedded",
        ),
        ('<image href="file:///etc/passwd"/>', "remove <image>"),
        ('<image href="/etc/passwd"/>', "remove <image>"),
        ('<image href="data:image/png;base64,AAAA"/>', "remove <image>"),
        ('<image xlink:href="../secret.svg"/>', "remove <image>"),
        ("<filter><feImage href='/etc/passwd'/></filter>", "remove <feImage>"),
        ('<use href="/etc/passwd#a"/>', "'href' of <use> is '/etc/passwd#a': only '#id' within"),
        ('<use xlink:href="file:///etc/passwd#a"/>', "'href' of <use> is 'file:///etc/passwd#a'"),
        ('<use href="other.svg"/>', "'href' of <use>"),
        ('<use href="data:image/svg+xml,%3Csvg/%3E#a"/>', "'href' of <use>"),
        ('<use href=" #a"/>', "'href' of <use>"),
        ('<use href="#"/>', "'href' of <use>"),
        ('<text><textPath href="//example.com/#a">x</textPath></text>', "'href' of <textPath>"),
        ('<linearGradient href="https://example.com/#g"/>', "'href' of <linearGradient>"),
        ('<rect fill="url(https://example.com/#a)"/>', "'fill' of <rect> holds"),
        ('<rect fill="url(#a) url(b.svg#c)"/>', "'fill' of <rect> holds 'url(b.svg#c)'"),
        ("<rect fill=\"URL( 'file:///x' )\"/>", "'fill' of <rect> holds"),
        ('<rect mask="url(&#x2f;etc/passwd)"/>', "'mask' of <rect> holds"),
        ('<rect style="fill: url(/etc/passwd)"/>', "'style' of <rect> holds"),
        (
            r'<rect style="fill: u\72l(/etc/passwd)"/>',
            "remove the backslash from 'style' of <rect>",
        ),
        ("<rect style=\"@import 'a.css'\"/>", "remove @import from 'style' of <rect>"),
        ("<style>@import url(https://example.com/a.css);</style>", "remove @import from <style>"),
        ("<style>@font-face { src: url(a.ttf) }</style>", "remove @font-face from <style>"),
        ("<style>rect { fill: url(/etc/passwd) }</style>", "<style> holds"),
        ("<style>rect { cursor: image-set('a.png' 1x) }</style>", "<style> holds"),
        ("<script>alert(1)</script>", "remove <script>: a drawing contains no code"),
        ("<foreignObject><p>hi</p></foreignObject>", "remove <foreignObject>"),
        ("<iframe src='https://example.com'/>", "remove <iframe>"),
        ('<a href="https://example.com"><rect/></a>', "remove <a>: a drawing has no links"),
        (
            "<rect><animate attributeName='x'/></rect>",
            "remove <animate>: a drawing is",
        ),
        ("<rect><set attributeName='x'/></rect>", "remove <set>"),
        ('<rect onclick="alert(1)"/>', "remove the attribute 'onclick' of <rect>"),
        ('<g ONLOAD="alert(1)"/>', "remove the attribute 'ONLOAD' of <g>"),
        ("<filter><feMorphology radius='9'/></filter>", "remove <feMorphology>"),
        ("<filter><feConvolveMatrix/></filter>", "remove <feConvolveMatrix>"),
        (
            "<filter><feTurbulence numOctaves='900'/></filter>",
            "'numOctaves' of <feTurbulence> is '900': at most 5 is allowed",
        ),
        (
            "<filter><feGaussianBlur stdDeviation='1 1e9'/></filter>",
            "'stdDeviation' of <feGaussianBlur> is '1 1e9': at most 500 is allowed",
        ),
        ("<?xml-stylesheet href='a.css'?>", "remove <?xml-stylesheet?>"),
        ('<g id="a"><use href="#a"/></g>', "<g id='a'> refers to itself"),
        ('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>', "<g id='a'> refers to"),
        ('<pattern id="p"><rect fill="url(#p)"/></pattern>', "<pattern id='p'> refers to itself"),
        ('<mask id="m" mask="url(#m)"/>', "<mask id='m'> refers to itself"),
    ],
)
async def test_hostile_a_drawing_with_an_outside_reference_is_refused_with_a_reason(
    imaging: Imaging, body: str, culprit: str
) -> None:
    with pytest.raises(UnsafeSvg) as caught:
        await draw(imaging, body)
    assert caught.value.message.startswith(culprit)


@pytest.mark.parametrize(
    "doctype",
    [
        "<!DOCTYPE svg>",
        '<!DOCTYPE svg SYSTEM "file:///etc/passwd">',
        '<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>',
        '<!DOCTYPE svg [<!ENTITY secret SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE svg [<!ENTITY % all SYSTEM "https://example.com/a.dtd"> %all;]>',
    ],
)
async def test_hostile_entities_are_refused_before_one_is_declared(
    imaging: Imaging, doctype: str
) -> None:
    with pytest.raises(UnsafeSvg, match="remove <!DOCTYPE>"):
        await imaging.render_svg(f"{doctype}<svg>&c;</svg>", width=9, height=9, assets={})


async def test_hostile_a_million_elements_are_too_many(imaging: Imaging) -> None:
    with pytest.raises(ImageTooLarge, match="more than 50,000 elements"):
        await draw(imaging, "<g/>" * 1_000_000)


async def test_hostile_five_megabytes_are_too_long(imaging: Imaging) -> None:
    with pytest.raises(ImageTooLarge, match="more than 4,194,304 bytes"):
        await draw(imaging, "<g/>" + " " * 5_000_000)


@pytest.mark.parametrize("tag", ["g", "svg", "metadata"])
async def test_hostile_deep_nesting_is_refused(imaging: Imaging, tag: str) -> None:
    with pytest.raises(ImageTooLarge, match="elements nest more than 100 deep"):
        await draw(imaging, f"<{tag}>" * 20_000 + f"</{tag}>" * 20_000)


async def test_hostile_uses_that_multiply_are_counted_before_they_are_drawn(
    imaging: Imaging,
) -> None:
    ten_uses = '<use href="#a{}"/>' * 10
    levels = "".join(
        f'<g id="a{level}">{ten_uses.format(*[level + 1] * 10)}</g>' for level in range(20)
    )
    with pytest.raises(ImageTooLarge, match="expands to more than 200,000 elements"):
        await draw(imaging, levels + '<rect id="a20"/>')


@pytest.mark.parametrize(
    ("element", "reference"),
    [
        ("g", '<use href="#a{}"/>'),
        ("mask", '<rect mask="url(#a{})"/>'),
        ("pattern", '<rect fill="url(#a{})"/>'),
        ("marker", '<path d="M0 0 1 1" marker-end="url(#a{})"/>'),
    ],
)
async def test_hostile_a_long_chain_of_references_is_too_deep(
    imaging: Imaging, element: str, reference: str
) -> None:
    chain = "".join(
        f'<{element} id="a{link}">{reference.format(link + 1)}</{element}>' for link in range(9000)
    )
    with pytest.raises(ImageTooLarge, match="deep once references are followed"):
        await draw(imaging, chain)


@pytest.mark.parametrize(
    ("element", "reference"),
    [
        ("g", '<use href="#a{}" opacity=".9"/>'),
        ("mask", '<rect width="9" height="9" mask="url(#a{})"/>'),
        ("pattern", '<rect width="9" height="9" fill="url(#a{})"/>'),
        ("marker", '<path d="M0 0 1 1" stroke="red" marker-end="url(#a{})"/>'),
    ],
)
async def test_hostile_what_is_just_deep_enough_does_not_crash_the_renderer(
    imaging: Imaging, element: str, reference: str
) -> None:
    chain = "".join(
        f'<{element} id="a{link}">{reference.format(link + 1)}</{element}>' for link in range(49)
    )
    assert decoded(await draw(imaging, chain + reference.format(0))).size == (16, 16)


ENDLESS = (
    '<filter id="f"><feTurbulence baseFrequency="0.05" numOctaves="5"/></filter>'
    + '<rect width="100" height="100" filter="url(#f)"/>' * 400
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (WorkerLimits(timeout_s=0.5), "the picture took more than 0.5 s"),
        (WorkerLimits(cpu_s=1), "the picture took more than 1 s of processor time"),
    ],
)
async def test_hostile_a_filter_that_never_ends_is_stopped(
    limits: WorkerLimits, message: str
) -> None:
    async with Imaging(workers=1, limits=limits) as pool:
        with pytest.raises(ImageTooLarge) as caught:
            await draw(pool, ENDLESS, edge=4096)
        assert caught.value.message == message
        assert decoded(await draw(pool, "<g/>")).size == (16, 16)


async def test_hostile_layers_over_the_memory_limit_are_stopped() -> None:
    layers = '<g opacity=".9">' * 90 + '<rect width="100" height="100"/>' + "</g>" * 90
    async with Imaging(workers=1, limits=WorkerLimits(memory_bytes=256 << 20)) as pool:
        with pytest.raises(ImageTooLarge, match="needs more than 256 MiB of memory"):
            await draw(pool, layers, edge=4096)
        assert decoded(await draw(pool, "<g/>")).size == (16, 16)


async def test_hostile_a_message_never_repeats_a_whole_document(imaging: Imaging) -> None:
    with pytest.raises(UnsafeSvg) as caught:
        await draw(imaging, f"<{'x' * 1_000_000}/>")
    assert len(caught.value.message) == 300
