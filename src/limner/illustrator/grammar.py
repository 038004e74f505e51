"""The words of a prompt for numbers, colours, sizes, relations, styles and genres, as tables.

A word that is in none of them and names no picture is reported as unmatched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from limner.illustrator.words import word_set

MAX_COUNT = 12
Position = Literal["", "left", "middle", "right"]
Depth = Literal["", "far", "near"]

NUMBERS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "dozen": 12,
    "pair": 2,
    "couple": 2,
    "both": 2,
    "few": 3,
    "some": 3,
    "several": 4,
    "group": 4,
    "bunch": 4,
    "flock": 6,
    "herd": 5,
    "row": 5,
    "many": 7,
    "lots": 8,
    "hundred": 12,
    "hundreds": 12,
    "thousands": 12,
    "plenty": 8,
    "one": 1,
    "single": 1,
    "lone": 1,
    "solitary": 1,
}
# Phrases for a count; a "field of" things is also a place.
GROUPS_OF = {
    "couple of": 2,
    "family of": 4,
    "team of": 4,
    "crowd of": 8,
    "pack of": 5,
    "school of": 6,
    "swarm of": 7,
    "pride of": 4,
    "army of": 9,
    "field of": 9,
    "rows of": 8,
}
# Things that say only what the thing after them is made of: a stone house.
MATERIALS = word_set(
    "stone rock glass brick paper metal ice snow straw wood cardboard crystal rope gold silver"
)
# Nouns that mean several.
COLLECTIVES = {
    "couple": 2,
    "twins": 2,
    "crowd": 8,
    "audience": 8,
    "team": 4,
    "family": 4,
    "family of three": 3,
    "family of four": 4,
    "family of five": 5,
    "family of six": 6,
    "parents": 2,
    "grandparents": 2,
    "old couple": 2,
    "band": 3,
    "rock band": 3,
}
# The count for a plural without a number.
BARE_PLURAL = 3
FRUIT_OF_A_TREE = 7

COLOURS = {
    "red": "#e0242f",
    "crimson": "#b81434",
    "scarlet": "#e8281c",
    "orange": "#f57c1f",
    "yellow": "#f8c81c",
    "golden": "#dfa524",
    "gold": "#dfa524",
    "green": "#35a544",
    "turquoise": "#22b8b0",
    "teal": "#148f8f",
    "cyan": "#1fc3dc",
    "blue": "#2a72d8",
    "navy": "#223a78",
    "purple": "#8145b8",
    "violet": "#7a4fd0",
    "magenta": "#d02a9a",
    "pink": "#f573a8",
    "brown": "#8a5634",
    "black": "#26262e",
    "white": "#ffffff",
    "grey": "#8c8c96",
    "gray": "#8c8c96",
    "silver": "#b8bcc8",
    "beige": "#e4d3b2",
}
# The colour words of the index, for other colour words.
BASIC_COLOUR = {
    "crimson": "red",
    "scarlet": "red",
    "golden": "yellow",
    "gold": "yellow",
    "turquoise": "green",
    "teal": "green",
    "cyan": "blue",
    "navy": "blue",
    "violet": "purple",
    "magenta": "pink",
    "gray": "grey",
    "silver": "grey",
    "beige": "white",
}

SIZES = {
    "tiny": 0.45,
    "little": 0.7,
    "small": 0.65,
    "mini": 0.6,
    "miniature": 0.5,
    "big": 1.35,
    "large": 1.35,
    "tall": 1.3,
    "huge": 1.7,
    "giant": 1.8,
    "gigantic": 1.9,
    "enormous": 1.8,
    "massive": 1.7,
}

# Phrase -> the relation of the thing before it to the thing after it.
RELATIONS = {
    "on": "on",
    "on top of": "on",
    "atop": "on",
    "upon": "on",
    "onto": "on",
    "on the shoulder of": "shoulder",
    "on the head of": "head",
    "perched on": "on",
    "balancing on": "on",
    "skating on": "riding",
    "surfing on": "riding",
    "on the roof of": "on",
    "on the back of": "riding",
    "at the top of": "on",
    "sitting on": "on",
    "sits on": "on",
    "sleeping on": "on",
    "sleeping under": "under",
    "standing on": "on",
    "riding": "riding",
    "riding on": "riding",
    "rides": "riding",
    "driving": "riding",
    "drives": "riding",
    "in": "in",
    "inside": "in",
    "inside of": "in",
    "into": "in",
    "under": "under",
    "underneath": "under",
    "below": "under",
    "beneath": "under",
    "above": "above",
    "over": "above",
    "jumping over": "above",
    "flying over": "above",
    "hovering over": "above",
    "behind": "behind",
    "in front of": "front",
    "before": "front",
    "between": "between",
    "to the left of": "left of",
    "on the left of": "left of",
    "left of": "left of",
    "to the right of": "right of",
    "on the right of": "right of",
    "right of": "right of",
    "beside": "beside",
    "next to": "beside",
    "near": "beside",
    "by": "beside",
    "with": "beside",
    "holding": "holding",
    "holds": "holding",
    "carrying": "holding",
    "reading": "holding",
    "hugging": "holding",
    "cuddling": "holding",
    "waving a": "holding",
    "swinging": "holding",
    "balancing": "holding",
    "reads": "holding",
    "eating": "eating",
    "planting": "holding",
    "flying a": "holding",
    "hitting": "playing",
    "fighting": "facing",
    "chasing": "facing",
    "looking at": "facing",
    "pointing at": "facing",
    "watching": "facing",
    "talking to": "facing",
    "crossing": "on",
    "leaning against": "beside",
    "pushing": "facing",
    "pulling": "facing",
    "eats": "eating",
    **dict.fromkeys(
        (
            "baking",
            "making",
            "cooking",
            "preparing",
            "selling",
            "buying",
            "serving",
            "blowing",
            "casting",
            "catching",
            "throwing",
            "painting",
            "writing",
            "fixing",
            "repairing",
            "cutting",
            "opening",
            "watering",
            "taking",
        ),
        "busy with",
    ),
    "drinking": "eating",
    "playing": "playing",
    "playing with": "playing",
    "plays with": "playing",
    "plays": "playing",
    "using": "holding",
    "wearing": "wearing",
    "wears": "wearing",
}

# Phrase -> the side and the depth of the thing before it, or after it.
POSITIONS: Mapping[str, tuple[Position, Depth]] = {
    **dict.fromkeys(
        ("on the left", "on the left side", "to the left", "at left", "on left", "at the left"),
        ("left", ""),
    ),
    **dict.fromkeys(
        ("on the right", "on the right side", "to the right", "at right", "on right"),
        ("right", ""),
    ),
    **dict.fromkeys(
        ("in the middle", "in the center", "in the centre", "at the center", "at the centre"),
        ("middle", ""),
    ),
    "in the corner": ("right", ""),
    "in the left corner": ("left", ""),
    "in the right corner": ("right", ""),
    **dict.fromkeys(
        (
            "in the background",
            "in the distance",
            "far away",
            "on the horizon",
            "at the back",
            "in the back",
        ),
        ("", "far"),
    ),
    **dict.fromkeys(("in the foreground", "up close", "at the front", "in front"), ("", "near")),
}

# Words for a part of the body -> the relation of what is on it: "on its head".
BODY_PLACES = {
    "shoulder": "shoulder",
    "head": "head",
    "back": "riding",
    "nose": "head",
    "hat": "head",
}
# Words for the thing that was named first.
PRONOUNS = frozenset({"her", "him", "it", "them"})

POSSESSIVES = frozenset({"its", "his", "her", "their", "my", "your"})

NEGATIONS = frozenset({"no", "without", "not"})

STOP_WORDS = word_set(
    """
    a an the this that these those its it his her hers their my your our and or but of to at for
    from as is are was be being been has have having there where which who whose while when than
    then so very really quite just also with plus each other another every all any out up down off
    around across along through against among into onto toward towards about like such via per
    image picture pictures scene showing shows show depicting depicts featuring features feature
    containing contains full view please draw make create generate give me i want need can you us we
    side left right top bottom middle center centre foreground background front back edge
    distance horizon day time o s t d et al him them they he she what how both only own same
    called named says saying reads written text words word ing feeling concept idea symbol after
    stack pile outside showing
    """
)

# Verbs that are ignored, since a still picture cannot show them.
LIGHT_VERBS = word_set(
    """
    sitting sits sit standing stands stand lying lies laying lays walking walks walk running runs
    run jumping jumps jump swimming swims swim sleeping sleeps looking looks look watching
    watches smiling smiles playing plays play eating eats eat drinking drinks drink holding holds
    riding rides ride driving drives drive reading reads wearing wears resting rests hanging
    hangs growing grows grow shining shines glowing glows floats float rising rises setting going
    goes coming comes moving moves waiting waits staring stares gazing gazes perched parked
    surrounded surrounding filled covered decorated placed set made enjoying enjoys chasing
    chases carrying carries leaning leans crossing crosses following follows facing faces using
    uses leaping leaps climbing climbs sailing sails drifting drifts grazing grazes posing poses
    relaxing relaxes exploring explores towering overlooking meets meeting together alone dressed
    seen falling falls blooming hopping hops travelling traveling landing lands reflected
    reflecting reflection taking takes having doing making makes pulling pulls pushing pushes
    throwing throws catching catches waving
    """
)

# Verbs that the scene shows if it has one of these words.
_WATER = word_set("water lake pond river sea ocean pool underwater")
SHOWN_BY_SCENE = {
    "swimming": _WATER,
    "swims": _WATER,
    "sailing": _WATER,
    "sails": _WATER,
    "reflected": _WATER,
    "reflection": _WATER,
    "launching": frozenset({"rocket"}),
    "waving": frozenset({"flag"}),
    "pole": frozenset({"flag"}),
    "flagpole": frozenset({"flag"}),
}

# Words that put a thing in the air.
ALOFT_WORDS = frozenset(
    {
        "launching",
        "launches",
        "flying",
        "flies",
        "soaring",
        "soars",
        "hovering",
        "hovers",
        "floating",
    }
)

# A colour word that is a thing if no noun follows it.
COLOUR_AS_THING = {"orange": "tangerine"}

# Words for the style of a picture. Ready-made pictures keep their own style, so these words are
# ignored and reported to the caller.
STYLE_PHRASES = word_set(
    """
    hero image, clip art, oil painting, concept art,
    digital art, depth of field, high resolution, high quality, ultra detailed, highly detailed,
    close up, wide angle, wide shot, studio ghibli, van gogh, 3d render, art style, stock photo,
    soft light, bird eye, low poly, award winning, children book, ghibli style, comic book,
    soft lighting, trending on artstation
    """,
    separator=",",
)
STYLE_WORDS = word_set(
    """
    watercolor watercolour painting painted paint photo photograph photography photographic
    photorealistic realistic realism hyperrealistic illustration illustrated drawing drawn sketch
    sketched render rendered rendering cinematic 4k 8k hd uhd hdr cartoon cartoonish anime manga
    comic vector minimalist minimal minimalistic flat style styled aesthetic art artwork artistic
    impressionist impressionism surreal surrealist abstract detailed intricate masterpiece
    professional portrait landscape panorama panoramic closeup macro bokeh shot lighting lit
    dramatic vibrant colorful colourful pastel vivid bright soft moody cute adorable beautiful
    lovely pretty nice cozy cosy charming happy cheerful funny silly whimsical magical dreamy
    majestic stunning gorgeous epic amazing calm peaceful serene quiet tranquil friendly vintage
    retro modern simple elegant stylized stylised isometric poster wallpaper animated
    ink charcoal gouache acrylic oil pastels papercut origami noir design graphic shiny
    sweet brave playful curious sleepy young old wooden fluffy furry fresh ripe delicious tasty
    warm cool gentle wild rustic classic fancy traditional typical ordinary regular long short round
    heavy light dark fast slow strong clean dirty empty open closed hot cold wet dry lonely lazy
    busy famous rich poor sad angry scary spooky mysterious ancient medieval futuristic tropical
    exotic royal rusty broken enchanted glittering sparkling grumpy jolly proud elderly
    deep distant far high low wide narrow lush striped spotted painted perfect
    logo app company gradient background pattern banner card flyer cover infographic badge emblem
    """
)

# Names whose words mean something else alone: a mountain lion is not a lion on a mountain.
OTHER_THINGS = word_set(
    """
    ant man, bat man, black widow, book worm, car wash, cat fish, cat woman, chess board,
    coffee machine, coffee table, cow girl, dragon fly, dragon fruit,
    gold fish, green house, guinea fowl, ice rink, iron man, killer bee,
    mountain lion, mouse pad, pool table, prairie dog, sea urchin, shoe box, snow globe, spider man,
    star fruit, star wars, sun dial, sword fish, wonder woman
    """,
    separator=",",
)
# A word after a noun with one of these endings is not a further part of its name.
NOT_A_NOUN = ("ing", "ed", "ly", "s")

# Words that ask for the thing alone, without a scene.
ALONE_WORDS = frozenset({"icon", "sticker", "emoji", "clipart", "isolated", "cutout"})
# Things that ready-made pictures cannot show. The rest is drawn alone, and the word is reported.
UNSUPPORTED_WORDS = frozenset(
    {"logo", "logotype", "infographic", "diagram", "screenshot", "mockup", "website"}
)

MAX_GENRE_CHARS = 4_000
# The genre of each pattern; the first that is found counts.
GENRES: Sequence[tuple[str, str]] = (
    ("qr", r"\bqr[- ]?codes?\b"),
    ("scatter", r"\bscatter ?(?:plot|chart|graph|diagram)\b"),
    ("pie", r"\b(?:pie|donut|doughnut) ?(?:chart|graph|diagram)\b"),
    ("stacked", r"\bstacked (?:bar|column)(?: ?(?:chart|graph|diagram))?"),
    ("bar", r"\b(?:bar|column) ?(?:chart|graph|diagram)\b|\bhistogram\b"),
    ("area", r"\barea ?(?:chart|graph)\b"),
    ("line", r"\bline ?(?:chart|graph|plot)\b"),
    ("table", r"\btable\b(?=.*\b(?:columns?|headers?)\b| (?:of|with|showing)\b[^:]*:.*\d)"),
    ("schedule", r"\btime ?table\b|\b(?:schedule|agenda|programme)\b"),
    ("sequence", r"\bsequence diagram\b"),
    ("organisation", r"\borg(?:ani[sz]ation(?:al)?)?[- ]?chart\b|\bhierarchy\b|\bfamily tree\b"),
    ("mind map", r"\bmind ?map\b|\bconcept map\b"),
    ("timeline", r"\btimeline\b|\broad ?map\b"),
    (
        "flow",
        r"\b(?:\w+ )?flow ?(?:chart|diagram)\b|\bstate (?:machine|diagram)\b|\bdecision tree\b"
        r"|\b(?:\w+ )?diagram\b|->|→",
    ),
    ("chart", r"\b(?:chart|graph)\b(?= (?:of|show|about|for|compar)|:)"),
    ("infographic", r"\binfographics?\b|\bsteps:"),
    ("formula", r"\b(?:formula|equation)s?\b"),
    ("quote", r"\bquot(?:e|ation)\b(?: card| poster)?"),
    (
        "screen",
        r"\bmock-?ups?\b|\bwireframe\b|\bdashboard\b|\b(?:app|login|log-in|sign-?up|sign-?in|mobile"
        r"|settings|checkout|payment|profile|chat|weather|music|welcome|onboarding|registration)"
        r"(?: \w+)? (?:screen|page)\b|\blanding page\b|\buser interface\b",
    ),
    ("logo", r"\blogo\b"),
    ("icon", r"\bicon\b"),
    ("sticker", r"\bsticker\b"),
    ("badge", r"\bbadge\b|\bemblem\b|\bmedal with\b"),
    ("pattern", r"\b(?:seamless )?pattern (?:of|with)\b|\bwallpaper of\b"),
    (
        "card",
        r"\b(?:[\w-]+ )?card\b|\binvitation\b|\bcertificate\b|\bticket\b|\bmenu for\b|\bvoucher\b",
    ),
    ("poster", r"\bposter\b|\bflyer\b|\bbanner\b|\b(?:book|album|magazine) cover\b"),
)


def named_genres(prompt: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Each genre that a prompt names, in the order of the prompt, and where in it on one line."""
    plain = " ".join(prompt.split())
    # A longer prompt is no chart, and patterns take long on hostile words.
    if len(plain) > MAX_GENRE_CHARS:
        return
    named = [
        (found.start(), place, name, found)
        for place, (name, pattern) in enumerate(GENRES)
        if (found := re.search(pattern, plain, re.IGNORECASE))
    ]
    for _, _, name, found in sorted(named, key=lambda one: one[:2]):
        yield name, found
