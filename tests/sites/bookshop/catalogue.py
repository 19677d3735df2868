"""The shop's books: the same seed and number give the same books everywhere."""

# ruff: noqa: RUF001  # a shop writes real quotes and dashes, and they are part of the data
from __future__ import annotations

import dataclasses
import functools
import random
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal
from urllib.parse import quote

from tests.sites.bookshop import words

CURRENCIES = ("GBP", "EUR", "USD", "EUR", "JPY", "CHF", "CZK")
PRICE_MAX = 60
RARE_ONE_IN = 40  # Rare books cost thousands, which adds thousands separators.
RARE_PRICE_MAX = 4_000
STOCK_MAX = 30
OUT_OF_STOCK_ONE_IN = 8
# Parts that a template can lose: title, price, number of copies, rating word, or all of them.
BREAKAGES = ("title", "price", "stock", "rating", "all")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """One book; `price` is `amount` in `currency` as the page shows it."""

    number: int
    title: str
    author: str
    category: str
    amount: Decimal
    currency: str
    price: str
    stock: int
    rating: int
    upc: str
    description: str

    @property
    def path(self) -> str:
        return f"/books/{slug(self.title)}_{self.number}/"


def slug(text: str) -> str:
    """Return a text as a path segment: ASCII letters, digits and dashes."""
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")


def category_path(category: str) -> str:
    return f"/category/{slug(category)}/"


def author_path(author: str) -> str:
    """Return the canonical (percent-encoded) path of an author's page; names keep their accents."""
    return quote(f"/authors/{author.lower().replace(' ', '-')}/")


def _grouped(amount: Decimal, group: str, point: str) -> str:
    return f"{amount:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group)


# One price format per currency, and some more, as in a shop with a long history.
FORMATS: dict[str, tuple[Callable[[Decimal], str], ...]] = {
    "GBP": (lambda a: f"£{a:,.2f}", lambda a: f"GBP {a:,.2f}"),
    "EUR": (
        lambda a: _grouped(a, ".", ",") + " €",
        lambda a: "€" + _grouped(a, "\N{NO-BREAK SPACE}", ","),
        lambda a: f"EUR {a:.2f}",
    ),
    "USD": (lambda a: f"${a:,.2f}", lambda a: f"US$ {a:,.2f}"),
    "JPY": (lambda a: f"¥{a:,.0f}", lambda a: f"{a:,.0f}円"),
    "CHF": (lambda a: "CHF " + _grouped(a, "’", "."),),
    "CZK": (lambda a: _grouped(a, "\N{NO-BREAK SPACE}", ",") + " Kč",),
}


def _amount(chance: random.Random, currency: str) -> Decimal:
    rare = chance.randrange(RARE_ONE_IN) == 0
    cents = chance.randrange(200, (RARE_PRICE_MAX if rare else PRICE_MAX) * 100)
    if currency == "JPY":
        return Decimal(cents)
    if currency == "CZK":
        return Decimal(cents * 20) / 100
    return Decimal(cents) / 100


def _title(chance: random.Random) -> str:
    return chance.choice(words.TITLES).format(**_words(chance))


def _description(chance: random.Random) -> str:
    sentences = chance.sample(words.SENTENCES, chance.randrange(2, 6))
    filled = []
    for sentence in sentences:
        chosen = _words(chance)
        lower = {name: word.lower() for name, word in chosen.items()}
        filled.append(sentence.format(**(lower | {"place": chosen["place"]})))
    return " ".join(filled)


def _words(chance: random.Random) -> dict[str, str]:
    noun, noun2 = chance.sample(words.NOUNS, 2)
    adjective, place = chance.choice(words.ADJECTIVES), chance.choice(words.PLACES)
    return {"adjective": adjective, "noun": noun, "noun2": noun2, "place": place}


def _book(number: int, chance: random.Random) -> Book:
    currency = chance.choice(CURRENCIES)
    amount = _amount(chance, currency)
    first, last = chance.choice(words.AUTHORS_FIRST), chance.choice(words.AUTHORS_LAST)
    # The first books use each category once, so that none is empty. Later ones prefer the earlier
    # categories, so some categories have many pages and others one.
    count = len(words.CATEGORIES)
    place = number - 1 if number <= count else int(count * chance.random() ** 1.5)
    return Book(
        number=number,
        title=_title(chance),
        author=f"{first} {last}",
        category=words.CATEGORIES[place],
        amount=amount.quantize(Decimal("0.01")),
        currency=currency,
        price=chance.choice(FORMATS[currency])(amount),
        stock=0 if chance.randrange(OUT_OF_STOCK_ONE_IN) == 0 else chance.randrange(1, STOCK_MAX),
        rating=chance.randrange(1, len(words.RATINGS) + 1),
        upc=f"{chance.getrandbits(64):016x}",
        description=_description(chance),
    )


def broken(seed: int, count: int, share: float) -> Mapping[int, str]:
    """Choose the books with a broken template; return number to fault."""
    chance = random.Random(f"broken {seed}")
    numbers = chance.sample(range(1, count + 1), round(count * share))
    return {number: BREAKAGES[at % len(BREAKAGES)] for at, number in enumerate(sorted(numbers))}


@functools.lru_cache(maxsize=4)
def make(seed: int, count: int) -> tuple[Book, ...]:
    """Return the books of a seed, numbered from 1."""
    chance = random.Random(seed)
    return tuple(_book(number, chance) for number in range(1, count + 1))
