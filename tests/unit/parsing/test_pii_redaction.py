"""Email addresses and phone numbers that are redacted, and similar text that is not."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from orbweaver.parsing.pii_redaction import KINDS, redact, redact_bytes
from tests.costs import LINEAR, slope

EMAIL, PHONE = "[email]", "[phone]"
ADDRESSES = [
    ("write to jo.b+c@example.com.", f"write to {EMAIL}."),
    ("<a href='mailto:x_y@a-b.co.uk'>x_y@a-b.co.uk</a>", f"<a href='mailto:{EMAIL}'>{EMAIL}</a>"),
    ("mailto:jo@example.com?subject=x", f"mailto:{EMAIL}?subject=x"),
    ("jo&#64;example.com", EMAIL),
    ("jo&#x40;example&#x2e;com", EMAIL),
    ("&#106;&#111;&#64;&#101;&#120;&#46;&#99;&#111;&#109;", EMAIL),
    ("jo&commat;example&period;org", EMAIL),
    ("mailto:jo%40example.com", f"mailto:{EMAIL}"),
    ("?to=%6a%6f%40example%2ecom", f"?to={EMAIL}"),
    ("jo%2540example.com", EMAIL),
    (r'"email":"jo\u0040example.com"', f'"email":"{EMAIL}"'),
    ("jörg@müller.de", EMAIL),
    ("jo@xn--mller-kva.de", EMAIL),
    ("jo@пример.рф", EMAIL),
    ("用户@例子.中国", EMAIL),
    ("連絡jo@example.comです", f"連絡{EMAIL}です"),
    ("<p>JO@EXAMPLE.COM</p>", f"<p>{EMAIL}</p>"),
    ("a@b.com,c@d.org", f"{EMAIL},{EMAIL}"),
    ("jo&#64a.com@2x.png", EMAIL),
]
PHONES = [
    *("+49 30 123456", "+49 (0)30 123456-78", "+1-800-555-0199", "+1 (212) 555-0100"),
    *("+44 20 7946 0958", "+33 1 23 45 67 89", "+358 9 1234567", "+4930123456"),
    *("+49&nbsp;30&nbsp;123456", "&#43;49 30 123456", "+49\u201330\u2013123456"),
    *("+&#52;&#57; 30 123456", "0049 30 1234567", "(212) 555-0100", "212-555-0100"),
    *("212.555.0100", "1-800-555-0199", "030 1234567", "030/1234567", "(030) 123 45 67"),
    *("020 7946 0958", "01 23 45 67 89", "01.23.45.67.89", "03-1234-5678", "(11) 91234-5678"),
    "138 1234 5678",
]
SAID = [
    ("Tel.: 912 345 678", f"Tel.: {PHONE}"),
    ("Phone: 12345678", f"Phone: {PHONE}"),
    ("Téléphone: 12 34 56 78", f"Téléphone: {PHONE}"),
    ('<a href="tel:+4930123456">call</a>', f'<a href="tel:{PHONE}">call</a>'),
    ('<a href="tel:030%20123">call</a>', f'<a href="tel:{PHONE}">call</a>'),
    ("tel:030 1234567 or not", f"tel:{PHONE} or not"),
    ("sms:+4930123456", f"sms:{PHONE}"),
    ("https://wa.me/4917012345678", f"https://wa.me/{PHONE}"),
]
NEITHER = [
    *("logo@2x.png", "react@18.2.0", "@scope/package", "a@b", "jo@localhost", "@someone"),
    *("2024-01-02", "01.02.2024", "1/2/24", "01/02/2024 10:30", "2024-01-02T10:00:00+01:00"),
    *("05-13-2024 10", "01-02-2024 10", "15:12:02.020.001230", "00:11:22:33"),
    *("1999-2004", "2019 2020 2021", "(2020) 1234-5678", "20240102030405"),
    *("978-0-306-40615-7", "0-306-40615-2", "ISSN 0378-5955", "0 12345 67890 5", "0123456789012"),
    *("$1,234,567.00", "1.234.567,89", "12 345 678 EUR", "10,000,000", "123 456 789"),
    *("192.168.100.200", "012.004.002.000", "127.0.0.1:8080", "2001:0db8:85a3"),
    *("v10.0.19041.1234", "1.2.3-4.5.6", "01.23.4567", "3.14159265358979", "0.013671875"),
    *("01234-5678", "012 013 023 123", "01 02 03 04 05", "0 1 2 3 4 5 6 7 8 9", "(000000-999999)"),
    *("1234567890", "id=2125550100", "/p/212-555-0100/", "?a=030-1234567", "img-030-1234567.jpg"),
    *("5 @ 3.20", "212-555-0100px", "000-0000", "+0100 20240102", "tel:none", "Phone 2024 2025"),
    *(
        "iPhone 15 128 GB",
        "0012 0345",
        "0001 2345 6789 0123",
        "08:01 60662705",
        "a+12345678",
        "+123456",
    ),
]


@pytest.mark.parametrize(("text", "redacted"), ADDRESSES)
def test_email_addresses_are_redacted(text: str, redacted: str) -> None:
    assert redact(text, ["email"]) == redacted
    assert redact(text, ["phone"]) == text


@pytest.mark.parametrize("number", PHONES)
@pytest.mark.parametrize("around", ["{}", "<td>{}</td>", "call {}.", 'title="{}"', "({}),"])
def test_phone_numbers_are_redacted_without_surroundings(number: str, around: str) -> None:
    if (around, number[0]) != ("({}),", "("):
        assert redact(around.format(number), ["phone"]) == around.format(PHONE)
        assert redact(around.format(number), ["email"]) == around.format(number)


@pytest.mark.parametrize(("text", "redacted"), SAID)
def test_text_marked_as_phone_number_is_redacted(text: str, redacted: str) -> None:
    assert redact(text, ["phone"]) == redacted


@pytest.mark.parametrize("text", NEITHER)
def test_dates_prices_and_versions_are_not_redacted(text: str) -> None:
    for around in ("{}", "<td>{}</td>", "see {} there"):
        assert redact(around.format(text), KINDS) == around.format(text)


def test_kinds_not_requested_are_not_redacted() -> None:
    assert redact("jo@example.com +49 30 123456", ()) == "jo@example.com +49 30 123456"


def test_lone_surrogates_are_kept() -> None:
    assert redact("\ud800 jo@example.com", KINDS) == f"\ud800 {EMAIL}"


HOSTILE = [b"a@", b"a@b.", b"a@b.co ", b"1 ", b"+1", b"&#64;", b"%40", b"tel:123 ", b"030 1234567,"]


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_redaction_takes_linear_time(piece: bytes) -> None:
    def made(size: int) -> Callable[[], object]:
        return functools.partial(redact_bytes, piece * (size // len(piece)), KINDS)

    assert slope(made, (100_000, 200_000, 400_000)) < LINEAR
