"""Numbers and prices as people write them.

Rules
- A text holds exactly one number: of "was 50, now 40" none is guessed. Words and units around it
  do not matter ("12 pieces"). A minus stands right before it, or before its currency.
- Spaces and apostrophes between digits group thousands. Where points and commas come both, the
  last kind is the decimal one. One kind, several times, groups thousands.
- One point or comma alone is decimal, unless exactly three digits follow and one to three stand
  before it (not just 0). Then, in a price, it groups: `1,299` and `1.299` are 1299, as prices have
  no three decimals. Currencies with a thousand parts do have them: there it is decimal. In a number
  a comma groups and a point is decimal; in an integer both group. The key `decimal` says which of
  the two is decimal; then the other one groups, and nothing is left to these rules.
- A word that multiplies what stands before it (万, lakh, million) makes the number uncertain.
- Groups are of three digits; in front of such a last one also of two (`1,23,456`).
"""

from __future__ import annotations

import re
import unicodedata
from decimal import ROUND_HALF_EVEN, Decimal

DIGITS_MAX = 60
# What a DECIMAL column holds.
WHOLE_DIGITS_MAX, PLACES_MAX = 14, 4

_SPACES = dict.fromkeys(map(ord, "\t\n\r\f\v\N{NO-BREAK SPACE}\u2007\u2008\u2009\u200a\u202f"), " ")
_APOSTROPHES = dict.fromkeys(map(ord, "\N{RIGHT SINGLE QUOTATION MARK}\u02bc\u066c\u00b4`"), "'")
_PLAIN = _SPACES | _APOSTROPHES | {0x066B: "."}
_NUMBER = re.compile(
    r"\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,]\d+)?(?!\d|[.,]\d)|\d+(?:[.,]\d+)*|(?<!\d)[.,]\d+"
)
# Words that multiply the number before them: 万, lakh, million. A single letter may be a unit.
_MAGNITUDE = re.compile(
    r"""[ ]?(?: [万萬억億亿兆만천仟佰百十] | 千(?![克米瓦卡焦赫伏帕])
    | (?<=\d)k(?![\w.²³/]) | (?: kk | mn | mln | mio | mrd | bn | tsd | lakhs? | lacs? | crores?
    | hundred | thousand | million(?:s|en|es|i)? | milliard(?:s|en)? | billions? | trillions?
    | тыс | млн | млрд | ribu | juta | jt | triệu | nghìn | ngàn )\b )""",
    re.VERBOSE | re.IGNORECASE,
)
# Behind a price a single letter is no unit.
_PRICE_MAGNITUDE = re.compile(r" ?(?:[mbkM]|mil|mill|rb|cr|tỷ|хил)(?!\w)", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+|\d{1,2}(?:[.,]\d{2})+[.,]\d{3}")
_MINUS = re.compile(
    r"(?<![\w)])[-\N{MINUS SIGN}][^\w\s]{0,3}\Z|(?<![\w)])[-\N{MINUS SIGN}]\w{0,3}\$?\Z"
)


class NotNumberError(ValueError):
    """There is no number, or not one alone; the text says which."""


def plain(text: str) -> str:
    """Write digits of any script as 0 to 9, and spaces and apostrophes in one way."""
    text = text.translate(_PLAIN)
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def the_number(text: str) -> re.Match[str]:
    """Find the one number in a text that was made plain; raises NotNumberError."""
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
    """Raise NotNumberError if a letter after a price multiplies it, such as `$5 m`."""
    if _PRICE_MAGNITUDE.match(text, end):
        raise NotNumberError("a letter after it multiplies it")


def is_negative(text: str, start: int) -> bool:
    """Whether a minus stands before the number that starts there."""
    return _MINUS.search(text[max(0, start - 6) : start]) is not None


def value_of(digits: str, *, decimal: str | None, points: str) -> Decimal:
    """Read digits with separators; `points` are those that are decimal where it is in doubt."""
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
    """Read the one number of a text; raises NotNumberError."""
    text = plain(text)
    found = the_number(text)
    value = value_of(found[0], decimal=decimal, points=points)
    return -value if is_negative(text, found.start()) else value


def digits_of(value: Decimal) -> str:
    """Write a decimal as a column of such holds it; raises NotNumberError where it cannot."""
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
