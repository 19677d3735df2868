"""Sitemaps of a crawl: discovery, and admission of their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orbweaver.frontier.admission import admit_entry, hosts_for_sitemap
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


async def test_sitemap_named_by_robots_is_fetched() -> None:
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
async def test_robots_sitemaps_are_ignored_if_switched_off(plan: Crawl) -> None:
    stage = await crawl(LISTED, plan, f"{SITE}/")
    assert paths(stage) == {"/": OK}


async def test_default_crawl_uses_no_sitemaps() -> None:
    stage = Stage()
    put(stage, LISTED)
    plan = default_crawl(NOW_MS)
    await stage.deliver(stage.begin(plan, f"{SITE}/"))
    assert paths(stage) == {"/": OK}
    assert stage.sent() == []


async def test_sitemap_vouches_for_host_where_seed_is_read() -> None:
    www = "https://www.example.com"
    stage = Stage()
    robots = f"Sitemap: {www}/sitemap.xml".encode()
    put(stage, {"/robots.txt": robots, f"{www}/robots.txt": robots, f"{www}/": "", f"{www}/a": ""})
    put(stage, {f"{www}/sitemap.xml": urlset(f"{www}/a", f"{SITE}/b")})
    stage.web.put(f"{SITE}/", answer(301, location=f"{www}/"))
    await run(stage, POLITE, f"{SITE}/")
    assert outcomes(stage.world)[f"{www}/a"] == OK
    assert f"{SITE}/b" not in outcomes(stage.world)


async def test_sitemap_on_other_host_vouches_for_naming_host() -> None:
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


async def test_crawl_of_sitemap_alone() -> None:
    stage = await crawl({"/sitemap.xml": urlset(f"{SITE}/a"), "/a": "/b", "/b": ""}, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ, "/a": OK, "/b": OK}
    assert stage.counts(NAMED)["seeds"] == 1


async def test_sitemap_is_refused_with_depth_0() -> None:
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
async def test_sitemap_entries_must_be_in_scope(
    scope: Scope, seeds: Sequence[str], found: set[str]
) -> None:
    listed = (f"{SITE}/docs/a", f"{SITE}/b", f"{OTHER}/c", "https://www.example.com/d")
    stage = await crawl({"/sitemap.xml": urlset(*listed)}, replace(NAMED, scope=scope), *seeds)
    assert set(paths(stage)) == found | {"/sitemap.xml"}


async def test_trap_in_sitemap_is_refused() -> None:
    stage = await crawl({"/sitemap.xml": urlset(f"{SITE}/a/a/a/a/a")}, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ}
    assert stage.counts(NAMED)["refused.repetition"] == 1


async def test_link_to_known_sitemap_is_read_as_sitemap() -> None:
    stage = await crawl(LISTED | {"/": "/sitemap.xml"}, POLITE, f"{SITE}/")
    assert paths(stage)["/sitemap.xml"] == READ


def test_entry_of_depth_0_crawl_is_refused() -> None:
    sitemap = Target(url=MAP, depth=0, kind=TargetKind.SITEMAP)
    plan = replace(CRAWL, depth_max=0)
    refused = admit_entry(
        plan, SitemapEntry(url=f"{SITE}/a"), sitemap, hosts_for_sitemap(plan, sitemap)
    )
    assert refused is Refusal.DEPTH
