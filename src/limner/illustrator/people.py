"""Words for a person -> how the person looks: role, hair, beard, glasses, clothes and pose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.illustrator import grammar
from limner.illustrator.words import word_set


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole person to draw.

    ``hair``, ``top``, ``hat`` and ``pose`` name a drawing in ``person_art``; colours are
    ``#rrggbb``. ``grip`` says how the person holds something: at the "side", "high", with "both"
    hands that are ``span`` from the middle, one thing in "each", or at the "mouth".
    """

    hair: str = "short"
    hair_colour: str = "#6b4226"
    beard: str | None = None
    glasses: bool = False
    top: str = "shirt"
    top_colour: str = "#3f7fd9"
    legs_colour: str = "#3d4a6b"
    hat: str | None = None
    size: float = 0.5
    pose: str = "standing"
    grip: str = ""
    span: float = 3.0
    sad: bool = False
    skin: str = "#ffcf4d"
    shoes_colour: str | None = None
    long_beard: bool = False
    moustache: str | None = None


_GREY, _WHITE, _BLACK, _BLOND, _RED = "#b9bcc6", "#f1f2f6", "#33303d", "#e9b84a", "#c9502a"
_MAN = Person()
_WOMAN = Person(hair="long", top_colour="#d9457c", legs_colour="#4a3d6b")
_CHILD = Person(hair_colour=_BLOND, top_colour="#49b05a", size=0.4)

# Picture -> its look. The first words of a comment are no names: each key is a picture's name.
PEOPLE: Mapping[str, Person] = {
    "man-standing": _MAN,
    "woman-standing": _WOMAN,
    "person-standing": replace(_MAN, top_colour="#e0832f"),
    "old-man": Person(hair="sides", hair_colour=_GREY, top_colour="#7d6a58", glasses=False),
    "old-woman": replace(_WOMAN, hair="bun", hair_colour=_GREY, top="dress", top_colour="#8a6ab0"),
    "boy-standing": replace(_CHILD, hair_colour="#6b4226", top_colour="#3f8fd9"),
    "girl-standing": replace(_CHILD, hair="tails", top="dress", top_colour="#ee6c9a"),
    "child-standing": _CHILD,
    "baby": Person(hair="bald", top="robe", top_colour="#9fd0ee", size=0.26),
    "artist": replace(_WOMAN, hat="beret", top="apron", top_colour="#e8dfd0"),
    "astronaut": Person(hat="space", top="space", top_colour="#eef1f7", legs_colour="#dfe4ee"),
    "construction-worker": Person(top="vest", top_colour="#f08a24", hat="hardhat"),
    "cook": Person(top="coat", top_colour="#fbfbfd", legs_colour="#5a6072", hat="toque"),
    "cowboy": Person(top="vest", top_colour="#8a5634", hat="straw", legs_colour="#3f5f9a"),
    "dancer": replace(_WOMAN, top="dress", top_colour="#d9263f", pose="dancing"),
    "detective": Person(top="coat", top_colour="#a98a5c", hat="brim", legs_colour="#5c4a38"),
    "doctor": Person(top="coat", top_colour="#fbfbfd", legs_colour="#4a7a9a", glasses=True),
    "factory-worker": Person(top="overall", top_colour="#5b7fb5", hat="hardhat"),
    "farmer": Person(top="overall", top_colour="#4a74b8", hat="straw", legs_colour="#4a74b8"),
    "firefighter": Person(top="vest", top_colour="#c23a2a", hat="fire", legs_colour="#4a3a34"),
    "health-worker": Person(top="coat", top_colour="#fbfbfd", legs_colour="#4a7a9a"),
    "judge": Person(top="robe", top_colour="#35303f", hair="sides", hair_colour=_WHITE),
    "knight": Person(top="armour", top_colour="#b4bccb", legs_colour="#8f98ab", hat="helmet"),
    "mechanic": Person(top="overall", top_colour="#3f6fb0", hat="cap", legs_colour="#3f6fb0"),
    "ninja": Person(top="shirt", top_colour="#2f2d3a", legs_colour="#2f2d3a", hat="hood"),
    "nurse": replace(
        _WOMAN, hair="bun", top="tunic", top_colour="#7cc4de", legs_colour="#7cc4de", hat="nurse"
    ),
    "office-worker": Person(top="suit", top_colour="#46506a", legs_colour="#46506a"),
    "person-with-crown": Person(
        top="robe", top_colour="#a8243c", hat="crown", beard="#6b4226", hair_colour="#6b4226"
    ),
    "pilot": Person(top="suit", top_colour="#2f3f66", hat="cap", legs_colour="#2f3f66"),
    "pirate": Person(top="vest", top_colour="#8a2f3a", hat="pirate", beard="#33303d"),
    "player": Person(top="shirt", top_colour="#f4f6fa", legs_colour="#f4f6fa", pose="waving"),
    "police-officer": Person(top="suit", top_colour="#2f4f8f", hat="cap", legs_colour="#2a3a66"),
    "prince": Person(top="robe", top_colour="#4a5fc0", hat="crown", hair_colour=_BLOND),
    "princess": replace(_WOMAN, top="dress", top_colour="#f08ac0", hat="crown", hair_colour=_BLOND),
    "scientist": replace(_WOMAN, top="coat", top_colour="#fbfbfd", glasses=True),
    "singer": replace(_WOMAN, top="dress", top_colour="#7a4fd0", hair_colour=_RED),
    "student": Person(top="shirt", top_colour="#e0a52a", hat="board", size=0.46),
    "teacher": replace(_WOMAN, top="suit", top_colour="#4f8a6a", glasses=True, hair="bob"),
    "technologist": Person(top="shirt", top_colour="#4a5568", glasses=True, hair_colour=_BLACK),
    "waiter": Person(top="suit", top_colour="#2f2d3a", legs_colour="#2f2d3a", hair_colour=_BLACK),
    "guard": Person(
        top="coat", top_colour="#c8283c", legs_colour="#2b2936", hat="bearskin", hair_colour=_BLACK
    ),
    "man-vampire": Person(top="suit", top_colour="#2b2936", legs_colour="#2b2936", skin="#e6dcec"),
    "man-superhero": Person(top="vest", top_colour="#2a56c8", legs_colour="#c8283c"),
    "person-superhero": Person(top="vest", top_colour="#c8283c", legs_colour="#2a56c8"),
    "person-elf": Person(top="vest", top_colour="#2f9e4f", legs_colour="#7a5a34", hat="elf"),
    "santa-claus": Person(
        top="coat", top_colour="#d3263a", legs_colour="#b01c30", hat="santa", beard=_WHITE
    ),
    "woman-mage": replace(_WOMAN, top="robe", top_colour="#3a3350", hat="witch", hair_colour=_RED),
    "wizard": Person(
        top="robe", top_colour="#5a46b0", hat="pointed", beard=_WHITE, hair_colour=_WHITE
    ),
}

