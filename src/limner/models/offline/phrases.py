"""The words that people use for what the rules can do, as data -> the patterns made of them.

Repetitions are bounded, so that no message takes long to read, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NUMBERS: Mapping[str, int] = {
    word: number
    for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=2
    )
}
ORDINALS: Mapping[str, int] = {
    "first": 0,
    "1st": 0,
    "second": 1,
    "2nd": 1,
    "third": 2,
    "3rd": 2,
    "fourth": 3,
    "4th": 3,
    "fifth": 4,
    "5th": 4,
    "last": -1,
    "latest": -1,
    "newest": -1,
    "previous": -2,
}
WIDE, TALL, SQUARE = "16:9", "9:16", "1:1"
SHAPES: Mapping[str, str] = {
    **dict.fromkeys(("wide", "widescreen", "landscape", "horizontal", "panoramic"), WIDE),
    **dict.fromkeys(("tall", "portrait", "vertical", "upright"), TALL),
    "square": SQUARE,
}
# From the tallest to the widest, and how far each word goes along it.
LADDER = ("9:21", TALL, SQUARE, WIDE, "21:9")
STEPS: Mapping[str, int] = {
    **dict.fromkeys(("wider", "broader", "flatter"), 1),
    **dict.fromkeys(("taller", "higher", "narrower"), -1),
}
SCALES: Mapping[str, float] = {
    **dict.fromkeys(("bigger", "larger", "enlarge", "twice as big", "double the size"), 2.0),
    **dict.fromkeys(("smaller", "shrink", "half as big", "half the size"), 0.5),
}
COLOURS = _set(
    "red orange yellow green blue purple violet pink brown black white grey gray golden gold "
    "silver turquoise teal cyan magenta beige navy lime"
)
NOT_PICTURES = _set(
    "list plan file folder function script program code class test app website poem story song "
    "sentence paragraph text summary essay letter email joke recipe report document note reminder "
    "call sense sure choice decision guess copy backup commit session help question thing"
)
# What a mistyped first word is compared with.
VERBS = _set(
    "draw paint sketch make render generate create show compare describe read check crop rotate "
    "resize remove add replace save"
)


def _any(*words: str) -> str:
    """A pattern for one of the words; the longest is tried first."""
    return f"(?:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})"


_PLAIN_NOUN = r"(?:picture|image|pic|drawing|illustration|graphic|visual)s?"
_KIND_NOUN = (
    r"(?:photo|photograph|painting|sketch|cartoon|comic|poster|logo|icon|banner|wallpaper|sticker|"
    r"avatar|portrait|scene|artwork|watercolou?r|diagram|doodle|emoji|card|mural)s?"
)
_SET_NOUN = r"(?:variant|variation|version|option|alternative)s"
_PLACE = r"(?:in|on|to|into|next to|beside|behind|under|near|above|below|around|in front of)"
_SHAPE_WORD = _any(*SHAPES)
_FORMAT = r"(?:format|orientation|mode|layout|shape|aspect ratio|aspect)"
_COUNT = rf"\d{{1,2}}|{_any(*NUMBERS)}"
_ORDINAL = _any(*ORDINALS)

PATH_ENDS = r"(?:png|jpe?g|gif|webp|heic|heif|avif|tiff?|bmp|svg|pdf)"
_PATH_CHAR = r"""(?:\\.|[^\s"'`<>\\,;:!?])"""
NAMED = re.compile(
    rf'''(?<![\w/.])(?:"([^"\n]{{1,300}}\.{PATH_ENDS}|[~./][^"\n]*)"'''
    rf"|'([^'\n]{{1,300}}\.{PATH_ENDS})'"
    r"|`([^`\n]+)`"
    r"|(limner://image/[0-9a-f]{8,64}|\b[0-9a-f]{12,64}\b)"
    rf"|((?:file://)?{_PATH_CHAR}{{1,300}}\.{PATH_ENDS})(?![\w/])"
    rf"|((?:~|\.{{1,2}})?/{_PATH_CHAR}{{1,300}}(?<![.])))",
    re.IGNORECASE,
)
WEB = re.compile(r"\bhttps?://\S+", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"')

_OPENER = _any(
    *_set(
        "please pls kindly hey hi hello ok okay now then so and just also great nice thanks cool "
        "perfect limner maybe"
    ),
    "thank you",
    "good morning",
    "go ahead and",
    "(?:could|can|would|will) you",
    "i(?: would|'d)? (?:like|want|need) you to",
    "let's",
    "let us",
    "try to",
)
OPENING = re.compile(rf"(?:{_OPENER}\b[\s,.!:;-]*)+", re.IGNORECASE)
CLOSING = re.compile(
    r"(?:(?:^|[\s,.!]{1,4})(?:please|pls|thanks|thank you|thx|for me|will you|would you))+"
    r"[\s.!?]*$",
    re.IGNORECASE,
)
THANKS = re.compile(
    r"(?:ok,? )?(?:many )?(?:thanks|thank you|thx|great|perfect|nice|cool|wow|awesome|lovely)\b"
    r"[\s\w,]{0,20}[.!]{0,4}"
)
YES_OR_NO = re.compile(r"(?:ok|okay|yes|yep|yeah|no|nope|sure|fine|done|next|go on|continue)[.!]*$")
LEAVE = re.compile(r"(?:exit|quit|bye|goodbye|good night|leave|stop|q|:q|logout)[.!]*$")
HELP = re.compile(
    r"(?:help\b.{0,20}|(?:hello|hi|hey|good (?:morning|evening|day)|please|test|limner)\b"
    r"[\s\w,]{0,20}"
    r"|(?:what|who) are you\b.{0,30}|what (?:can|do) (?:you|i) (?:do|draw|make|ask|say|type)\b"
    r".{0,30}|what is limner|how (?:do|does|can) (?:i|this|it|you|limner) (?:use |work|start)"
    r".{0,20}"
    r"|are you (?:an? )?(?:ai|llm|bot|human|real|language model|robot|model|person|chatgpt|gpt)\b"
    r".{0,20}|which model (?:are you|is this|do you use|am i).{0,20})?[?!.]*$"
)
ABOUT_KEYS = re.compile(
    r"(?:how|where|can|could|do|i have|use|set|add|connect|what)\b.{0,60}\b(?:api keys?|openai|"
    r"chat ?gpt|gpt\b.{0,8}|claude|gemini|(?:language|real|better) model)\b.{0,60}$"
)
HOW_TO_WRITE = re.compile(
    r"how (?:do|can|should|to)(?: i| we| you)? (?:write|make|draw|describe|define) (?:an? )?"
    r"(?:chart|diagram|page|svg|document|json)s?\b.{0,30}$"
)
ASSETS = re.compile(
    r"(?:search|find|list|look up|look for|which|what|show)(?: me)?(?: for)?(?: all| the| any)? ?"
    r"(?:assets?|ready-made pictures?|icons?|clip ?art|emojis?)\b"
    r"(?: (?:of|for|named|called|about|do you have|are there)){0,2}\s?(?P<query>.{0,80})$"
)
OPINION = re.compile(r"(?:(?:it|this|that)(?:'s| is| looks?)|i (?:don't|do not|hate)|no,)\b")
SURPRISE = re.compile(
    r"(?:surprise me|(?:draw|paint|make|show)(?: me)? (?:something|anything|whatever)(?: \w+)?)$"
)
SURPRISES = (
    "a fox under the moon",
    "two penguins and a snowman beside a christmas tree",
    "a mountain lake at dawn",
    "a cat on a red bicycle on a beach at sunset",
)
NOT_ABOUT_PICTURES = re.compile(
    r"(?:write|compose|translate|code|program|explain|calculate|compute|solve|search|google|play|"
    r"sing|remind|email|send|call|buy|order|book|install|download|open|run|execute|tell me a)\b"
)

IT = (
    r"(?:it|this|that|them|(?:the|this|that) same(?: one| picture)?"
    rf"|(?:the|this|that|my) (?:{_ORDINAL} )?(?:one|{_PLAIN_NOUN}|{_KIND_NOUN})(?! of\b))"
)
ORDINAL = re.compile(
    rf"\bthe (?P<which>{_ORDINAL})(?: (?:one|{_PLAIN_NOUN}|{_KIND_NOUN}|version))?\b"
)
LAST_TWO = re.compile(r"\b(?:(?:the )?(?:last|newest|latest) two|both|these two|the two)\b")

WHERE = re.compile(
    rf"where (?:is|are) (?:{IT}|they|the files?)(?: saved| stored| now)?[?.]*$"
    r"|where did you (?:save|put|store) .{0,40}$"
)
_PAID = r"(?:cost|costs|spent|spend|paid|pay)"
COST = re.compile(
    rf"(?:tell me |say )?(?:how much|what) (?:did|does|do|has|have|was|were|is|will|would) "
    rf"(?:{IT}|i|we|you|they|all (?:this|that)|everything|drawing|the (?:session|conversation))\b"
    rf".{{0,30}}\b{_PAID}\b.{{0,20}}$"
    r"|(?:what(?:'s| is| was) )?(?:the )?(?:total )?(?:costs?|spend|bill)(?: so far| of .{0,40})?$"
    r"|(?:tell me|show me|show|say) (?:the |what )?(?:it |that |i |we )?(?:have )?"
    rf"{_PAID}\b.{{0,20}}$"
    r"|(?:is|was) (?:it|this|that) (?:free|expensive)$|how expensive .{0,40}$"
)
LIST = re.compile(
    r"(?:list|show|which|what)(?: me)?(?: all)?(?: of)?(?: my| the| our)? "
    r"(?:pictures|images|drawings|files)(?: (?:do|are|have|so|of|did).{0,30})?$"
)
DELETE = re.compile(
    r"(?:delete|erase|trash|remove) (?:it|this|that|them|the (?:picture|image|file)s?"
    r"|all(?: of them)?|everything)$"
)
UNDO = re.compile(r"(?:undo|go back|revert|back)(?: (?:it|that|to the previous one))?$")
COMPARE = re.compile(
    r"(?:compare|contrast|diff|spot the differences?|(?:what|where) (?:is|are|'s) (?:the )?"
    r"differen|what's (?:the )?differen|how (?:do|does|is|are) .{0,80}\bdiffer"
    r"|(?:are|is|do) (?:they|these|the two|both) .{0,40}\b(?:same|equal|identical|alike)"
    r"|is there (?:a|any) difference)"
)
COMPARE_ANY = re.compile(
    rf"{COMPARE.pattern}|which (?:one|of|is|picture|image|version|do|looks?|has)\b"
)
SHOW = re.compile(
    rf"(?:(?:show|recall|bring back|display|open|pull up|view)(?: me| us)? {IT}"
    r"(?: (?:once )?again)?"
    rf"|let me see {IT}(?: again)?|(?:see|look at) {IT} again)$"
)
# "Say what you drew" asks; "say hello" does not.
_TELL = (
    r"(?:tell (?:me|us)|let (?:me|us) know|"
    r"(?:say|report|mention|state|answer) (?=what|which|who|how|where|if|whether|the))"
)
LOOK = re.compile(
    rf"{_TELL}|(?:describe|read|look|inspect|examine|analy[sz]e|transcribe|count|check|caption|"
    r"identify|explain|summari[sz]e|ocr|extract|recogni[sz]e|see|review|find|list|name|view|open|"
    r"show|translate)\b"
)
QUESTION = re.compile(
    r"(?:what|who|whose|where|when|why|how|which|is|are|was|were|does|do|did|can|could|has|have|"
    r"should|will|would|any|isn't|aren't|doesn't)\b"
)

AGAIN = re.compile(
    rf"(?:(?:draw|paint|make|do|try|generate|create|give me|sketch) )?(?:{IT} )?"
    r"(?:again|once more|another(?: one)?|one more|a different one|something else|redo|retry"
    rf"|redraw {IT}|redo {IT}|try again)(?: differently)?$"
)
VARIANTS = re.compile(
    r"(?:(?:give|make|draw|show|create|generate|do)(?: me| us)? )?"
    rf"(?:(?P<count>{_COUNT}|some|a few) )?(?:more |other |different )?"
    r"(?:variant|variation|version|option|alternative)s?"
    r"(?: of (?:it|this|that|the \w+))?$"
)
TRANSFORM = re.compile(
    r"(?:rotate|turn|flip|mirror|crop|compress|shrink|save|get|make|reduce|convert|export|cut|"
    r"remove|erase|delete)\b"
)
PIXELS = re.compile(
    r"(?:crop|rotate|flip|mirror|blur|sharpen|brighten|darken|lighten|retouch|upscale|cut out|"
    r"denoise|straighten)\b"
)
CHANGE = re.compile(
    rf"(?:(?:make|draw|do|paint|render|generate|create|turn|have|put|let|give|move) {IT}\b"
    rf"|(?:make|draw|create|do|design) an? .{{1,60}} (?:of|from|out of) {IT}$"
    rf"|(?:put|place|draw|paint|stick) .{{1,80}} {_PLACE} (?:it|him|her|them)$"
    r"|(?:(?:what|how) about |(?:draw|make|paint|do|try)(?: me)? )?an? \w+ one$"
    r"|(?:it|the .{1,60}) (?:should|must|needs to|has to|could) (?:be|have|get)\b"
    r"|(?:make|turn|paint|colou?r|put|have|let|give|move|shift|take) "
    r"(?:the|its|his|her|their|everything|all)\b"
    r"|(?:change|edit|modify|adjust|alter|replace|swap|remove|erase|delete|add|insert|recolou?r|"
    r"resize|enlarge|shrink|redraw|redo|repaint|fix|improve|get rid of|take (?:out|away|off)|"
    r"give (?:it|him|her|them)|the same|same)\b)"
)
FRAGMENT = re.compile(
    r"(?:with|without|but|more|less|fewer|no|in|at|on|under|behind|instead|as|black and white)\b"
    rf"|(?:(?:{_COUNT}|one|some|a few) more|another) \w"
)
_ABOUT_IT = (
    r"(?:(?:make|draw|do|turn|render|paint|generate|create|have|try|resize|change|set|scale|"
    r"convert|i want|give me) )?"
    rf"(?:{IT}\s*|the same\s*|same\s*)?(?:again )?,?\s*(?:but )?(?:to be )?"
    r"(?:into |in |to |as |at )?(?:an? )?(?:size (?:of )?)?"
)
SHAPING = re.compile(
    rf"{_ABOUT_IT}(?:(?:a bit|a little|much|even|more|slightly|way|very|really|far|too) )*"
    rf"(?:(?P<shape>{_SHAPE_WORD})|(?P<step>{_any(*STEPS)})|(?P<scale>{_any(*SCALES)})"
    r"|(?P<size>\d{2,5} ?(?:x|\u00d7|by) ?\d{2,5}(?: ?(?:px|pixels))?)|(?P<ratio>\d{1,2}:\d{1,2}))"
    rf"(?: {_FORMAT}| {_PLAIN_NOUN}| {IT}| again)*"
)

STRONG = re.compile(
    r"(?:(?:draw|paint|sketch|illustrate|depict|doodle|render|design|imagine|visuali[sz]e|plot|"
    r"zeichne|male|dessine|dibuja|disegna|desenhe|нарисуй)\b|画|畫|描いて)"
    r"(?:[ -](?:me|us|mir|uns|moi|nous))?(?: up)?[\s:,\u2013\u2014-]*",
    re.IGNORECASE,
)
WEAK = re.compile(
    r"(?:(?:make|create|generate|produce|give|show|prepare|get|do)\b(?: (?:me|us))?"
    r"|i(?: would|'d)? (?:want|like|need|love)(?: to (?:see|have))?|let me (?:see|have)"
    r"|how about|what about|there should be)[\s:,-]+",
    re.IGNORECASE,
)
FRAME = re.compile(
    rf"(?:(?:(?P<count>{_COUNT})|an?|the|another|one|some|my)(?: more)?\s+)?"
    rf"(?P<manner>(?:(?:{_SHAPE_WORD}|new|nice|different|beautiful|simple|quick|hd|small|large|big|"
    r"high[- ](?:quality|resolution|definition))(?:,\s*|\s+))*)"
    rf"(?P<noun>{_PLAIN_NOUN}|{_SET_NOUN})\b"
    r"(?:\s+(?:of|showing|with|depicting|about|for|where|in which|that shows?))?\s*:?\s*",
    re.IGNORECASE,
)
PICTURE_NOUN = re.compile(rf"\b(?:{_PLAIN_NOUN}|{_KIND_NOUN})\b", re.IGNORECASE)
STARTS_THING = re.compile(
    rf"(?:an?|another|some|my|our|the|{_COUNT})\s+(?P<thing>[^\W\d_].*)", re.IGNORECASE
)
# A thing and its place, as in "sunset over the sea".
STARTS_SCENE = re.compile(
    r"(?!(?:i|i'm|it|you|we|he|she|they|this|that|there|let|go|tell|give|work|turn|put|come)\b)"
    r"(?:[^\W\d_'-]{2,30} ){1,3}(?:in|on|at|over|under|with|by|near|beside|behind|above) \S",
    re.IGNORECASE,
)
STARTS_GENRE = re.compile(
    r"(?:[\w-]{1,30}\s){0,3}(?:chart|graph|plot|diagram|flowchart|timeline|table|poster|logo|icon|badge|"
    r"sticker|banner|pattern|infographic|qr code|business card|card|wallpaper|mockup|screen)s?\b"
    r"(?=\s*(?:of|for|with|showing|about|from|saying|that|:|,|$))",
    re.IGNORECASE,
)

_JOINT = r"[\s,;.]{0,4}(?:\band\s+)?"
SAVE = re.compile(
    rf"{_JOINT}\b(?:(?:save|store|write|export|keep|put)\s+(?:it|this|that|them|the \w+)?\s*"
    r"(?:as|to|in|into|under|at)|as|to|into)\s+"
    r"(?P<path>\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`|(?:\\.|[^\s\"'`\\])+)",
    re.IGNORECASE,
)
SIZE = re.compile(
    rf"{_JOINT}(?:\b(?:in|at|with|of)\s+)?(?:\b(?:a\s+)?size\s+(?:of\s+)?)?"
    r"\b(?P<width>\d{2,5})\s?(?:x|\u00d7|by)\s?(?P<height>\d{2,5})\b(?:\s*(?:px|pixels)\b)?",
    re.IGNORECASE,
)
RATIO = re.compile(
    rf"{_JOINT}(?:\b(?:in|at|with)\s+)?(?:\ban?\s+)?"
    rf"\b(?P<ratio>16:9|9:16|4:3|3:4|3:2|2:3|1:1|5:4|4:5|21:9|9:21)\b(?:\s+(?:{_FORMAT}|ratio))?",
    re.IGNORECASE,
)
SHAPE = re.compile(
    rf"(?:{_JOINT}\b(?:in|as|with)\s+(?:an?\s+)?(?P<formatted>{_SHAPE_WORD})\s+"
    rf"(?:{_FORMAT}|{_PLAIN_NOUN})\b"
    rf"|(?:,\s*|\s+in\s+)(?P<bare>{_SHAPE_WORD})\s*(?=$|[,.;]))",
    re.IGNORECASE,
)
HD = re.compile(
    rf"{_JOINT}(?:\b(?:in|at|as|with)\s+)?\b(?:hd|high[- ](?:definition|quality|resolution|res))\b"
    r"(?:\s+(?:quality|resolution))?",
    re.IGNORECASE,
)
# After "and" only these begin another step: "a cat and a dog" is one picture.
_NEXT_VERB = (
    rf"(?:{_TELL}|(?:describe|explain|look at|read|inspect|check|compare|show|make it|turn it|"
    r"rotate|crop|resize|draw|paint|render)\b)"
)
FOLLOW_UP = re.compile(
    rf"[\s,;.!]{{0,4}}\b(?:and then|then|after that,?|and(?= {_NEXT_VERB}))[\s,]{{1,4}}"
    r"|(?<=[.!;?]) ",
    re.IGNORECASE,
)


def count_of(word: str | None) -> int:
    """The number that a word means; 1 if it is none."""
    if word is None:
        return 1
    few = {"some": 3, "a few": 3}
    return (
        NUMBERS.get(word.lower()) or few.get(word.lower()) or (int(word) if word.isdecimal() else 1)
    )
