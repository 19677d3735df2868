"""Sitemaps as URLs of a crawl: where they come from, what they lead to, how they are counted."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.core.admission import admit_entry, vouched
from orbweaver.core.crawl import Crawl, Scope, default_crawl
from orbweaver.core.message import Pack, Seeds, Target, seeds_of
from orbweaver.core.outcome import Refusal
from orbweaver.core.sitemap import Entry
from orbweaver.core.target import Kind
from orbweaver.settings import Settings
from orbweaver.sitemaps import INLINE_BYTES_MAX, KEPT_MS, SITEMAP_TYPES
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, kill_at, outcomes, survives

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER = "https://cdn.example.net"
MAP = f"{SITE}/sitemap.xml"
POLITE = replace(CRAWL, obey_robots=True)
NAMED = replace(CRAWL, sitemap_urls=(MAP,), seeds_planned=1)
DAY_MS = 86_400_000
OK = "fetched.ok"
READ = "fetched.sitemap"


def urlset(*urls: str) -> bytes:
    """Write a sitemap; a date follows a URL after a space."""
    items = "".join(
        f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>"
        for url, _, date in (each.partition(" ") for each in urls)
    )
    return f"<urlset>{items}</urlset>".encode()


def index(*urls: str) -> bytes:
    """Write an index of sitemaps; a date follows a URL after a space."""
    return urlset(*urls).replace(b"urlset", b"sitemapindex").replace(b"url>", b"sitemap>")


def put(stage: Stage, site: dict[str, bytes | str]) -> None:
    """Have paths and URLs of the web answer: bytes are XML, and a text is the links of a page."""
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
    """Run a crawl to its end; its books balance then."""
    begun = replace(plan, seeds=seeds, seeds_planned=1)
    stage.begin(begun)
    (message,) = messages(begun)
    assert await stage.deliver(message) == []
    await stage.drain()
    ended = {key: number for key, number in stage.tally(begun).items() if "." not in key}
    counted = ("fetched", "unchanged", "redirected", "skipped", "failed")
    assert ended["claimed"] == sum(ended.get(key, 0) for key in counted)
    assert stage.world.crawls[begun.id].finished_at_ms is not None


def messages(plan: Crawl) -> tuple[Seeds, ...]:
    """Send what a crawl begins with."""
    return seeds_of(plan.id, plan.id, plan.references, at_ms=plan.started_at_ms, planned=True)


def paths(stage: Stage) -> dict[str, str]:
    """Say how each URL of the site ended, by its path."""
    return {url.removeprefix(SITE): how for url, how in outcomes(stage.world).items()}


# --- where they come from -----------------------------------------------------------------------

ROBOTS = {"/robots.txt": b"Sitemap: /sitemap.xml\nUser-agent: *\nDisallow: /no"}
LISTED: dict[str, bytes | str] = {
    **ROBOTS,
    "/": "",
    "/sitemap.xml": urlset(f"{SITE}/a", f"{SITE}/no", f"{OTHER}/x", "nonsense"),
    "/a": "/b",
    "/b": "",
}


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
    tally = stage.tally(POLITE)
    assert (tally["refused.scope"], tally["refused.invalid"]) == (1, 1)
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
    assert stage.tally(POLITE)["refused.invalid"] == 1


async def test_a_person_may_name_sitemaps_alone() -> None:
    """A crawl may begin with nothing but a sitemap; it counts as one planned message of seeds."""
    stage = await crawl({"/sitemap.xml": urlset(f"{SITE}/a"), "/a": "/b", "/b": ""}, NAMED)
    assert paths(stage) == {"/sitemap.xml": READ, "/a": OK, "/b": OK}
    assert stage.tally(NAMED)["seeds"] == 1


async def test_nothing_is_asked_without_depth() -> None:
    """With --max-depth 0 a sitemap that a person named is refused, and the crawl ends."""
    stage = await crawl({}, replace(NAMED, depth_max=0), f"{SITE}/")
    assert paths(stage) == {"/": "failed.http_client_error"}
    assert stage.tally(NAMED)["refused.depth"] == 1


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
    assert stage.tally(NAMED)["refused.repetition"] == 1


async def test_a_sitemap_that_a_page_links_to_is_one() -> None:
    """The start page's link to the sitemap does not make a page of it."""
    stage = await crawl(LISTED | {"/": "/sitemap.xml"}, POLITE, f"{SITE}/")
    assert paths(stage)["/sitemap.xml"] == READ


