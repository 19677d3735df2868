"""Soft 404s and pages that repeat."""

from __future__ import annotations

import pytest

from orbweaver.parsing.duplicates import PAGES_MAX, REPEATS_MAX, Repeats
from orbweaver.parsing.page import parse
from orbweaver.parsing.soft_404 import TEXT_CHARS_MAX, is_missing


def missing(title: str, text: str = "x") -> bool:
    """Whether a page with this title is none."""
    html = f"<title>{title}</title><p>{text}</p>"
    return is_missing(parse(html.encode(), "https://example.com/", "text/html; charset=utf-8"))


@pytest.mark.parametrize(
    "title",
    [
        "404",
        "404 Not Found",
        "Error 404",
        "HTTP 404 - Shop",
        "404 - Page not found",
        "404 | This page could not be found",
        "404 Error",
        "Shop: 404 page",
        "Page Not Found | Example",
        "The page can't be found",
        "The page can\u2019t be found",
        "This page doesn't exist",
        "File not found",
        "Not Found",
        "Seite nicht gefunden",
        "Die Seite wurde nicht gefunden",
        "Page introuvable",
        "Page non trouvée",
        "Página no encontrada",
        "Página não encontrada",
        "Pagina non trovata",
        "Pagina niet gevonden",
        "Sidan kunde inte hittas",
        "Siden blev ikke fundet",
        "Sivua ei löydy",
        "Nie znaleziono strony",
        "Strona nie istnieje",
        "Stránka nenalezena",
        "Страница не найдена",
        "Sayfa bulunamad\u0131",
        "页面不存在",
        "找不到页面",
        "ページが見つかりません",
        "페이지를 찾을 수 없습니다",
    ],
)
def test_titles_that_say_there_is_no_page(title: str) -> None:
    """In the languages that most pages are in (case 73)."""
    assert missing(title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Example",
        "Peugeot 404",
        "Peugeot 404 Coupé for sale",
        "Area code 404",
        "Room 404, Building 2",
        "Lost and found",
        "Founders",
        "1404 in poetry",
        "Found: not what you think",
        "Pages found in 2024",
    ],
)
def test_titles_that_only_look_like_it(title: str) -> None:
    """A number or a word alone says nothing."""
    assert not missing(title)


def test_a_page_with_much_to_say_is_one() -> None:
    """An article about the status has more text than a page that has it."""
    assert missing("404 Not Found", "x" * TEXT_CHARS_MAX)
    assert not missing("404 Not Found - Encyclopedia", "x" * (TEXT_CHARS_MAX + 1))


def test_a_content_may_repeat_for_a_while() -> None:
    """The same body, on one host of one crawl, is followed so many times (case 76)."""
    repeats = Repeats()
    assert not any(repeats.beyond("c", "h", b"x") for _ in range(REPEATS_MAX))
    assert repeats.beyond("c", "h", b"x")
    assert not repeats.beyond("c", "h", b"y")
    assert not repeats.beyond("c", "g", b"x")
    assert not repeats.beyond("d", "h", b"x")


def test_what_is_remembered_of_contents_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contents that were not met for the longest are forgotten."""
    assert PAGES_MAX < 100_000
    monkeypatch.setattr("orbweaver.parsing.duplicates.PAGES_MAX", 3)
    monkeypatch.setattr("orbweaver.parsing.duplicates.REPEATS_MAX", 1)
    repeats = Repeats()
    for body in (b"a", b"b", b"a", b"c", b"d"):
        repeats.beyond("c", "h", body)
    assert repeats.beyond("c", "h", b"a")
    assert not repeats.beyond("c", "h", b"b")
