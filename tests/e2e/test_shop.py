"""A crawl of a shop with faults of real sites: each URL ends with its expected outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.stand import STORE_IN_LONG, names
from tests.sites import child
from tests.sites.bookshop import Expected

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@STORE_IN_LONG
def test_every_url_of_shop_has_expected_outcome(anywhere: CommandStand) -> None:
    """Forbidden URLs are not requested.

    Pages with noindex are fetched and recorded; their use is the reader's decision. A redirect loop
    ends because each of its URLs is requested once.
    """
    with child.start("bookshop", "--books", "200", "--slow-s", "0.3") as shop:
        expected = Expected.from_json(shop.control("expected.json"))
        options = ("--delay", "0", "--max-depth", "200", "--no-sitemaps")
        crawled = anywhere.start(shop.url + "/", *options)
        log = shop.log()

    archives = frozenset(url for url in expected.disallowed if url.endswith(".zip"))
    forbidden = frozenset(url for url in expected.failed if url.endswith("/dead/10"))
    to_itself = frozenset(url for url in expected.redirected if url.endswith("/loop/self"))
    ended = {
        ("fetched", "ok"): expected.pages,
        ("fetched", "noindex"): expected.noindex,
        ("redirected", "redirect"): expected.redirected - to_itself,
        ("failed", "redirect_limit"): to_itself,
        ("failed", "forbidden"): forbidden,
        ("failed", "http_client_error"): expected.failed - forbidden,
        ("skipped", "robots"): expected.disallowed - archives,
        ("skipped", "content_type"): expected.other | archives,
    }
    for (outcome, reason), urls in ended.items():
        found = names(crawled.urls(outcome, reason), shop.url)
        assert found == names(urls, shop.url), f"{outcome}, {reason}"
    assert len(crawled.rows) == sum(map(len, ended.values()))
    asked = {shop.url + record.path for record in log}
    assert not asked & (expected.disallowed | expected.nofollow)
    assert asked - {f"{shop.url}/robots.txt"} == set().union(
        expected.pages, expected.noindex, expected.redirected, expected.failed, expected.other
    )
    assert crawled.result["retries"] >= 1, "the busy pages answer 503 at first"
