"""Crawls of real documentation, compared with an independent walk of the same files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.e2e import oracle
from tests.e2e.stand import names
from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Future

    from tests.e2e.oracle import Manual
    from tests.e2e.stand import CommandStand, Crawled
    from tests.sites.child import Child

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

# Deeper than the manuals: under load the first path found is not always the shortest.
OPTIONS = ("--delay", "0", "--max-depth", "50")

# `make test` crawls each manual once, in different places. `make test-long` has the other pairs.
LONG = pytest.mark.long
PLACES = pytest.mark.parametrize(
    ("anywhere", "done"),
    [
        pytest.param("stack", oracle.PYTHON, id="stack-python"),
        pytest.param("stack", oracle.POSTGRESQL, id="stack-postgresql", marks=LONG),
        pytest.param("store", oracle.PYTHON, id="store-python", marks=LONG),
        pytest.param("store", oracle.POSTGRESQL, id="store-postgresql"),
    ],
    indirect=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A crawled manual, and its site."""

    site: Child
    crawled: Crawled
    expected: frozenset[str]


@pytest.fixture(scope="module")
def walks() -> Iterator[Mapping[str, Future[frozenset[str]]]]:
    """Start the walks, which run while the stack is deployed."""
    with oracle.walking() as futures:
        yield futures


@pytest.fixture(scope="module")
def done(
    walks: Mapping[str, Future[frozenset[str]]],
    anywhere: CommandStand,
    request: pytest.FixtureRequest,
) -> Iterator[Done]:
    """Crawl a manual once for all its tests."""
    manual: Manual = request.param
    if manual.absent:
        pytest.skip(f"needs the Debian package {manual.package}")
    with child.start("static", str(manual.folder)) as site:
        crawled = anywhere.crawl(site.url + "/", *OPTIONS)
        yield Done(site=site, crawled=crawled, expected=walks[manual.package].result())


@PLACES
def test_every_page_of_manual_is_fetched_once(done: Done) -> None:
    fetched = names(done.crawled.urls("fetched"), done.site.url + "/")

    assert fetched == sorted(done.expected)
    assert done.crawled.result["stop"] == "finished"
    asked = [record.path for record in done.site.log() if record.status == 200]
    assert len(asked) == len(set(asked)), "a page was asked for twice"


@PLACES
def test_repeated_crawl_requests_only_failures(done: Done, anywhere: CommandStand) -> None:
    before = len(done.site.log())
    failed = {url.removeprefix(done.site.url) for url in done.crawled.urls("failed")}

    again = anywhere.orbweaver("crawl", done.site.url + "/", *OPTIONS, *anywhere.where)

    assert ("requested again" if failed else "nothing new") in again.out
    assert {record.path for record in done.site.log()[before:]} - {"/robots.txt"} == failed