# Words for a plain person -> the clothes of the role.
_APRON = {"top": "apron", "top_colour": "#f4f1ea"}
_DARK_SUIT = {"top": "suit", "top_colour": "#33384c", "legs_colour": "#33384c"}
ROLES: Mapping[str, Mapping[str, Any]] = {
    "baker": {**_APRON, "hat": "toque"},
    "barista": {**_APRON, "top_colour": "#7a5a40"},
    "bride": {"top": "dress", "top_colour": "#fdfbff", "hat": "veil"},
    "groom": _DARK_SUIT,
    "businessman": _DARK_SUIT,
    "boss": _DARK_SUIT,
    "politician": _DARK_SUIT,
    "businesswoman": _DARK_SUIT,
    "builder": {"top": "vest", "top_colour": "#f08a24", "hat": "hardhat"},
    "worker": {"top": "vest", "top_colour": "#f08a24", "hat": "hardhat"},
    "carpenter": {"top": "overall", "top_colour": "#8a5634", "legs_colour": "#8a5634"},
    "driver": {"top": "suit", "top_colour": "#46506a", "hat": "cap"},
    "fisherman": {"top": "vest", "top_colour": "#4a7a5a", "hat": "brim"},
    "hunter": {"top": "vest", "top_colour": "#5f7a3f", "hat": "brim", "legs_colour": "#5c4a38"},
    "gardener": {"top": "overall", "top_colour": "#4f8a4a", "hat": "straw"},
    "lumberjack": {"top_colour": "#b8302f", "beard": "#6b4226", "legs_colour": "#3f5f9a"},
    "painter": {**_APRON, "hat": "beret"},
    "sailor": {"top": "coat", "top_colour": "#f4f6fa", "hat": "cap", "legs_colour": "#2f3f66"},
    "soldier": {"top": "suit", "top_colour": "#5f6f3f", "hat": "cap", "legs_colour": "#5f6f3f"},
}

