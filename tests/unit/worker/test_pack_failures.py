"""Packs that fail, that are put off, and links that cost nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.messages import Pack, child_id
from orbweaver.model.crawl import default_crawl
from orbweaver.model.settings import STRIKES_MAX
from orbweaver.politeness.host_schedule import Host
from orbweaver.worker.pack import REQUEUES_MAX
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    ROOT,
    SITE,
    Killed,
    Stage,
    fail_on,
    html,
    noting,
    outcomes,
    pack_of,
    survives,
    urls_of,
)
from tests.unit.worker.test_pack import SEEDS, A, B

if TYPE_CHECKING:
    from orbweaver.frontier.messages import SeedsMessage
    from orbweaver.model.http_exchange import Request
    from tests.memory import Moment


# --- packs that fail --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receives", "failures", "buried"), [(4, 0, False), (5, 0, True), (2, 2, False), (2, 3, True)]
)
async def test_what_fails_too_often_is_buried(
    receives: int, failures: int, *, buried: bool
) -> None:
    """Failures are counted over redeliveries and resends; the last delivery gives the reason."""
    stage = Stage()
    stage.begin(CRAWL, A)
    pack = pack_of(A, failures=failures)
    assert await stage.deliver(pack, receives=receives) == []
    reasons = [mail.reason for mail in stage.world.buried]
    assert reasons == ([f"failed {receives + failures - 1} times"] if buried else [])
    assert (stage.web.urls == []) is buried


async def test_seeds_that_fail_too_often_are_buried() -> None:
    """Seeds have no failures of their own but those that the queue counts."""
    stage = Stage()
    stage.begin()
    assert await stage.deliver(SEEDS, receives=5) == []
    assert [mail.reason for mail in stage.world.buried] == ["failed 4 times"]


async def test_a_pack_that_comes_a_second_time_is_taken_apart() -> None:
    """Each URL goes on by itself, at once and as it is, and none is asked for before that."""
    stage = Stage()
    pack = stage.begin(CRAWL, A, B)
    assert await stage.deliver(pack, receives=2) == []
    assert [mail.delay_s for mail in stage.world.sent] == [0, 0]
    one, other = stage.sent()
    assert (urls_of([one]), urls_of([other])) == ({A}, {B})
    assert stage.web.urls == []
    assert stage.counts() == {"claimed": 2}


async def test_only_what_brings_a_worker_down_is_to_blame() -> None:
    """A URL that its worker does not survive is struck; after three strikes it is buried."""
    dead: list[Request] = []

    def die(request: Request) -> None:
        dead.append(request)
        raise Killed

    async def gate(_effect: str, _moment: Moment) -> None:
        if dead:
            raise Killed

    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.web.before = die
    for strike in range(STRIKES_MAX + 1):
        dead.clear()
        stage.restart(gate)
        assert not await survives(stage.deliver(replace(pack, failures=min(strike, 1))))
        assert stage.world.strikes == ({ROOT: strike} if strike else {})
    dead.clear()
    assert await stage.deliver(replace(pack, failures=1)) == []
    assert [mail.reason for mail in stage.world.buried] == ["crashed its worker 3 times"]
    assert len(stage.web.urls) == 1 + STRIKES_MAX


async def test_a_redriven_culprit_gets_one_more_chance() -> None:
    """Whoever moves it back may have mended what it died of (case 24)."""
    stage = Stage()
    stage.begin(CRAWL, A)
    stage.web.put(A, html())
    pack = pack_of(A, failures=1)
    stage.world.strikes[ROOT] = STRIKES_MAX
    await stage.deliver(pack)
    (mail,) = stage.world.buried
    assert await stage.deliver(mail.body) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert len(stage.world.buried) == 1


@pytest.mark.parametrize("strikes", [0, 2])
async def test_a_suspect_that_is_put_off_keeps_its_strikes(strikes: int) -> None:
    """Nothing was tried, so nothing is proved: it stays a suspect, with the strikes it had."""
    stage = Stage()
    stage.begin(CRAWL, A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 90_000)
    stage.world.strikes[ROOT] = strikes
    assert await stage.deliver(pack_of(A), receives=3) == []
    assert stage.world.strikes[ROOT] == strikes
    (pack,) = stage.sent()
    assert pack == replace(pack_of(A, failures=1), put_offs=1)


async def test_copies_of_a_suspect_that_is_put_off_become_one_that_has_its_strikes() -> None:
    """Put off too often, it goes on under another id: one that never died is a suspect no more."""
    for strikes, left in ((2, {ROOT: 2, child_id(ROOT, 0): 2}), (0, {ROOT: 0})):
        stage = Stage()
        stage.begin(CRAWL, A)
        stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 90_000)
        stage.world.strikes[ROOT] = strikes
        pack = replace(pack_of(A, failures=1), put_offs=REQUEUES_MAX)
        for _copy in range(2):
            assert await stage.deliver(pack) == []
        assert {sent.id for sent in stage.sent()} == {child_id(ROOT, 0)}
        assert stage.world.strikes == left


async def test_trouble_with_a_table_is_no_crash() -> None:
    """A suspect that fails by our fault comes back unstruck."""
    stage = Stage(gate=fail_on("hosts.reserve"))
    stage.begin(CRAWL, A)
    assert await stage.deliver(pack_of(A), receives=2) == []
    assert stage.sent() == [replace(pack_of(A, failures=1), put_offs=1)]
    assert stage.world.strikes == {ROOT: 0}


# --- packs that are put off -------------------------------------------------------------------


async def test_a_pack_that_gets_no_slot_is_put_off_whole() -> None:
    """The same pack, with its id, returns in its turn; nothing is written about it."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, delay_ms=1_000)
    pack = stage.begin(crawl, A, B)
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    assert await stage.deliver(pack) == []
    assert [mail.delay_s for mail in stage.world.sent] == [90]
    assert stage.sent() == [replace(pack, put_offs=1)]
    assert not {"packs.journal", "packs.commit"} & set(effects)


