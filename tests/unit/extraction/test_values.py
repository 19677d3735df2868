"""Numbers, prices, dates, URLs and booleans as people and shops write them."""

# ruff: noqa: RUF001  # texts copied from pages
from __future__ import annotations

import pytest

from orbweaver.extraction.convert import Base, UnfitValue, read
from orbweaver.extraction.extract import Field, ValueKind

PRICES = [
    ("£51.77", "51.77", "GBP"),
    ("1.234,50 €", "1234.50", "EUR"),
    ("USD 1,234.50", "1234.50", "USD"),
    ("1 299 kr", "1299", None),
    ("1\N{NO-BREAK SPACE}299,00 Kč", "1299.00", "CZK"),
    ("€1\N{NARROW NO-BREAK SPACE}234,50", "1234.50", "EUR"),
    ("CHF 1’234.50", "1234.50", "CHF"),
    ("¥1,234", "1234", "JPY"),
    ("1,234円", "1234", "JPY"),
    ("US$ 12.30", "12.30", "USD"),
    ("$12 CAD", "12", "CAD"),
    ("12,- €", "12", "EUR"),
    ("12.– Fr.", "12", "CHF"),
    ("Price: £51.77 incl. VAT", "51.77", "GBP"),
    ("Price - £5", "5", "GBP"),
    ("-£5", "-5", "GBP"),
    ("£-5.50", "-5.50", "GBP"),
    ("Rs. 1,23,456.00", "123456.00", "INR"),
    ("٣٤٫٥ €", "34.5", "EUR"),
    ("zł 9,99", "9.99", "PLN"),
    ("12 EUR/kg", "12", "EUR"),
    (".99", "0.99", None),
    # One separator before three digits: thousands in a price, unless the currency has such
    # decimals.
    ("1.299", "1299", None),
    ("1,299 €", "1299", "EUR"),
    ("1.250 KWD", "1.250", "KWD"),
    ("0.125", "0.125", None),
    ("1234.567", "1234.567", None),
    ("1.234.567", "1234567", None),
    ("1234.56789", "1234.5679", None),
    # JSON numbers.
    (12.99, "12.99", None),
    (12, "12", None),
    (0.1 + 0.2, "0.3000", None),
]
PRICE = Field(name="p", type=ValueKind.PRICE)
INTEGER = Field(name="n", type=ValueKind.INTEGER)
NUMBER = Field(name="n", type=ValueKind.NUMBER)
COMMA = Field(name="n", type=ValueKind.NUMBER, decimal=",")
NO_NUMBERS = [
    (PRICE, "call us", "not a price: 'call us' (no digit in it)"),
    (PRICE, "was £50 now £40", "not a price: 'was £50 now £40' (more than one number)"),
    (PRICE, "1.2.3", "not a price: '1.2.3' (its digits are not grouped by three)"),
    (PRICE, "1,29,99", "not a price: '1,29,99' (its digits are not grouped by three)"),
    (PRICE, "£12 €", "not a price: '£12 €' (two currencies: EUR and GBP)"),
    (PRICE, "9" * 15, f"not a price: '{'9' * 15}' (more than 14 digits before the point)"),
    (PRICE, "9" * 61, f"not a price: '{'9' * 61}' (too many digits)"),
    (PRICE, 1e80, "not a price: '1e+80' (too many digits)"),
    (PRICE, float("nan"), "not a price: 'nan' (no finite number)"),
    (PRICE, True, "not a price: 'True' (true or false)"),
    (PRICE, "", "not a price: '' (no digit in it)"),
    (INTEGER, "12.5", "not an integer: '12.5' (not a whole number)"),
    (INTEGER, "3 of 5", "not an integer: '3 of 5' (more than one number)"),
    (INTEGER, 2**63, f"not an integer: '{2**63}' (more than 64 bits)"),
    (NUMBER, "1e5", "not a number: '1e5' (more than one number)"),
    (COMMA, "1,2,3", "not a number: '1,2,3' (more than one decimal point)"),
    (COMMA, "12.5", "not a number: '12.5' (its digits are not grouped by three)"),
]


@pytest.mark.parametrize(("raw", "digits", "currency"), PRICES)
def test_price_is_read_with_currency(raw: str | float, digits: str, currency: str | None) -> None:
    found = read(PRICE, raw)
    assert (found.value, found.currency) == (digits, currency)


@pytest.mark.parametrize(("field", "raw", "said"), NO_NUMBERS)
def test_invalid_number_is_rejected_with_reason(field: Field, raw: str | float, said: str) -> None:
    with pytest.raises(UnfitValue) as refused:
        read(field, raw)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("raw", "beside", "own", "currency"),
    [
        ("£5", "EUR", "SEK", "GBP"),
        ("$5", "cad", "SEK", "CAD"),
        ("$5", None, "AUD", "AUD"),
        ("$5", None, None, "USD"),
        ("5 kr", None, "SEK", "SEK"),
        ("5", "€", None, "EUR"),
        ("5", "nothing", "NOK", "NOK"),
        ("5", None, None, None),
    ],
)
def test_currency_is_chosen_by_precedence(
    raw: str, beside: str | None, own: str | None, currency: str | None
) -> None:
    """Order: a clear symbol, a currency given with it, the field's own, the usual meaning."""
    field = Field(name="p", type=ValueKind.PRICE, currency=own)
    assert read(field, raw, currency=beside).currency == currency


