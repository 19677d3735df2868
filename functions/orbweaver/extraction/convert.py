"""Convert raw values to a field's type, or raise with the reason why a value does not fit.

Numbers and booleans in JSON-LD keep their type. All other values are texts with single spaces,
except HTML.

A text must contain exactly one number: "was 50, now 40" is ambiguous. Words and units around the
number are ignored ("12 pieces"). A minus must be directly before the number or before its currency.

Dates and times must have one of a strict list of formats, so no number is guessed to be the day.
For other dates, a field needs the key `format` of Python's `strptime`: `%d.%m.%Y`. A date is the
local date in the text: time and zone do not change it. Source:
https://docs.python.org/3/library/datetime.html#strftime-and-strptime-format-codes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from typing import assert_never

from orbweaver.extraction import currencies
from orbweaver.model.item import Scalar
from orbweaver.model.item_rules import OBJECTS, VALUE_CHARS_MAX, Field, ValueKind, ValueSource
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize
from orbweaver.model.value import value_class

SHOWN_CHARS_MAX = 80
INTEGER_MAX = 2**63
# Words for booleans, in upper or lower case. For other texts of shops ("In stock"), a rule needs
# the field's `values`.
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
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
CHARS_MAX = 100
FORMAT_CHARS_MAX = 60

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMES = {name: at for names in (_MONTHS, _FULL) for at, name in enumerate(names, 1)}
_NAMES["sept"] = 9
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_NAMED = re.compile(
    rf"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
    rf"(?:{_DAY}\s+(?:of\s+)?(?P<month>{_NAME})\.?,?\s+(?P<year>\d{{4}})"
    rf"|(?P<month2>{_NAME})\.?\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year2>\d{{4}}))",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})(?=\D|$)")
_ISO = re.compile(r"\d{4}-(?:\d\d|W\d\d)|\d{8}(?:T|\Z)", re.ASCII)
# RFC 2822. A named time zone is accepted only if the standard gives it an offset.
_RFC = re.compile(
    r"(?:[a-z]{3},\s?)?\d{1,2} [a-z]{3} \d{4} \d\d:\d\d(?::\d\d)?"
    r"(?: (?:[+-]\d{4}|GMT|UTC?|[ECMP][SD]T))?",
    re.IGNORECASE | re.ASCII,
)
# It is unknown which number of `03/04/2026` is the day, so such dates need a format.
_AMBIGUOUS = re.compile(r"\d{1,4}[-/.]\s?\d{1,2}[-/.]\s?\d{1,4}")
# Directives that are allowed after % in a format.
_DIRECTIVES = frozenset("aAbBdfHIjmMpSyYzZ%")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_EXAMPLE = datetime(2026, 11, 23, 14, 5, 6, tzinfo=UTC)


class UnfitValue(ValueError):
    """A value does not fit its field's type. The message contains the value."""


# Sources of data, not of texts for people.
_DATA = OBJECTS | {ValueSource.JSON}
# A decimal number as in JSON-LD.
_DATA_NUMBER = re.compile(r"\d+\.\d+")


@value_class
class Base:
    """Base URL of relative references, and the parameters to remove from URLs."""

    url: str | None = None
    tracking: frozenset[str] = TRACKING_PARAMETERS


NOWHERE = Base()


@value_class
class ConvertedValue:
    """A value of its field's type. A price also has a currency."""

    value: Scalar
    currency: str | None = None


def shown(raw: object) -> str:
    """Shorten a raw value for a problem message."""
    text = raw if isinstance(raw, str) else str(raw)
    line = " ".join(text[: SHOWN_CHARS_MAX * 4].split())
    return repr(line if len(line) <= SHOWN_CHARS_MAX else f"{line[: SHOWN_CHARS_MAX - 1]}…")


def read(
    field: Field, raw: Scalar, base: Base = NOWHERE, currency: str | None = None
) -> ConvertedValue:
    """Convert a raw value to the field's type. Raises UnfitValue.

    `currency` is the currency that the page states for the value.
    """
    # `values` of the field maps whole texts to values. A text that it does not contain is not
    # changed.
    raw = next((value for text, value in field.values if raw == text), raw)
    try:
        if field.type is ValueKind.PRICE:
            # The page states `currency` in the same object as the value.
            return _price(field, raw, currency)
        return ConvertedValue(value=_scalar(field, raw, base))
    except (NotNumberError, NotDateError) as error:
        article = "an" if field.type is ValueKind.INTEGER else "a"
        raise UnfitValue(f"not {article} {field.type}: {shown(raw)} ({error})") from error


def _scalar(field: Field, raw: Scalar, base: Base) -> Scalar:
    found: Scalar
    match field.type:
        case ValueKind.STRING:
            found = _string(field, raw)
        case ValueKind.INTEGER:
            found = _integer(field, raw)
        case ValueKind.NUMBER | ValueKind.PRICE:
            found = float(_decimal(field, raw, "."))
        case ValueKind.DATE:
            found = moment_in(_text(raw), field.format).date().isoformat()
        case ValueKind.DATETIME:
            found = moment_ms(moment_in(_text(raw), field.format))
        case ValueKind.URL:
            found = _url(raw, base)
        case ValueKind.BOOLEAN:
            found = _boolean(raw)
        case _:
            assert_never(field.type)
    return found


def _text(raw: Scalar) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return raw if isinstance(raw, str) else str(raw)


def _string(field: Field, raw: Scalar) -> str:
    text = _text(raw)
    if field.cut is not None:
        return text[: field.cut].rstrip()
    if len(text) > VALUE_CHARS_MAX:
        raise UnfitValue(
            f"longer than {VALUE_CHARS_MAX:,} characters: {shown(text)} (cut says how many)"
        )
    return text