# --- how they are asked for ---------------------------------------------------------------------


async def test_requests_for_sitemaps() -> None:
    """One asks for any type, with room for the largest; pages are asked for as ever."""
    stage = await crawl(LISTED, POLITE, f"{SITE}/")
    by_url = {request.url: request for request in stage.web.requests}
    asked = by_url[MAP]
    assert (asked.accept, asked.body_bytes_max) == (SITEMAP_TYPES, 50 * 1024 * 1024)
    assert by_url[f"{SITE}/a"].body_bytes_max == stage.settings.body_bytes_max


@pytest.mark.parametrize(
    ("body", "content_type", "how"),
    [
        (urlset(), "text/html", READ),
        (gzip.compress(urlset()), "application/octet-stream", READ),
        (b"https://example.com/404", "image/png", READ),
        (b"<!DOCTYPE html><html>not found</html>", "text/html", "failed.sitemap_invalid"),
        (b"", "text/xml", "failed.sitemap_invalid"),
        (b"\x1f\x8b nonsense", "application/gzip", "failed.sitemap_invalid"),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><urlset/>", "text/xml", "failed.sitemap_invalid"),
    ],
)
async def test_what_a_sitemap_comes_to(body: bytes, content_type: str, how: str) -> None:
    """The bytes say what it is; what is none failed, and says why."""
    stage = Stage()
    stage.web.put(MAP, answer(200, body, content_type=content_type))
    await run(stage, NAMED)
    assert paths(stage)["/sitemap.xml"] == how
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert (record.error is None) is (how == READ)


async def test_a_cut_body_says_so() -> None:
    """What was read of a body that is too large counts, and the record says that it was cut."""
    stage = Stage()
    stage.web.put(MAP, replace(answer(200, f"{SITE}/a\n".encode()), truncated=True))
    await run(stage, NAMED)
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert (record.reason, record.error) == ("sitemap", "the body was cut")


async def test_redirects_keep_the_kind() -> None:
    """A sitemap that lies elsewhere by now is one there, on whatever host, up to a limit."""
    stage = Stage()
    stage.web.put(MAP, answer(301, location=f"{OTHER}/s.xml"))
    put(stage, {f"{OTHER}/s.xml": urlset(f"{OTHER}/a", f"{SITE}/b")})
    await run(stage, NAMED, f"{SITE}/")
    how = outcomes(stage.world)
    assert (how[MAP], how[f"{OTHER}/s.xml"]) == ("redirected.redirect", READ)
    assert {f"{OTHER}/a", f"{SITE}/b"} <= how.keys()


async def test_a_busy_host_is_asked_again() -> None:
    """A sitemap is retried as a page is."""
    stage = Stage()
    stage.web.put(MAP, answer(500), answer(200, urlset(f"{SITE}/a")))
    await run(stage, NAMED)
    assert paths(stage)["/sitemap.xml"] == READ
    assert stage.tally(NAMED)["retries"] == 1


# --- indexes ------------------------------------------------------------------------------------


