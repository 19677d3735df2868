"""Texts and numbers for people. Content of pages must not control the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.cli import text


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain", "plain"),
        ("Crème brûlée, 本屋", "Crème brûlée, 本屋"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("two\nlines\r\nand\ta tab", "two lines and a tab"),
        ('{"level":"ERROR"}\nforged', '{"level":"ERROR"} forged'),
        ("bell\x07 nul\x00 del\x7f c1\x85x", "bell nul del c1 x"),
        ("\u202egpj.exe", "gpj.exe"),
        ("half \ud800 pair", "half  pair"),
        ("\x1b unfinished", " unfinished"),
    ],
)
def test_safe_removes_control_characters(dirty: str, clean: str) -> None:
    assert text.clean(dirty) == clean


@given(st.text(st.characters(codec=None)))
def test_safe_text_is_printable_and_stable(raw: str) -> None:
    cleaned = text.clean(raw)
    cleaned.encode()
    assert not any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in cleaned)
    assert text.clean(cleaned) == cleaned


@given(st.text(st.characters(codec=None)))
def test_visible_text_keeps_tabs_and_line_ends_only(raw: str) -> None:
    shown = text.escape_controls(raw)
    assert not text.UNSAFE.search(shown.replace("\t", "").replace("\n", ""))
    assert (shown == raw) == (not text.UNSAFE.search(raw.replace("\t", "").replace("\n", "")))


def test_control_characters_are_escaped_as_in_python() -> None:
    assert (
        text.escape_controls("a\x1b[2J\tb\r\n\x9b\u202e\ud800") == r"a\x1b[2J"
        "\tb"
        r"\r"
        "\n"
        r"\x9b\u202e\ud800"
    )


@pytest.mark.parametrize(
    ("show", "number", "shown"),
    [
        (text.clock, -3, "0:00"),
        (text.clock, 0.4, "0:00"),
        (text.clock, 7, "0:07"),
        (text.clock, 725, "12:05"),
        (text.clock, 3_723, "1:02:03"),
        (text.clock, 183_600, "2 d 03:00"),
        (text.span, 0, "0 seconds"),
        (text.span, 1, "1 second"),
        (text.span, 90, "90 seconds"),
        (text.span, 5_400, "90 minutes"),
        (text.span, 604_800, "7 days"),
        (text.size, 0, "0 B"),
        (text.size, 999, "999 B"),
        (text.size, 1_000, "1.0 kB"),
        (text.size, 2_500_000, "2.5 MB"),
        (text.size, 3 * 10**13, "30.0 TB"),
        (text.rate, 0, "0.0"),
        (text.rate, 9.96, "10.0"),
        (text.rate, 99.94, "99.9"),
        (text.rate, 1_234.5, "1,234"),
    ],
)
def test_number_is_shown_for_people(
    show: Callable[[float], str], number: float, shown: str
) -> None:
    assert show(number) == shown


def test_long_text_ends_with_ellipsis() -> None:
    assert (text.cut("abcdef", 4), text.cut("abc", 4)) == ("abc…", "abc")


def test_table_aligns_numbers_right_without_trailing_spaces() -> None:
    rows = [("outcome", "pages"), ("fetched", "1,000"), ("x", "1")]
    assert text.table(rows, right=(1,)) == ["outcome  pages", "fetched  1,000", "x            1"]
    assert text.table([]) == []