@pytest.mark.parametrize(
    ("kind", "raw", "decimal", "value"),
    [
        (ValueKind.NUMBER, "1.234", None, 1.234),
        (ValueKind.NUMBER, "1,234", None, 1234.0),
        (ValueKind.NUMBER, "1,234", ",", 1.234),
        (ValueKind.NUMBER, "1.234", ",", 1234.0),
        (ValueKind.NUMBER, "1 234,5", None, 1234.5),
        (ValueKind.NUMBER, "4,5 of them", None, 4.5),
        (ValueKind.NUMBER, "−3 °C", None, -3.0),
        (ValueKind.INTEGER, "1.234", None, 1234),
        (ValueKind.INTEGER, "In stock (19 available)", None, 19),
        (ValueKind.INTEGER, "12.0", None, 12),
        (ValueKind.INTEGER, 3.0, None, 3),
        (ValueKind.PRICE, "1.299", ".", "1.299"),
    ],
)
def test_number_is_read(
    kind: ValueKind, raw: str | float, decimal: str | None, value: object
) -> None:
    assert read(Field(name="n", type=kind, decimal=decimal), raw).value == value


DATES = [
    ("2026-11-03", "2026-11-03", 1_793_664_000_000),
    ("2026-11-03T10:00:00+02:00", "2026-11-03", 1_793_692_800_000),
    ("2026-11-03T10:00:00.250Z", "2026-11-03", 1_793_700_000_250),
    ("2026-11-03 10:00", "2026-11-03", 1_793_700_000_000),
    ("20261103", "2026-11-03", 1_793_664_000_000),
    ("2026/11/03", "2026-11-03", 1_793_664_000_000),
    ("2026.11.3 10:00", "2026-11-03", 1_793_700_000_000),
    ("3 November 2026", "2026-11-03", 1_793_664_000_000),
    ("3. Nov 2026", "2026-11-03", 1_793_664_000_000),
    ("Nov 3, 2026", "2026-11-03", 1_793_664_000_000),
    ("Tuesday, 3rd of November 2026", "2026-11-03", 1_793_664_000_000),
    ("Tue, 03 Nov 2026 10:00:00 GMT", "2026-11-03", 1_793_700_000_000),
    ("Tue, 3 Nov 2026 10:00 -0500", "2026-11-03", 1_793_718_000_000),
]


@pytest.mark.parametrize(("raw", "day", "at_ms"), DATES)
def test_date_is_read_and_moment_without_zone_is_utc(raw: str, day: str, at_ms: int) -> None:
    assert read(Field(name="d", type=ValueKind.DATE), raw).value == day
    assert read(Field(name="d", type=ValueKind.DATETIME), raw).value == at_ms


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("03/04/2026", "day or month first? Give a format"),
        ("3.4.2026", "day or month first? Give a format"),
        ("25/12/2026", "day or month first? Give a format"),
        ("31 February 2026", "there is no such day or time"),
        ("2026-13-01", "there is no such day or time"),
        ("Tue, 03 Nov 2026 10:00:00 CET", "give a format"),
        ("yesterday", "give a format"),
        ("x" * 101, "too long"),
    ],
)
def test_ambiguous_date_is_rejected(raw: str, why: str) -> None:
    with pytest.raises(UnfitValue, match=rf"^not a date: '.*' \({why.replace('?', '[?]')}\)$"):
        read(Field(name="d", type=ValueKind.DATE), raw)


def test_date_with_format_is_parsed_like_strptime() -> None:
    field = Field(name="d", type=ValueKind.DATE, format="%d/%m/%Y")
    assert read(field, " 03/04/2026").value == "2026-04-03"
    with pytest.raises(UnfitValue, match="not like '%d/%m/%Y'"):
        read(field, "2026-04-03")


@pytest.mark.parametrize(
    ("raw", "value"),
    [("Yes", True), ("0", False), (True, True), (" off ", False), ("In stock", "values")],
)
def test_boolean_is_read_from_words_or_values(raw: str | bool, value: object) -> None:
    field = Field(name="b", type=ValueKind.BOOLEAN)
    if value == "values":
        with pytest.raises(UnfitValue, match="say in values what it means"):
            read(field, raw)
        field = Field(name="b", type=ValueKind.BOOLEAN, values=(("In stock", True),))
        value = True
    assert read(field, raw).value is value


def test_url_is_canonical_and_absolute() -> None:
    field = Field(name="u", type=ValueKind.URL)
    base = Base(url="https://a.example/b/c", tracking=frozenset({"ref"}))
    assert read(field, "../d?ref=x&y=1#z", base).value == "https://a.example/d?y=1"
    for raw in ("mailto:a@b.example", "//[", "javascript:x()"):
        with pytest.raises(UnfitValue, match="not a URL of the web"):
            read(field, raw, base)
    with pytest.raises(UnfitValue, match="not an absolute URL"):
        read(field, "/b")


def test_string_is_read_and_cut_only_on_request() -> None:
    field = Field(name="s")
    assert [read(field, raw).value for raw in ("a", 1.5, 3, True)] == ["a", "1.5", "3", "true"]
    with pytest.raises(UnfitValue, match="longer than 20,000 characters"):
        read(field, "x" * 20_001)
    assert read(field, "x" * 20_000).value == "x" * 20_000
    assert read(Field(name="s", cut=4), "abc def").value == "abc"