async def test_an_index_that_lists_itself_ends() -> None:
    """Claims and a bound on nesting end every loop of indexes (case 65)."""
    site: dict[str, bytes | str] = {"/sitemap.xml": index(MAP, f"{SITE}/1.xml", f"{OTHER}/2.xml")}
    for level in range(1, 6):
        site[f"/{level}.xml"] = index(MAP, f"{SITE}/{level + 1}.xml")
    stage = await crawl(site, NAMED)
    assert paths(stage) == {
        "/sitemap.xml": READ,
        "/1.xml": READ,
        "/2.xml": READ,
        "/3.xml": READ,
    }
    tally = stage.tally(NAMED)
    assert (tally["refused.depth"], tally["refused.scope"]) == (2, 1)


async def test_sitemaps_travel_alone() -> None:
    """Each sitemap of an index has a pack of its own: it stands for thousands of URLs."""
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
    assert {target.kind for pack in packs for target in pack.targets} == {Kind.SITEMAP}


# --- parts --------------------------------------------------------------------------------------

PAGES = tuple(f"{SITE}/{number}" for number in range(12))
PARTS = Settings(links_per_page_max=5)


async def test_a_long_sitemap_is_taken_in_by_parts() -> None:
    """All of it is claimed, no part is larger than a page may be, and it is one URL (I1, I3)."""
    stage = await crawl({"/sitemap.xml": urlset(*PAGES)}, NAMED, settings=PARTS)
    assert set(outcomes(stage.world)) == {MAP, *PAGES}
    assert stage.web.urls.count(MAP) == 1
    assert max(len(journal.candidates) for journal in stage.world.journals.values()) == 5
    tally = stage.tally(NAMED)
    assert (tally["claimed"], tally["fetched.sitemap"], tally["deferrals"]) == (13, 1, 2)
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert record.links == 12


@pytest.mark.parametrize("forgets", ["restart", "time"])
async def test_another_container_asks_again(forgets: str) -> None:
    """Who does not have the answer any more asks for it; a change in between does no harm."""
    stage = Stage(settings=PARTS)
    put(stage, {"/sitemap.xml": urlset(*PAGES)})
    stage.begin(NAMED)
    (message,) = messages(NAMED)
    await stage.deliver(message)
    await stage.deliver(*stage.sent())
    if forgets == "restart":
        stage.restart()
    else:
        stage.clock.at_ms += KEPT_MS
    put(stage, {"/sitemap.xml": urlset(f"{SITE}/new", *PAGES)})
    await stage.drain()
    assert set(outcomes(stage.world)) == {MAP, *PAGES}
    assert stage.web.urls.count(MAP) == 2
    assert sorted(stage.web.urls) == sorted([MAP, MAP, *PAGES])


async def test_large_answers_make_room() -> None:
    """What is kept between parts is bounded; the oldest answer is asked for again."""
    stage = Stage(settings=PARTS)
    padding = b"<!--" + b"x" * 200_000 + b"-->"
    padded = urlset(*PAGES).replace(b"</urlset>", padding * 45 + b"</urlset>")
    put(stage, {"/1.xml": padded, "/2.xml": padded})
    plan = replace(NAMED, sitemap_urls=(f"{SITE}/1.xml", f"{SITE}/2.xml"))
    await run(stage, plan)
    assert set(outcomes(stage.world)) == {*plan.sitemap_urls, *PAGES}
    assert stage.web.urls.count(f"{SITE}/1.xml") + stage.web.urls.count(f"{SITE}/2.xml") > 2


async def test_killed_anywhere_a_long_sitemap_is_complete() -> None:
    """Whenever the worker dies, every page is claimed once and the books balance."""
    for moment in range(1, 200, 7):
        stage = Stage(settings=PARTS)
        put(stage, {"/sitemap.xml": urlset(*PAGES)})
        stage.begin(NAMED)
        (message,) = messages(NAMED)
        stage.restart(kill_at(moment))
        if not await survives(stage.deliver(message)):
            stage.restart()
            assert await stage.deliver(message, receives=2) == []
        else:
            while stage.world.sent:
                mail = stage.world.sent[0]
                if not await survives(stage.deliver(mail.body)):
                    stage.restart()
                    await stage.deliver(mail.body, receives=2)
                stage.world.sent.remove(mail)
        await stage.drain()
        assert set(outcomes(stage.world)) == {MAP, *PAGES}, moment
        assert stage.tally(NAMED)["claimed"] == 13, moment
        assert stage.world.crawls[NAMED.id].finished_at_ms is not None, moment


