"""The anchors that the rules of asset_anchors.py miss, measured by eye on a grid of hundredths."""

from __future__ import annotations

Numbers = tuple[int, ...]

# Name: head x y width | face x y width | mouth x y | hand x y | seat x y. A dash is measured.
_LIVING = """
badger 25 46 24|17 58 18|7 64|7 66|55 47
bear 50 28 60|50 52 34|50 72|80 85|-
beaver 26 13 34|14 21 16|10 36|14 46|70 22
bison 17 22 24|14 40 14|10 58|10 58|62 27
black-cat 22 20 26|15 36 20|9 42|10 43|55 40
black-cat-sleeping 26 56 26|26 72 20|26 80|12 88|65 58
boar 45 18 40|40 44 20|15 62|12 66|-
camel 20 10 18|20 20 12|7 27|8 28|62 18
cat 24 20 26|17 36 20|10 42|10 43|55 40
cat-face 50 22 50|50 58 36|50 76|80 88|-
cat-sleeping 27 56 26|27 72 20|27 80|12 88|65 58
chipmunk 22 22 22|16 36 14|8 42|18 57|40 40
cow 26 14 22|22 22 18|10 30|10 32|65 29
cow-face 50 14 44|48 46 40|50 78|80 70|-
deer 20 20 16|18 27 12|10 34|10 36|58 36
dog 22 16 24|17 30 20|9 40|9 42|58 30
dog-face 50 18 50|50 47 32|50 70|80 80|-
dog-sleeping 26 58 26|26 70 20|26 78|12 88|65 58
donkey 20 36 16|19 41 14|12 56|12 56|55 36
elephant 24 17 28|21 40 18|14 58|21 78|60 17
ewe 25 14 22|18 27 12|10 36|10 38|62 32
fox 50 30 44|50 57 34|50 72|80 70|-
fox-sitting 50 21 24|50 33 22|50 42|76 58|-
frog 50 12 50|50 26 60|50 62|85 85|-
frog-sitting 50 11 30|51 17 34|51 38|76 58|-
giraffe 22 12 14|17 17 12|11 24|11 25|62 44
goat 22 17 18|18 25 14|9 32|9 34|60 37
gorilla 25 7 24|17 17 16|12 28|22 88|65 28
guide-dog 26 22 24|18 33 20|10 42|10 44|65 40
hamster 50 26 40|50 52 34|50 68|80 85|-
hamster-sitting 50 20 20|50 37 20|50 46|76 60|-
hedgehog 28 58 18|20 68 14|9 74|9 75|60 28
hippopotamus 28 30 26|30 38 22|30 56|30 62|68 25
horse 22 10 16|18 20 12|8 28|8 30|54 41
horse-face 45 12 26|42 30 18|22 60|22 62|-
kangaroo 27 18 14|17 23 12|7 28|29 63|60 22
koala 50 24 44|50 52 48|50 76|80 85|-
koala-sitting 50 14 24|50 31 26|50 45|76 58|-
leopard 26 28 24|18 42 20|10 54|10 55|65 48
lion 50 24 36|50 44 34|50 66|80 85|-
lion-sitting 50 15 28|50 27 20|50 40|76 58|-
llama 22 14 12|17 22 12|10 30|10 31|58 51
mammoth 25 12 24|20 38 16|14 56|16 70|65 22
monkey 30 12 26|29 27 18|29 40|16 64|50 48
monkey-face 50 22 40|50 46 30|50 68|80 85|-
moose 50 46 30|32 60 16|14 72|14 73|-
mouse 28 28 20|18 38 14|8 44|22 68|65 25
mouse-face 50 36 30|50 64 30|50 78|75 78|-
orangutan 50 13 20|50 25 16|50 38|78 62|-
otter 21 34 18|21 45 16|20 54|34 60|60 52
ox 18 20 18|14 27 12|8 36|8 37|62 25
panda 50 24 46|50 52 44|50 72|80 85|-
panda-sitting 50 15 30|50 30 28|50 40|76 58|-
pig 24 34 22|20 50 16|8 58|8 58|62 31
pig-face 50 22 44|50 52 40|50 76|80 80|-
polar-bear 50 22 46|50 50 34|50 68|80 85|-
polar-bear-sitting 50 15 30|50 31 20|50 42|76 58|-
poodle 28 12 22|20 34 12|9 36|9 37|60 36
rabbit 28 30 16|20 40 14|9 48|12 56|62 46
rabbit-face 50 34 36|50 57 24|50 74|78 78|-
raccoon 50 30 40|50 60 36|50 80|80 80|-
raccoon-sitting 50 20 24|50 33 24|50 46|76 58|-
ram 27 18 18|17 28 12|9 36|9 37|60 34
rat 28 28 20|18 38 14|8 44|22 68|65 25
rhinoceros 27 36 18|18 42 12|9 56|9 56|65 24
service-dog 28 24 22|20 29 16|10 38|30 88|60 62
skunk 25 54 22|18 62 14|8 66|8 67|60 46
sloth 25 40 22|25 53 20|25 60|28 22|50 52
squirrel 78 26 18|82 36 10|92 42|80 62|40 40
tiger 28 28 24|18 40 20|10 50|10 51|62 48
tiger-face 50 20 44|50 49 34|50 66|80 80|-
two-hump-camel 22 10 16|19 20 12|8 27|8 28|70 38
unicorn 48 18 24|36 40 14|24 66|24 68|66 26
walrus 50 16 50|50 27 44|50 52|75 85|-
water-buffalo 20 24 18|14 31 12|8 38|8 38|62 28
wolf 50 32 40|50 49 32|50 74|80 70|-
wolf-sitting 47 20 24|47 31 20|47 44|74 58|-
zebra 22 9 14|15 13 10|8 20|8 21|58 44
baby-chick 26 16 24|20 30 14|9 36|9 37|62 35
bird 27 12 22|25 30 14|14 36|14 37|60 56
blackbird 48 10 20|55 18 14|70 26|70 26|50 45
chicken 45 26 36|42 48 16|20 60|20 62|-
dodo 32 15 16|28 24 12|12 36|12 37|60 40
dove 22 18 14|20 24 10|10 32|10 33|50 45
duck 28 11 20|27 20 14|10 26|10 28|65 47
eagle 22 34 14|18 40 10|9 46|20 62|55 40
flamingo 26 8 14|24 13 10|16 24|16 25|55 41
flying-bird 20 56 12|20 60 10|8 64|8 65|50 60
front-facing-baby-chick 50 14 30|50 30 34|50 38|84 56|-
goose 30 14 18|28 18 12|12 26|12 27|65 52
hatching-chick 50 13 30|50 24 32|50 32|82 44|-
hummingbird 62 28 10|62 30 8|90 56|90 56|-
ostrich 84 9 12|86 10 8|94 14|94 15|40 42
owl 50 12 44|50 30 60|50 40|76 60|-
parrot 36 10 24|34 18 14|20 26|20 28|55 42
peacock 42 29 12|42 36 10|35 40|36 42|-
penguin 50 22 28|49 33 24|50 43|80 58|-
rooster 28 16 16|26 28 12|14 36|14 37|55 48
seagull 77 26 12|78 30 10|90 36|90 37|45 42
swan 13 20 16|12 28 10|8 38|8 39|62 57
turkey 21 20 12|19 24 10|11 32|11 33|60 14
vulture 82 12 14|84 18 10|95 26|95 27|45 40
snail 16 12 16|16 14 18|10 40|12 50|60 28
blowfish 40 18 24|25 46 16|12 56|12 57|-
octopus 48 12 46|48 42 60|48 58|94 72|-
crab 50 36 30|50 38 26|50 56|84 24|-
dolphin 40 16 20|30 30 14|12 40|12 41|60 25
fish 38 26 22|26 44 14|8 52|8 53|-
seal 22 14 24|17 18 16|8 28|26 80|62 46
turtle 13 64 12|12 70 10|6 78|6 78|55 40
t-rex 38 9 20|30 18 12|14 32|22 52|64 50
sauropod 17 9 14|15 13 10|7 18|8 19|48 44
dragon 30 16 18|22 24 10|12 36|14 38|76 55
snowman 42 14 28|50 30 20|52 42|86 46|-
snowman-without-snow 42 14 28|50 30 20|52 42|86 46|-
teddy-bear 50 14 40|50 30 20|50 42|84 52|-
scarecrow 50 14 16|50 20 12|50 26|90 18|-
ghost 48 10 40|46 22 30|46 42|14 56|-
alien 50 12 50|50 46 56|50 82|68 84|-
robot-standing 50 14 34|50 24 30|50 36|82 72|-
"""

