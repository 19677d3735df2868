"""Texts and numbers for people. Content of pages must not control the terminal."""

from __future__ import annotations

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
    ("seconds", "shown"),
    [
        (-3, "0:00"),
        (0.4, "0:00"),
        (7, "0:07"),
        (725, "12:05"),
        (3_723, "1:02:03"),
        (183_600, "2 d 03:00"),
    ],
)
def test_elapsed_time_reads_like_a_clock(seconds: float, shown: str) -> None:
    assert text.clock(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "90 seconds"),
        (5_400, "90 minutes"),
        (604_800, "7 days"),
    ],
)
def test_duration_setting_uses_largest_whole_unit(seconds: int, shown: str) -> None:
    assert text.span(seconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (2_500_000, "2.5 MB"), (3 * 10**13, "30.0 TB")],
)
def test_sizes_use_decimal_units(number: int, shown: str) -> None:
    assert text.size(number) == shown


def test_small_rate_has_decimal_and_long_text_ellipsis() -> None:
    assert [text.rate(value) for value in (0, 9.96, 99.94, 1_234.5)] == [
        "0.0",
        "10.0",
        "99.9",
        "1,234",
    ]
    assert text.cut("abcdef", 4) == "abc…"
    assert text.cut("abc", 4) == "abc"


def test_table_aligns_numbers_right_without_trailing_spaces() -> None:
    rows = [("outcome", "pages"), ("fetched", "1,000"), ("x", "1")]
    assert text.table(rows, right=(1,)) == ["outcome  pages", "fetched  1,000", "x            1"]
    assert text.table([]) == []
