"""Requests for sitemaps and their outcomes."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import Pack
from orbweaver.model.target import TargetKind
from tests.unit.mapped import (
    LISTED,
    MAP,
    NAMED,
    OTHER,
    POLITE,
    READ,
    crawl,
    index,
    messages,
    paths,
    put,
    run,
    urlset,
)
from tests.unit.stage import SITE, Stage, answer, outcomes


async def test_sitemap_request_accepts_any_type_and_large_body() -> None:
    stage = await crawl(LISTED, POLITE, f"{SITE}/")
    by_url = {request.url: request for request in stage.web.requests}
    asked = by_url[MAP]
    named = frozenset({"application/xml", "text/xml", "application/gzip", "text/plain", "*/*"})
    feeds = {"application/rss+xml", "application/atom+xml"}
    assert (asked.accept, asked.body_bytes_max) == (named | feeds, 50 * 1024 * 1024)
    assert by_url[f"{SITE}/a"].body_bytes_max == stage.settings.fetching.body_bytes_max


@pytest.mark.parametrize(
    ("body", "content_type", "how"),
    [
        (urlset(), "text/html", READ),
        (gzip.compress(urlset(), mtime=0), "application/octet-stream", READ),
        (b"https://example.com/404", "image/png", READ),
        (b"<!DOCTYPE html><html>not found</html>", "text/html", "failed.sitemap_invalid"),
        (b"", "text/xml", "failed.sitemap_invalid"),
        (b"\x1f\x8b nonsense", "application/gzip", "failed.sitemap_invalid"),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><urlset/>", "text/xml", "failed.sitemap_invalid"),
    ],
)
async def test_sitemap_outcome_depends_on_bytes(body: bytes, content_type: str, how: str) -> None:
    stage = Stage().serve({MAP: answer(200, body, content_type=content_type)})
    await run(stage, NAMED)
    assert paths(stage)["/sitemap.xml"] == how
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert (record.error is None) is (how == READ)


async def test_truncated_sitemap_counts_with_error() -> None:
    stage = Stage().serve({MAP: replace(answer(200, f"{SITE}/a\n".encode()), truncated=True)})
    await run(stage, NAMED)
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert (record.reason, record.error) == ("sitemap", "the body was cut")


async def test_redirected_sitemap_stays_sitemap() -> None:
    stage = Stage().serve({MAP: answer(301, location=f"{OTHER}/s.xml")})
    put(stage, {f"{OTHER}/s.xml": urlset(f"{OTHER}/a", f"{SITE}/b")})
    await run(stage, NAMED, f"{SITE}/")
    how = outcomes(stage.world)
    assert (how[MAP], how[f"{OTHER}/s.xml"]) == ("redirected.redirect", READ)
    assert {f"{OTHER}/a", f"{SITE}/b"} <= how.keys()


async def test_failed_sitemap_request_is_retried() -> None:
    stage = Stage().serve({MAP: [answer(500), answer(200, urlset(f"{SITE}/a"))]})
    await run(stage, NAMED)
    assert paths(stage)["/sitemap.xml"] == READ
    assert stage.counts(NAMED)["retries"] == 1


# --- indexes ------------------------------------------------------------------------------------


async def test_self_referring_sitemap_index_ends() -> None:
    """Claims and a limit on nesting end every loop (case 65)."""
    site: dict[str, bytes | str] = {"/sitemap.xml": index(MAP, f"{SITE}/1.xml", f"{OTHER}/2.xml")}
    for level in range(1, 6):
        site[f"/{level}.xml"] = index(MAP, f"{SITE}/{level + 1}.xml")
    stage = await crawl(site, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ, "/1.xml": READ, "/2.xml": READ, "/3.xml": READ}
    counts = stage.counts(NAMED)
    assert (counts["refused.depth"], counts["refused.scope"]) == (2, 1)


async def test_each_sitemap_has_its_own_pack() -> None:
    stage = Stage()
    put(stage, {"/sitemap.xml": index(*(f"{SITE}/{n}.xml" for n in range(3)))})
    stage.begin(NAMED)
    (message,) = messages(NAMED)
    await stage.deliver(message)
    await stage.deliver(*stage.sent())
    packs = [pack for pack in stage.sent() if isinstance(pack, Pack)]
    assert [[target.url for target in pack.targets] for pack in packs] == [
        [f"{SITE}/{n}.xml"] for n in range(3)
    ]
    assert {target.kind for pack in packs for target in pack.targets} == {TargetKind.SITEMAP}
