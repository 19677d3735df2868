"""Limits of a crawl, which concurrent workers must not exceed or miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.stand import STACK_IN_LONG, names
from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FANOUT = 8
TREE_PAGES, BUDGET = 400, 40


def tree(text: str = "") -> dict[str, graph.Script]:
    """Return pages that link to eight others each, and to the first ones."""
    pages = range(TREE_PAGES)
    links = {n: [0, 1, 2, *pages[FANOUT * n + 1 : FANOUT * (n + 1) + 1]] for n in pages}
    return {
        f"/{n}": graph.page(f"Page {n}", [f"/{link}" for link in links[n]], text=text)
        for n in pages
    }


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.long), 16])
def test_page_budget_is_exact(anywhere: CommandStand, concurrency: int) -> None:
    with graph.serve_in_background(tree()) as site:
        crawled = anywhere.crawl(
            f"{site.url}/0",
            *("--name", f"budget-{concurrency}", "--delay", "0"),
            *("--max-pages", str(BUDGET), "--concurrency", str(concurrency)),
        )
        asked = [path for path in site.log.paths() if path != "/robots.txt"]

    assert crawled.result["claimed"] == BUDGET
    assert crawled.result["stop"] == "max_pages"
    assert len(crawled.rows) == len({row["url"] for row in crawled.rows}) == BUDGET
    assert sorted(asked) == names([row["url"] for row in crawled.rows], site.url)


@STACK_IN_LONG
def test_depth_of_one_is_page_and_its_links(anywhere: CommandStand) -> None:
    scripts = {
        "/": graph.page("Home", ["/one", "/two", "/gone", "http://elsewhere.invalid/"]),
        "/one": graph.page("One", ["/", "/two", "/behind"]),
        "/two": graph.page("Two", ["/behind"]),
        "/behind": graph.page("Behind"),
    }
    with graph.serve_in_background(scripts) as site:
        crawled = anywhere.crawl(
            f"{site.url}/", "--name", "depth", "--delay", "0", "--max-depth", "1"
        )

    assert names(crawled.urls("fetched"), site.url) == ["/", "/one", "/two"]
    assert names(crawled.urls("failed"), site.url) == ["/gone"]
    assert len(crawled.rows) == 4
    refused = crawled.result["refused"]
    # Two pages link to "/behind". Other links count only if their claims are not cached.
    assert refused["scope"] == 1
    assert 2 <= refused["depth"] <= 4
    assert "/behind" not in site.log.paths()


@STACK_IN_LONG
def test_byte_limit_is_not_exceeded(anywhere: CommandStand) -> None:
    with graph.serve_in_background(tree("x" * 5_000)) as site:
        crawled = anywhere.crawl(
            f"{site.url}/0",
            *("--name", "bytes", "--delay", "0", "--concurrency", "4"),
            *("--max-bytes", "200KB", "--ignore-robots"),
        )
        asked = site.log.paths()

    assert crawled.result["stop"] == "bytes"
    received = sum(row["bytes"] for row in crawled.rows if row["bytes"])
    assert 190_000 < received <= 200_000
    # A body is cut if other requests hold the rest of the limit, so there can be several.
    cut = sum(row["bytes"] < 5_000 for row in crawled.rows if row["bytes"])
    assert len(asked) <= 200_000 // 5_000 + cut
    left = crawled.result["claimed"] - len(crawled.rows)
    assert crawled.result["reasons"]["skipped"] == {"bytes": left}


@STACK_IN_LONG
def test_host_page_limit_is_exact(anywhere: CommandStand) -> None:
    with graph.serve_in_background(tree()) as site:
        crawled = anywhere.crawl(
            f"{site.url}/0",
            *("--name", "host-pages", "--delay", "0", "--concurrency", "4"),
            *("--max-host-pages", "30"),
        )
        asked = {path for path in site.log.paths() if path != "/robots.txt"}

    assert len(asked) == len(crawled.rows) == 30
    assert crawled.result["stop"] == "finished"
    left = crawled.result["claimed"] - 30
    assert crawled.result["reasons"]["skipped"] == {"host_pages": left}
