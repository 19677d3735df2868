"""Who is asked when: robots, slots, and how many at once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_schedule import Host
from orbweaver.politeness.robots_rules import UNDECIDED, AgentRules
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.fetch_pack import HELD_MS, JUDGED_AT_ONCE, TROUBLE_MS, PackFetcher
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.pack_context import PackContext
from tests.memory import ManualClock, MemoryCrawls, MemoryFiles, MemoryHosts, MemoryPages, World
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, Stage, answer, fail_on, html
from tests.unit.worker.test_fetch_pack import OTHER, POLITE, A, targets, visit

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Request, Response
    from orbweaver.politeness.robots_rules import RobotsRule

OBEDIENT = replace(POLITE, obey_robots=True)


# --- robots -----------------------------------------------------------------------------------


async def test_what_robots_forbid_is_skipped_unasked() -> None:
    """A forbidden URL has a record that says so, and was never asked for."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nDisallow: /private/"))
    journal = await visit(stage, targets("private/x", "b"), OBEDIENT)
    ends = {record.url: record.reason for record in journal.records}
    assert ends[f"{SITE}/private/x"] is Reason.ROBOTS
    assert journal.counts["skipped.robots"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt", f"{SITE}/b"]


WILDCARDS = b"User-agent: *\nDisallow: /private/\n" + b"".join(
    b"Disallow: /*%s*x\n" % "*".join(f"{number:014b}").encode() for number in range(4_000)
)


async def test_only_what_is_about_to_be_asked_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pack that gets three slots the rest is not compared with thousands of wildcards."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, WILDCARDS))
    judged: list[str] = []
    judge = AgentRules._judge

    def noted(self: AgentRules, path: str) -> RobotsRule | None:
        judged.append(path)
        return judge(self, path)

    monkeypatch.setattr(AgentRules, "_judge", noted)
    asked = targets(*(f"private/{n}" for n in range(3)), *(f"b{n}" for n in range(22)))
    journal = await visit(stage, asked, OBEDIENT, ahead_ms=3_500)
    assert len(journal.records) == 3 + 3
    assert sorted(record.reason for record in journal.records)[-3:] == [Reason.ROBOTS] * 3
    assert len(stage.web.urls) == 1 + 3
    assert {item.target for item in journal.again} == set(asked[6:])
    assert len(judged) == 2 * JUDGED_AT_ONCE


async def test_what_is_too_much_to_compare_is_skipped_and_counted() -> None:
    """A URL that wildcards beyond the bound may be about is not asked for, and says why."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, WILDCARDS))
    journal = await visit(stage, targets("10" * 450, "b"), OBEDIENT)
    (skipped,) = (record for record in journal.records if record.outcome is Outcome.SKIPPED)
    assert skipped.reason is Reason.ROBOTS
    assert skipped.error == f"robots.txt: {UNDECIDED.pattern}"
    assert journal.counts["robots.undecided"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt", f"{SITE}/b"]


async def test_the_event_loop_is_not_held_by_verdicts() -> None:
    """While a pack is judged by the worst of files, others get their turns."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, WILDCARDS))
    turns = [time.process_time()]

    async def take_turns() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(time.process_time())

    other = asyncio.create_task(take_turns())
    await visit(stage, targets(*("10" * 450 + str(number) for number in range(25))), OBEDIENT)
    other.cancel()
    assert len(turns) > 25 / JUDGED_AT_ONCE
    # 5 ms on a machine at rest; to compare all with all would take a second.
    assert max(after - before for before, after in pairwise(turns)) < 0.1


async def test_a_crawl_may_ignore_robots() -> None:
    """On a site of one's own the file is not even asked for."""
    stage = Stage()
    await visit(stage, [A], replace(OBEDIENT, obey_robots=False))
    assert stage.web.urls == [A.url]


async def test_a_crawl_delay_is_kept() -> None:
    """Requests are as far apart as the host asks, if that is longer (case 68)."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nCrawl-delay: 4"))
    await visit(stage, targets("a", "b", "c"), OBEDIENT)
    pages = [at_ms for url, at_ms in stage.web.asked if not url.endswith("robots.txt")]
    assert len(pages) == 3
    assert all(other - one >= 4_000 for one, other in pairwise(pages))


async def test_unreachable_robots_put_off_and_then_skip() -> None:
    """While nobody knows what is allowed, nothing is asked; in the end it is skipped (case 67)."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(503))
    journal = await visit(stage, [A, replace(A, url=f"{SITE}/b", attempt=ATTEMPTS_MAX)], OBEDIENT)
    (item,) = journal.again
    assert item.target == replace(A, attempt=2, failed="robots.txt: HTTP 503")
    assert item.delay_s >= 5
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE)
    assert record.error == "robots.txt could not be had: HTTP 503"
    assert journal.counts["robots_unreachable.answered"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt"]


@pytest.mark.parametrize(
    ("reason", "attempts"),
    [(Reason.ADDRESS, 1), (Reason.TLS, 1), (Reason.DNS_UNKNOWN, 2), (Reason.CONNECT, 4)],
)
async def test_what_time_does_not_mend_is_not_waited_for(reason: Reason, attempts: int) -> None:
    """A robots.txt behind a refused address or a bad certificate ends its URLs at once."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", Failure(reason=reason, detail="so it is"))
    last, before = replace(A, attempt=attempts), replace(A, url=f"{SITE}/b", attempt=attempts - 1)
    journal = await visit(stage, [last, before] if attempts > 1 else [last], OBEDIENT)
    assert len(journal.again) == (attempts > 1)
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE)
    assert record.error == "robots.txt could not be had: so it is"
    assert journal.counts[f"robots_unreachable.{reason}"] == 1


async def test_without_a_slot_for_robots_all_is_put_off() -> None:
    """URLs wait for the rules, and that costs them no attempt."""
    stage = Stage()
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    journal = await visit(stage, targets("a", "b"), OBEDIENT)
    assert [item.target for item in journal.again] == targets("a", "b")
    assert {item.delay_s for item in journal.again} == {90}
    assert journal.counts == {"deferrals": 2}


# --- who is asked when ------------------------------------------------------------------------


async def test_a_host_is_asked_in_its_slots() -> None:
    """Requests to a host keep its delay; those beyond the horizon come back in their turn."""
    stage = Stage()
    paths = [str(place) for place in range(8)]
    journal = await visit(stage, targets(*paths), POLITE, ahead_ms=5_000)
    times = [at_ms for _, at_ms in stage.web.asked]
    assert len(times) == 5
    assert all(other - one >= 1_000 for one, other in pairwise(times))
    assert [item.target for item in journal.again] == targets(*paths[5:])
    assert journal.counts["deferrals"] == 3


async def test_a_slow_server_does_not_shorten_the_delay() -> None:
    """Slots that pass while an answer takes long are not made up for."""
    stage = Stage()
    stage.web.takes_ms = 2_600
    await visit(stage, targets("a", "b", "c"), POLITE)
    times = [at_ms for _, at_ms in stage.web.asked]
    assert len(times) == 3
    assert all(other - one >= 2_600 for one, other in pairwise(times))


async def test_url_missing_its_slot_waits_for_the_next_one() -> None:
    """Held up behind other hosts' requests, a URL waits for its host's next slot.

    The bytes that it might have taken are free for the next one.
    """
    stage = Stage(settings=Settings(fetch_concurrency=1, body_bytes_max=1_000))

    async def slowly(request: Request) -> Response:
        stage.web.asked.append((request.url, stage.clock.at_ms))
        await asyncio.sleep(0)
        stage.clock.at_ms += 2_600
        return answer(404)

    stage.web.fetch = slowly  # type: ignore[method-assign] # a web with one line
    held = replace(POLITE, bytes_max=1_000)
    reservations = stage.budget_keeper.open(held, ROOT)
    journal = await visit(stage, [A, *targets("x", host=OTHER)], held, reservations=reservations)
    assert reservations.bytes is not None
    assert await reservations.bytes.take(1_000, 1) == 1_000
    assert stage.web.urls == [A.url, f"{OTHER}/x"]
    assert not journal.again


async def test_a_pack_that_holds_much_ends_with_what_it_has() -> None:
    """What its pages are stored by lies in memory until it ends; the rest comes back."""
    stage = Stage(settings=Settings(held_bytes_max=1_500))
    for name in "abcdef":
        stage.web.put(f"{SITE}/{name}", html(title=name))
    journal = await visit(stage, targets(*"abcdef"), replace(POLITE, bodies=Bodies.HTML))
    done = len(stage.web.asked)
    assert 1 < done < 6
    assert [item.target.url for item in journal.again] == [
        f"{SITE}/{name}" for name in "abcdef"[done:]
    ]
    assert {item.delay_s for item in journal.again} == {HELD_MS / 1000}


async def test_packs_are_held_up_by_what_others_hold_until_that_is_stored() -> None:
    """However they end."""
    stage = Stage(settings=Settings(held_bytes_max=1_500))
    full = PackResult(CRAWL.id)
    full.held_bytes = 1_501
    with stage.pack_fetcher.holding(full):
        journal = await visit(stage, [A], POLITE)
    assert [item.target.url for item in journal.again] == [A.url]
    assert stage.web.urls == []
    journal = await visit(stage, [A], POLITE)
    assert not journal.again
    assert stage.web.urls == [A.url]


class CountingWeb:
    """A web in which answers take their time, and that counts who is inside."""

    def __init__(self) -> None:
        self.inside: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def fetch(self, request: Request) -> Response:
        host = request.url.rpartition("/")[0]
        for key in (host, "all"):
            self.inside[key] = self.inside.get(key, 0) + 1
            self.most[key] = max(self.most.get(key, 0), self.inside[key])
        for _ in range(10):
            await asyncio.sleep(0)
        for key in (host, "all"):
            self.inside[key] -= 1
        return answer(404)


@pytest.mark.parametrize(
    ("concurrency", "at_once", "most"),
    [
        (1, 64, {SITE: 1, OTHER: 1, "all": 2}),
        (3, 64, {SITE: 3, OTHER: 3, "all": 6}),
        (3, 2, {SITE: 2, OTHER: 2, "all": 2}),
    ],
)
async def test_hosts_are_asked_side_by_side_within_bounds(
    concurrency: int, at_once: int, most: dict[str, int]
) -> None:
    """A host gets as many requests at once as the crawl says, all together as the stack says."""
    counting_web = CountingWeb()
    crawl = replace(CRAWL, concurrency=concurrency)
    clock, world = ManualClock(NOW_MS), World(crawls={crawl.id: crawl})
    pack_fetcher = PackFetcher(
        fetcher=counting_web,
        reader=InPlaceReader(),
        hosts=MemoryHosts(world),
        history=MemoryPages(world),
        crawls=RecentCrawls(crawls=MemoryCrawls(world), clock=clock),
        kinds=KindLearning(
            crawls=MemoryCrawls(world), files=MemoryFiles(world), settings=Settings()
        ),
        clock=clock,
        random=Random(1),
        settings=Settings(fetch_concurrency=at_once),
    )
    paths = [str(place) for place in range(9)]
    asked = [*targets(*paths), *targets(*paths, host=OTHER)]
    result = PackResult(crawl.id)
    reservations = Stage().budget_keeper.open(crawl, ROOT)
    stay = PackContext(crawl=crawl, until_ms=NOW_MS, reservations=reservations)
    await asyncio.gather(*(pack_fetcher.fetch(stay, result, asked[half::2]) for half in (0, 1)))
    assert len(result.journal(asked, NOW_MS).records) == 18
    assert all(counting_web.most[key] <= number for key, number in most.items())
    assert counting_web.most["all"] == most["all"]


async def test_trouble_with_a_table_leaves_nobody_waiting() -> None:
    """Where no slot can be reserved URLs come back, and the host is free for the next ones."""
    stage = Stage(gate=fail_on("hosts.reserve"))
    (again,) = (await visit(stage, [A], POLITE)).again
    assert (again.target, again.delay_s) == (A, TROUBLE_MS // 1000)
    assert len((await visit(stage, [A], POLITE)).records) == 1


async def test_trouble_with_one_host_is_no_other_hosts() -> None:
    """What one host answered stays, when the item of another cannot be read."""
    stage = Stage(gate=fail_on("hosts.reserve"))
    others = targets("a", host=OTHER)
    stage.web.put(others[0].url, html())
    journal = await visit(stage, [A, *others], POLITE)
    assert [record.url for record in journal.records] == [others[0].url]
    assert [item.target for item in journal.again] == [A]


@pytest.mark.parametrize("effect", ["hosts.block", "hosts.fail"])
async def test_an_answer_counts_though_it_cannot_be_noted(effect: str) -> None:
    """A note on the host is lost while its item cannot be written; the answer is not."""
    stage = Stage(gate=fail_on(effect))
    failure = Failure(reason=Reason.CONNECT, detail="refused")
    stage.web.put(A.url, answer(503) if effect == "hosts.block" else failure)
    (again,) = (await visit(stage, [A], POLITE)).again
    failed = "HTTP 503" if effect == "hosts.block" else "connect"
    assert again.target == replace(A, attempt=2, failed=failed)
