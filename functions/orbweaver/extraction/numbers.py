"""Parse numbers and prices as people write them.

A text must contain exactly one number: "was 50, now 40" is ambiguous. Words and units around the
number are ignored ("12 pieces"). A minus must be directly before the number or before its currency.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import ROUND_HALF_EVEN, Decimal

DIGITS_MAX = 60
# Limits of a DECIMAL column: digits before the point, digits after it.
WHOLE_DIGITS_MAX, PLACES_MAX = 14, 4

_SPACES = dict.fromkeys(map(ord, "\t\n\r\f\v\N{NO-BREAK SPACE}\u2007\u2008\u2009\u200a\u202f"), " ")
_APOSTROPHES = dict.fromkeys(map(ord, "\N{RIGHT SINGLE QUOTATION MARK}\u02bc\u066c\u00b4`"), "'")
_PLAIN = _SPACES | _APOSTROPHES | {0x066B: "."}
_NUMBER = re.compile(
    r"\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,]\d+)?(?!\d|[.,]\d)|\d+(?:[.,]\d+)*|(?<!\d)[.,]\d+"
)
# Words that multiply the number before them: 万, lakh, million. Most single letters are left out,
# because they can be units.
_MAGNITUDE = re.compile(
    r"""[ ]?(?: [万萬억億亿兆만천仟佰百十] | 千(?![克米瓦卡焦赫伏帕])
    | (?<=\d)k(?![\w.²³/]) | (?: kk | mn | mln | mio | mrd | bn | tsd | lakhs? | lacs? | crores?
    | hundred | thousand | million(?:s|en|es|i)? | milliard(?:s|en)? | billions? | trillions?
    | тыс | млн | млрд | ribu | juta | jt | triệu | nghìn | ngàn )\b )""",
    re.VERBOSE | re.IGNORECASE,
)
# Letters that multiply a price before them. After a price, a single letter is never a unit.
_PRICE_MAGNITUDE = re.compile(r" ?(?:[mbkM]|mil|mill|rb|cr|tỷ|хил)(?!\w)", re.IGNORECASE)
# Digits grouped by thousands. Groups have three digits, and groups before the last may have two
# (`1,23,456`).
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+|\d{1,2}(?:[.,]\d{2})+[.,]\d{3}")
_MINUS = re.compile(
    r"(?<![\w)])[-\N{MINUS SIGN}][^\w\s]{0,3}\Z|(?<![\w)])[-\N{MINUS SIGN}]\w{0,3}\$?\Z"
)


class NotNumberError(ValueError):
    """A text contains no number or several. The message contains the reason."""


def plain(text: str) -> str:
    """Convert digits of any script to 0 to 9, and unify spaces and apostrophes."""
    text = text.translate(_PLAIN)
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def the_number(text: str) -> re.Match[str]:
    """Find the only number in a text that `plain` has normalized. Raises NotNumberError."""
    numbers = [*_NUMBER.finditer(text)]
    if not numbers:
        raise NotNumberError("no digit in it")
    if len(numbers) > 1:
        raise NotNumberError("more than one number")
    (number,) = numbers
    if _MAGNITUDE.match(text, number.end()):
        raise NotNumberError("a word after it multiplies it")
    if len(number[0]) > DIGITS_MAX:
        raise NotNumberError("too many digits")
    return number


def check_price(text: str, end: int) -> None:
    """Raise NotNumberError if a letter follows a price at `end` and multiplies it ("5k")."""
    if _PRICE_MAGNITUDE.match(text, end):
        raise NotNumberError("a letter after it multiplies it")


def is_negative(text: str, start: int) -> bool:
    return _MINUS.search(text[max(0, start - 6) : start]) is not None


def value_of(digits: str, *, decimal: str | None, points: str) -> Decimal:
    """Parse digits with separators. `decimal` is the decimal mark, if the rule names it.

    Spaces and apostrophes group thousands. If a number has both points and commas, the last mark is
    decimal. If it has the same mark several times, the mark groups thousands. A single mark is
    ambiguous if exactly three digits follow it, and one to three digits (not just 0) precede it. An
    ambiguous mark is decimal if `points` contains it.
    """
    digits = digits.replace(" ", "").replace("'", "")
    marks = [char for char in digits if char in ".,"]
    if not marks:
        return Decimal(digits)
    last = marks[-1]
    head, _, tail = digits.rpartition(last)
    if decimal is not None:
        is_decimal = last == decimal
    elif len(set(marks)) > 1:
        is_decimal = True
    elif len(marks) > 1:
        is_decimal = False
    else:
        doubtful = len(tail) == 3 and 1 <= len(head) <= 3 and head != "0"  # noqa: PLR2004 - thousands
        # For a price, `points` is empty, because prices do not have three decimals: `1,299` and
        # `1.299` are 1299. Currencies with 1,000 subunits have three decimals, so `points` has both
        # marks. For a number, `points` has only the point. For an integer, it is empty.
        is_decimal = last in points if doubtful else True
    whole, places = (head, tail) if is_decimal else (digits, "")
    if is_decimal and last in whole:
        raise NotNumberError("more than one decimal point")
    if any(char in ".," for char in whole):
        if not _GROUPED.fullmatch(whole) or len({*whole} & {".", ","}) > 1:
            raise NotNumberError("its digits are not grouped by three")
        whole = whole.replace(".", "").replace(",", "")
    return Decimal(f"{whole or '0'}.{places or '0'}" if places else whole)


def number_in(text: str, *, decimal: str | None, points: str = ".") -> Decimal:
    """Parse the only number of a text. Raises NotNumberError. See `value_of` for the parameters."""
    text = plain(text)
    found = the_number(text)
    value = value_of(found[0], decimal=decimal, points=points)
    return -value if is_negative(text, found.start()) else value


def digits_of(value: Decimal) -> str:
    """Format a value for a DECIMAL column. Raises NotNumberError if it does not fit."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise NotNumberError("no finite number")
    if value.adjusted() >= WHOLE_DIGITS_MAX:
        raise NotNumberError(f"more than {WHOLE_DIGITS_MAX} digits before the point")
    if exponent < -PLACES_MAX:
        value = value.quantize(Decimal(1).scaleb(-PLACES_MAX), rounding=ROUND_HALF_EVEN)
        if value.adjusted() >= WHOLE_DIGITS_MAX:
            raise NotNumberError(f"more than {WHOLE_DIGITS_MAX} digits before the point")
    return format(abs(value) if value.is_zero() else value, "f")
