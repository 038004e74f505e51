"""The words of a prompt for place, time and weather -> a scene."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

# A phrase with ~ is only similar to what is drawn for it.
PLACES = {
    "beach": "beach, seaside, seashore, shore, coast, sandy beach, tropical beach, sand, seafront",
    "sea": "sea, ocean, waves, open sea, high seas",
    "lake": "lake, pond, ~swimming pool, ~pool, ~lagoon, ~bay, ~fjord, waterside, lakeside, water",
    "river": "river, stream, creek, brook, riverbank, ~canal",
    "waterfall": "waterfall, waterfalls, cascade",
    "path": "path, trail, footpath, pathway, dirt road, country road, country lane",
    "hill": "hill, hilltop, hillside, grassy hill, green hill",
    "hills": "hills, rolling hills, green hills",
    "valley": "valley",
    "canyon": "canyon, gorge, ~ravine, ~grand canyon",
    "mountain top": "mountain top, mountaintop, summit, peak, mountain peak",
    "cave": "cave, cavern, grotto, ~dungeon, ~tunnel, ~mine",
    "swamp": "swamp, marsh, bog, wetland, ~mangrove",
    "ice": "ice, icy, frozen lake, iceberg, icebergs, glacier",
    "mars": "mars, martian, red planet, planet mars",
    "mountains": "mountain, mountains, alps, peaks, mountainside, mountain range, "
    "snow-capped mountain, snow capped mountains, snow capped mountain",
    "forest": "~campsite, ~campground, forest, woods, woodland, pine forest, trees",
    "jungle": "jungle, rainforest, rain forest, tropical forest, in the jungle",
    "park": "park, city park, ~playground area, ~golf course, ~zoo",
    "garden": "garden, backyard, ~yard, front yard, flower garden, in the garden",
    "farm": "farm, farmyard, ~ranch, ~orchard, ~vineyard",
    "village": "village, town, small village, small town",
    "market": "market, marketplace, street market, farmers market, fruit stall, fruit stalls, "
    "market stall, market stalls, ~fair, ~bazaar, "
    "~supermarket, ~grocery store",
    "harbour": "harbour, harbor, fishing village, port, marina, dock, docks, ~pier",
    "savanna": "savanna, savannah, african plain, ~safari, ~steppe",
    "graveyard": "graveyard, cemetery, churchyard",
    "meadow": "meadow, field, grass, grassland, lawn, countryside, "
    "~prairie, pasture, nature, outdoors, wildflowers, grassy field",
    "wheat field": "wheat field, field of wheat, cornfield, golden field",
    "bamboo forest": "bamboo forest, bamboo grove",
    "cliff": "cliff, cliffs, cliff top, clifftop",
    "city": "city, ~london, ~paris, ~berlin, ~rome, "
    "skyline, cityscape, downtown, skyscrapers, skyscraper, city skyline, "
    "metropolis, ~new york, ~tokyo, urban",
    "street": "street, road, sidewalk, pavement, city street, ~highway, crosswalk, "
    "~alley, ~parking lot, ~town square, ~train station, ~railway station",
    "desert": "desert, dunes, sahara, sand dunes, sand dune, dune",
    "snow": "snow, snowy, winter, frozen, arctic, antarctica, antarctic, north pole, "
    "south pole, tundra, snowy field, snowy landscape, wintry, snowfield",
    "space": "space, outer space, galaxy, cosmos, universe, nebula, milky way, starfield, orbit, "
    "deep space",
    "moon": "on the moon, from the moon, moon surface, lunar surface, surface of the moon",
    "sky": "sky, skies, blue sky, clouds",
    "clouds": "above the clouds, in the clouds, in the air, mid air, among the clouds",
    "underwater": "underwater, under water, under the sea, under the ocean, seabed, ocean floor, "
    "coral reef, reef, deep sea, sea floor, ~aquarium, beneath the waves",
    "room": "room, interior, indoors, indoor, inside a house, floor, living space, ~workshop, "
    "~on the wall, ~against the wall, ~garage, ~attic, ~basement, ~gym, ~throne room, ~ballroom",
    "bedroom": "bedroom, bed room",
    "bathroom": "bathroom, bath room",
    "living room": "living room, lounge, livingroom, parlor, parlour",
    "kitchen": "kitchen",
    "library": "library, bookshop, bookstore, study room",
    "office": "office, workplace, ~laboratory, ~lab, home office",
    "classroom": "classroom, schoolroom, blackboard, chalkboard",
    "crowd": "in front of a crowd, in front of an audience, before a crowd, before an audience, "
    "for a crowd, cheering crowd, concert crowd",
    "stage": "stage, concert stage, theatre, theater, concert hall, on stage, ~concert, ~opera",
    "cafe": "cafe, café, coffee shop, coffeehouse, ~restaurant, ~diner, coffee house, "
    "~bar, ~pub, ~canteen",
}
HOURS = {
    "day": "daylight, daytime, sunny, noon, midday, afternoon, sunlit, sunny day, summer day",
    "dawn": "dawn, sunrise, daybreak, morning, early morning",
    "sunset": "sunset, sundown, setting sun, golden hour",
    "dusk": "dusk, twilight, evening, nightfall",
    "night": "night, midnight, nighttime, starry night, starry sky, starry, moonlight, moonlit, "
    "night sky, stars, dark night, stargazing, night time, nocturnal",
}
WEATHERS = {
    "rain": "rain, rainy, raining, drizzle, rainstorm, rainy day",
    "storm": "storm, stormy, thunderstorm, thunder, lightning storm",
    "snowfall": "snowing, snowfall, snowstorm, blizzard, falling snow, snowflakes",
    "fog": "fog, foggy, mist, misty, haze, hazy",
    "clouds": "cloudy, overcast, cloudy sky, grey sky, gray sky, cloudy day",
    "wind": "wind, windy, windy day, breeze, breezy",
    "aurora": "aurora, northern lights, aurora borealis, polar lights",
    "autumn": "autumn, autumnal, fall leaves, fall foliage, autumn leaves",
    "spring": "spring, springtime, cherry blossom, cherry blossoms, in bloom",
    "summer": "summer, summertime, summery",
}
# Weather that hides the sun and the moon.
SUNLESS = frozenset({"rain", "storm", "clouds", "fog"})
# Place -> the place that "on" it means: things stand on its top.
ON_TOP = {"mountains": "mountain top", "hills": "hill"}
# Ideas that no picture shows -> the words of a scene for them.
IDEAS: Mapping[str, str] = {
    "freedom": "two birds flying over the sea at sunset",
    "liberty": "two birds flying over the sea at sunset",
    "teamwork": "three people holding three puzzle pieces",
    "cooperation": "three people holding three puzzle pieces",
    "hope": "a seedling under a rainbow",
    "peace": "a dove flying over a meadow",
    "love": "a man and a woman with a heart",
    "friendship": "two children with a heart in a meadow",
    "success": "a trophy on a mountain",
    "growth": "a seedling, a plant and a tree in a meadow",
    "innovation": "a lightbulb and a rocket",
    "creativity": "a lightbulb and an artist palette",
    "knowledge": "books and a lightbulb in a library",
    "education": "a teacher and two children in a classroom",
    "justice": "a balance scale in a library",
    "loneliness": "a man sitting on a bench in the rain",
    "happiness": "a girl with a balloon in a sunny meadow",
    "adventure": "a compass, a map and a tent in the mountains",
    "power": "a lion on a mountain",
    "speed": "a racing car on a road",
    "health": "an apple and a heart",
    "wealth": "a money bag and gold coins",
    "time": "an hourglass",
    "travel": "a suitcase and an airplane in the sky",
    "nature": "a tree, a deer and a rabbit in a meadow",
    "strength": "an elephant",
    "courage": "a lion",
    "security": "a shield and a padlock",
    "celebration": "a birthday cake with balloons",
    "warming": "the earth, a thermometer and a fire under a sun",
    "climate": "the earth, a thermometer and a sun",
    "sustainability": "the earth with a seedling",
    "recycling": "three bottles and a wastebasket",
    "technology": "a laptop, a robot and a satellite",
    "future": "a robot in a city at night",
    "science": "a microscope, a test tube and a scientist",
    "music": "a guitar, a trumpet and musical notes",
    "communication": "two people with mobile phones",
    "leadership": "a king on a mountain",
    "balance": "a balance scale",
    "dream": "a bed in the clouds at night",
    "danger": "a skull and a fire",
    "luck": "a four leaf clover and a horseshoe",
    "christmas": "a christmas tree, two gifts and a snowman in the snow",
    "halloween": "a pumpkin, a ghost and three bats in a graveyard at night",
    "birthday": "a birthday cake, three balloons and two gifts",
    "vacation": "a suitcase and a palm tree on a beach",
    "holiday": "a suitcase and a palm tree on a beach",
}
INDOORS = frozenset(
    {
        "room",
        "bedroom",
        "bathroom",
        "living room",
        "kitchen",
        "library",
        "office",
        "classroom",
        "cafe",
        "stage",
    }
)

# The place of a thing if the prompt names none; the first thing with a place decides. Pictures come
# before groups of the index.
USUAL_PLACES: Mapping[str, str] = {
    "astronaut": "space",
    "rocket": "space",
    "satellite": "space",
    "flying-saucer": "space",
    "ringed-planet": "space",
    "comet": "space",
    "alien": "space",
    "penguin": "snow",
    "polar-bear-sitting": "snow",
    "snowman": "snow",
    "snowman-without-snow": "snow",
    "sled": "snow",
    "santa-claus": "snow",
    "skier": "snow",
    "snowboarder": "snow",
    "seal": "snow",
    "christmas-tree": "snow",
    "camel": "desert",
    "two-hump-camel": "desert",
    "cactus": "desert",
    "crab": "beach",
    "palm-tree": "beach",
    "spiral-shell": "beach",
    "desert-island": "sea",
    "person-surfing": "sea",
    "bench": "meadow",
    "bed": "bedroom",
    "couch-and-lamp": "living room",
    "chair": "room",
    "table": "room",
    "bookshelf": "library",
    "duck": "lake",
    "swan": "lake",
    "airplane": "sky",
    "helicopter": "sky",
    "hot-air-balloon": "sky",
    "parachute": "sky",
    "animal-marine": "underwater",
    "animal-mammal": "meadow",
    "animal-bird": "meadow",
    "animal-bug": "meadow",
    "animal-reptile": "meadow",
    "animal-amphibian": "meadow",
    "plant-flower": "meadow",
    "plant-other": "meadow",
    "place-building": "meadow",
    "place-religious": "meadow",
    "place-other": "meadow",
    "transport-water": "sea",
    "country-flag": "meadow",
    "sand-island": "sea",
    "surfboard": "beach",
    "seagull": "beach",
    "flying-bird": "sky",
    "pyramids": "desert",
    "sphinx": "desert",
    "igloo": "snow",
    "submarine": "underwater",
    "fridge": "kitchen",
    "oven": "kitchen",
    "kraken": "sea",
    "starfish": "beach",
    "seahorse": "underwater",
    "headstone": "graveyard",
    "server": "office",
    "transport-ground": "street",
    "food-prepared": "room",
    "food-sweet": "room",
    "drink": "room",
    "household": "room",
    "cook": "kitchen",
    "waiter": "cafe",
    "singer": "stage",
    "farmer": "farm",
    "teacher": "classroom",
    "office-worker": "office",
    "technologist": "office",
    "lighthouse": "sea",
    "fence": "meadow",
    "bamboo": "bamboo forest",
    "stone-bridge": "lake",
    "fireplace": "living room",
    "bathtub": "bathroom",
    "person": "meadow",
    "person-role": "meadow",
    "person-fantasy": "meadow",
    "person-activity": "meadow",
    "person-sport": "meadow",
}
# Things that imply an hour of the day.
HOUR_OF = {
    "full-moon": "night",
    "crescent-moon": "night",
    "star": "night",
    "glowing-star": "night",
    "owl": "night",
    "bat": "night",
    "ghost": "night",
}


def _by_phrase(table: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    return {
        tuple(phrase.strip("~").replace("-", " ").split()): key
        for key, listed in table.items()
        for phrase in listed.split(", ")
    }


PLACE_PHRASES = _by_phrase(PLACES)
HOUR_PHRASES = _by_phrase(HOURS)
WEATHER_PHRASES = _by_phrase(WEATHERS)
# What is drawn for these is only similar.
NEAR_PHRASES = frozenset(
    tuple(phrase.strip("~").replace("-", " ").split())
    for table in (PLACES, HOURS, WEATHERS)
    for listed in table.values()
    for phrase in listed.split(", ")
    if phrase.startswith("~")
)


class Scene(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Place, hour and weather; ``paper`` is a background colour if there is no place."""

    places: tuple[str, ...] = ()
    hour: str = "day"
    weather: frozenset[str] = msgspec.field(default_factory=frozenset[str])
    paper: str | None = None

    @property
    def name(self) -> str:
        """The scene as text, for the caller."""
        where = ", ".join(self.places) or "plain"
        when = "" if self.hour == "day" or where == "plain" else f", {self.hour}"
        return ", ".join((where + when, *sorted(self.weather)))

    @property
    def is_named(self) -> bool:
        """Whether a prompt named a place, an hour, a weather or a colour of paper."""
        return bool(self.places or self.hour or self.weather or self.paper)

    def has(self, *places: str) -> bool:
        """Whether one of these places is part of the scene."""
        return any(place in self.places for place in places)


def usual_place(pictures: Iterable[tuple[str, str]]) -> str | None:
    """The usual place of things; ``pictures`` are pairs of name and group, in order."""
    pairs = list(pictures)
    if any(group == "transport-water" for _, group in pairs):
        # A boat decides, not the people in it.
        return USUAL_PLACES["transport-water"]
    for name, _ in pairs:
        if name in USUAL_PLACES:
            return USUAL_PLACES[name]
    return next((USUAL_PLACES[group] for _, group in pairs if group in USUAL_PLACES), None)
