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

_SHARED = word_set("stone-bridge table laid-table bench couch-and-lamp bed bookshelf")
_BALLS = word_set("soccer-ball basketball volleyball tennis baseball yarn crystal-ball")
_FLAT = word_set(
    "rug bed desert-island sand-island book-stack skateboard skateboard-side surfboard sled table "
    "laid-table stone-bridge wire"
)
# Things on which a person sits.
SEATS = word_set(
    """
    armchair bench chair couch-and-lamp bed rock wood sled seat rocking-chair manual-wheelchair wire
    """
)
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
NECKWEAR = word_set("scarf-worn necktie ribbon sports-medal stethoscope")
_WORN = NECKWEAR | word_set("backpack headphone diving-mask scarf")
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
WIELDED = word_set("tennis dagger hammer axe magic-wand pick bow-and-arrow triangular-flag")
# Things that are carried though their groups are not for the hand.
_CARRIED = word_set(
    """
    basket bucket handbag briefcase luggage shopping-bags wrapped-gift teddy-bear red-paper-lantern
    watering-can shield cardboard-box baby pillow
    """
)
# Shoes on the feet of an animal.
SHOES = word_set("hiking-boot running-shoe mans-shoe womans-boot high-heeled-shoe womans-sandal")
# Tools as long as a person.
LONG = word_set("pitchfork shovel rake broom spear trident ladder fishing-pole axe")
INSTRUMENTS = word_set("guitar violin banjo accordion saxophone trumpet trombone harp")
BEHIND_THE_HAND = word_set("balloon umbrella")
# Things at the end of a string, and hats that stand on their tops if something is in them.
ON_A_STRING = frozenset({"kite"})
# Things whose picture is for the left hand.
FROM_THE_LEFT = word_set("fishing-pole axe hammer pick")
MASTED = frozenset({"sailboat"})
POINTED = frozenset({"christmas-tree", "evergreen-tree", "pizza"})
UPSIDE_DOWN = frozenset({"top-hat"})
TWO_WHEELERS = word_set("bicycle motorcycle motor-scooter")
# Small animals that sit on the shoulder of their person.
ON_SHOULDERS = frozenset({"parrot"})
NESTS = frozenset({"nest-with-eggs", "empty-nest"})
# A picture -> the picture of it when it is worn or ridden.
IN_USE = {
    ("wearing", "scarf"): "scarf-worn",
    ("holding", "crossed-swords"): "dagger",
    ("riding", "skateboard"): "skateboard-side",
    ("on", "skateboard"): "skateboard-side",
}
_FLAGS = frozenset({"flag", "country-flag"})
_TOPPINGS = word_set("candle cherries strawberry red-heart crown glowing-star star")
_TREES = word_set("deciduous-tree evergreen-tree palm-tree leafless-tree christmas-tree cactus")
READABLE = frozenset({"open-book", "newspaper", "scroll", "page-facing-up"})
CONTAINERS = word_set(
    """
    bowl cardboard-box crate barrel cauldron fishbowl wheelbarrow treehouse bird-cage dog-house well
    carriage nest-with-eggs empty-nest battle-tank
    automobile bathtub basket bowl-with-spoon bucket bus canoe hot-air-balloon jar hot-beverage
    locomotive motor-boat oncoming-automobile pickup-truck pot-of-food racing-car rocket sailboat
    shopping-cart speedboat sport-utility-vehicle taxi teacup-without-handle package bed handbag
    flying-saucer small-airplane helicopter tractor delivery-truck potted-plant sled
    ambulance backpack double-decker-bus fire-engine galleon paper-boat police-car sailing-ship ship
    shopping-bags top-hat treasure-chest wastebasket
    """
)
# What is in one of these shows in a window, or through the bars or the glass.
CLOSED = word_set(
    """
    ambulance automobile bus delivery-truck dog-house double-decker-bus fire-engine fishbowl
    flying-saucer helicopter jar locomotive oncoming-automobile police-car rocket small-airplane
    sport-utility-vehicle taxi tractor treehouse
    """
)
# Who drives one of these is in it.
DRIVEN = CLOSED - {"dog-house", "fishbowl", "jar", "rocket", "treehouse"} | {
    "racing-car",
    "speedboat",
    "motor-boat",
}
CAGES = word_set("bird-cage shopping-cart wastebasket")


def carries_all(info: AssetInfo) -> bool:
    """Whether all things that are named before it are on it, as on a table."""
    return info.name in _SHARED


def stands_behind(info: AssetInfo) -> bool:
    """Whether a thing stands in the back, behind people and animals."""
    return info.name in _IN_THE_BACK or info.group in ("place-building", "place-religious")


def grows(info: AssetInfo) -> bool:
    """Whether several of a kind differ in size."""
    return info.group.startswith(("animal-", "plant-"))


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


def is_alive(info: AssetInfo) -> bool:
    """Whether a picture shows a person or an animal, who can hold and wear things."""
    return info.group.startswith(("person", "animal")) or info.name in _LIKE_PEOPLE


def is_person(info: AssetInfo) -> bool:
    """Whether a picture shows a person."""
    return info.group.startswith("person")


def is_face(info: AssetInfo) -> bool:
    """Whether a picture shows a face alone, as an emoji does."""
    return info.group.startswith(("face-", "cat-face", "monkey-face"))


def is_upright(info: AssetInfo) -> bool:
    """Whether an animal sits or stands upright and shows its front."""
    return not looks_left(info)


def is_hung(owner: AssetInfo, info: AssetInfo) -> bool:
    """Whether a thing "with" another hangs in it: a tree with apples."""
    fruit = info.group.startswith(("food-fruit", "plant-fl", "event"))
    if owner.name == "pizza":
        return fruit or info.group == "food-vegetable" or "mushroom" in info.name
    if owner.name == "christmas-tree":
        return fruit or info.group in ("light-video", "food-sweet", "sound") or "star" in info.name
    return fruit and owner.name in _TREES


def is_mounted(owner: AssetInfo, info: AssetInfo) -> bool:
    """Whether a thing "with" another stands on its top: a car with a flag, a cake with a cherry."""
    flagged = owner.group.startswith(("transport", "place")) and info.group in _FLAGS
    iced = owner.group in ("food-sweet", "food-prepared") and info.name in _TOPPINGS
    return flagged or iced


def has_seat(info: AssetInfo) -> bool:
    """Whether another thing sits or stands on this one: an animal, furniture, a vehicle."""
    seated = info.group.startswith(("animal", "transport-g", "transport-w", "transport-a"))
    return seated or info.group == "household" or info.name in SEATS | _SHARED | _FLAT | _CARRIERS


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
    return info.name in HELD_HIGH | WIELDED | READABLE | LONG | INSTRUMENTS | _CARRIED or (
        info.group in _HELD_GROUPS and not is_worn(info)
    )


def is_ball(info: AssetInfo) -> bool:
    """Whether a thing is round and small; what balances on it is larger."""
    return info.name in _BALLS


def is_flat(info: AssetInfo) -> bool:
    """Whether a thing is low, so that what lies on it may be much taller."""
    return info.name in _FLAT


def carries_astride(info: AssetInfo) -> bool:
    """Whether a rider is drawn behind this thing, and not on top of it."""
    ridden = TWO_WHEELERS | {"horse", "dragon", "unicorn", "rocket", "carousel-horse", "ostrich"}
    return info.group == "animal-mammal" or info.name in ridden