# Words for a person -> what the person holds if the prompt names nothing else.
# Role -> what each of its people holds.
EQUIPMENT = {
    **dict.fromkeys(("band", "rock band"), ("guitar", "microphone", "drum")),
    "tennis player": ("tennis",),
    "knight": ("dagger",),
}

# Words for a look that change the person before them. A colour before the word is its colour.
HAIR_WORDS = {
    "hair": None,
    "haired": None,
    "bald": "bald",
    "ponytail": "tails",
    "pigtails": "tails",
    "braids": "tails",
    "bun": "bun",
    "curls": "curly",
}
HAIR_STYLES = {"curly": "curly", "long": "long", "short": "short"}
BEARDS = frozenset({"beard", "bearded"})
MOUSTACHES = frozenset({"moustache", "mustache"})
LONG_BEARDS = frozenset(
    {"long beard", *(f"long {one} beard" for one in ("white", "grey", "gray", "black", "brown"))}
)
GLASSES = frozenset({"glasses", "spectacles", "eyeglasses"})
HAIR_COLOURS = {
    "blond": _BLOND,
    "blonde": _BLOND,
    "ginger": _RED,
    "red": _RED,
    "redhead": _RED,
    "brunette": "#6b4226",
    "brown": "#6b4226",
    "black": _BLACK,
    "white": _WHITE,
    "grey": _GREY,
    "gray": _GREY,
}
# Word -> the drawing of the clothes on the upper body; "" are clothes for the legs.
CLOTHES = {
    "dress": "dress",
    "gown": "dress",
    "shirt": "shirt",
    "t-shirt": "shirt",
    "tshirt": "shirt",
    "sweater": "shirt",
    "pullover": "shirt",
    "hoodie": "shirt",
    "jacket": "coat",
    "coat": "coat",
    "raincoat": "coat",
    "lab coat": "coat",
    "suit": "suit",
    "apron": "apron",
    "robe": "robe",
    "overalls": "overall",
    "uniform": "suit",
    "armour": "armour",
    "armor": "armour",
    "trousers": "",
    "pants": "",
    "jeans": "",
    "shorts": "",
    "skirt": "",
}
SHOES = frozenset({"shoes", "boots", "sneakers", "trainers", "wellingtons", "sandals"})
# Words for the skin; before a person "black" and "white" mean the skin too.
SKINS = {
    "dark skin": "#8a5a3a",
    "dark skinned": "#8a5a3a",
    "black skin": "#7a4a30",
    "brown skin": "#a9714b",
    "brown skinned": "#a9714b",
    "tanned": "#d99a63",
    "light skin": "#f6d2b4",
    "light skinned": "#f6d2b4",
    "white skin": "#f6d2b4",
    "pale skin": "#f9e0cc",
    "pale": "#f9e0cc",
}
SKIN_COLOURS = {"black": "#7a4a30", "white": "#f6d2b4", "brown": "#a9714b"}
# Words for a look that come before their person; the others are things that a person has.
ADJECTIVES = frozenset({"bald", "haired", "bearded", "pale", "tanned"}) | {
    words for words in SKINS if words.endswith("skinned")
}
POSES = {
    "sitting": "sitting",
    "sits": "sitting",
    "seated": "sitting",
    "standing": "standing",
    "stands": "standing",
    "walking": "walking",
    "walks": "walking",
    "strolling": "walking",
    "hiking": "walking",
    "running": "running",
    "runs": "running",
    "jogging": "running",
    "racing": "running",
    "waving": "waving",
    "waves": "waving",
    "dancing": "dancing",
    "dances": "dancing",
    "jumping": "jumping",
    "jumps": "jumping",
    "cheering": "jumping",
    "pointing": "pointing",
    "points": "pointing",
    "singing": "waving",
    "hitting": "waving",
    "throwing": "waving",
    "catching": "waving",
    "fighting": "waving",
    "talking": "standing",
    "building": "standing",
    "playing": "running",
    "plays": "running",
}
# Poses that only come near the verb.
NEAR_POSES = word_set("talking building singing hitting throwing catching fighting playing plays")
MOODS = {
    "smiling": False,
    "smiles": False,
    "happy": False,
    "laughing": False,
    "cheerful": False,
    "sad": True,
    "lonely": True,
    "crying": True,
    "angry": True,
    "unhappy": True,
}

