"""Failing and slow hosts, blocking pages, soft 404 pages, and robots directives."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.parsing.text_digest import REPEATS_MAX
from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.host_schedule import DOWN_S, FAILURES_MAX, PROBE_MS, ROUNDS_MAX
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, outcomes
from tests.unit.worker.test_fetch_pack import POLITE, A, targets, visit

SILENT = Failure(reason=Reason.CONNECT, detail="refused")
CHALLENGE = answer(403, b"", cf_mitigated="challenge")


def numbered(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def silent(stage: Stage, count: int) -> list[str]:
    for path in numbered(count):
        stage.web.put(f"{SITE}/{path}", SILENT)
    return numbered(count)


# --- silence ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reason",
    [Reason.CONNECT, Reason.TIMEOUT, Reason.DISCONNECTED, Reason.DNS, Reason.TLS_HANDSHAKE],
)
async def test_silent_host_is_blocked_after_five_failures(reason: Reason) -> None:
    """The other URLs lose no attempt (case 32)."""
    stage = Stage()
    paths = silent(stage, 8)
    for path in paths:
        stage.web.put(f"{SITE}/{path}", Failure(reason=reason, detail="x"))
    journal = await visit(stage, targets(*paths), POLITE)
    assert len(stage.web.asked) == FAILURES_MAX
    assert [item.target.attempt for item in journal.returning] == [2] * FAILURES_MAX + [1] * 3
    # The fifth request saw the block. Earlier URLs return sooner and are deferred then.
    assert all(item.delay_s >= 60 for item in journal.returning[FAILURES_MAX - 1 :])
    state = stage.world.hosts[SITE]
    assert (state.failures, state.strikes) == (FAILURES_MAX, 0)


@pytest.mark.parametrize(
    "said",
    [html(), answer(404), answer(500), answer(429, retry_after="0"), answer(301, location="/x")],
)
async def test_any_answer_resets_failures(said: Response) -> None:
    stage = Stage()
    paths = silent(stage, 8)
    stage.web.put(f"{SITE}/4", said)
    journal = await visit(stage, targets(*paths), POLITE)
    assert len(stage.web.asked) == 8
    assert stage.world.hosts[SITE].failures == 3
    assert journal.counts.get("deferrals", 0) == 0


async def test_failure_of_url_alone_does_not_count_for_host() -> None:
    stage = Stage()
    for path in numbered(8):
        stage.web.put(f"{SITE}/{path}", Failure(reason=Reason.TLS, detail="expired"))
    journal = await visit(stage, targets(*numbered(8)), POLITE)
    assert len(journal.records) == 8
    assert stage.world.hosts[SITE].failures == 0


async def test_one_request_probes_host_after_block() -> None:
    """If it succeeds, the other URLs follow. Otherwise the block begins again (case 32)."""
    stage = Stage()
    await visit(stage, targets(*silent(stage, FAILURES_MAX)), POLITE)
    stage.clock.at_ms = stage.world.hosts[SITE].blocked_until_ms
    asked = len(stage.web.asked)
    journal = await visit(stage, targets("0", "1", "2"), POLITE)
    assert len(stage.web.asked) == asked + 1
    assert [item.target.attempt for item in journal.returning] == [2, 1, 1]
    assert all(item.delay_s >= 120 for item in journal.returning)
    stage.clock.at_ms = stage.world.hosts[SITE].blocked_until_ms
    for path in ("0", "1", "2"):
        stage.web.put(f"{SITE}/{path}", html())
    journal = await visit(stage, targets("0", "1", "2"), POLITE)
    assert [record.url for record in journal.records] == [f"{SITE}/0"]
    assert stage.world.hosts[SITE].failures == 0
    assert all(item.delay_s <= PROBE_MS // 1_000 for item in journal.returning)
    stage.clock.at_ms += PROBE_MS
    assert len((await visit(stage, targets("1", "2"), POLITE)).records) == 2


async def test_dead_host_ends_its_urls_within_an_hour() -> None:
    """After four rounds, the other URLs end without a request (case 32)."""
    stage = Stage()
    urls = [f"{SITE}/{path}" for path in silent(stage, 60)]
    for start in range(0, 60, 20):
        pack = stage.begin(POLITE, *urls[start : start + 20], pack=f"{start:032x}")
        await stage.deliver(pack)
    await stage.drain()
    ends = outcomes(stage.world)
    assert set(ends) == set(urls)
    assert set(ends.values()) <= {"failed.connect", "failed.host_down"}
    asked = FAILURES_MAX + ROUNDS_MAX
    assert len(stage.web.asked) == asked
    assert stage.clock.at_ms - NOW_MS < 3_600_000
    (error,) = {it.error for it in stage.world.pages.values() if it.reason is Reason.HOST_DOWN}
    assert error == f"the host did not answer {asked} times in a row"


async def test_down_host_is_probed_after_an_hour() -> None:
    stage = Stage()
    urls = [f"{SITE}/{path}" for path in silent(stage, 12)]
    await stage.crawl(POLITE, *urls)
    stage.web.put(A.url, html())
    (record,) = (await visit(stage, [A], POLITE)).records
    assert (record.outcome, record.reason) == (Outcome.FAILED, Reason.HOST_DOWN)
    stage.clock.at_ms += round(DOWN_S * 1_100)
    (record,) = (await visit(stage, [A], POLITE)).records
    assert record.reason is Reason.OK


# --- refusals (429 and 503) --------------------------------------------------------------------


async def test_concurrent_rebuffs_count_once() -> None:
    stage = Stage()

    async def together(request: Request) -> Response:
        stage.web.asked.append((request.url, stage.clock.at_ms))
        for _ in range(50):
            await asyncio.sleep(0)
        stage.clock.at_ms += 5
        return answer(503)

    stage.web.fetch = together  # type: ignore[method-assign] # a web that takes its time
    await visit(stage, targets(*numbered(16)), replace(CRAWL, concurrency=16))
    state = stage.world.hosts[SITE]
    assert len(stage.web.asked) == 16
    assert state.strikes == 1
    assert state.blocked_until_ms - stage.clock.at_ms <= 66_000


# --- pages that block crawlers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (CHALLENGE, "HTTP 403: cloudflare challenge"),
        (answer(405, b"", x_amzn_waf_action="captcha"), "HTTP 405: aws waf"),
        (answer(202, b"", x_amzn_waf_action="challenge"), "aws waf"),
        (
            replace(html(), body=b"<script src=https://geo.captcha-delivery.com/x></script>"),
            "datadome",
        ),
    ],
)
async def test_blocking_page_fails_with_matched_rule(said: Response, error: str) -> None:
    stage = Stage().serve({A.url: said})
    (record,) = (await visit(stage, [A])).records
    assert (record.outcome, record.reason) == (Outcome.FAILED, Reason.BLOCKED)
    assert (record.error, record.title, record.sha256) == (error, None, None)
    assert stage.world.hosts[SITE].failures == 1


async def test_host_with_blocking_pages_is_blocked() -> None:
    stage = Stage()
    for path in numbered(8):
        stage.web.put(f"{SITE}/{path}", CHALLENGE)
    journal = await visit(stage, targets(*numbered(8)), POLITE)
    assert len(journal.records) == FAILURES_MAX
    assert len(journal.returning) == 3


async def test_challenge_with_429_is_retried_then_blocked() -> None:
    stage = Stage().serve({A.url: replace(CHALLENGE, status=429)})
    assert len((await visit(stage, [A])).returning) == 1
    stage.clock.at_ms += 600_000
    (record,) = (await visit(stage, [replace(A, attempt=ATTEMPTS_MAX)])).records
    assert (record.reason, record.error) == (Reason.BLOCKED, "HTTP 429: cloudflare challenge")


# --- soft 404 and repeated pages --------------------------------------------------------------


async def test_soft_404_is_marked_and_followed() -> None:
    """The links are followed, so that no page is lost (case 73)."""
    stage = Stage().serve({A.url: html("/b", title="404 Not Found")})
    journal = await visit(stage, [A])
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.FETCHED, Reason.SOFT_404)
    assert [target.url for target in journal.candidates] == [f"{SITE}/b"]


async def test_repeated_content_is_not_followed() -> None:
    """The pages are still recorded (case 76)."""
    stage = Stage()
    paths = numbered(REPEATS_MAX + 2)
    for path in paths:
        stage.web.put(f"{SITE}/{path}", html("x", "y"))
    journal = await visit(stage, targets(*paths))
    reasons = [record.reason for record in journal.records]
    assert reasons == [Reason.OK] * REPEATS_MAX + [Reason.REPEATED] * 2
    assert journal.counts["refused.repeated"] == 4
    assert journal.counts["fetched"] == REPEATS_MAX + 2


# --- robots directives ------------------------------------------------------------------------


def wishing(head: str, *links: str) -> Response:
    page = html(*links)
    return replace(page, body=head.encode() + (page.body or b""))


@pytest.mark.parametrize("skipped", [False, True])
@pytest.mark.parametrize(
    ("head", "headers"),
    [
        ("<meta name=robots content=NoIndex>", {}),
        ("<meta name=mine content=none>", {}),
        ("", {"x-robots-tag": "mine: noindex"}),
        ("", {"x-robots-tag": "otherbot: all, ORBWEAVER: NOINDEX"}),
    ],
)
async def test_noindex_page_is_marked_or_skipped(
    head: str, headers: dict[str, str], *, skipped: bool
) -> None:
    """The links of the page are followed (case 64)."""
    stage = Stage()
    page = wishing(head, *([] if "none" in head else ["/b"]))
    stage.web.put(A.url, replace(page, headers={**page.headers, **headers}))
    crawl = replace(CRAWL, noindex_skipped=skipped, user_agent="Mine/2.0 (+https://me.example)")
    journal = await visit(stage, [A], crawl)
    (record,) = journal.records
    assert record.reason is Reason.NOINDEX
    assert record.outcome is (Outcome.SKIPPED if skipped else Outcome.FETCHED)
    assert (record.title is None) is skipped
    assert len(journal.candidates) == ("none" not in head)


async def test_robots_directives_for_other_agents_are_ignored() -> None:
    """This applies to the meta element and the header (case 64)."""
    stage = Stage()
    page = wishing("<meta name=otherbot content=noindex>")
    stage.web.put(A.url, replace(page, headers={**page.headers, "x-robots-tag": "mine: noindex"}))
    (record,) = (await visit(stage, [A])).records
    assert record.reason is Reason.OK


@pytest.mark.parametrize(
    ("canonical", "reason", "found"),
    [
        ("/b", "skipped.canonical", [("/b", 1, 1), ("/c", 2, 0)]),
        ("/a", "fetched.ok", [("/c", 2, 0)]),
        ("https://other.example/a", "fetched.ok", [("/c", 2, 0)]),
        ("mailto:x", "fetched.ok", [("/c", 2, 0)]),
        ("/from", "fetched.ok", [("/c", 2, 0)]),
    ],
)
async def test_canonical_only_crawl_skips_other_pages(
    canonical: str, reason: str, found: list[tuple[str, int, int]]
) -> None:
    """The canonical page must be in scope (case 63)."""
    stage = Stage().serve({A.url: wishing(f"<link rel=canonical href={canonical}>", "/c")})
    target = replace(A, referrer=f"{SITE}/from")
    plain = await visit(stage, [target])
    assert plain.records[0].reason is Reason.OK
    journal = await visit(stage, [target], replace(CRAWL, canonical_only=True))
    (record,) = journal.records
    assert f"{record.outcome}.{record.reason}" == reason
    got = [(it.url.removeprefix(SITE), it.depth, it.hops) for it in journal.candidates]
    assert got == found
    (record,) = (
        await visit(stage, [replace(target, hops=10)], replace(CRAWL, canonical_only=True))
    ).records
    assert record.outcome is Outcome.FETCHED  # a chain ends at its tenth page, which is kept


# --- pace -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay_ms", "apart_ms"), [(1_000, 3_000), (5_000, 5_000), (0, 0)])
async def test_slow_host_is_requested_at_its_latency(delay_ms: int, apart_ms: int) -> None:
    stage = Stage()
    for path in ("1", "2", "3"):
        stage.web.put(f"{SITE}/{path}", replace(html(), latency_ms=3_000))
    crawl = replace(CRAWL, delay_ms=delay_ms)
    await visit(stage, targets("1"), crawl)
    stage.clock.at_ms += 60_000
    await visit(stage, targets("2", "3"), crawl)
    (_, first_ms), (_, second_ms) = stage.web.asked[1:]
    assert apart_ms <= second_ms - first_ms <= apart_ms * 1.1


async def test_timeout_does_not_change_pace() -> None:
    stage = Stage().serve({"/1": html()})
    timeout = Failure(reason=Reason.TIMEOUT, detail="", latency_ms=20_000)
    stage.web.put(f"{SITE}/2", timeout)
    stage.web.put(f"{SITE}/3", html())
    await visit(stage, targets("1", "2", "3"), replace(CRAWL, delay_ms=1_000))
    (_, silent_ms), (_, next_ms) = stage.web.asked[-2:]
    assert 1_000 <= next_ms - silent_ms <= 2_500


async def test_memory_of_paces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbweaver.politeness.host_health.PACES_MAX", 2)
    health = HostHealth(hosts=Stage().hosts, clock=Stage().clock, random=Random(1))
    for host in ("a", "b", "a", "c"):
        health.note_latency(host, 100, well=True)
    assert [health.pace_ms(host) for host in "abc"] == [100, 0, 100]
