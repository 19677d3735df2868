"""Runs that continue an earlier run of their name: number of requests per page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.stand import STACK_IN_LONG
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
    for page in range(PAGES):
        first = page * LINKS + 1
        links = "".join(
            f'<a href="/{more}.html">{more}</a>' for more in range(first, min(first + LINKS, PAGES))
        )
        (tmp_path / f"{page}.html").write_text(f"<title>{page}</title><p>{page}</p>{links}")
    with child.start("static", str(tmp_path)) as served:
        yield served


def asked(site: Child) -> list[str]:
    """List the requested pages, with repeats."""
    return [record.path for record in site.log() if record.path != "/robots.txt"]


@STACK_IN_LONG
def test_raised_limit_requests_only_missing_pages(anywhere: CommandStand, site: Child) -> None:
    options = ("--name", "raised", "--delay", "0")
    anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "60")
    assert len(asked(site)) == 60
    second = anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "200")
    assert len(asked(site)) == len(set(asked(site))) == 200
    assert len(second.rows) == 140
    third = anywhere.crawl(site.url + "/0.html", *options, "--max-pages", "200")
    assert third.result["nothing_new"] is True
    assert len(asked(site)) == 200


@STACK_IN_LONG
def test_cancelled_crawl_is_continued_by_next_run(anywhere: CommandStand, site: Child) -> None:
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
    # A request cut short by a pause or an end can be repeated once.
    assert len(asked(site)) <= PAGES + 1
