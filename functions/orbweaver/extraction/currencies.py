"""Map currency symbols and codes next to a price to ISO 4217 codes.

Source: ISO 4217 list one (codes, minor units), and symbols as shops write them.
"""

# ruff: noqa: RUF001  # symbols and dashes as shops write them
from __future__ import annotations

import re

from orbweaver.model.value import value_class

_ISO_4217 = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP
BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR
KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK
MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR
SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS
UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
CODES = frozenset(_ISO_4217.split())
# Currencies with 1,000 subunits, whose prices have three decimals.
THOUSANDTHS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})

CERTAIN = {
    "£": "GBP", "€": "EUR", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH",
    "₪": "ILS", "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₡": "CRC", "₲": "PYG",
    "₵": "GHS", "₸": "KZT", "₾": "GEL", "₼": "AZN", "֏": "AMD",
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD",
    "HK$": "HKD", "S$": "SGD", "SG$": "SGD", "NT$": "TWD", "R$": "BRL", "MX$": "MXN",
    "CN¥": "CNY", "JP¥": "JPY", "円": "JPY", "元": "CNY", "원": "KRW",
    "zł": "PLN", "Kč": "CZK", "Ft": "HUF", "lei": "RON", "лв": "BGN", "руб": "RUB", "грн": "UAH",
    "Fr": "CHF", "SFr": "CHF", "euro": "EUR", "euros": "EUR", "Euro": "EUR", "Euros": "EUR",
    "RM": "MYR", "Rp": "IDR",
}  # fmt: skip
# Symbols that several currencies use, with the most likely currency. A code on the page or in the
# rule has priority.
DOUBTFUL: dict[str, str | None] = {
    "$": "USD", "¥": "JPY", "Rs": "INR", "kr": None, "Kr": None,
}  # fmt: skip

_LETTER = r"[^\W\d_]"


def _symbol(one: str) -> str:
    """Return a pattern for a symbol.

    Letters at its beginning or end must not touch other letters.
    """
    before = rf"(?<!{_LETTER})" if one[0].isalpha() and one[0].isascii() else ""
    behind = rf"(?!{_LETTER})" if one[-1].isalpha() and len(one) > 1 else ""
    return before + re.escape(one) + behind


_ORDERED = sorted({*CERTAIN, *DOUBTFUL}, key=len, reverse=True)
_SYMBOLS = "|".join([*map(_symbol, _ORDERED), rf"(?<!{_LETTER})[A-Z]{{3}}(?!{_LETTER})"])
# A code and a symbol can follow each other ("$12 CAD").
_WORD = rf"(?:{_SYMBOLS})\.?"
_BEFORE = re.compile(rf"((?:{_WORD}\s*)+)[-\N{{MINUS SIGN}}]?\s*\Z")
_BEHIND = re.compile(rf"(?:[.,][-–—]+)?\s*((?:{_WORD}\s*)+)")
_EACH = re.compile(_SYMBOLS)
# Maximum distance between a number and its currency.
_NEAR_CHARS = 20


class TwoCurrenciesError(ValueError):
    """A price has two currencies."""


@value_class
class Currency:
    """Currency of a price. `code` is certain, `guess` follows from an ambiguous symbol."""

    code: str | None = None
    guess: str | None = None


def currency_near(text: str, start: int, end: int) -> Currency:
    """Find the currency directly before or after the number at `start` to `end` of a text."""
    before = _BEFORE.search(text[max(0, start - _NEAR_CHARS) : start])
    behind = _BEHIND.match(text[end : end + _NEAR_CHARS])
    words = [word for found in (before, behind) if found for word in _EACH.findall(found[1])]
    codes = {code for word in words if (code := CERTAIN.get(word) or _code(word)) is not None}
    if len(codes) > 1:
        raise TwoCurrenciesError(" and ".join(sorted(codes)))
    guesses = [DOUBTFUL[word] for word in words if word in DOUBTFUL]
    return Currency(code=next(iter(codes), None), guess=guesses[0] if guesses else None)


def code_of(text: str) -> str | None:
    """Parse a text that is only a currency: a code in any case, or a symbol."""
    word = text.strip()
    return _code(word.upper()) or CERTAIN.get(word) or DOUBTFUL.get(word)


def _code(word: str) -> str | None:
    return word if word in CODES else None
