"""A picture -> where it belongs (air, water, table), and where it carries another."""

from __future__ import annotations

from limner.illustrator.assets import AssetInfo
from limner.illustrator.words import word_set

_IN_THE_AIR = word_set(
    """
    airplane small-airplane helicopter hot-air-balloon parachute satellite flying-saucer balloon
    kite dove eagle bat butterfly honeybee mosquito rainbow rainbow-arch comet ringed-planet
    crescent-moon full-moon full-moon-face first-quarter-moon last-quarter-moon new-moon
    waning-crescent-moon waning-gibbous-moon waxing-crescent-moon waxing-gibbous-moon sun
    sun-with-face cloud cloud-with-rain cloud-with-snow cloud-with-lightning
    cloud-with-lightning-and-rain sun-behind-cloud sun-behind-large-cloud sun-behind-rain-cloud
    sun-behind-small-cloud star glowing-star sparkles high-voltage rocket tornado
    zeppelin drone hummingbird dragonfly flying-bird globe-showing-americas
    phoenix-bird globe-showing-europe-africa globe-showing-asia-australia
    """
)
_IN_WATER = frozenset(
    {
        "sand-island",
        "desert-island",
        "duck",
        "lotus",
        "person-rowing-boat",
        "person-surfing",
        "person-swimming",
        "swan",
    }
)
_ON_THE_SEABED = word_set("coral spiral-shell crab lobster treasure-chest anchor")
_ON_THE_SHORE = frozenset({"crab", "seal", "spiral-shell"})
_ORBS = frozenset(
    {"sun", "sun-with-face", "full-moon", "crescent-moon", "full-moon-face", "sun-behind-cloud"}
)
# Pictures that look to the left and can be mirrored, since they show no letters.
_SIDEWAYS_VEHICLES = word_set(
    """
    automobile bicycle kick-scooter locomotive motor-scooter motorcycle pickup-truck racing-car
    sport-utility-vehicle tractor person-biking
    """
)
_FRONTAL_ANIMALS = word_set(
    """
    penguin owl peacock front-facing-baby-chick hatching-chick gorilla orangutan lion bear wolf fox
    panda koala polar-bear raccoon hamster frog sloth bat monkey octopus crab lobster jellyfish
    coral squid spider beetle lady-beetle butterfly turtle
    """
)

# Where the surface of a picture is: fractions of the drawn height and width.
SURFACES = {
    "table": (0.05, 0.5),
    "bench": (0.56, 0.5),
    "chair": (0.56, 0.5),
    "bed": (0.55, 0.55),
    "couch-and-lamp": (0.84, 0.4),
    "bicycle": (0.3, 0.62),
    "motorcycle": (0.4, 0.62),
    "motor-scooter": (0.46, 0.6),
    "skateboard": (0.5, 0.5),
    "kick-scooter": (0.85, 0.55),
    "horse": (0.47, 0.6),
    "unicorn": (0.5, 0.6),
    "open-book": (0.3, 0.5),
    "rocket": (0.3, 0.5),
    "dragon": (0.5, 0.6),
    "desert-island": (0.75, 0.5),
    "sand-island": (0.35, 0.5),
    "branch": (0.2, 0.5),
    "barrel": (0.04, 0.5),
    "drawbridge-castle": (0.3, 0.5),
    "book-stack": (0.02, 0.5),
    "tractor": (0.62, 0.62),
    "rug": (0.7, 0.5),
    "laid-table": (0.16, 0.5),
    "books": (0.06, 0.5),
    "stone-bridge": (0.2, 0.5),
    "elephant": (0.16, 0.6),
    "castle": (0.3, 0.5),
}
_SHARED = word_set("stone-bridge table laid-table bench couch-and-lamp bed bookshelf")
# Where things in a container begin, as a fraction of its height, if not where most do.
INSIDES = {"bowl": 0.15, "bowl-with-spoon": 0.2, "basket": 0.4, "cardboard-box": 0.26, "crate": 0.2}
_BALLS = word_set("soccer-ball basketball volleyball tennis baseball yarn crystal-ball")
_FLAT = word_set(
    "rug bed desert-island sand-island book-stack skateboard sled table laid-table stone-bridge"
)
# Where the mouth of a picture is, if not where most have it.
MOUTHS = {
    "giraffe": (0.04, 0.2),
    "horse": (0.05, 0.3),
    "cow": (0.05, 0.42),
    "elephant": (0.08, 0.55),
    "rabbit": (0.08, 0.4),
    "monkey": (0.32, 0.42),
    "mouse": (0.05, 0.6),
    "camel": (0.05, 0.3),
}
# Where a picture holds a thing, if not where most do.
HANDS = {
    "monkey": (0.1, 0.98),
    "chipmunk": (0.2, 0.75),
    "bear-sitting": (0.82, 0.85),
    "koala-sitting": (0.82, 0.85),
    "panda-sitting": (0.82, 0.85),
    "octopus": (0.92, 0.8),
    "gorilla": (0.12, 0.98),
    "kangaroo": (0.2, 0.62),
}
# Things on which a person sits.
SEATS = word_set("bench chair couch-and-lamp bed rock wood sled seat")
_MOUNT_SURFACE = (0.34, 0.6)
_PLAIN_SURFACE = (0.08, 0.5)

