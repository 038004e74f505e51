from __future__ import annotations

import json
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.display_text import clean_line
from limner.illustrator import grammar, scenes, vocabulary
from limner.illustrator.draw import Illustration, draw
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.svg import mentioned_assets
from limner.imaging.svg.parser import parse

EXAMPLES = examples(100, 10_000)
PHRASES = sorted(" ".join(words) for words in vocabulary.phrases())
SCENE_WORDS = sorted(" ".join(words) for words in scenes.PLACE_PHRASES | scenes.HOUR_PHRASES)
ATTACKS = [
    '"</text><script>alert(1)</script>"',
    '"]]>&lol;<!--"',
    '"\x00\x0b\ufffe\ud800"',
    "<asset name='cat' href='file:///etc/passwd'/>",
    "&amp;&#0;",
    '"' + "W" * 79 + '"',
    "'",
    '"',
    "\N{MATHEMATICAL DOUBLE-STRUCK SMALL C}at",
    "ﷺ" * 20,
]
prompts = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=200),
    st.lists(
        st.one_of(
            st.sampled_from(PHRASES),
            st.sampled_from(SCENE_WORDS),
            st.sampled_from(sorted(grammar.RELATIONS)),
            st.sampled_from(sorted(grammar.COLOURS)),
            st.sampled_from(sorted(grammar.NUMBERS)),
            st.sampled_from(["a", "and", ",", "no", "flying", "the", "background", "-", "999999"]),
            st.sampled_from(ATTACKS),
        ),
        max_size=14,
    ).map(" ".join),
)
edges = st.integers(min_value=16, max_value=4096)


@settings(max_examples=EXAMPLES)
@given(prompt=prompts, width=edges, height=edges, seed=st.one_of(st.none(), st.integers()))
def test_property_any_prompt_gives_well_formed_svg_or_a_refusal(
    prompt: str, width: int, height: int, seed: int | None
) -> None:
    made = draw(prompt=prompt, svg=None, width=width, height=height, seed=seed)
    check(made)
    matched = {thing["asset"] for thing in made.facts["matched"]}
    assert matched <= set(made.assets), "everything that was matched is drawn"
    elements = {
        element.tag.rpartition("}")[2] for element in ElementTree.fromstring(made.svg).iter()
    }
    assert "script" not in elements


documents = st.lists(
    st.one_of(st.sampled_from([*ATTACKS, '<asset name="cat"/>', "<asset name="]), st.text())
).map("".join)


@settings(max_examples=EXAMPLES)
@given(documents)
def test_property_any_document_is_passed_on_and_unknown_pictures_are_reported(
    document: str,
) -> None:
    made = draw(prompt="", svg=document, width=64, height=64, seed=None)
    assert made.svg == document
    assert set(made.assets) == mentioned_assets(document)
    json.dumps(made.facts, ensure_ascii=False).encode()
    found = {match["words"] for match in made.facts["matched"]}
    missing = {thing["name"] for thing in made.facts["missing_assets"]}
    assert found | missing == {clean_line(name) for name in mentioned_assets(document)}


def check(made: Illustration) -> None:
    made.svg.encode()
    json.dumps(made.facts, ensure_ascii=False).encode()
    assert mentioned_assets(made.svg) == set(made.assets)
    # The parser of the renderer raises if something is not allowed.
    parse(made.svg, DEFAULT_LIMITS)