# Name: the shoulder of an arm that is drawn to the hand, and a point with the colour of the arm.
# These pictures show no free arm.
_SHOULDERS = """
bear-sitting 60 60 33 80
fox-sitting 60 60 33 80
frog-sitting 60 60 33 80
hamster-sitting 60 60 33 80
koala-sitting 60 60 33 80
lion-sitting 60 60 33 80
monkey 36 54 60 60
mouse 28 60 60 60
orangutan 66 40 70 45
owl 72 54 22 60
panda-sitting 60 60 33 80
penguin 78 54 22 60
polar-bear-sitting 60 60 33 80
rabbit 26 62 50 62
raccoon-sitting 60 60 33 80
rat 28 60 50 60
teddy-bear 70 56 76 54
wolf-sitting 58 60 30 80
"""

# Name: left, top, right, bottom and, if the rim is round, how much lower its middle is. What is in
# a closed container shows in its window; in an open one it is cut off at the bottom.
_INSIDES = """
ambulance 24 41 39 55
automobile 56 37 75 56
backpack 20 14 80 20
barrel 22 5 78 8 3
basket 14 36 86 42
bathtub 12 40 85 50
battle-tank 35 15 60 22
bed 8 30 50 52
bird-cage 20 20 80 88
bowl 8 38 92 42 6
bowl-with-spoon 12 22 88 56 8
bucket 10 18 92 22 6
bus 47 31 65 58
canoe 15 48 60 58
cardboard-box 22 29 78 39
carriage 12 30 84 38
cauldron 14 6 86 20 8
crate 10 4 90 6
delivery-truck 17 41 31 58
dog-house 30 56 70 94
double-decker-bus 27 20 41 36
empty-nest 28 18 70 38 8
fire-engine 22 28 37 56
fishbowl 16 30 84 86
flying-saucer 36 20 70 40
galleon 25 55 75 67
handbag 15 40 85 44
helicopter 10 36 32 58
hot-air-balloon 38 78 62 86
hot-beverage 22 12 70 46 14
jar 18 26 82 92
locomotive 65 25 84 43
motor-boat 14 40 40 53
nest-with-eggs 28 18 70 38 8
oncoming-automobile 30 37 70 55
package 20 10 80 26
paper-boat 15 30 85 46
pickup-truck 54 45 92 53
police-car 57 41 76 58
pot-of-food 24 18 78 46 12
potted-plant 28 50 74 60
racing-car 52 55 70 70
rocket 54 23 74 43
sailboat 12 50 88 63
sailing-ship 22 60 60 73
ship 10 45 46 53
shopping-bags 12 28 60 33
shopping-cart 16 20 84 60
sled 20 30 90 38
small-airplane 62 20 80 38
speedboat 40 36 66 54
sport-utility-vehicle 54 33 71 53
taxi 57 37 74 50
teacup-without-handle 14 36 86 40 4
top-hat 20 8 80 22 4
tractor 56 25 78 47
treasure-chest 20 36 78 48
treehouse 40 24 58 44
wastebasket 14 6 86 12 3
well 25 48 75 66 3
wheelbarrow 32 20 82 32
window 12 12 88 88
"""