async def test_copies_that_are_put_off_again_and_again_become_one() -> None:
    """Each may be copied anew each time, so that they would be more and more."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, delay_ms=1_000), A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 30 * 900_000)
    copies: list[Pack | SeedsMessage] = [pack]
    for place in range(REQUEUES_MAX + 1):
        assert [copy.id for copy in copies] == [ROOT] * 2**place
        for copy in copies * 2:
            await stage.deliver(copy)
        copies = stage.sent()
    assert [copy.id for copy in copies] == [child_id(ROOT, 0)]
    assert stage.counts()["deferrals"] == 1


async def test_a_pack_may_be_put_off_any_number_of_times() -> None:
    """Thirty deferrals later it has no failures and all its attempts (case 22)."""
    stage = Stage()
    crawl = replace(CRAWL, delay_ms=1_000, duration_max_s=30 * 86_400)
    pack = stage.begin(crawl, A)
    stage.web.put(A, html())
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 30 * 900_000)
    for _ in range(30):
        await stage.deliver(pack)
        (mail,) = stage.world.sent
        assert mail.delay_s == 900
        (pack,) = (sent for sent in stage.sent() if isinstance(sent, Pack))
        assert (urls_of([pack]), pack.failures) == ({A}, 0)
        stage.clock.at_ms += 900_000
    await stage.deliver(pack)
    (record,) = stage.world.pages.values()
    assert record.attempt == 1
    assert stage.counts()["fetched"] == 1


async def test_what_was_asked_is_settled_and_the_rest_comes_back() -> None:
    """A pack that got some slots is done; its other URLs travel on in a pack of their own."""
    stage = Stage()
    crawl = replace(CRAWL, delay_ms=1_000)
    paths = [f"{SITE}/{place}" for place in range(25)]
    pack = stage.begin(crawl, *paths)
    assert await stage.deliver(pack) == []
    asked = stage.web.urls
    assert 0 < len(asked) < 25
    assert set(outcomes(stage.world)) == set(asked)
    (rest,) = stage.sent()
    assert urls_of([rest]) == set(paths) - set(asked)
    assert rest.id == child_id(ROOT, 0)
    assert stage.counts()["deferrals"] == 25 - len(asked)


@pytest.mark.parametrize(("remaining_ms", "asked"), [(28_000, False), (28_500, True)])
async def test_nothing_is_begun_that_could_not_be_settled(
    remaining_ms: int, *, asked: bool
) -> None:
    """Short of time, URLs come back unasked, well before the limit (case 10)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, delay_ms=1_000), A, B)
    assert await stage.deliver(pack, remaining_ms=remaining_ms) == []
    assert bool(stage.web.urls) is asked
    assert urls_of(stage.sent()) >= {B}
    assert stage.clock.at_ms < NOW_MS + remaining_ms


