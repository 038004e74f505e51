"""A picture -> its size in the real world, and its size on the canvas.

Sizes on the canvas keep the real order of things but differ much less: a beside an elephant
is small, and can still be seen.
"""

from __future__ import annotations

from limner.illustrator.assets import AssetInfo

# The canvas size of a thing of one metre, and how fast sizes grow with the real ones.
_OF_ONE_METRE = 0.41
_SOFTNESS = 0.34
_SMALLEST, _LARGEST = 0.1, 1.0

# Metres -> the pictures with that longest side.
_METRES = {
    0.02: "ant fly game-die honeybee lady-beetle mosquito worm",
    0.04: "beetle bug cherries cockroach coin cricket key old-key ring seedling snail spider",
    0.06: "blueberries butterfly candy cookie egg feather four-leaf-clover monarch-butterfly "
    "nest-with-eggs pushpin puzzle-piece scorpion shrimp strawberry",
    0.09: "mouse brown-mushroom computer-mouse cupcake fallen-leaf glasses green-apple kiwi-fruit "
    "lemon light-bulb maple-leaf mobile-phone mushroom onion peach pear red-apple spiral- "
    "shell sunglasses tangerine test-tube tomato toothbrush",
    0.13: "alarm-clock baby-chick banana bat battery beer-mug bird candle carrot chipmunk "
    "compass crab cup-with-straw doughnut fish french-fries frog-sitting glass-of-milk "
    "hamburger hamster-sitting hatching-chick hot-beverage hot-dog mouse rat sandwich "
    "soccer-ball taco teacup-without-handle tennis tropical-fish tumbler-glass wine-glass",
    0.2: "american-football basketball billed-cap birthday-cake blackbird blossom blue-book "
    "books bottle-with-popping-cork bowl-with-spoon bread camera cheese-wedge cheese- "
    "wheel closed-book cooked-rice crown crystal-ball dove ear-of-corn fork-and-knife- "
    "with-plate gem-stone green-book hammer headphone hedgehog hibiscus honey-pot "
    "hourglass-done hourglass-not-done jar lizard magic-wand magnifying-glass-tilted-left "
    "mans-shoe microscope newspaper notebook open-book pancakes parrot pie pineapple pot- "
    "of-food red-heart rose running-shoe scroll spaghetti steaming-bowl teapot teddy-bear "
    "telephone top-hat trophy tropical-drink tulip volleyball womans-hat wrapped-gift "
    "wrench",
    0.3: "amphora artist-palette baby backpack balloon basket blowfish bouquet bucket chicken "
    "coral dagger desktop-computer diya-lamp drum duck handbag hyacinth jack-o-lantern "
    "laptop lobster money-bag musical-keyboard otter owl pizza potted-plant rabbit radio "
    "red-paper-lantern rooster shield skunk squid sunflower toolbox triangular-flag "
    "trumpet turtle watermelon",
    0.45: "axe badger beaver black-cat black-cat-sleeping bow-and-arrow briefcase carpentry-saw "
    "cat cat-sleeping crossed-swords eagle flamingo framed-picture goose guitar kite "
    "luggage mirror monkey octopus peacock raccoon-sitting saxophone skateboard swan "
    "television treasure-chest turkey umbrella violin",
    0.7: "banjo boar broom bullseye dog dog-sleeping ewe fire fishing-pole fox-sitting globe- "
    "showing-americas goat guide-dog jellyfish kick-scooter koala-sitting penguin pig "
    "poodle rock satellite-antenna sled sloth telescope wheel window",
    0.95: "anchor chair coffin fence harp headstone leopard long-drum seal snowman snowman- "
    "without-snow toilet wolf-sitting",
    1.4: "bamboo bathtub bear-sitting bench bicycle cactus crocodile deer dolphin donkey "
    "fireplace floor-lamp gorilla kangaroo lion-sitting llama manual-wheelchair motor- "
    "scooter orangutan panda-sitting ram rug shark shopping-cart signboard table tiger "
    "unicorn",
    1.9: "bed bison bookshelf camel canoe couch-and-lamp cow door goal-net hippopotamus horse "
    "laid-table moose motorcycle ox phoenix-bird polar-bear-sitting rhinoceros robot- "
    "standing tent two-hump-camel water-buffalo zebra",
    3.2: "auto-rickshaw automobile camping christmas-tree dragon fuel-pump giraffe "
    "hot-springs motor-boat oncoming-automobile oncoming-taxi orca person-rowing- "
    "boat pickup-truck playground-slide police-car racing-car small-airplane speedboat "
    "sport-utility-vehicle street-lamp taxi vertical-traffic-light",
    4.5: "mammoth giraffe elephant "
    "ambulance carousel-horse delivery-truck fire-engine fountain helicopter hut "
    "leafless-tree minibus palm-tree sailboat sauropod t-rex tractor tram-car trolleybus",
    6.5: "articulated-lorry bullet-train bus circus-tent convenience-store deciduous-tree "
    "derelict-house double-decker-bus evergreen-tree flying-saucer high-speed-train hot- "
    "air-balloon house locomotive railway-car rocket shinto-shrine spouting-whale tram "
    "whale",
    10.0: "airplane bank castle church classical-building department-store factory ferris-wheel "
    "ferry hindu-temple hospital hotel house-with-garden houses japanese-castle "
    "lighthouse love-hotel mosque office-building passenger-ship post-office rainbow-arch "
    "roller-coaster school ship stadium statue-of-liberty stone-bridge synagogue tokyo- "
    "tower volcano",
}
_OF_PICTURE = {name: metres for metres, names in _METRES.items() for name in names.split()}
# The size of a group of the index, for pictures that are not in the table.
_OF_GROUP = {
    "animal-amphibian": 0.15,
    "animal-bird": 0.35,
    "animal-bug": 0.04,
    "animal-mammal": 0.9,
    "animal-marine": 0.4,
    "animal-reptile": 0.8,
    "arts-crafts": 0.3,
    "clothing": 0.3,
    "computer": 0.3,
    "dishware": 0.2,
    "drink": 0.14,
    "event": 0.4,
    "face-costume": 0.7,
    "food-asian": 0.14,
    "food-fruit": 0.09,
    "food-marine": 0.2,
    "food-prepared": 0.14,
    "food-sweet": 0.14,
    "food-vegetable": 0.12,
    "game": 0.3,
    "household": 0.9,
    "light-video": 0.3,
    "money": 0.2,
    "musical-instrument": 0.6,
    "office": 0.25,
    "person": 0.7,
    "person-activity": 1.6,
    "person-fantasy": 1.4,
    "person-role": 1.4,
    "person-sport": 1.5,
    "place-building": 6.5,
    "place-geographic": 4.5,
    "place-other": 4.5,
    "place-religious": 8.0,
    "plant-flower": 0.2,
    "plant-other": 0.4,
    "science": 0.3,
    "sport": 0.3,
    "tool": 0.3,
    "transport-air": 0.9,
    "transport-ground": 2.6,
    "transport-water": 3.2,
}
_OTHERS = 0.35


def size(info: AssetInfo) -> float:
    """The edge of a picture's square as a fraction of the canvas's shorter side."""
    metres = _OF_PICTURE.get(info.name) or _OF_GROUP.get(info.group, _OTHERS)
    return min(max(_OF_ONE_METRE * metres**_SOFTNESS, _SMALLEST), _LARGEST)
