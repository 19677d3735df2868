"""Cost of redaction on texts made of addresses and numbers: linear, with a limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orbweaver.parsing.pii_redaction import JUDGED_MAX, KINDS, LEFT_OUT, redact_bytes
from tests.costs import LINEAR, slope, within

BYTES = 5_000_000
REPEATED = (
    *(b"tel:", b"tel:1", b"fax:1 ", b"wa.me/12345 ", b"tel:&#49;", b"sms:+49 30 1234567\n"),
    *(b"030 1234567\n", b"0171 ", b"1-", b"1.2.3.4.5.6 ", b"+49", b"(", b"Tel. 123456 "),
    *(b"a@b.de ", b"a@b.png ", b"a@", b"a.", b"@", b"%25", b"%40", b"&#64;", b"&#46;", b"64"),
    "\u65e5@\u65e5.\u65e5\u672c ".encode(),
)


@pytest.mark.thorough
@pytest.mark.parametrize("words", REPEATED)
def test_redaction_of_hostile_text_takes_linear_time(words: bytes) -> None:
    """5 MB take less than 1.5 seconds."""

    def made(size: int) -> Callable[[], bytes]:
        text = words * (size // len(words))
        return lambda: redact_bytes(text, KINDS)

    redact_bytes(words * 10, KINDS)  # compiles the patterns once
    assert within(1.5, made(BYTES))
    assert slope(made, [BYTES // 16, BYTES // 8], turns=2) < LINEAR


@pytest.mark.thorough
@pytest.mark.parametrize("words", [b"a@b.de ", b"tel:12345 ", b"030 1234567\n", b"a@b.png "])
def test_text_behind_too_many_matches_is_removed(words: bytes) -> None:
    most = redact_bytes(words * JUDGED_MAX, KINDS)
    assert LEFT_OUT not in most
    more = redact_bytes(words * JUDGED_MAX + words + b"jo@example.com +49 30 1234567", KINDS)
    assert more.endswith(LEFT_OUT)
    assert b"jo@" not in more
    assert b"1234567" not in more
    assert redact_bytes(more, KINDS) == more


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (b'<a href="TEL:+49-30-1234567">', b'<a href="TEL:[phone]">'),
        (b"sms://123;body", b"sms://[phone]"),
        (b"https://WA.me/4930123", b"https://WA.me/[phone]"),
        ("tel:030\u00a0123".encode(), b"tel:[phone]"),
        (b"tel:&#49;&#50;&#51;", b"tel:[phone]"),
        (b"hotel:1234", b"hotel:1234"),
        (b"tel:ab", b"tel:ab"),
        (b"fax:1 2", b"fax:1 2"),
    ],
)
def test_references_with_escapes_and_spaces_are_redacted(text: bytes, redacted: bytes) -> None:
    assert redact_bytes(text, KINDS) == redacted
