"""Time of requests: robots.txt, slots and concurrency."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_schedule import Host
from orbweaver.politeness.pacer import Pacer, Turn
from orbweaver.politeness.robots_rules import UNDECIDED, AgentRules, RobotsRule
from orbweaver.worker.fetch_pack import HELD_MS, JUDGED_AT_ONCE, TROUBLE_MS
from orbweaver.worker.pack_context import PackContext
from tests.memory import World
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, Stage, answer, fail_on, hand_over, html
from tests.unit.worker.test_fetch_pack import OTHER, POLITE, A, targets, visit

OBEDIENT = replace(POLITE, obey_robots=True)


# --- robots -----------------------------------------------------------------------------------


async def test_url_forbidden_by_robots_is_skipped_with_record() -> None:
    stage = Stage().serve({"/robots.txt": answer(200, b"User-agent: *\nDisallow: /private/")})
    journal = await visit(stage, targets("private/x", "b"), OBEDIENT)
    ends = {record.url: record.reason for record in journal.records}
    assert ends[f"{SITE}/private/x"] is Reason.ROBOTS
    assert journal.counts["skipped.robots"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt", f"{SITE}/b"]


WILDCARDS = b"User-agent: *\nDisallow: /private/\n" + b"".join(
    b"Disallow: /*%s*x\n" % "*".join(f"{number:014b}").encode() for number in range(4_000)
)


async def test_robots_rules_are_matched_only_for_next_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage().serve({"/robots.txt": answer(200, WILDCARDS)})
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
    assert {item.target for item in journal.returning} == set(asked[6:])
    assert len(judged) == 2 * JUDGED_AT_ONCE


async def test_undecided_robots_rule_skips_url_and_is_counted() -> None:
    stage = Stage().serve({"/robots.txt": answer(200, WILDCARDS)})
    journal = await visit(stage, targets("10" * 450, "b"), OBEDIENT)
    (skipped,) = (record for record in journal.records if record.outcome is Outcome.SKIPPED)
    assert skipped.reason is Reason.ROBOTS
    assert skipped.error == f"robots.txt: {UNDECIDED.pattern}"
    assert journal.counts["robots.undecided"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt", f"{SITE}/b"]


@pytest.mark.long
async def test_robots_matching_yields_to_event_loop() -> None:
    stage = Stage().serve({"/robots.txt": answer(200, WILDCARDS)})
    turns = [time.process_time()]

    async def take_turns() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(time.process_time())

    other = asyncio.create_task(take_turns())
    await visit(stage, targets(*("10" * 450 + str(number) for number in range(25))), OBEDIENT)
    other.cancel()
    assert len(turns) > 25 / JUDGED_AT_ONCE
    # 5 ms on an idle machine; comparing every URL with every rule would take a second.
    assert max(after - before for before, after in pairwise(turns)) < 0.1


async def test_crawl_ignoring_robots_does_not_request_robots() -> None:
    stage = Stage()
    await visit(stage, [A], replace(OBEDIENT, obey_robots=False))
    assert stage.web.urls == [A.url]


async def test_longer_crawl_delay_is_kept() -> None:
    """The host asks for a longer delay than the crawl (case 68)."""
    stage = Stage().serve({"/robots.txt": answer(200, b"User-agent: *\nCrawl-delay: 4")})
    await visit(stage, targets("a", "b", "c"), OBEDIENT)
    pages = [at_ms for url, at_ms in stage.web.asked if not url.endswith("robots.txt")]
    assert len(pages) == 3
    assert all(other - one >= 4_000 for one, other in pairwise(pages))


@pytest.mark.parametrize(
    ("said", "kind", "attempts"),
    [
        (answer(503), "answered", ATTEMPTS_MAX),
        (Failure(reason=Reason.ADDRESS, detail="so it is"), Reason.ADDRESS, 1),
        (Failure(reason=Reason.TLS, detail="so it is"), Reason.TLS, 1),
        (Failure(reason=Reason.DNS_UNKNOWN, detail="so it is"), Reason.DNS_UNKNOWN, 2),
        (Failure(reason=Reason.CONNECT, detail="so it is"), Reason.CONNECT, 4),
    ],
)
async def test_unreachable_robots_defer_and_then_skip_urls(
    said: Response | Failure, kind: str, attempts: int
) -> None:
    """No page is requested without known rules. Permanent failures skip sooner (case 67)."""
    stage = Stage().serve({"/robots.txt": said})
    detail = said.detail if isinstance(said, Failure) else "HTTP 503"
    last, before = replace(A, attempt=attempts), replace(A, url=f"{SITE}/b", attempt=attempts - 1)
    journal = await visit(stage, [last, before] if attempts > 1 else [last], OBEDIENT)
    again = replace(before, attempt=attempts, failed=f"robots.txt: {detail}")
    assert [item.target for item in journal.returning] == [again] * (attempts > 1)
    assert all(item.delay_s >= 5 for item in journal.returning)
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE)
    assert record.error == f"robots.txt could not be had: {detail}"
    assert journal.counts[f"robots_unreachable.{kind}"] == 1
    assert stage.web.urls == [f"{SITE}/robots.txt"]


async def test_urls_return_without_slot_for_robots() -> None:
    stage = Stage()
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    journal = await visit(stage, targets("a", "b"), OBEDIENT)
    assert [item.target for item in journal.returning] == targets("a", "b")
    assert {item.delay_s for item in journal.returning} == {90}
    assert journal.counts == {"deferrals": 2}


# --- time of requests -------------------------------------------------------------------------


async def test_host_is_requested_in_its_slots() -> None:
    stage = Stage()
    paths = [str(place) for place in range(8)]
    journal = await visit(stage, targets(*paths), POLITE, ahead_ms=5_000)
    times = [at_ms for _, at_ms in stage.web.asked]
    assert len(times) == 5
    assert all(other - one >= 1_000 for one, other in pairwise(times))
    assert [item.target for item in journal.returning] == targets(*paths[5:])
    assert journal.counts["deferrals"] == 3


async def test_retry_is_requested_after_first_attempts() -> None:
    stage = Stage()
    first, *others = targets("slow", "a", "b")
    await visit(stage, [replace(first, attempt=2), *others], POLITE)
    assert stage.web.urls == [f"{SITE}/{name}" for name in ("a", "b", "slow")]


async def test_missed_slots_are_not_made_up_for() -> None:
    stage = Stage()
    stage.web.takes_ms = 2_600
    await visit(stage, targets("a", "b", "c"), POLITE)
    times = [at_ms for _, at_ms in stage.web.asked]
    assert len(times) == 3
    assert all(other - one >= 2_600 for one, other in pairwise(times))


async def test_url_missing_its_slot_waits_for_next_slot() -> None:
    stage = Stage(settings=Settings.of(fetch_concurrency=1, body_bytes_max=1_000))

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
    assert not journal.returning


async def test_visit_missing_its_slot_leaves_other_visits_their_slots() -> None:
    """A visit that reserves without the lock would wait behind the slots of the other visit."""
    stage = Stage()
    start_request = Pacer.start_request
    late_ms = [500]

    def started(pacer: Pacer, turn: Turn) -> bool:
        stage.clock.at_ms += late_ms.pop() if late_ms else 0
        return start_request(pacer, turn)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pacer, "start_request", started)
        await asyncio.gather(
            visit(stage, [A], POLITE), visit(stage, targets("b", "c", "d", "e"), POLITE)
        )
    times = [at_ms for _, at_ms in stage.web.asked]
    assert len(times) == 5
    assert all(1_000 <= other - one < 2_000 for one, other in pairwise(times)), times


async def test_pack_with_many_held_bytes_ends_early() -> None:
    stage = Stage(settings=Settings.of(held_bytes_max=1_500))
    for name in "abcdef":
        stage.web.put(f"{SITE}/{name}", html(title=name))
    journal = await visit(stage, targets(*"abcdef"), replace(POLITE, bodies=Bodies.HTML))
    done = len(stage.web.asked)
    assert 1 < done < 6
    assert [item.target.url for item in journal.returning] == [
        f"{SITE}/{name}" for name in "abcdef"[done:]
    ]
    assert {item.delay_s for item in journal.returning} == {HELD_MS / 1000}


async def test_held_bytes_defer_other_packs_until_stored() -> None:
    stage = Stage(settings=Settings.of(held_bytes_max=1_500))
    full = PackResult(CRAWL.id)
    full.held_bytes = 1_501
    with stage.pack_fetcher.holding(full):
        journal = await visit(stage, [A], POLITE)
    assert [item.target.url for item in journal.returning] == [A.url]
    assert stage.web.urls == []
    journal = await visit(stage, [A], POLITE)
    assert not journal.returning
    assert stage.web.urls == [A.url]


class CountingWeb:
    """A web with slow answers that counts open requests."""

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
async def test_concurrency_is_limited_per_host_and_stack(
    concurrency: int, at_once: int, most: dict[str, int]
) -> None:
    counting_web = CountingWeb()
    crawl = replace(CRAWL, concurrency=concurrency)
    stage = Stage(
        settings=Settings.of(fetch_concurrency=at_once), world=World(crawls={crawl.id: crawl})
    )
    stage.web.fetch = counting_web.fetch  # type: ignore[method-assign]
    paths = [str(place) for place in range(9)]
    asked = [*targets(*paths), *targets(*paths, host=OTHER)]
    result = PackResult(crawl.id)
    reservations = stage.budget_keeper.open(crawl, ROOT)
    stay = PackContext(crawl=crawl, until_ms=NOW_MS, reservations=reservations)
    await asyncio.gather(
        *(stage.pack_fetcher.fetch(stay, result, asked[half::2]) for half in (0, 1))
    )
    assert len(result.journal(asked, NOW_MS).records) == 18
    assert all(counting_web.most[key] <= number for key, number in most.items())
    assert counting_web.most["all"] == most["all"]


async def test_failed_slot_reservation_returns_url_and_frees_host() -> None:
    stage = Stage(gate=fail_on("hosts.reserve"))
    (again,) = (await visit(stage, [A], POLITE)).returning
    assert (again.target, again.delay_s) == (A, TROUBLE_MS // 1000)
    assert len((await visit(stage, [A], POLITE)).records) == 1


async def test_failed_host_item_does_not_affect_other_hosts() -> None:
    stage = Stage(gate=fail_on("hosts.reserve"))
    others = targets("a", host=OTHER)
    stage.web.put(others[0].url, html())
    journal = await visit(stage, [A, *others], POLITE)
    assert [record.url for record in journal.records] == [others[0].url]
    assert [item.target for item in journal.returning] == [A]


async def test_host_is_done_while_other_hosts_of_pack_wait() -> None:
    """Its next pack need not wait for the slots of the other hosts."""
    stage, done = Stage(gate=hand_over), list[tuple[str, int]]()
    await visit(stage, [A, *targets("b", "c", "d", host=OTHER)], POLITE, done=done)
    assert [host for host, _ in done] == [SITE, OTHER]
    assert done[0][1] < done[1][1] == 4


@pytest.mark.parametrize("effect", ["hosts.block", "hosts.fail"])
async def test_answer_counts_without_write_of_host_item(effect: str) -> None:
    stage = Stage(gate=fail_on(effect))
    failure = Failure(reason=Reason.CONNECT, detail="refused")
    stage.web.put(A.url, answer(503) if effect == "hosts.block" else failure)
    (again,) = (await visit(stage, [A], POLITE)).returning
    failed = "HTTP 503" if effect == "hosts.block" else "connect"
    assert again.target == replace(A, attempt=2, failed=failed)