# --- links ------------------------------------------------------------------------------------


async def test_links_that_are_claimed_already_cost_no_write() -> None:
    """A cheap read, and what this container has seen, spare conditional writes."""
    stage = Stage()
    stage.begin(CRAWL, A)
    links = [f"/{place}" for place in range(5)]
    stage.web.put(A, html(*links))
    await stage.deliver(pack_of(A))
    for name, effects_expected in (
        ("same container", {"frontier.known": 0, "frontier.claim": 0}),
        ("another container", {"frontier.known": 1, "frontier.claim": 0}),
    ):
        effects: list[str] = []
        seen = stage.processor._sifter.seen
        stage.restart(noting(effects))
        if name == "same container":
            stage.processor._sifter.seen = seen
        await stage.deliver(pack_of(A, pack=child_id(name, 0)))
        assert {key: effects.count(key) for key in effects_expected} == effects_expected, name
    assert stage.counts()["claimed"] == 6


async def test_a_short_window_is_not_outlived_by_memory() -> None:
    """A crawl without an end forgets after its window, so its containers remember nothing."""
    stage = Stage()
    crawl = replace(default_crawl(NOW_MS), window_s=60, obey_robots=False, delay_ms=0)
    stage.begin(crawl)
    stage.web.put(A, html("/b"))
    for name in ("one", "two"):
        await stage.deliver(pack_of(A, crawl=crawl.id, pack=child_id(name, 0)))
        assert urls_of(stage.sent()) == {B}
        stage.clock.at_ms += 61_000


async def test_a_spent_budget_is_not_tried_again() -> None:
    """Once claims had to be given back, later links of the crawl wait, and are not looked up."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, pages_max=2)
    stage.begin(crawl, A, B)
    for url, links, word in ((A, ("/1", "/2", "/3"), "ant"), (B, ("/4", "/5"), "bee")):
        # As nothing waits that is of a kind which brings something new.
        text = " ".join(f"{word}{letter} hill" for letter in "abcdefghijklmnopqrst")
        found = html(*links, title=word)
        stage.web.put(url, replace(found, body=(found.body or b"") + f"<p>{text}".encode()))
    await stage.deliver(pack_of(A))
    assert stage.sent() == []
    effects.clear()
    await stage.deliver(pack_of(B, pack=child_id("b", 0)))
    assert not {"frontier.known", "frontier.claim", "queue.send"} & set(effects)
    assert stage.counts()["claimed"] == 2
    assert stage.counts()["late_links"] == 5
    assert "refused.budget" not in stage.counts()


async def test_outcomes_are_metrics() -> None:
    """What a pack came to is counted for the dashboard; why URLs failed, beside it."""
    stage = Stage()
    stage.begin(CRAWL, A, B)
    stage.web.put(A, html())
    await stage.deliver(pack_of(A, B))
    ended = {"fetched": 1, "failed": 1, "UrlsEnded": 2}
    assert stage.metrics.totals == {**ended, "bytes": 19}
    assert stage.metrics.failures == {"http_client_error": 1}


async def test_a_journal_that_cannot_be_written_brings_the_pack_back() -> None:
    """Nothing is claimed or stored before what was found is written down (case 3)."""
    stage = Stage(gate=fail_on("packs.journal"))
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html("/b"))
    assert await stage.deliver(pack) == [0]
    assert (stage.world.claims, stage.world.pages) == ({}, {})
    known = await stage.packs.recall([ROOT])
    assert ROOT not in known