_CARRIERS = word_set("table laid-table bookshelf bench bed chair sled skateboard")
# A picture -> the picture with open wings.
FLYING = {"bird": "flying-bird", "seagull": "flying-bird"}

# Groups of things that are usually on a table, not on the floor.
_TABLETOP_GROUPS = word_set(
    """
    award-medal book-paper computer dishware drink event food-asian food-fruit food-prepared
    food-sweet food-vegetable game light-video lock mail medical money musical-instrument office
    phone science sound tool writing arts-crafts clothing plant-flower
    """
)
_TABLETOP_NAMES = frozenset(
    {"fishbowl", "bowl", "alarm-clock", "mantelpiece-clock", "potted-plant", "hourglass-done"}
)
_ON_THE_FLOOR = frozenset({"christmas-tree", "street-lamp", "jack-o-lantern"})

_IN_THE_BACK = word_set(
    """
    deciduous-tree evergreen-tree palm-tree leafless-tree castle bookshelf fireplace floor-lamp
    stone-bridge bamboo couch-and-lamp bed ferris-wheel circus-tent fence street-lamp
    wardrobe fridge oven windmill treehouse well barn wood-cabin pyramids stone-tower cave waterfall
    curtains washing-machine
    """
)

HATS = word_set(
    "top-hat womans-hat billed-cap crown graduation-cap military-helmet rescue-workers-helmet"
)
_LIKE_PEOPLE = word_set(
    "robot-standing snowman snowman-without-snow teddy-bear scarecrow ghost alien"
)
_WORN = word_set("scarf necktie backpack headphone")
_HELD_GROUPS = word_set(
    """
    award-medal book-paper drink food-asian food-fruit food-prepared food-sweet food-vegetable
    light-video mail money music musical-instrument phone plant-flower tool writing
    """
)
EYEWEAR = frozenset({"glasses", "sunglasses", "goggles"})
HELD_HIGH = frozenset(
    {"sparkles", "balloon", "kite", "umbrella", "white-flag", "black-flag", "parachute"}
)
WIELDED = word_set("tennis dagger hammer axe magic-wand pick bow-and-arrow")
READABLE = frozenset({"open-book", "newspaper", "scroll", "page-facing-up"})
CONTAINERS = word_set(
    """
    bowl cardboard-box crate barrel cauldron fishbowl wheelbarrow treehouse bird-cage dog-house well
    carriage nest-with-eggs empty-nest battle-tank
    automobile bathtub basket bowl-with-spoon bucket bus canoe hot-air-balloon jar hot-beverage
    locomotive motor-boat oncoming-automobile pickup-truck pot-of-food racing-car rocket sailboat
    shopping-cart speedboat sport-utility-vehicle taxi teacup-without-handle package bed handbag
    flying-saucer small-airplane helicopter tractor delivery-truck potted-plant sled
    """
)


