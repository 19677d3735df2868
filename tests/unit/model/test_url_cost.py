"""Cost of long references and bases: length is checked before any other work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orbweaver.diagnostics.url_changes import changes
from orbweaver.model import url as urls
from orbweaver.model.url import REFERENCE_CHARS_MAX, URL_CHARS_MAX, canonicalize, is_base, redacted
from orbweaver.parsing.links import LINKS_CHARS_MAX, refresh_of
from orbweaver.parsing.page import Page, parse
from tests.costs import LINEAR, peak_bytes, slope, within

BASE = "https://example.com/a/b/page.html"
BYTES = 5_200_000
# Each pattern is repeated. `é` is not ASCII, so its query is encoded first.
REPEATED = (
    *("../", "./", "a/../", "%2e%2e/", "/", "\\", "?a=é&", "é", ";jsessionid=1/.."),
    *("@", " ", ".", "#"),
)


def attempt(reference: str, base: str | None = BASE) -> str | None:
    try:
        return canonicalize(reference, base)
    except ValueError:
        return None


def page_of(html: bytes) -> Page:
    return parse(html, BASE, "text/html; charset=windows-1252")


@pytest.mark.parametrize("words", REPEATED)
def test_long_reference_is_refused_before_any_work(words: str) -> None:
    reference = words * (BYTES // len(words))
    assert within(0.1, lambda: attempt(reference))


@pytest.mark.parametrize("words", REPEATED)
def test_long_base_is_refused_and_not_cached(words: str) -> None:
    base = "https://example.com/" + words * (BYTES // len(words))

    def asked() -> None:
        for place in range(10):
            assert not is_base(f"{base}{place}")
            with pytest.raises(ValueError, match="base is too long"):
                canonicalize("x", f"{base}{place}")

    assert within(0.3, asked)
    held = urls._known_parts.cache_info().currsize
    asked()
    assert urls._known_parts.cache_info().currsize == held


def test_base_cache_skips_bases_longer_than_url() -> None:
    long = f"https://example.com/{'x' * (URL_CHARS_MAX + 1)}/"
    held = urls._known_parts.cache_info().currsize
    assert canonicalize("/x", long) == "https://example.com/x"
    assert canonicalize("../../x", long) == "https://example.com/x"
    assert is_base(long)
    assert urls._known_parts.cache_info().currsize == held


@pytest.mark.parametrize("words", REPEATED)
@pytest.mark.parametrize("place", ["a href", "base href", "link rel=canonical href", "refresh"])
def test_page_with_one_long_reference_is_parsed_quickly(words: str, place: str) -> None:
    if place == "refresh":
        open_, close = "<meta http-equiv=refresh content='0;url=", "'>"
    else:
        open_, close = f"<{place}='", "'>"
    html = (open_ + words * (BYTES // len(words)) + close + "<a href=x>x</a>").encode()
    assert within(0.6, lambda: page_of(html))


@pytest.mark.thorough
@pytest.mark.parametrize("words", REPEATED)
def test_page_with_many_long_references_takes_linear_time(words: str) -> None:
    one = (words * (REFERENCE_CHARS_MAX // len(words) - 5)).encode()

    def made(count: int) -> Callable[[], Page]:
        html = b"".join(b"<a href='%s%d'>x</a>" % (one, place) for place in range(count))
        return lambda: page_of(html)

    count = BYTES // len(one)
    assert within(1, made(count))
    assert slope(made, [count // 4, count // 2, count]) < LINEAR


def test_canonicalize_many_parent_steps_takes_linear_time() -> None:
    deep = f"https://example.com/{'a/' * 1000}"
    assert canonicalize("../" * 690 + "x", deep) == f"https://example.com/{'a/' * 310}x"
    assert canonicalize("../" * 1200 + "x", deep) == "https://example.com/x"

    def made(steps: int) -> Callable[[], object]:
        references = ["../" * steps + str(place) for place in range(2_000)]
        return lambda: [canonicalize(one, deep) for one in references]

    assert within(0.6, made(600))


def test_links_of_page_share_character_limit() -> None:
    folder = b"/x" * 1_000
    html = b"<base href='%s/'>" % folder + b"".join(b"<a href=%d>" % n for n in range(5_000))
    page = page_of(html)
    assert 0 < sum(map(len, page.links)) <= LINKS_CHARS_MAX
    assert page.links_cut == 5_000 - len(page.links) > 4_000
    assert peak_bytes(lambda: page_of(html)) < 60_000_000


def test_links_of_ordinary_page_are_not_truncated() -> None:
    html = b"".join(b"<a href='/%s%d'>" % (b"x" * 120, n) for n in range(5_000))
    page = page_of(html)
    assert (len(page.links), page.links_cut) == (5_000, 0)


def test_explaining_and_redacting_long_reference_takes_linear_time() -> None:
    reference = "https://example.com/#" + "a/../" * (BYTES // 5)
    assert within(0.5, lambda: changes(reference, BASE))
    assert within(0.5, lambda: redacted("@" * BYTES))
    assert within(0.5, lambda: redacted("http:" + "/" * BYTES))
    assert within(0.1, lambda: refresh_of("0;url=" + "../" * (BYTES // 3)))
