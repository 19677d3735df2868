"""Links of late packs (requested last) that were never requested, by kind of URL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.cli.commands.hosts_report import spared_lines
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import crawl_of
from orbweaver.diagnostics import spared_links as module
from orbweaver.diagnostics.refusal_report import (
    Examples,
    Report,
    Requests,
    Spared,
    SparedKind,
    report_of,
)
from orbweaver.diagnostics.spared_links import spared_links
from orbweaver.frontier.backlog import WaitingPack
from orbweaver.frontier.late_links import LANE, place_at
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.crawl import DAY_S, Counters, Crawl, State
from orbweaver.model.target import Target
from orbweaver.worker.apply_journal import claimer_of
from tests.memory import MemoryBacklog, MemoryFrontier, World

SITE = "https://wiki.example"
SPEC = CrawlSpec(seeds=(f"{SITE}/",), name="wiki", pages_max=100)
BEGAN_MS = 10 * DAY_S * 1000
CRAWL = replace(crawl_of(SPEC, BEGAN_MS), id="wiki-1")
NOW_MS = BEGAN_MS + 60_000


def pack(name: str, band: int, *urls: str) -> WaitingPack:
    """Return a late pack with these URLs."""
    targets = tuple(Target(url=f"{SITE}{url}", depth=1) for url in urls)
    place = place_at(band, targets, 1, name)
    made = Pack(id=name, crawl=CRAWL.id, targets=targets, at_ms=1, late=True, place=place)
    return WaitingPack(place=place, body=encode(made))


def counters(waiting: int) -> Counters:
    """Return counters with late links."""
    return Counters(shards=(), total={"late_links": waiting + 3, "late_links_taken": 3})


async def told_of(
    waiting: int,
    backlog: MemoryBacklog,
    frontier: MemoryFrontier | None = None,
    crawl: Crawl = CRAWL,
    now_ms: int = NOW_MS,
) -> Spared:
    """Read the late links of a crawl with `waiting` unread links."""
    claims = frontier or MemoryFrontier(World())
    return await spared_links(crawl, counters(waiting), backlog, claims, now_ms)


async def claim(frontier: MemoryFrontier, crawl: Crawl, at_ms: int, *paths: str) -> None:
    targets = [Target(url=f"{SITE}{path}", depth=1) for path in paths]
    await frontier.claim(claimer_of(crawl, f"{crawl.id}/pack", at_ms), targets)


async def waiting(*packs: WaitingPack) -> MemoryBacklog:
    backlog = MemoryBacklog(World())
    await backlog.put(CRAWL.id, LANE, packs)
    return backlog


async def report_with(told: Spared, crawl: Crawl = CRAWL) -> Report:
    return report_of(crawl, {}, Examples.for_crawl({}), {}, requests=Requests(), spared=told)


async def test_late_links_are_listed_by_kind() -> None:
    edits = [f"/w/index.php?title=Page{number}&action=edit" for number in range(20)]
    backlog = await waiting(
        pack("a", 3, *edits), pack("b", 4, "/w/Special:Log?token=s3cret", "/w/Special:Log?token=x")
    )
    told = await told_of(22, backlog)
    assert (told.links, told.read, told.exact) == (22, 22, True)
    assert told.kinds == (
        SparedKind(
            kind=f"{SITE}/w/index.php?title=Page0&action=edit",
            links=20,
            example=f"{SITE}/w/index.php?title=…&action=…",
        ),
        SparedKind(
            kind=f"{SITE}/w/Special:*?token=*", links=2, example=f"{SITE}/w/Special:Log?token=…"
        ),
    )


async def test_number_of_late_packs_read_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKS_READ", 1)
    backlog = await waiting(pack("a", 3, "/best"), pack("b", 5, "/worst/1", "/worst/2"))
    told = await told_of(3, backlog)
    assert (told.links, told.read, [one.links for one in told.kinds]) == (3, 1, [1])
    assert "late links that were not requested: at most 3; of the first 1" in spared_lines(
        await report_with(told, replace(CRAWL, state=State.FINISHED))
    )


async def test_late_link_counts_once_unless_claimed() -> None:
    places = pack("a", 3, "/twice", "/asked", "/known"), pack("b", 4, "/twice", "/once", "/later")
    frontier = MemoryFrontier(World())
    before, later = replace(CRAWL, id="wiki-0"), replace(CRAWL, id="wiki-2")
    await claim(frontier, replace(before, started_at_ms=1), BEGAN_MS - 1, "/known")
    await claim(frontier, CRAWL, BEGAN_MS + 1, "/asked")
    await claim(frontier, replace(later, started_at_ms=NOW_MS), NOW_MS, "/later")
    told = await told_of(6, await waiting(*places), frontier)
    assert (told.links, told.read, told.exact) == (3, 3, True)


async def test_count_is_upper_bound_after_claims_expire() -> None:
    """Claims expire a week after the run began."""
    backlog = await waiting(pack("a", 3, "/p"))
    week_s = CRAWL.claim_expires_s(BEGAN_MS, 0)
    assert (await told_of(1, backlog, now_ms=week_s * 1000 - 1)).exact
    late = await told_of(1, backlog, now_ms=week_s * 1000)
    assert (late.links, late.exact) == (1, False)


@pytest.mark.parametrize("crawl", [replace(CRAWL, pages_max=10**7), CRAWL])
async def test_no_pack_is_read_without_late_links(crawl: Crawl) -> None:
    async def refuse(*_: object) -> None:
        raise AssertionError

    backlog = MemoryBacklog(World(), refuse)
    told = await told_of(5 if crawl is not CRAWL else 0, backlog, crawl=crawl)
    assert told == Spared()
    assert spared_lines(await report_with(told)) == []


async def test_report_shows_how_to_fetch_late_links() -> None:
    told = await told_of(1, await waiting(pack("a", 3, "/p")))
    assert spared_lines(await report_with(told)) == [
        "",
        "late links, which wait until few others are left: 1",
        f"  1  {SITE}/p",
        f"      {SITE}/p",
        "  `orbweaver edit wiki-1 --max-pages N` requests the best of them",
    ]
    ended = spared_lines(await report_with(told, replace(CRAWL, state=State.FINISHED)))
    assert ended[-1] == "  a later run of wiki with a higher limit requests the best of them"
