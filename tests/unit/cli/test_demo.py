"""The demo compares its export with the shop's own list of pages."""

from __future__ import annotations

import socket

import pytest

from tests import demo
from tests.sites.bookshop import Expected

NONE: frozenset[str] = frozenset()
SHOP = Expected(
    pages=frozenset({"/", "/a"}),
    noindex=frozenset({"/quiet"}),
    redirected=NONE,
    loops=NONE,
    failed=NONE,
    disallowed=frozenset({"/private"}),
    other=NONE,
    nofollow=NONE,
    external=NONE,
)


@pytest.mark.parametrize("fetched", [["/", "/a"], ["/a", "/quiet", "/"]])
def test_export_has_each_page_of_shop_once(
    fetched: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    demo.compare(fetched, SHOP)
    assert "each of the shop's 2 pages, once" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fetched", "said"),
    [
        (["/"], "1 missing: /a"),
        (["/", "/a", "/private"], "1 too many: /private"),
        (["/", "/a", "/"], "1 more than once: /"),
        ([], "2 missing: / /a"),
        (["/", "/a", *map(str, range(20))], "20 too many: 0 1 10 11 12 13 14 15 16 17 …"),
    ],
)
def test_difference_names_missing_extra_and_duplicate_pages(fetched: list[str], said: str) -> None:
    with pytest.raises(demo.DemoError) as caught:
        demo.compare(fetched, SHOP)
    assert said in str(caught.value)


def test_sums_of_export_equal_sums_of_shop(capsys: pytest.CaptureFixture[str]) -> None:
    one = {"price": "1.50", "price_currency": "EUR", "stock": 2, "rating": 5}
    two = {"price": "3", "price_currency": "JPY", "stock": 0, "rating": 1}
    truth = {"books": 2, "prices": {"EUR": "1.50", "JPY": "3.00"}, "stock": 2, "ratings": 6}
    demo.compare_books([one, two], truth)
    assert "the 2 books add up as in the shop's own data: 1.50 EUR" in capsys.readouterr().out
    with pytest.raises(demo.DemoError, match="the books are not what the shop has"):
        demo.compare_books([one], truth)


def test_demo_takes_free_port_if_its_port_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(demo, "PORT", other.getsockname()[1])
        assert demo.usual_port() == 0
    assert "nothing is kept of it" in capsys.readouterr().out
    assert demo.usual_port() == demo.PORT
