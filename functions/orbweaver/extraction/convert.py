"""Convert raw values to a field's type, or raise with the reason why a value does not fit.

Numbers and booleans in JSON-LD keep their type. All other values are texts with single spaces,
except HTML.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import assert_never

from orbweaver.extraction import currencies, numbers
from orbweaver.extraction.dates import NotDateError, moment_in, moment_ms
from orbweaver.extraction.numbers import NotNumberError
from orbweaver.model.item import Scalar
from orbweaver.model.item_rules import OBJECTS, VALUE_CHARS_MAX, Field, ValueKind
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize

SHOWN_CHARS_MAX = 80
INTEGER_MAX = 2**63
# Words for booleans, in upper or lower case. For other texts of shops ("In stock"), a rule needs
# the field's `values`.
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class UnfitValue(ValueError):
    """A value does not fit its field's type. The message contains the value."""


# A decimal number as in JSON-LD.
_DATA_NUMBER = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Base URL of relative references, and the parameters to remove from URLs."""

    url: str | None = None
    tracking: frozenset[str] = TRACKING_PARAMETERS


NOWHERE = Base()


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return Decimal(repr(raw)) if abs(raw) < 10**numbers.DIGITS_MAX else _raise_too_many_digits()
    return numbers.number_in(_text(raw)[:VALUE_CHARS_MAX], decimal=field.decimal, points=points)


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
        text = numbers.plain(raw[:VALUE_CHARS_MAX])
        number = numbers.the_number(text)
        numbers.check_price(text, number.end())
        try:
            found = currencies.currency_near(text, number.start(), number.end())
        except currencies.TwoCurrenciesError as error:
            raise UnfitValue(f"not a price: {shown(raw)} (two currencies: {error})") from error
        code = found.code or known or field.currency
        points = ".," if code in currencies.THOUSANDTHS else ""
        decimal = field.decimal
        if decimal is None and field.source in OBJECTS and _DATA_NUMBER.fullmatch(text):
            decimal = "."  # in data, a point is always the decimal mark (schema.org/price)
        value = numbers.value_of(number[0], decimal=decimal, points=points)
        value = -value if numbers.is_negative(text, number.start()) else value
    try:
        digits = numbers.digits_of(value)
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
