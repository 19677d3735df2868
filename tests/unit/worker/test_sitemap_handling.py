"""Sitemaps as URLs of a crawl: where they come from, and what of them belongs to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.admission import admit_entry, vouched
from orbweaver.model.crawl import Crawl, default_crawl
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target, TargetKind
from orbweaver.parsing.sitemap import SitemapEntry
from tests.unit.mapped import (
    LISTED,
    MAP,
    NAMED,
    OK,
    OTHER,
    POLITE,
    READ,
    crawl,
    index,
    paths,
    put,
    run,
    urlset,
)
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence


async def test_robots_names_sitemaps() -> None:
    """What the robots.txt of a seed's host names is asked for, and what it lists as well."""
    stage = await crawl(LISTED, POLITE, f"{SITE}/")
    assert paths(stage) == {
        "/": OK,
        "/sitemap.xml": READ,
        "/a": OK,
        "/b": OK,
        "/no": "skipped.robots",
    }
    counts = stage.counts(POLITE)
    assert (counts["refused.scope"], counts["refused.invalid"]) == (1, 1)
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert (record.depth, record.referrer, record.links) == (0, f"{SITE}/robots.txt", 4)
    entry = next(record for record in stage.world.pages.values() if record.url == f"{SITE}/a")
    assert (entry.depth, entry.referrer) == (1, MAP)


@pytest.mark.parametrize(
    "plan",
    [
        replace(POLITE, sitemaps=False),
        replace(POLITE, depth_max=0),
        replace(POLITE, obey_robots=False),
    ],
)
async def test_robots_is_not_asked_for_sitemaps(plan: Crawl) -> None:
    """Not where that is switched off, where robots.txt is not read, or nothing may be followed."""
    stage = await crawl(LISTED, plan, f"{SITE}/")
    assert paths(stage) == {"/": OK}


async def test_bare_urls_begin_no_sitemaps() -> None:
    """A URL dropped on the queue asks for itself and its links, and not for a whole site."""
    stage = Stage()
    put(stage, LISTED)
    plan = default_crawl(NOW_MS)
    await stage.deliver(stage.begin(plan, f"{SITE}/"))
    assert paths(stage) == {"/": OK}
    assert stage.sent() == []


async def test_seeds_that_lead_elsewhere_do_not_count() -> None:
    """The sitemaps of a crawl are those of the host where its seed is read, and speak for it."""
    www = "https://www.example.com"
    stage = Stage()
    robots = f"Sitemap: {www}/sitemap.xml".encode()
    put(stage, {"/robots.txt": robots, f"{www}/robots.txt": robots, f"{www}/": "", f"{www}/a": ""})
    put(stage, {f"{www}/sitemap.xml": urlset(f"{www}/a", f"{SITE}/b")})
    stage.web.put(f"{SITE}/", answer(301, location=f"{www}/"))
    await run(stage, POLITE, f"{SITE}/")
    assert outcomes(stage.world)[f"{www}/a"] == OK
    assert f"{SITE}/b" not in outcomes(stage.world)


async def test_a_sitemap_may_lie_elsewhere() -> None:
    """A host's robots.txt may name one on another host, which then speaks for the first only."""
    stage = await crawl(
        {
            "/robots.txt": f"Sitemap: {OTHER}/s.xml\nSitemap: http://[".encode(),
            "/": "",
            f"{OTHER}/s.xml": index(f"{OTHER}/1.xml"),
            f"{OTHER}/1.xml": urlset(f"{SITE}/a", f"{OTHER}/b"),
            "/a": "",
        },
        POLITE,
        f"{SITE}/",
    )
    how = outcomes(stage.world)
    assert how[f"{SITE}/a"] == OK
    assert how[f"{OTHER}/1.xml"] == READ
    assert f"{OTHER}/b" not in how
    assert stage.counts(POLITE)["refused.invalid"] == 1


async def test_a_person_may_name_sitemaps_alone() -> None:
    """A crawl may begin with nothing but a sitemap; it counts as one planned message of seeds."""
    stage = await crawl({"/sitemap.xml": urlset(f"{SITE}/a"), "/a": "/b", "/b": ""}, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ, "/a": OK, "/b": OK}
    assert stage.counts(NAMED)["seeds"] == 1


async def test_nothing_is_asked_without_depth() -> None:
    """With --max-depth 0 a sitemap that a person named is refused, and the crawl ends."""
    stage = await crawl({}, replace(NAMED, depth_max=0), f"{SITE}/")
    assert paths(stage) == {"/": "failed.http_client_error"}
    assert stage.counts(NAMED)["refused.depth"] == 1


@pytest.mark.parametrize(
    ("scope", "seeds", "found"),
    [
        (Scope.HOST, (), {"/docs/a", "/b"}),
        (Scope.HOST, (f"{OTHER}/",), {"/docs/a", "/b", f"{OTHER}/", f"{OTHER}/c"}),
        (Scope.PREFIX, (f"{SITE}/docs/",), {"/docs/", "/docs/a"}),
        (Scope.PREFIX, (), {"/docs/a", "/b"}),
        (Scope.ANY, (), {"/docs/a", "/b"}),
        (Scope.DOMAIN, (), {"/docs/a", "/b", "https://www.example.com/d"}),
    ],
)
async def test_scope_narrows_what_is_listed(
    scope: Scope, seeds: Sequence[str], found: set[str]
) -> None:
    """A sitemap speaks for its own host and the seeds' hosts, and for nothing outside the scope."""
    listed = (f"{SITE}/docs/a", f"{SITE}/b", f"{OTHER}/c", "https://www.example.com/d")
    stage = await crawl({"/sitemap.xml": urlset(*listed)}, replace(NAMED, scope=scope), *seeds)
    assert set(paths(stage)) == found | {"/sitemap.xml"}


async def test_traps_are_refused_in_sitemaps_too() -> None:
    """What looks like a trap is one wherever it is listed."""
    stage = await crawl({"/sitemap.xml": urlset(f"{SITE}/a/a/a/a/a")}, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ}
    assert stage.counts(NAMED)["refused.repetition"] == 1


async def test_a_sitemap_that_a_page_links_to_is_one() -> None:
    """The start page's link to the sitemap does not make a page of it."""
    stage = await crawl(LISTED | {"/": "/sitemap.xml"}, POLITE, f"{SITE}/")
    assert paths(stage)["/sitemap.xml"] == READ


def test_nothing_listed_is_deeper_than_the_crawl() -> None:
    """A sitemap that a crawl of no depth holds all the same leads nowhere."""
    sitemap = Target(url=MAP, depth=0, kind=TargetKind.SITEMAP)
    plan = replace(CRAWL, depth_max=0)
    refused = admit_entry(plan, SitemapEntry(url=f"{SITE}/a"), sitemap, vouched(plan, sitemap))
    assert refused is Refusal.DEPTH