def _decimal(field: Field, raw: Scalar, points: str) -> Decimal:
    if isinstance(raw, bool):
        raise NotNumberError("true or false")
    if isinstance(raw, int | float):
        if isinstance(raw, float) and not math.isfinite(raw):
            raise NotNumberError("no finite number")
        return Decimal(repr(raw)) if abs(raw) < 10**DIGITS_MAX else _raise_too_many_digits()
    return number_in(_text(raw)[:VALUE_CHARS_MAX], decimal=field.decimal, points=points)


def _raise_too_many_digits() -> Decimal:
    raise NotNumberError("too many digits")


def _integer(field: Field, raw: Scalar) -> int:
    value = _decimal(field, raw, "")
    if value != value.to_integral_value():
        raise NotNumberError("not a whole number")
    if not -INTEGER_MAX <= value < INTEGER_MAX:
        raise NotNumberError("more than 64 bits")
    return int(value)


def _price(field: Field, raw: Scalar, beside: str | None) -> ConvertedValue:
    known = None if beside is None else currencies.code_of(beside)
    if not isinstance(raw, str):
        value, found = _decimal(field, raw, "."), currencies.Currency()
    else:
        text = plain(raw[:VALUE_CHARS_MAX])
        number = the_number(text)
        check_price(text, number.end())
        try:
            found = currencies.currency_near(text, number.start(), number.end())
        except currencies.TwoCurrenciesError as error:
            raise UnfitValue(f"not a price: {shown(raw)} (two currencies: {error})") from error
        code = found.code or known or field.currency
        points = ".," if code in currencies.THOUSANDTHS else ""
        decimal = field.decimal
        if decimal is None and field.source in _DATA and _DATA_NUMBER.fullmatch(text):
            decimal = "."  # in data, a point is always the decimal mark (schema.org/price)
        value = value_of(number[0], decimal=decimal, points=points)
        value = -value if is_negative(text, number.start()) else value
    try:
        digits = digits_of(value)
    except InvalidOperation as error:
        raise NotNumberError("too many digits") from error
    return ConvertedValue(
        value=digits, currency=found.code or known or field.currency or found.guess
    )


def _url(raw: Scalar, base: Base) -> str:
    text = _text(raw)
    # The URL becomes absolute and canonical, like a link. A URL with another scheme than http or
    # https (`mailto:`) does not fit.
    try:
        return canonicalize(text, base.url, tracking=base.tracking)
    except ValueError as error:
        raise UnfitValue(f"not a URL of the web: {shown(text)} ({error})") from error


def _boolean(raw: Scalar) -> bool:
    if isinstance(raw, bool):
        return raw
    known = _BOOLEANS.get(_text(raw).strip().lower())
    if known is None:
        raise UnfitValue(f"not true or false: {shown(raw)} (say in values what it means)")
    return known


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


class NotDateError(ValueError):
    """A text has no known date format. The message contains the reason and a fix."""


def moment_in(text: str, form: str | None) -> datetime:
    """Parse a date with an optional time and zone. Raises NotDateError.

    `form` is the rule's format for `strptime`. None: try the formats of this module.
    """
    text = " ".join(text.split())
    if not text or len(text) > CHARS_MAX:
        raise NotDateError("too long" if text else "empty")
    if form is not None:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the zone is in the text or absent
        except (ValueError, OverflowError) as error:
            raise NotDateError(f"not like {form!r}") from error
    try:
        found = _try_formats(text)
    except (ValueError, OverflowError) as error:
        raise NotDateError("there is no such day or time") from error
    if found is None:
        why = "day or month first? Give a format" if _AMBIGUOUS.search(text) else "give a format"
        raise NotDateError(why)
    return found


def moment_ms(moment: datetime) -> int:
    """Return ms since the epoch. A time without a zone is UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def problem_of_format(form: str) -> str | None:
    """Return the reason why a format is invalid, or None."""
    shown = ascii(form[:FORMAT_CHARS_MAX])
    fix = 'give one like "%d.%m.%Y"'
    if not 1 <= len(form) <= FORMAT_CHARS_MAX:
        return f"{shown} has {len(form):,} characters: {fix}"
    given = set(_DIRECTIVE.findall(form))
    if not given <= _DIRECTIVES:
        wrong = min(given - _DIRECTIVES)
        return f"{shown} holds %{ascii(wrong)[1:-1]}, which is no part of a date: {fix}"
    if not (given & {"y", "Y"} and ("j" in given or ("d" in given and given & {"m", "b", "B"}))):
        return f"{shown} does not say day, month and year: {fix}"
    try:
        datetime.strptime(_EXAMPLE.strftime(form), form)  # noqa: DTZ007 - only tests the format
    except (ValueError, re.error):
        return f"{shown} cannot be read back: {fix}"
    return None


def _try_formats(text: str) -> datetime | None:
    """Try each known format. Raises ValueError if a format matches and the date does not exist."""
    # English month names: `3 November 2026`, `Nov 3, 2026`, `Tuesday, 3rd November 2026`.
    named = _NAMED.fullmatch(text)
    if named:
        day, month, year = (named[one] or named[f"{one}2"] for one in ("day", "month", "year"))
        return datetime(int(year), _NAMES[month.lower()], int(day))  # noqa: DTZ001 - a local date
    # Year first: `2026/11/03`, `2026.11.03`, optionally with a time.
    first = _YEAR_FIRST.match(text)
    if first:
        year, _, month, day = first.groups()
        text = f"{year}-{int(month):02}-{int(day):02}{text[first.end() :]}"
    # ISO 8601, then RFC 2822 (as in HTTP and RSS).
    if _ISO.match(text):
        return datetime.fromisoformat(text)
    return parsedate_to_datetime(text) if _RFC.fullmatch(text) else None
