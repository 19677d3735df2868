"""The change feed against a reference model: random runs, orders and kills."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.model.crawl import Crawl, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.page_record import PageRecord
from tests.memory import Moment
from tests.unit.changing import (
    BROKEN,
    GONE,
    HOUR_MS,
    MOVED,
    NOON_MS,
    PAGE,
    SAME,
    SITEMAP,
    Stand,
    record,
    run,
    url_of,
)

PAGES = tuple("abcdefgh")
KINDS = {
    "page": PAGE,
    "same": SAME,
    "gone": GONE,
    "moved": MOVED,
    "sitemap": SITEMAP,
    "broken": BROKEN,
}
# Change and body; previous run and body.
Row: TypeAlias = tuple[str, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """State of a URL in the model."""

    page: bool
    sha256: str | None
    crawl: str
    asked_ms: int
    referrer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run and its records: page to kind and record."""

    crawl: Crawl
    records: Mapping[str, tuple[str, PageRecord]]


def story(random: Random, number: int) -> Story:
    """Generate a run; several may overlap."""
    begun_ms = NOON_MS + random.randrange(6) * HOUR_MS
    crawl = run(
        0,
        id=f"site-{number}",
        started_at_ms=begun_ms,
        finished_at_ms=begun_ms + random.randrange(1, 3 * HOUR_MS),
        stop=random.choice([Stop.FINISHED, Stop.FINISHED, Stop.FINISHED, Stop.MAX_PAGES]),
        window_s=random.choice([0, 0, 3_600, 4 * 3_600]),
        retry_of=random.choice([None, None, None, None, "site-0"]),
    )
    asked = random.sample(PAGES, random.randrange(len(PAGES) + 1))
    records = {}
    for name in asked:
        kind = random.choice([*KINDS, "page", "page"])
        body = random.choice("12")
        known = {"sha256": body} if kind in ("page", "sitemap") else {}
        by = random.choice([None, *PAGES])
        spent_ms = (crawl.finished_at_ms or 0) - begun_ms
        at_ms = begun_ms + random.randrange(spent_ms)
        made = record(crawl, name, KINDS[kind], by=by, fetched_at=at_ms, **known)
        records[name] = (kind, made)
    return Story(crawl=crawl, records=records)


def end_of(crawl: Crawl) -> tuple[int, str]:
    """Return the sort key of a run: its end, then its id."""
    return crawl.finished_at_ms or 0, crawl.id


def told(stories: list[Story]) -> dict[str, dict[str, Row]]:
    """Return the expected feeds of all runs in the order of their ends: run to page to row."""
    known: dict[str, Told] = {}
    feeds = {}
    for mine in sorted(stories, key=lambda one: end_of(one.crawl)):
        feeds[mine.crawl.id], known = told_of(mine, known, stories)
    return feeds


def told_of(
    mine: Story, known: dict[str, Told], stories: list[Story]
) -> tuple[dict[str, Row], dict[str, Told]]:
    """Return the expected feed of one run, and the state after it."""
    crawl = mine.crawl
    rows: dict[str, Row] = {}
    after: dict[str, Told] = {}
    due: dict[str, Told] = {}
    for name in PAGES:
        was = known.get(name)
        kind, made = mine.records.get(name, ("", None))
        if made is None or kind == "broken" or (was and made.fetched_at < was.asked_ms):
            if was is not None:
                asked_ms = made.fetched_at if made else 0
                kept = replace(was, asked_ms=max(was.asked_ms, asked_ms))
                (due if made is None and missed(was, crawl, stories) else after)[name] = kept
        else:
            row = row_of(kind, made, was)
            if row is not None:
                rows[name] = row
            if kind != "gone":
                page = kind in ("page", "same")
                digest = row[1] if page and row is not None else None
                after[name] = Told(page, digest, crawl.id, made.fetched_at, made.referrer)
    for name in lost(crawl, after, due):
        was = due.pop(name)
        if was.page:
            rows[name] = ("deleted", None, was.crawl, was.sha256)
    return rows, after | due


def row_of(kind: str, made: PageRecord, was: Told | None) -> Row | None:
    page = was if was is not None and was.page else None
    before = (None, None) if page is None else (page.crawl, page.sha256)
    if kind not in ("page", "same"):
        return None if page is None else ("deleted", None, *before)
    if page is None:
        return ("created", made.sha256, *before)
    if kind == "same":
        return ("unchanged", page.sha256, *before)
    same = made.sha256 == page.sha256
    return ("unchanged" if same else "updated", made.sha256, *before)


def missed(was: Told, crawl: Crawl, stories: list[Story]) -> bool:
    """True if a run would have requested an unvisited page, had a link led to it."""
    beside = any(
        one.crawl.started_at_ms < end_of(crawl)[0] and end_of(one.crawl) > end_of(crawl)
        for one in stories
    )
    whole = crawl.stop is Stop.FINISHED and crawl.retry_of is None and not beside
    return whole and was.asked_ms < crawl.started_at_ms - crawl.window_s * 1000


def lost(crawl: Crawl, after: dict[str, Told], due: dict[str, Told]) -> set[str]:
    """Return due pages that are not below an unread page."""
    places = {url_of(name): name for name in PAGES}
    kept = {name for name, one in after.items() if one.crawl != crawl.id}
    more = kept
    while more:
        more = {name for name, one in due.items() if places.get(one.referrer or "") in kept} - kept
        kept |= more
    return due.keys() - kept


async def fed(stand: Stand, crawl: Crawl) -> dict[str, Row]:
    rows = await stand.rows(crawl)
    found = {row["url"].rpartition("/")[2]: row for row in rows}
    assert len(found) == len(rows)
    return {
        name: (row["change"], row["sha256"], row["previous_crawl"], row["previous_sha256"])
        for name, row in found.items()
    }


async def stand_of(stories: list[Story], lines_max: int) -> Stand:
    stand = Stand(lines_max=lines_max)
    for one in stories:
        await stand.add(one.crawl, *(made for _, made in one.records.values()))
    return stand


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_feeds_equal_model_feeds(seed: int) -> None:
    random = Random(seed)
    stories = [story(random, number) for number in range(random.randrange(1, 7))]
    expected = told(stories)

    async def check() -> None:
        stand = await stand_of(stories, random.randrange(1, 5))
        for one in random.sample(stories, len(stories)):
            assert await fed(stand, one.crawl) == expected[one.crawl.id], one.crawl.id

    asyncio.run(check())


class Killed(BaseException):
    """The process is killed."""


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_killed_feed_ends_with_same_files(seed: int) -> None:
    random = Random(seed)
    stories = [story(random, number) for number in range(3)]
    last = max((one.crawl for one in stories), key=end_of)

    async def check() -> None:
        calm, wild = await stand_of(stories, 2), await stand_of(stories, 2)
        assert await calm.feed().make(last)
        left = random.randrange(60)

        async def gate(effect: str, moment: Moment) -> None:
            nonlocal left
            await asyncio.sleep(0)
            left -= 1
            if left < 0 and random.random() < 0.1:
                left = random.randrange(60)
                raise random.choice([Killed, Transient])(f"{effect} {moment}")

        done = [False, False]
        while not all(done):
            tries = (wild.feed(gate).make(last, deadline_ms=random.choice([None, 0])) for _ in done)
            done = [it is True for it in await asyncio.gather(*tries, return_exceptions=True)]
        assert wild.world.files == calm.world.files

    asyncio.run(check())
