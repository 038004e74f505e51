"""A picture -> its size, where it belongs (air, water, table), and where it carries another.

A size is the edge of the picture's square as a fraction of the canvas's shorter side, before a
group is scaled to fit. Sizes follow the real order of things (mouse, cat, person, horse, house),
but differ much less, so that everything stays visible.
"""

from __future__ import annotations

from limner.illustrator.assets import AssetInfo
from limner.illustrator.words import word_set

_DEFAULT_SIZE = 0.28
_GROUP_SIZES = {
    "animal-amphibian": 0.26,
    "animal-bird": 0.3,
    "animal-bug": 0.17,
    "animal-mammal": 0.42,
    "animal-marine": 0.3,
    "animal-reptile": 0.38,
    "drink": 0.2,
    "face-costume": 0.36,
    "food-asian": 0.2,
    "food-fruit": 0.17,
    "food-prepared": 0.2,
    "food-sweet": 0.2,
    "food-vegetable": 0.18,
    "household": 0.42,
    "person": 0.36,
    "person-activity": 0.5,
    "person-fantasy": 0.44,
    "person-role": 0.44,
    "person-sport": 0.46,
    "place-building": 0.74,
    "place-geographic": 0.66,
    "place-other": 0.62,
    "place-religious": 0.72,
    "plant-flower": 0.24,
    "plant-other": 0.28,
    "transport-air": 0.34,
    "transport-ground": 0.5,
    "transport-water": 0.46,
}
_SIZES = {
    "astronaut": 0.42,
    "automobile": 0.5,
    "baby": 0.26,
    "baby-chick": 0.16,
    "basket": 0.3,
    "bat": 0.2,
    "bathtub": 0.5,
    "bear-sitting": 0.5,
    "bed": 0.58,
    "bicycle": 0.46,
    "bird": 0.2,
    "bison": 0.54,
    "bookshelf": 0.66,
    "boy-standing": 0.4,
    "bus": 0.62,
    "cactus": 0.42,
    "castle": 0.86,
    "cat": 0.34,
    "black-cat": 0.34,
    "child-standing": 0.38,
    "chipmunk": 0.22,
    "christmas-tree": 0.66,
    "circus-tent": 0.8,
    "couch-and-lamp": 0.6,
    "cow": 0.52,
    "deciduous-tree": 0.8,
    "dog": 0.38,
    "door": 0.58,
    "dragon": 0.62,
    "elephant": 0.72,
    "evergreen-tree": 0.74,
    "feather": 0.14,
    "ferris-wheel": 0.86,
    "giraffe": 0.74,
    "girl-standing": 0.4,
    "hamster-sitting": 0.24,
    "hatching-chick": 0.2,
    "hedgehog": 0.22,
    "helicopter": 0.42,
    "horse": 0.56,
    "hot-air-balloon": 0.46,
    "house": 0.68,
    "kick-scooter": 0.36,
    "lion-sitting": 0.48,
    "locomotive": 0.6,
    "mouse": 0.2,
    "mushroom": 0.18,
    "ox": 0.54,
    "palm-tree": 0.74,
    "parrot": 0.24,
    "penguin": 0.34,
    "pig": 0.38,
    "polar-bear-sitting": 0.5,
    "rabbit": 0.26,
    "rainbow-arch": 0.9,
    "rat": 0.2,
    "rhinoceros": 0.58,
    "robot-standing": 0.46,
    "rocket": 0.48,
    "sauropod": 0.72,
    "seedling": 0.18,
    "ship": 0.56,
    "passenger-ship": 0.58,
    "signboard": 0.4,
    "skateboard": 0.26,
    "snowman": 0.48,
    "snowman-without-snow": 0.48,
    "street-lamp": 0.66,
    "t-rex": 0.66,
    "table": 0.58,
    "tiger": 0.46,
    "tractor": 0.62,
    "soccer-ball": 0.14,
    "tennis": 0.24,
    "lighthouse": 0.86,
    "stone-bridge": 0.9,
    "double-decker-bus": 0.66,
    "taxi": 0.44,
    "rug": 0.5,
    "fireplace": 0.62,
    "floor-lamp": 0.56,
    "fence": 0.42,
    "bamboo": 0.66,
    "cheese-wheel": 0.3,
    "knight": 0.5,
    "laid-table": 0.9,
    "drum": 0.24,
    "coral": 0.3,
    "fish": 0.16,
    "tropical-fish": 0.16,
    "school": 0.8,
    "hospital": 0.84,
    "window": 0.34,
    "puzzle-piece": 0.26,
    "toothbrush": 0.16,
    "unicorn": 0.44,
    "whale": 0.6,
    "spouting-whale": 0.54,
    "zebra": 0.54,
}

