"""Generated texts for applications: titles and paragraphs, the same for equal seeds."""

from __future__ import annotations

from functools import cache
from random import Random

CONSONANTS = "b d f g h k l m n p r s t v w br dr gr kl st tr"
VOWELS = "a e i o u ai ea io"
ENDINGS = "n r s t l m x nd st rk"
WORDS = 3_000
SMALL = "the of and a to in that is as for with by on it from at which are or not"
# Titles in other scripts, as in real wikis and blogs.
OTHER_SCRIPTS = (
    "Größenänderung und Maß",
    "Élève à Orléans",
    "Москва и Волга",
    "東京の地図",
    "서울의 역사",
    "תולדות הספר",
    "تاريخ الكتاب",
    "Ναυτική ιστορία",
)


def title(number: int) -> str:
    """Return a title that is unique to the number."""
    if number < len(OTHER_SCRIPTS):
        return OTHER_SCRIPTS[number]
    first, second = divmod(number * 7_919 % (WORDS * 40), 40)
    return f"{_vocabulary()[first].capitalize()} {_vocabulary()[(first + second * 61 + 7) % WORDS]}"


def sentence(random: Random) -> str:
    """Make a sentence of about fifteen words."""
    rare, small = _vocabulary(), SMALL.split()
    words = [
        random.choice(small) if random.random() < 0.4 else rare[int(WORDS * random.random() ** 2)]
        for _ in range(random.randint(8, 22))
    ]
    return " ".join(words).capitalize() + "."


def paragraph(random: Random) -> str:
    """Make a paragraph of about five sentences."""
    return " ".join(sentence(random) for _ in range(random.randint(3, 7)))


@cache
def _vocabulary() -> tuple[str, ...]:
    random, found = Random(11), dict[str, None]()
    while len(found) < WORDS:
        syllables = random.randint(1, 3)
        parts = [
            random.choice(CONSONANTS.split()) + random.choice(VOWELS.split())
            for _ in range(syllables)
        ]
        found["".join(parts) + random.choice(ENDINGS.split())] = None
    return tuple(found)
