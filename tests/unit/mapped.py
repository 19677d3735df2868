"""Helpers for tests of sitemaps: sites with sitemaps, and their crawls."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.frontier.messages import SeedsMessage, seeds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.settings import Settings
from tests.unit.stage import CRAWL, SITE, Stage, answer, html, outcomes

OTHER = "https://cdn.example.net"
MAP = f"{SITE}/sitemap.xml"
POLITE = replace(CRAWL, obey_robots=True)
NAMED = replace(CRAWL, sitemap_urls=(MAP,), seeds_planned=1)
DAY_MS = 86_400_000
OK = "fetched.ok"
READ = "fetched.sitemap"


def urlset(*urls: str) -> bytes:
    """Return a sitemap; a date may follow a URL after a space."""
    items = "".join(
        f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>"
        for url, _, date in (each.partition(" ") for each in urls)
    )
    return f"<urlset>{items}</urlset>".encode()


def index(*urls: str) -> bytes:
    """Return a sitemap index; a date may follow a URL after a space."""
    return urlset(*urls).replace(b"urlset", b"sitemapindex").replace(b"url>", b"sitemap>")


def put(stage: Stage, site: dict[str, bytes | str]) -> None:
    """Set answers of the site: bytes are XML, a text is the links of a page."""
    for name, what in site.items():
        url = name if "://" in name else SITE + name
        if isinstance(what, bytes):
            stage.web.put(url, answer(200, what, content_type="application/xml"))
        else:
            stage.web.put(url, html(*what.split()))


async def crawl(
    site: dict[str, bytes | str],
    plan: Crawl = POLITE,
    *seeds: str,
    settings: Settings | None = None,
) -> Stage:
    """Crawl a site to its end, from seeds and the sitemaps of the plan."""
    stage = Stage(settings=settings or Settings())
    put(stage, site)
    await run(stage, plan, *seeds)
    return stage


async def run(stage: Stage, plan: Crawl, *seeds: str) -> None:
    begun = replace(plan, seeds=seeds, seeds_planned=1)
    stage.begin(begun)
    (message,) = messages(begun)
    assert await stage.deliver(message) == []
    await stage.drain()
    ended = {key: number for key, number in stage.counts(begun).items() if "." not in key}
    counted = ("fetched", "unchanged", "redirected", "skipped", "failed")
    assert ended["claimed"] == sum(ended.get(key, 0) for key in counted)
    assert stage.world.crawls[begun.id].finished_at_ms is not None


def messages(plan: Crawl) -> tuple[SeedsMessage, ...]:
    return seeds_of(plan.id, plan.id, plan.references, at_ms=plan.started_at_ms, planned=True)


def paths(stage: Stage) -> dict[str, str]:
    """Return the outcome of each URL of the site, by path."""
    return {url.removeprefix(SITE): how for url, how in outcomes(stage.world).items()}


ROBOTS = {"/robots.txt": b"Sitemap: /sitemap.xml\nUser-agent: *\nDisallow: /no"}
LISTED: dict[str, bytes | str] = {
    **ROBOTS,
    "/": "",
    "/sitemap.xml": urlset(f"{SITE}/a", f"{SITE}/no", f"{OTHER}/x", "nonsense"),
    "/a": "/b",
    "/b": "",
}
