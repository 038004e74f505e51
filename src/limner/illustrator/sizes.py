"""A picture -> its size in the real world, and its size on the canvas.

Sizes on the canvas keep the real order of things but differ much less: a mouse beside an elephant
is small, and can still be seen.
"""

from __future__ import annotations

from limner.illustrator.assets import AssetInfo

# The canvas size of a thing of one metre, and how fast sizes grow with the real ones.
_OF_ONE_METRE = 0.41
_SOFTNESS = 0.34
_SMALLEST, _LARGEST = 0.1, 1.0

# Metres -> the pictures with that longest side.
METRES = {
    0.02: "ant fly game-die honeybee lady-beetle mosquito worm",
    0.04: "acorn beetle bug caterpillar cherries cockroach coin cricket dragonfly key old-key "
    "praying-mantis ring seedling snail spider",
    0.06: "blueberries butterfly candy cookie egg feather four-leaf-clover monarch-butterfly "
    "nest-with-eggs pushpin puzzle-piece scorpion shrimp strawberry",
    0.09: "brown-mushroom computer-mouse cupcake fallen-leaf glasses green-apple kiwi-fruit lemon "
    "light-bulb maple-leaf mobile-phone mouse mushroom onion peach pear red-apple "
    "spiral-shell sunglasses tangerine test-tube tomato toothbrush",
    0.13: "alarm-clock baby-chick banana bat battery beer-mug bird candle carrot chipmunk compass "
    "crab cup-with-straw doughnut fish french-fries frog-sitting glass-of-milk hamburger "
    "hamster-sitting hatching-chick hot-beverage hot-dog rat sandwich soccer-ball "
    "taco teacup-without-handle tennis tropical-fish tumbler-glass wine-glass",
    0.2: "american-football basketball billed-cap birthday-cake blackbird blossom blue-book "
    "fork-and-knife-with-plate "
    "book-stack books bottle-with-popping-cork bowl-with-spoon bread camera cheese-wedge "
    "cheese-wheel chess-bishop chess-king chess-knight chess-pawn chess-queen chess-rook "
    "closed-book cooked-rice crescent-moon crown crystal-ball dove ear-of-corn full-moon "
    "gem-stone green-book hammer headphone hedgehog hibiscus honey-pot hourglass-done "
    "hourglass-not-done hummingbird jar lamp-genie lizard magic-wand "
    "magnifying-glass-tilted-left mans-shoe matryoshka microscope newspaper notebook "
    "open-book pancakes parrot pie pineapple pot-of-food red-heart rose running-shoe scroll "
    "seahorse spaghetti starfish steaming-bowl teapot teddy-bear telephone top-hat trophy "
    "tropical-drink tulip volleyball voodoo-doll watering-can womans-hat wrapped-gift "
    "wrench",
    0.3: "amphora artist-palette baby backpack balloon basket bird-house blender blowfish "
    "bouquet bucket chicken church-bell coral dagger desktop-computer diya-lamp drum duck "
    "fishbowl flying-bird handbag hyacinth jack-o-lantern laptop lobster money-bag "
    "musical-keyboard otter owl pillow pizza potted-plant rabbit radio red-paper-lantern "
    "rooster seagull shield skunk squid squirrel sunflower tambourine toaster toolbox "
    "triangular-flag trumpet turtle vulture watermelon",
    0.45: "axe badger beaver bird-cage black-cat black-cat-sleeping blanket bow-and-arrow "
    "briefcase carpentry-saw cat cat-sleeping crossed-swords drone eagle flamingo "
    "framed-picture goose guitar kite luggage manta-ray mirror monkey octopus paper-boat "
    "peacock raccoon-sitting samurai-helmet saxophone skateboard skateboard-side swan "
    "television treasure-chest turkey umbrella viking-helmet violin",
    0.7: "aloe anvil banjo beehive boar branch broom bullseye cauldron dog dog-sleeping ewe fern "
    "fire fishing-pole fox-sitting globe-showing-americas goat guide-dog jellyfish "
    "kick-scooter koala-sitting penguin pig poodle rock satellite-antenna sled sloth "
    "telescope vines wheel window",
    0.95: "anchor armchair barrel bush chair coffin crate database dog-house fence harp headstone "
    "leopard long-drum mailbox oven rake seal server sink snowman snowman-without-snow "
    "toilet washing-machine wolf-sitting",
    1.4: "bamboo bathtub bear-sitting bench bicycle cactus crocodile deer dolphin donkey easel "
    "fireplace floor-lamp fridge goblin gorilla kangaroo lion-sitting llama "
    "manual-wheelchair motor-scooter orangutan orc ostrich panda-sitting ram rocking-chair "
    "rug scarecrow shark shopping-cart signboard skeleton spear stone-statue surfboard "
    "table tiger trident unicorn walrus wheelbarrow",
    1.9: "bed bison bookshelf camel cannon canoe catapult centaur cow curtains "
    "door gargoyle goal-net golem hippopotamus horse laid-table minotaur moose motorcycle "
    "ox phoenix-bird polar-bear-sitting rhinoceros robot-standing sarcophagus tent totem "
    "two-hump-camel wardrobe water-buffalo well werewolf zebra",
    3.2: "auto-rickshaw automobile battle-tank bulldozer camping carriage chariot "
    "christmas-tree couch-and-lamp dragon forklift fuel-pump gas-pump hot-springs igloo motor-boat "
    "oncoming-automobile oncoming-taxi orca person-rowing-boat pickup-truck "
    "playground-slide police-car racing-car ringed-planet small-airplane speedboat "
    "sport-utility-vehicle street-lamp taxi vertical-traffic-light",
    4.5: "ambulance carousel-horse delivery-truck drakkar elephant fire-engine fountain giraffe "
    "helicopter hut leafless-tree mammoth minibus palm-tree sailboat sailing-ship sauropod "
    "submarine t-rex tractor tram-car treehouse trolleybus watchtower",
    6.5: "articulated-lorry barn bullet-train bus castle-ruins cave circus-tent "
    "convenience-store deciduous-tree derelict-house double-decker-bus evergreen-tree "
    "flying-saucer high-speed-train hot-air-balloon house locomotive medieval-gate "
    "railway-car rocket sand-island shinto-shrine spouting-whale stone-wall tram waterfall "
    "whale wind-turbine windmill wire wood-cabin zeppelin",
    10.0: "airplane bank castle church classical-building clock-tower department-store "
    "drawbridge-castle eiffel-tower factory ferris-wheel ferry galleon greek-temple "
    "hindu-temple hospital hotel house-with-garden houses japanese-castle kraken lighthouse "
    "love-hotel mosque office-building oil-rig passenger-ship post-office pyramids "
    "rainbow-arch roller-coaster school ship sphinx stadium statue-of-liberty stone-bridge "
    "stone-tower synagogue tokyo-tower viking-longhouse volcano water-tower",
}
_OF_PICTURE = {name: metres for metres, names in METRES.items() for name in names.split()}
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
    "country-flag": 3.2,
    "country-map": 6.5,
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
