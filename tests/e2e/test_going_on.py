"""Runs that go on from an earlier one of their name: what a site was asked for, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.stand import CommandStand
    from tests.sites.child import Child

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PAGES, LINKS = 260, 8


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Child]:
    """Serve pages that lead to eight others each."""
    for page in range(PAGES):
        first = page * LINKS + 1
        links = "".join(
            f'<a href="/{more}.html">{more}</a>' for more in range(first, min(first + LINKS, PAGES))
        )
        (tmp_path / f"{page}.html").write_text(f"<title>{page}</title><p>{page}</p>{links}")
    with child.start("static", str(tmp_path)) as served:
        yield served


def asked(site: Child) -> list[str]:
    """List the pages that were asked for, each as often as it was."""
    return [record.path for record in site.log() if record.path != "/robots.txt"]


def test_a_raised_limit_asks_for_the_difference_to_the_page(
    anywhere: CommandStand, site: Child
) -> None:
    """60 pages, then 200: exactly 140 requests more, and none of them for a page that is there."""
    options = ("--name", "raised", "--delay", "0")
    anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "60")
    assert len(asked(site)) == 60
    second = anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "200")
    assert len(asked(site)) == len(set(asked(site))) == 200
    assert len(second.rows) == 140
    third = anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "200")
    assert third.result["nothing_new"] is True
    assert len(asked(site)) == 200


def test_a_cancelled_crawl_is_gone_on_with(anywhere: CommandStand, site: Child) -> None:
    """What was in work or on the queue is asked for by the next run, and all the rest is not."""
    options = ("--name", "stopped", "--delay", "100ms")
    begun = anywhere.orbweaver("start", site.url + "/0.html", *options, "--json").result["crawl"]
    while len(asked(site)) < 5:
        anywhere.orbweaver("status", begun)
    anywhere.orbweaver("cancel", begun)
    anywhere.orbweaver("status", begun, "--watch")
    before = len(asked(site))
    assert 5 <= before < PAGES
    anywhere.start(site.url + "/0.html", "--name", "stopped", "--delay", "0")
    assert set(asked(site)) == {f"/{page}.html" for page in range(PAGES)}
    # A request that a pause or an end has cut short may have been made once more.
    assert len(asked(site)) <= PAGES + 1