async def test_the_budget_holds() -> None:
    """A sitemap and what it lists are of the budget; what is beyond is given back."""
    stage = await crawl(
        {"/sitemap.xml": urlset(*PAGES)}, replace(NAMED, pages_max=7), settings=PARTS
    )
    tally = stage.tally(NAMED)
    assert (tally["claimed"], tally[f"refused.{Refusal.BUDGET}"]) == (7, 6)
    assert stage.world.crawls[NAMED.id].stop == "max_pages"


async def test_large_sitemaps_are_read_beside_the_loop() -> None:
    """A long one and a gzipped one come to the same as a short one."""
    padding = b" " * INLINE_BYTES_MAX
    for body in (urlset(*PAGES) + padding, gzip.compress(urlset(*PAGES))):
        stage = await crawl({"/sitemap.xml": body}, NAMED)
        assert set(outcomes(stage.world)) == {MAP, *PAGES}


# --- asking again for what was changed ----------------------------------------------------------

AGAIN_MS = NOW_MS + 2 * DAY_MS  # 2026-11-23 09:00:00 UTC, inside the window of a week


async def test_what_was_changed_is_asked_for_inside_the_window() -> None:
    """A later run asks for pages that were changed since their claim, and for sitemaps."""
    site: dict[str, bytes | str] = {
        "/sitemap.xml": index(
            f"{SITE}/1.xml", f"{SITE}/2.xml 2026-11-20", f"{SITE}/3.xml 2026-11-22"
        ),
        "/1.xml": urlset(
            f"{SITE}/old 2026-11-20",
            f"{SITE}/none",
            f"{SITE}/bad soon",
            f"{SITE}/day 2026-11-21",
            f"{SITE}/new 2026-11-22T00:00:00Z",
            f"{SITE}/future 2099-01-01",
        ),
        "/2.xml": urlset(),
        "/3.xml": urlset(f"{SITE}/future 2099-01-01", f"{SITE}/new 2026-11-23"),
    }
    stage = await crawl(site, NAMED)
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 10
    stage.web.asked.clear()
    stage.clock.at_ms = AGAIN_MS
    await run(stage, replace(NAMED, id="site-2", started_at_ms=AGAIN_MS))
    asked = sorted(url.removeprefix(SITE) for url in stage.web.urls)
    assert asked == ["/1.xml", "/3.xml", "/day", "/future", "/new", "/sitemap.xml"]


async def test_without_a_window_dates_do_not_matter() -> None:
    """A run that asks for everything asks once, whatever a sitemap says."""
    stage = Stage()
    listed = urlset(f"{SITE}/a 2099-01-01", f"{SITE}/b")
    put(stage, {"/sitemap.xml": listed, "/a": "/b", "/b": "/a"})
    for number in range(2):
        stage.clock.at_ms += 1
        start_ms = stage.clock.now_ms()
        plan = replace(NAMED, id=f"site-{number}", window_s=0, started_at_ms=start_ms)
        stage.web.asked.clear()
        await run(stage, plan)
        assert sorted(stage.web.urls) == sorted([MAP, f"{SITE}/a", f"{SITE}/b"])


# --- what is decided --------------------------------------------------------------------------


def test_nothing_listed_is_deeper_than_the_crawl() -> None:
    """A sitemap that a crawl of no depth holds all the same leads nowhere."""
    sitemap = Target(url=MAP, depth=0, kind=Kind.SITEMAP)
    plan = replace(CRAWL, depth_max=0)
    refused = admit_entry(plan, Entry(url=f"{SITE}/a"), sitemap, vouched(plan, sitemap))
    assert refused is Refusal.DEPTH