def carries_all(info: AssetInfo) -> bool:
    """Whether all things that are named before it are on it, as on a table."""
    return info.name in _SHARED


def stands_behind(info: AssetInfo) -> bool:
    """Whether a thing stands in the back, behind people and animals."""
    return info.name in _IN_THE_BACK or info.group in ("place-building", "place-religious")


def flies(info: AssetInfo) -> bool:
    """Whether a thing is in the air by default."""
    return info.name in _IN_THE_AIR


def is_tabletop(info: AssetInfo) -> bool:
    """Whether a thing is on a table indoors."""
    if info.name in _ON_THE_FLOOR or flies(info):
        return False
    return info.group in _TABLETOP_GROUPS or info.name in _TABLETOP_NAMES


def is_orb(info: AssetInfo) -> bool:
    """Whether a thing is the sun or the moon; a sky has only one of them."""
    return info.name in _ORBS


def lies_on_seabed(info: AssetInfo) -> bool:
    """Whether a thing under water is on the ground."""
    return info.name in _ON_THE_SEABED


def swims(info: AssetInfo) -> bool:
    """Whether a thing belongs in water, if the scene has any."""
    if info.name in _ON_THE_SHORE:
        return False
    return info.name in _IN_WATER or info.group in {"animal-marine", "transport-water"}


def looks_left(info: AssetInfo) -> bool:
    """Whether a picture shows its left side, so that its head is at the left."""
    if info.name.endswith(("-sitting", "-face")) or info.name in _FRONTAL_ANIMALS:
        return False
    return info.group.startswith("animal-") or info.name in _SIDEWAYS_VEHICLES


def surface(info: AssetInfo) -> tuple[float, float]:
    """Where another picture stands or sits on this one: fractions of its height and width."""
    if info.name in SURFACES:
        return SURFACES[info.name]
    return _MOUNT_SURFACE if info.group == "animal-mammal" else _PLAIN_SURFACE


def is_alive(info: AssetInfo) -> bool:
    """Whether a picture shows a person or an animal, who can hold and wear things."""
    return info.group.startswith(("person", "animal")) or info.name in _LIKE_PEOPLE


def carries(owner: AssetInfo, info: AssetInfo) -> bool:
    """Whether a thing "with" another carries it: an island with palms, a table with a vase."""
    if owner.name in ("desert-island", "sand-island"):
        return info.group.startswith(("plant", "animal", "person", "place"))
    return owner.name in _CARRIERS and is_tabletop(info)


def is_worn(info: AssetInfo) -> bool:
    """Whether a thing is usually worn: a hat, glasses, a scarf."""
    return info.name in HATS | EYEWEAR | _WORN


def can_be_held(info: AssetInfo) -> bool:
    """Whether a person or an animal with this thing holds it."""
    return info.name in HELD_HIGH | WIELDED | READABLE or (
        info.group in _HELD_GROUPS and not is_worn(info)
    )


def is_ball(info: AssetInfo) -> bool:
    """Whether a thing is round and small; what balances on it is larger."""
    return info.name in _BALLS


def is_flat(info: AssetInfo) -> bool:
    """Whether a thing is low, so that what lies on it may be much taller."""
    return info.name in _FLAT


def mouth(info: AssetInfo) -> tuple[float, float]:
    """Where a picture's mouth is: fractions of its drawn width and height."""
    if info.name in MOUTHS:
        return MOUTHS[info.name]
    if info.name.endswith("-sitting"):
        return 0.5, 0.42
    return (0.06, 0.38) if looks_left(info) else (0.5, 0.5)


def carries_astride(info: AssetInfo) -> bool:
    """Whether a rider is drawn behind this thing, and not on top of it."""
    return info.group == "animal-mammal" or info.name in {
        "bicycle",
        "motorcycle",
        "motor-scooter",
        "horse",
        "dragon",
        "unicorn",
        "rocket",
    }