# Name: where a thing on it stands or sits.
_SEATS = """
bed 55 62
bench 50 56
bicycle 58 38
branch 50 26
book-stack 50 8
carousel-horse 52 44
chair 50 55
couch-and-lamp 42 72
desert-island 50 76
kick-scooter 55 83
laid-table 50 22
manual-wheelchair 40 52
motor-scooter 62 42
motorcycle 58 50
open-book 50 30
rocking-chair 52 56
rug 50 84
sand-island 50 60
skateboard-side 50 79
wire 50 24
armchair 50 66
sled 58 36
stone-bridge 50 30
table 50 48
tractor 62 48
"""

# Name: the point at which it is held, and the turn in degrees for the right hand.
_GRIPS = """
accordion 50 50 0
axe 72 82 0
balloon 30 96 0
banjo 52 52 0
basket 50 8 0
shield 50 50 0
teddy-bear 50 60 0
red-paper-lantern 50 8 0
cardboard-box 50 60 0
baseball 50 60 0
black-flag 26 78 10
bow-and-arrow 62 36 0
broom 66 40 0
bucket 50 10 0
briefcase 50 20 0
dagger 72 26 180
drum 50 60 0
fishing-pole 74 88 12
fork-and-knife 50 80 0
guitar 50 55 0
hammer 80 84 0
handbag 50 12 0
hot-beverage 84 44 0
kite 42 72 0
ladder 50 50 0
lollipop 34 84 0
long-drum 50 50 0
luggage 50 6 0
magic-wand 24 78 0
microphone 26 74 0
pick 82 86 0
pitchfork 50 62 0
rake 44 30 0
rose 50 82 0
saxophone 52 50 0
shovel 74 24 180
soft-ice-cream 50 88 0
spear 20 18 180
sunflower 50 85 0
tennis 28 74 0
triangular-flag 27 82 10
trident 18 18 180
trumpet 50 50 0
tulip 50 85 0
umbrella 50 72 8
violin 50 55 0
watering-can 62 30 0
white-flag 26 78 10
"""


def _rows(text: str) -> dict[str, list[str]]:
    lines = (line.split(" ", 1) for line in text.split("\n") if line)
    return {name: cells.split("|") for name, cells in lines}


def _numbers(text: str) -> Numbers:
    return tuple(map(int, text.split()))


INSIDES = {name: _numbers(cells[0]) for name, cells in _rows(_INSIDES).items()}
SEATS = {name: _numbers(cells[0]) for name, cells in _rows(_SEATS).items()}
GRIPS = {name: _numbers(cells[0]) for name, cells in _rows(_GRIPS).items()}
SHOULDERS = {name: _numbers(cells[0]) for name, cells in _rows(_SHOULDERS).items()}
LIVING = {
    name: {
        kind: _numbers(cell)
        for kind, cell in zip(("head", "face", "mouth", "hand", "seat"), cells, strict=True)
        if cell != "-"
    }
    for name, cells in _rows(_LIVING).items()
}
