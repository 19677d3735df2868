"""The page limit of a crawl, which concurrent workers must not exceed or miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.stand import STORE_IN_LONG, names
from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FANOUT = 8
TREE_PAGES, BUDGET = 400, 40


def tree() -> dict[str, graph.Script]:
    """Return pages that link to eight others each, and to the first ones."""
    pages = range(TREE_PAGES)
    links = {n: [0, 1, 2, *pages[FANOUT * n + 1 : FANOUT * (n + 1) + 1]] for n in pages}
    return {f"/{n}": graph.page(f"Page {n}", [f"/{link}" for link in links[n]]) for n in pages}


@STORE_IN_LONG
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
