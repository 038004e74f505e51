"""A prompt in another language -> the same prompt in English words that the parser knows.

The names of pictures come from the pack in 22 languages. The tables below have the words between
them (numbers, colours, relations, places) for the languages that people write most.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from limner.illustrator.words import word_set

_WORDS = Path(__file__).with_name("data") / "words.xz"

# English words = the words for them. "-" stands for words without a meaning of their own.
_TABLES = {
    "de": "a=ein,eine,einen,einem,einer,eines,der,die,das,den,dem,des;and=und;two=zwei;three=drei;"
    "four=vier;five=fünf;six=sechs;seven=sieben;eight=acht;nine=neun;ten=zehn;in=in,im;on=auf;"
    "under=unter;behind=hinter;in front of=vor;next to=neben;over=über;between=zwischen;with=mit;"
    "without=ohne;at=bei,am,an;red=rot,rote,roter,roten,rotes,rotem;blue=blau,blaue,blauer,blauen,"
    "blaues;green=grün,grüne,grüner,grünen,grünes;yellow=gelb,gelbe,gelber,gelben,gelbes,gelbem;"
    "black=schwarz,schwarze,schwarzer,schwarzen,schwarzes;white=weiß,weiße,weißer,weißen,weißes;"
    "brown=braun,braune,brauner;grey=grau,graue,grauer;orange=orangener;pink=rosa;purple=lila;"
    "small=klein,kleine,kleiner,kleines;big=groß,große,großer,großes,großen;old=alt,alte,alter;"
    "sitting=sitzt,sitzend,sitzen;playing with=spielen mit,spielt mit;playing=spielen,spielt;"
    "sleeping=schläft,schlafend;holding=hält;riding=reitet;eating=isst,frisst;wearing=trägt;"
    "flying=fliegt,fliegen;remove=entferne,entfernen,lösche,löschen;add=füge,ergänze,zeichne;"
    "make=mach,mache;it=es;-=hinzu,dazu,ein bisschen;more=mehr,noch,weitere,weiterer,weiteren;"
    "replace=ersetze,tausche;by=durch,gegen;move=verschiebe,bewege;put=setze,stelle;left=links;"
    "right=rechts;up=oben;down=unten;bigger=größer;smaller=kleiner;paint=male,färbe;undo=rückgängig;"
    "let=lass,lasse;snow=schneien;rain=regnen;should be=soll;moon=mond;sun=sonne;"
    "sunset=sonnenuntergang;sunrise=sonnenaufgang;night=nacht,nachts;"
    "rain=regen;snow=schnee;forest=wald;beach=strand;sea=meer;mountains=berge,berg,bergen;"
    "city=stadt;street=straße;meadow=wiese,feld,garten,park;lake=see,teich;sky=himmel;"
    "kitchen=küche;"
    "living room=wohnzimmer;children=kinder;child=kind;man=mann;woman=frau;girl=mädchen;boy=junge;"
    "house=haus;tree=baum;trees=bäume;castle=burg,schloss;dragon=drache;dog=hund;cat=katze;"
    "ball=ball;car=auto;book=buch;flower=blume;flowers=blumen;bird=vogel;birds=vögel;fish=fisch",
    "fr": "a=un,une,le,la,les,des,de,du,d,l;and=et;two=deux;three=trois;four=quatre;five=cinq;"
    "six=six;seven=sept;eight=huit;nine=neuf;ten=dix;in=dans,en;on=sur;under=sous;behind=derrière;"
    "in front of=devant;next to=près,à côté,près de;between=entre;with=avec;without=sans;at=au,"
    "à,aux;"
    "red=rouge,rouges;blue=bleu,bleue,bleus,bleues;green=vert,verte,verts,vertes;yellow=jaune,"
    "jaunes;"
    "black=noir,noire,noirs,noires;white=blanc,blanche,blancs,blanches;brown=marron,brun,brune;"
    "grey=gris,grise;pink=rose,roses;purple=violet,violette;small=petit,petite;big=grand,"
    "grande,gros;"
    "old=vieux,vieil,vieille;sitting=assis,assise;sleeping=dort,dormant;playing with=joue avec,"
    "jouent avec;playing=joue,jouent;eating=mange;holding=tient,tenant;wearing=porte,portant;"
    "flying=vole;sunset=coucher du soleil,coucher de soleil;night=nuit;rain=pluie;snow=neige;"
    "forest=forêt;beach=plage;sea=mer;mountains=montagne,montagnes;city=ville;street=rue;"
    "meadow=pré,champ,jardin,parc;lake=lac,étang;kitchen=cuisine;living room=salon;window=fenêtre;"
    "sofa=canapé;cat=chat,chatte;dog=chien;child=enfant;children=enfants;man=homme;woman=femme;"
    "girl=fille,fillette;boy=garçon;house=maison;tree=arbre;trees=arbres;flower=fleur;"
    "flowers=fleurs;"
    "book=livre;car=voiture;bird=oiseau;birds=oiseaux;table=table;chair=chaise;castle=château",
    "es": "a=un,una,el,la,los,las,unos,unas,de,del;and=y,e;two=dos;three=tres;four=cuatro;"
    "five=cinco;"
    "six=seis;seven=siete;eight=ocho;nine=nueve;ten=diez;in=en;over=sobre,encima de;under=bajo,"
    "debajo de;behind=detrás de;in front of=delante de,frente a;next to=junto a,al lado de;"
    "between=entre;with=con;without=sin;at=al,a;red=rojo,roja,rojos,rojas;blue=azul,azules;"
    "green=verde,verdes;yellow=amarillo,amarilla,amarillos,amarillas;black=negro,negra,negros,"
    "negras;"
    "white=blanco,blanca,blancos,blancas;brown=marrón;grey=gris;pink=rosa;purple=morado,morada;"
    "small=pequeño,pequeña;big=grande,gran;old=viejo,vieja;sitting=sentado,sentada;"
    "sleeping=duerme,durmiendo;playing with=juega con,jugando con;playing=juega,jugando;"
    "eating=come,"
    "comiendo;holding=sostiene;wearing=lleva;flying=vuela,volando;sunset=atardecer,puesta de sol;"
    "night=noche;rain=lluvia;snow=nieve;forest=bosque;beach=playa;sea=mar;mountains=montaña,"
    "montañas;"
    "city=ciudad;street=calle;garden=jardín,parque;meadow=campo,prado;lake=lago,estanque;"
    "kitchen=cocina;girl=niña;boy=niño;children=niños;man=hombre;woman=mujer;house=casa;cat=gato;"
    "dog=perro;flower=flor;flowers=flores;tree=árbol;trees=árboles;balloon=globo;"
    "butterfly=mariposa;"
    "butterflies=mariposas;book=libro;car=coche;ball=pelota;bird=pájaro;castle=castillo",
    "it": "a=un,una,uno,il,lo,la,i,gli,le,di,del,della;and=e;two=due;three=tre;four=quattro;"
    "five=cinque;"
    "in=in,nel,nella;on=su,sul,sulla;under=sotto;behind=dietro;in front of=davanti a;with=con;"
    "red=rosso,rossa,rossi,rosse;blue=blu,azzurro,azzurra;green=verde,verdi;yellow=giallo,gialla;"
    "black=nero,nera;white=bianco,bianca;sunset=tramonto;night=notte;rain=pioggia;snow=neve;"
    "forest=bosco,foresta;beach=spiaggia;sea=mare;cat=gatto;dog=cane;house=casa;girl=bambina;"
    "boy=bambino;children=bambini;man=uomo;woman=donna;tree=albero;flower=fiore;flowers=fiori",
    "pt": "a=um,uma,o,os,as,de,do,da;and=e;two=dois,duas;three=três;four=quatro;five=cinco;"
    "in=em,no,na;"
    "on=sobre;under=sob,debaixo de;behind=atrás de;in front of=em frente a;with=com;red=vermelho,"
    "vermelha;blue=azul,azuis;green=verde;yellow=amarelo,amarela;black=preto,preta;white=branco,"
    "branca;sunset=pôr do sol;night=noite;rain=chuva;snow=neve;forest=floresta;beach=praia;sea=mar;"
    "cat=gato;dog=cachorro,cão;house=casa;girl=menina;boy=menino;children=crianças;man=homem;"
    "woman=mulher;tree=árvore;flower=flor;flowers=flores",
    "zh": "a=一只,一个,一条,一头,一匹,一朵,一辆,一;-=的,着,里,上面,上,中,了,是,有;two=两只,"
    "两个,两,二;"
    "three=三只,三个,三;four=四只,四个,四;five=五只,五个,五;in=在;and=和,与;under=下面,下;"
    "red=红色,红;"
    "blue=蓝色,蓝;green=绿色,绿;yellow=黄色,黄;black=黑色,黑;white=白色,白;eating=吃;sitting=坐;"
    "sleeping=睡觉,睡;playing=玩;flying=飞;bamboo forest=竹林;bamboo=竹子;forest=森林,树林;"
    "beach=海滩,沙滩;"
    "sea=大海,海;mountains=山;city=城市;night=夜晚,晚上;sunset=日落,夕阳;rain=下雨,雨;snow=雪;"
    "cat=猫;dog=狗;bird=鸟;tree=树;flower=花;house=房子,屋子;man=男人;woman=女人;girl=女孩;"
    "boy=男孩;"
    "child=孩子;book=书;car=汽车;ball=球;panda=大熊猫,熊猫;fish=鱼;horse=马;moon=月亮;sun=太阳",
}
# In these languages a colour comes after its noun.
_COLOUR_LAST = frozenset({"fr", "es", "it", "pt"})
_COLOURS = word_set("red blue green yellow black white brown grey pink purple")
_NO_SPACES = frozenset({"zh", "ja", "th"})
_MAX_WORDS = 4


def to_english(words: Sequence[str], *, known: int) -> tuple[str, ...] | None:
    """The words in English, if more than ``known`` of them are words of another language."""
    best: tuple[int, tuple[str, ...]] | None = None
    for language in _languages():
        if (language in _NO_SPACES) == all(ord(c) < 0x2E80 for word in words for c in word):
            continue
        found = _translate(words, _dictionary(language), language)
        if found[0] > (best[0] if best else known):
            best = found
    return best[1] if best else None


def _translate(
    words: Sequence[str], meanings: Mapping[str, str], language: str
) -> tuple[int, tuple[str, ...]]:
    """The number of words with a meaning, and all words in English."""
    joint, units = " ", list(words)
    if language in _NO_SPACES:
        joint, units = "", [character for word in words for character in word]
    longest = _MAX_WORDS if joint else 8
    english: list[str] = []
    at = score = 0
    while at < len(units):
        for length in range(min(longest, len(units) - at), 0, -1):
            meaning = _meaning(joint.join(units[at : at + length]), meanings)
            if meaning is not None:
                break
        else:
            length, meaning = 1, units[at]
            score -= length
        at, score = at + length, score + length
        if meaning in _COLOURS and language in _COLOUR_LAST and english:
            english.insert(len(english) - 1, meaning)
        elif meaning != "-":
            english.append(meaning)
    return score, tuple(word for part in english for word in part.split())


def _meaning(text: str, meanings: Mapping[str, str]) -> str | None:
    if text in meanings:
        return meanings[text]
    for ending in ("es", "en", "er", "s", "n", "e"):
        stem = text.removesuffix(ending)
        if stem != text and len(stem) > 2 and stem in meanings:
            return meanings[stem] + ("s" if ending in ("es", "s") else "")
    return None


@cache
def _languages() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_TABLES, *_pack())))


@cache
def _dictionary(language: str) -> Mapping[str, str]:
    words = dict(pair.split("=", 1) for pair in _pack().get(language, ()))
    for row in _TABLES.get(language, "").split(";"):
        english, _, others = row.partition("=")
        words |= dict.fromkeys(filter(None, others.split(",")), english)
    return words


@cache
def _pack() -> Mapping[str, Sequence[str]]:
    lines = lzma.decompress(_WORDS.read_bytes()).decode().splitlines()
    rows = (line.split("\t") for line in lines)
    return {language: words for language, *words in rows}