# Words for several people -> who they are, in turn.
_CASTS = {
    "family": "man-standing woman-standing girl-standing boy-standing baby old-woman",
    "couple": "man-standing woman-standing",
    "old couple": "old-man old-woman",
    "grandparents": "old-man old-woman",
    "parents": "man-standing woman-standing",
    "team": "man-standing woman-standing",
    **dict.fromkeys(
        ("people", "crowd", "audience", "person", "persons", "friend", "friends"),
        "man-standing woman-standing person-standing old-man woman-standing man-standing "
        "girl-standing old-woman",
    ),
    **dict.fromkeys(
        ("child", "children", "kid", "kids"), "boy-standing girl-standing child-standing"
    ),
}
_TEAM = "#c8283c"
_TOPS = ("#3f8fd9", "#e0832f", "#8a5fd0", "#d9457c", "#2f9e77", "#c9403f", "#d6a51f")
_HAIRS = ("#33303d", "#e9b84a", "#6b4226", "#c9502a", "#8a5634")
_STYLES = {
    "short": ("curly", "short", "sides", "short"),
    "long": ("bob", "bun", "curly", "long"),
    "tails": ("long", "tails", "bob"),
}


def vary(person: Person, base: Person, words: str, nth: int) -> Person:
    """The nth of several people: other people if the words name a group, and other looks.

    What the prompt says about their look stays: that is what differs from ``base``.
    """
    first, last = words.split(maxsplit=1)[0], words.rsplit(maxsplit=1)[-1]
    names = _CASTS.get(words) or _CASTS.get("family" if first == "family" else last)
    if names is not None and person == replace(base, **_pose_of(person)):
        cast = names.split()
        base = PEOPLE[cast[nth % len(cast)]]
        person = replace(base, **_pose_of(person))
        if last == "team":
            person = replace(person, top="shirt", top_colour=_TEAM, legs_colour="#f4f6fa")
        nth //= len(cast)
    if nth == 0:
        return person
    styles = _STYLES.get(person.hair, (person.hair,))
    colour = _HAIRS[nth % len(_HAIRS)]
    look: dict[str, Any] = {
        "hair": styles[(nth - 1) % len(styles)],
        "hair_colour": colour,
        "glasses": person.glasses or nth % 4 == 3,
    }
    if person.hair == "short" and nth % 3 == 2 and person.size >= _MAN.size:
        look["beard"] = colour
    if person.top in ("shirt", "dress") and person.top_colour != _TEAM:
        look["top_colour"] = _TOPS[nth % len(_TOPS)]
    free = {name for name in look if getattr(person, name) == getattr(base, name)}
    return replace(person, **{name: value for name, value in look.items() if name in free})


def _pose_of(person: Person) -> dict[str, Any]:
    return {"pose": person.pose, "grip": person.grip, "span": person.span, "sad": person.sad}


def look_of(text: str, colour: str | None) -> dict[str, Any] | None:
    """What a word says about the look of a person; None if it says nothing."""
    look: dict[str, Any] | None = None
    paint = grammar.COLOURS[colour] if colour else None
    if text in HAIR_WORDS or text in HAIR_STYLES:
        hair = HAIR_WORDS.get(text) or HAIR_STYLES.get(text)
        look = {"hair": hair} if hair else {}
        if colour:
            look["hair_colour"] = HAIR_COLOURS.get(colour, paint)
    elif text in HAIR_COLOURS and text not in grammar.COLOURS:
        look = {"hair_colour": HAIR_COLOURS[text]}
    elif text in BEARDS or text in LONG_BEARDS:
        said = colour or text.removeprefix("long ").removesuffix("beard").strip()
        look = {"beard": HAIR_COLOURS.get(said, paint or "#6b4226")}
        look |= {"long_beard": True} if text in LONG_BEARDS else {}
    elif text in MOUSTACHES:
        look = {"moustache": HAIR_COLOURS.get(colour or "", paint or "#4a2f24")}
    elif text in GLASSES:
        look = {"glasses": True}
    elif text in CLOTHES:
        top = CLOTHES[text]
        look = {"top": top} if top else {}
        if paint:
            look["top_colour" if top else "legs_colour"] = paint
    elif text in SHOES:
        look = {"shoes_colour": paint or "#6b4226"}
    else:
        tables: Mapping[str, Mapping[str, Any]] = {"skin": SKINS, "pose": POSES, "sad": MOODS}
        look = next(({field: t[text]} for field, t in tables.items() if text in t), None)
    return look
