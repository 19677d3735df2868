"""Links that wait: how many are counted, and of which kinds those are that come first."""

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
from orbweaver.frontier.late import LANE, place_at
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.crawl import Counters, Crawl, State
from orbweaver.model.target import Target
from tests.memory import MemoryBacklog, World

SITE = "https://wiki.example"
SPEC = CrawlSpec(seeds=(f"{SITE}/",), name="wiki", pages_max=100)
CRAWL = replace(crawl_of(SPEC, 1), id="wiki-1")


def pack(name: str, band: int, *urls: str) -> WaitingPack:
    """Have links wait."""
    targets = tuple(Target(url=f"{SITE}{url}", depth=1) for url in urls)
    place = place_at(band, targets, 1, name)
    made = Pack(id=name, crawl=CRAWL.id, targets=targets, at_ms=1, late=True, place=place)
    return WaitingPack(place=place, body=encode(made))


def counters(waiting: int) -> Counters:
    """Count links that wait."""
    return Counters(shards=(), total={"late_links": waiting + 3, "late_links_taken": 3})


async def waiting(*packs: WaitingPack) -> MemoryBacklog:
    """Put late packs."""
    backlog = MemoryBacklog(World())
    await backlog.put(CRAWL.id, LANE, packs)
    return backlog


async def report_with(told: Spared, crawl: Crawl = CRAWL) -> Report:
    """Make a report of nothing else."""
    return report_of(crawl, {}, Examples.of({}), {}, requests=Requests(), spared=told)


async def test_links_that_wait_are_told_by_kind() -> None:
    """The most frequent kind first, each with an example that says nothing secret."""
    edits = [f"/w/index.php?title=Page{number}&action=edit" for number in range(20)]
    backlog = await waiting(
        pack("a", 3, *edits), pack("b", 4, "/w/Special:Log?token=s3cret", "/w/Special:Log?token=x")
    )
    told = await spared_links(CRAWL, counters(22), backlog)
    assert (told.links, told.read) == (22, 22)
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


async def test_no_more_packs_are_read_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best come first, and how many were looked at is said."""
    monkeypatch.setattr(module, "PACKS_READ", 1)
    backlog = await waiting(pack("a", 3, "/best"), pack("b", 5, "/worst/1", "/worst/2"))
    told = await spared_links(CRAWL, counters(3), backlog)
    assert (told.links, told.read, [one.links for one in told.kinds]) == (3, 1, [1])
    assert "links that were spared: 3; of the first 1" in spared_lines(
        await report_with(told, replace(CRAWL, state=State.FINISHED))
    )


@pytest.mark.parametrize("crawl", [replace(CRAWL, pages_max=10**7), CRAWL])
async def test_where_nothing_waits_nothing_is_read(crawl: Crawl) -> None:
    """Neither of a crawl without an order, nor of one whose links were all asked for."""

    async def refuse(*_: object) -> None:
        raise AssertionError

    backlog = MemoryBacklog(World(), refuse)
    told = await spared_links(crawl, counters(5 if crawl is not CRAWL else 0), backlog)
    assert told == Spared()
    assert spared_lines(await report_with(told)) == []


async def test_a_person_is_told_how_they_are_asked_for_all_the_same() -> None:
    """By an edit while the crawl runs, else by a later run."""
    told = await spared_links(CRAWL, counters(1), await waiting(pack("a", 3, "/p")))
    assert spared_lines(await report_with(told)) == [
        "",
        "links that wait until little else is left: 1",
        f"  1  {SITE}/p",
        f"      {SITE}/p",
        "  `orbweaver edit wiki-1 --max-pages N` goes on with the best of them",
    ]
    ended = spared_lines(await report_with(told, replace(CRAWL, state=State.FINISHED)))
    assert ended[-1] == "  a later run of wiki with a higher limit goes on with the best of them"
