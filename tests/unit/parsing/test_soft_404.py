"""Soft 404s and repeated content."""

from __future__ import annotations

import pytest

from orbweaver.parsing.page import parse
from orbweaver.parsing.soft_404 import TEXT_CHARS_MAX, is_missing
from orbweaver.parsing.text_digest import PAGES_MAX, REPEATS_MAX, Repeats


def missing(title: str, text: str = "x") -> bool:
    html = f"<title>{title}</title><p>{text}</p>"
    return is_missing(parse(html.encode(), "https://example.com/", "text/html; charset=utf-8"))


MISSING = (
    *("404", "404 Not Found", "Error 404", "HTTP 404 - Shop", "404 - Page not found", "404 Error"),
    *("404 | This page could not be found", "Shop: 404 page", "Page Not Found | Example"),
    *("The page can't be found", "The page can\u2019t be found", "This page doesn't exist"),
    *("File not found", "Not Found", "Seite nicht gefunden", "Die Seite wurde nicht gefunden"),
    *("Page introuvable", "Page non trouvée", "Página no encontrada", "Página não encontrada"),
    *("Pagina non trovata", "Pagina niet gevonden", "Sidan kunde inte hittas"),
    *("Siden blev ikke fundet", "Sivua ei löydy", "Nie znaleziono strony", "Strona nie istnieje"),
    *("Stránka nenalezena", "Страница не найдена", "Sayfa bulunamad\u0131", "页面不存在"),
    *("找不到页面", "ページが見つかりません", "페이지를 찾을 수 없습니다"),
)
PRESENT = (
    *("", "Example", "Peugeot 404", "Peugeot 404 Coupé for sale", "Area code 404", "Founders"),
    *("Room 404, Building 2", "Lost and found", "1404 in poetry", "Found: not what you think"),
    "Pages found in 2024",
)


@pytest.mark.parametrize("title", MISSING)
def test_title_of_missing_page_is_recognised(title: str) -> None:
    """The titles cover the most common languages (case 73)."""
    assert missing(title)


@pytest.mark.parametrize("title", PRESENT)
def test_title_with_number_or_word_alone_is_ignored(title: str) -> None:
    assert not missing(title)


def test_long_page_with_404_title_is_kept() -> None:
    assert missing("404 Not Found", "x" * TEXT_CHARS_MAX)
    assert not missing("404 Not Found - Encyclopedia", "x" * (TEXT_CHARS_MAX + 1))


def test_repeats_are_limited_per_host_and_crawl() -> None:
    """Links of equal bodies on a host are followed a limited number of times (case 76)."""
    repeats = Repeats()
    assert not any(repeats.beyond("c", "h", b"x") for _ in range(REPEATS_MAX))
    assert repeats.beyond("c", "h", b"x")
    assert not repeats.beyond("c", "h", b"y")
    assert not repeats.beyond("c", "g", b"x")
    assert not repeats.beyond("d", "h", b"x")


def test_repeats_evicts_least_recently_seen_content(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGES_MAX < 100_000
    monkeypatch.setattr("orbweaver.parsing.text_digest.PAGES_MAX", 3)
    monkeypatch.setattr("orbweaver.parsing.text_digest.REPEATS_MAX", 1)
    repeats = Repeats()
    for body in (b"a", b"b", b"a", b"c", b"d"):
        repeats.beyond("c", "h", body)
    assert repeats.beyond("c", "h", b"a")
    assert not repeats.beyond("c", "h", b"b")