_IN_THE_AIR = word_set(
    """
    airplane small-airplane helicopter hot-air-balloon parachute satellite flying-saucer balloon
    kite dove eagle bat butterfly honeybee mosquito rainbow rainbow-arch comet ringed-planet
    crescent-moon full-moon full-moon-face first-quarter-moon last-quarter-moon new-moon
    waning-crescent-moon waning-gibbous-moon waxing-crescent-moon waxing-gibbous-moon sun
    sun-with-face cloud cloud-with-rain cloud-with-snow cloud-with-lightning
    cloud-with-lightning-and-rain sun-behind-cloud sun-behind-large-cloud sun-behind-rain-cloud
    sun-behind-small-cloud star glowing-star sparkles high-voltage rocket tornado
    globe-showing-americas phoenix-bird globe-showing-europe-africa globe-showing-asia-australia
    """
)
_IN_WATER = frozenset(
    {
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
    "tractor": (0.62, 0.62),
    "rug": (0.7, 0.5),
    "laid-table": (0.16, 0.5),
    "books": (0.06, 0.5),
    "stone-bridge": (0.2, 0.5),
    "elephant": (0.16, 0.6),
    "castle": (0.3, 0.5),
}
# Things on which a person sits.
SEATS = word_set("bench chair couch-and-lamp bed rock wood sled seat")
_MOUNT_SURFACE = (0.34, 0.6)
_PLAIN_SURFACE = (0.08, 0.5)

# Groups of things that are usually on a table, not on the floor.
_TABLETOP_GROUPS = word_set(
    """
    award-medal book-paper computer dishware drink event food-asian food-fruit food-prepared
    food-sweet food-vegetable game light-video lock mail medical money musical-instrument office
    phone science sound tool writing arts-crafts clothing plant-flower
    """
)
_TABLETOP_NAMES = frozenset({"alarm-clock", "mantelpiece-clock", "potted-plant", "hourglass-done"})
_ON_THE_FLOOR = frozenset({"christmas-tree", "street-lamp", "jack-o-lantern"})

_IN_THE_BACK = word_set(
    """
    deciduous-tree evergreen-tree palm-tree leafless-tree castle bookshelf fireplace floor-lamp
    stone-bridge bamboo couch-and-lamp bed ferris-wheel circus-tent fence street-lamp
    """
)

HATS = word_set(
    "top-hat womans-hat billed-cap crown graduation-cap military-helmet rescue-workers-helmet"
)
EYEWEAR = frozenset({"glasses", "sunglasses", "goggles"})
HELD_HIGH = frozenset({"balloon", "kite", "umbrella", "white-flag", "black-flag", "parachute"})
WIELDED = word_set("tennis dagger hammer axe magic-wand pick bow-and-arrow")
READABLE = frozenset({"open-book", "newspaper", "scroll", "page-facing-up"})
CONTAINERS = word_set(
    """
    automobile bathtub basket bowl-with-spoon bucket bus canoe hot-air-balloon jar hot-beverage
    locomotive motor-boat oncoming-automobile pickup-truck pot-of-food racing-car rocket sailboat
    shopping-cart speedboat sport-utility-vehicle taxi teacup-without-handle package bed handbag
    flying-saucer small-airplane helicopter tractor delivery-truck potted-plant sled
    """
)


def size(info: AssetInfo) -> float:
    """The edge of a picture's square as a fraction of the canvas's shorter side."""
    return _SIZES.get(info.name, _GROUP_SIZES.get(info.group, _DEFAULT_SIZE))


def carries_all(info: AssetInfo) -> bool:
    """Whether all things that are named before it are on it, as on a table."""
    return info.name == "stone-bridge" or (info.group == "household" and info.name != "rug")


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
