"""Explanations of URLs of crawls that ran over the memory adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.control.crawl_control import UnknownCrawl
from orbweaver.diagnostics.url_status import UrlStatus
from orbweaver.frontier.backlog import WaitingPack
from orbweaver.frontier.messages import Pack, encode, seeds_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Reason
from orbweaver.model.page_record import DAY_MS
from orbweaver.model.url_rules import UrlRule
from orbweaver.politeness.host_schedule import RobotsEntry
from tests.memory import MemoryBacklog, MemoryFiles, MemoryFrontier
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    SITE,
    Stage,
    answer,
    control_of,
    explainer_of,
    fail_on,
    html,
    pack_of,
)

if TYPE_CHECKING:
    from orbweaver.diagnostics.explainer import AskRobots
    from orbweaver.diagnostics.explanation import Explanation
    from orbweaver.frontier.claims import StoredClaim

HOME = f"{SITE}/"
PLAN = replace(CRAWL, seeds=(HOME,), seeds_planned=1, obey_robots=True)


async def begun(crawl: Crawl = PLAN) -> Stage:
    """Admit a crawl's seeds; no request is made yet."""
    stage = Stage()
    stage.web.put(HOME, html("/a", "/gone", "/moved", "/no", "/busy"))
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nDisallow: /no"))
    stage.web.put(f"{SITE}/a", html())
    stage.web.put(f"{SITE}/moved", answer(301, location="/a"))
    stage.web.put(f"{SITE}/busy", answer(500))
    await seed(stage, crawl)
    return stage


async def seed(stage: Stage, crawl: Crawl) -> None:
    stage.begin(crawl)
    for message in seeds_of(
        crawl.id, crawl.id, crawl.references, at_ms=crawl.started_at_ms, planned=True
    ):
        assert await stage.deliver(message) == []


async def step(stage: Stage) -> None:
    """Deliver every queued message once."""
    for message in stage.sent():
        assert await stage.deliver(message) == []


async def told(
    stage: Stage, reference: str, which: str | None = None, ask: AskRobots | None = None
) -> Explanation:
    _, explanation = await explainer_of(stage).explain(reference, which, ask)
    return explanation


def words(explanation: Explanation, about: str) -> list[str]:
    return [one.words for one in explanation.statements if one.about == about]


@pytest.fixture
async def stage() -> Stage:
    return await begun()


async def test_finished_crawl_explains_outcome_of_each_url(stage: Stage) -> None:
    await stage.drain()
    for path, verdict in (
        ("/", "fetched: ok"),
        ("/a", "fetched: ok"),
        ("/gone", "failed: http_client_error"),
        ("/moved", "redirected: redirect"),
        ("/no", "skipped: robots"),
        ("/busy", "failed: http_server_error"),
    ):
        explanation = await told(stage, SITE + path)
        assert explanation.url_status is UrlStatus.ENDED
        assert explanation.verdict.startswith(verdict)
        if path != "/":
            assert words(explanation, "linked by") == [HOME]
            assert words(explanation, "depth") == ["1 of 20"]
    assert words(await told(stage, HOME), "linked by") == ["no page: it is a seed"]
    assert words(await told(stage, f"{SITE}/busy"), "attempt") == ["4"]
    (rule,) = words(await told(stage, f"{SITE}/no"), "robots")
    assert rule.startswith("line 2: Disallow: /no")
    assert (await told(stage, f"{SITE}/never")).url_status is UrlStatus.UNSEEN
    assert (await told(stage, f"{SITE}/no/deeper")).refusal == "robots"


async def test_queued_url_is_followed_through_journals(stage: Stage) -> None:
    waiting = await told(stage, HOME)
    assert waiting.url_status is UrlStatus.WAITING
    assert words(waiting, "linked by") == ["no page: it is a seed"]
    await step(stage)
    linked = await told(stage, f"{SITE}/busy")
    assert linked.url_status is UrlStatus.WAITING
    assert words(linked, "linked by") == [HOME]
    assert words(linked, "attempt") == ["1 of at most 4"]
    await step(stage)
    retrying = await told(stage, f"{SITE}/busy")
    assert retrying.url_status is UrlStatus.RETRYING
    assert words(retrying, "attempt") == ["2 of at most 4"]
    assert "not before 2026-11-21 09:00:" in words(retrying, "queue")[0]


async def test_url_in_backlog_of_host_is_waiting() -> None:
    stage = await begun(replace(PLAN, seeds=(HOME, f"{SITE}/a", f"{SITE}/b")))
    slow = replace(stage.world.crawls[PLAN.id], delay_ms=1_000)
    stage.world.crawls[PLAN.id] = slow
    places = stage.world.backlog[PLAN.id, SITE]
    for place, path in enumerate(("/", "/a", *["/c"] * 48, "/b")):
        body = encode(pack_of(SITE + path))
        places[f"1.{place:02}"] = WaitingPack(place=f"1.{place:02}", body=body)
    expected = {HOME: "waiting", f"{SITE}/a": "waiting_for_host", f"{SITE}/b": "waiting"}
    explained = {url: await told(stage, url) for url in expected}
    assert {url: one.url_status.value for url, one in explained.items()} == expected
    waiting = explained[f"{SITE}/a"]
    assert waiting.verdict == "queued: it waits for its host's turn"
    assert "waits for its host's turn" in words(waiting, "queue")[0]
    stage.world.crawls[PLAN.id] = replace(slow, state=State.PAUSED)
    assert (await told(stage, f"{SITE}/a")).url_status is UrlStatus.PARKED


async def test_deferral_is_not_counted_as_attempt() -> None:
    seeds = (HOME, f"{SITE}/a")
    stage = await begun(replace(PLAN, delay_ms=15 * 60_000, obey_robots=False, seeds=seeds))
    await step(stage)  # the first URL has the only slot
    explanation = await told(stage, f"{SITE}/a")
    assert explanation.url_status is UrlStatus.WAITING
    assert words(explanation, "attempt") == ["1 of at most 4, requeued at least once"]
    assert "not before 2026-11-21 09:15:" in words(explanation, "queue")[0]
    assert "can be requested from 2026-11-21 09:" in words(explanation, "host")[0]


async def test_paused_crawl_parks_url_and_cancelled_skips_it(stage: Stage) -> None:
    await step(stage)
    running = stage.world.crawls[PLAN.id]
    stage.world.crawls[PLAN.id] = replace(running, state=State.PAUSED)
    assert (await told(stage, f"{SITE}/a")).url_status is UrlStatus.PARKED
    stage.world.crawls[PLAN.id] = replace(running, state=State.STOPPING)
    stage.restart()
    await step(stage)
    assert (await told(stage, f"{SITE}/a")).url_status is UrlStatus.UNASKED
    assert stage.web.urls == [f"{SITE}/robots.txt", HOME]


async def test_unrecorded_url_is_explained_by_its_journal() -> None:
    stage = await begun(replace(PLAN, rules=(UrlRule(match="/(a|busy|no)$", record=False),)))
    await stage.drain()
    for path, verdict in (
        ("/a", "fetched: ok (the page was read)"),
        ("/busy", "failed: http_server_error"),
        ("/no", "skipped: robots"),
    ):
        explanation = await told(stage, SITE + path)
        assert explanation.url_status is UrlStatus.ENDED
        assert explanation.verdict.startswith(verdict)
        assert explanation.verdict.endswith("; rules[0] keeps no record of it")
        assert words(explanation, "linked by") == [HOME]
    stage.world.journals.clear()
    assert "its journal is gone" in (await told(stage, f"{SITE}/a")).verdict


async def test_dead_letter_of_url_comes_first(stage: Stage) -> None:
    await step(stage)
    packs = [pack for pack in stage.sent() if isinstance(pack, Pack)]
    for pack in packs:
        await stage.queue.dead_letter(encode(pack), "failed 4 times")
    explanation = await told(stage, f"{SITE}/a")
    assert explanation.url_status is UrlStatus.DEAD_LETTER
    assert explanation.verdict.startswith("dead letter (failed 4 times)")
    assert explanation.statements[0].about == "dead letter"
    assert (await told(stage, HOME)).url_status is UrlStatus.ENDED
    assert (await told(stage, f"{SITE}/never")).url_status is UrlStatus.UNSEEN
    # The lookup returns the letters to the queue.
    assert (await told(stage, f"{SITE}/a")).url_status is UrlStatus.DEAD_LETTER
    other = replace(PLAN, id="site-2", name="other", seeds=(f"{SITE}/a",))
    stage.begin(other)
    assert (await told(stage, f"{SITE}/a", other.id)).url_status is UrlStatus.UNSEEN
    (seeds,) = seeds_of("m", other.id, other.references, at_ms=NOW_MS, planned=True)
    await stage.queue.dead_letter(encode(seeds), "unknown field x")
    assert (await told(stage, f"{SITE}/a", other.id)).url_status is UrlStatus.DEAD_LETTER


async def test_explain_without_access_to_dead_letters_notes_it(stage: Stage) -> None:
    stage.gate = fail_on("dead_letters.take")
    explanation = await told(stage, HOME)
    assert explanation.url_status is UrlStatus.WAITING
    assert words(explanation, "dead letters")[0].startswith("they could not be read")


async def test_expired_claim_has_lapsed(stage: Stage) -> None:
    """DynamoDB deletes expired items days late."""
    await stage.drain()
    stage.world.pages.clear()
    stage.world.journals.clear()
    stage.clock.at_ms += 8 * DAY_MS
    explanation = await told(stage, f"{SITE}/a")
    assert explanation.url_status is UrlStatus.LAPSED
    assert words(explanation, "again")[0].startswith("at once")


async def test_later_run_names_run_with_claim(stage: Stage) -> None:
    await stage.drain()
    stage.clock.at_ms += 60_000
    await seed(stage, replace(PLAN, id="site-2", started_at_ms=stage.clock.at_ms))
    await stage.drain()
    explanation = await told(stage, f"{SITE}/a")
    assert words(explanation, "crawl") == [
        "site-2 (finished): the newest run with this URL in scope"
    ]
    assert explanation.verdict == "fetched: ok (the page was read), by the run site-1"
    assert "site-2 skips it" in words(explanation, "claim")[1]


async def test_url_unseen_by_run_is_explained_by_earlier_run(stage: Stage) -> None:
    await stage.drain()
    stage.world.samples["site-1"] = {"pattern": (f"{SITE}/x",)}
    stage.clock.at_ms += 60_000
    await seed(stage, replace(PLAN, id="site-2", started_at_ms=stage.clock.at_ms))
    await stage.drain()
    for which, why in (
        (None, "the newest run with this URL in scope"),
        ("site", "the run you named"),
    ):
        explanation = await told(stage, f"{SITE}/x", which)
        (crawl,) = words(explanation, "crawl")
        assert crawl.startswith("site-1 (finished")
        assert crawl.endswith(f": {why}; site-2, the newest of that name, knows nothing of it")
        assert words(explanation, "linked by")[0].startswith("some page: a link to it was refused")
    assert "site-2 has ended" in (await told(stage, f"{SITE}/x", "site-2")).verdict
    assert "site-2 has ended" in (await told(stage, f"{SITE}/unheard-of")).verdict


async def test_robots_txt_is_requested_once_for_all_runs() -> None:
    stage = await begun(replace(PLAN, scope=Scope.ANY))
    await stage.drain()
    other = "https://other.example/x"
    stage.world.samples["site-1"] = {"pattern": (other,)}
    stage.clock.at_ms += 60_000
    again = replace(PLAN, id="site-2", scope=Scope.ANY, started_at_ms=stage.clock.at_ms)
    await seed(stage, again)
    await stage.drain()
    asked: list[str] = []

    async def ask(host: str, _crawl: Crawl) -> RobotsEntry | None:
        asked.append(host)
        return RobotsEntry(fetched_at_ms=stage.clock.at_ms, verdict="allow")

    explanation = await told(stage, other, ask=ask)
    assert words(explanation, "crawl")[0].startswith("site-1 ")
    assert words(explanation, "robots")[0].startswith("there is none")
    assert asked == ["https://other.example"]


async def test_earlier_run_is_explained_by_its_own_record(stage: Stage) -> None:
    await stage.drain()
    stage.clock.at_ms += 60_000
    again = replace(PLAN, id="site-2", started_at_ms=stage.clock.at_ms, window_s=0)
    await seed(stage, again)
    await stage.drain()
    explanation = await told(stage, f"{SITE}/a", "site-1")
    assert explanation.verdict == "fetched: ok (the page was read)"
    assert words(explanation, "claim")[1] == "by another run than site-1"


async def test_record_of_later_day_is_found(stage: Stage) -> None:
    await step(stage)
    stage.clock.at_ms += 3 * DAY_MS
    await stage.drain()
    assert (await told(stage, f"{SITE}/a")).verdict.startswith("fetched: ok")
    assert {day[:10] for day, _ in stage.world.pages} == {"2026-11-21", "2026-11-24"}


async def test_claim_chooses_crawl_if_no_scope_matches(stage: Stage) -> None:
    other = "https://www.example.org/"
    stage.web.put(HOME, answer(301, location=other))
    await step(stage)
    await seed(stage, Crawl(id="n-1", name="n", started_at_ms=NOW_MS + 1, seeds=("http://n/",)))
    explanation = await told(stage, other)
    assert words(explanation, "crawl")[0].endswith("the newest that has claimed it")
    assert words(explanation, "linked by") == [HOME]
    nobody = await told(stage, "https://elsewhere.example/")
    assert words(nobody, "crawl") == ["n-1 (running): the newest; it lies in the scope of none"]
    assert nobody.refusal == "scope"
    assert (await told(stage, "mailto:x")).url_status is UrlStatus.MALFORMED


async def test_link_check_is_explained_only_if_there_is_no_other_crawl(stage: Stage) -> None:
    await stage.drain()
    check = replace(PLAN, id="check-links-1", name="check-links", started_at_ms=NOW_MS + 1)
    await seed(stage, check)
    await stage.drain()
    assert words(await told(stage, f"{SITE}/a"), "crawl")[0].startswith(PLAN.id)
    assert words(await told(stage, "https://elsewhere.example/"), "crawl")[0].startswith(PLAN.id)


async def test_crawl_with_claim_comes_before_newer_crawl(stage: Stage) -> None:
    await stage.drain()
    newer = replace(PLAN, id="n-1", name="n", started_at_ms=NOW_MS + 1, depth_max=0)
    await seed(stage, newer)
    explanation = await told(stage, f"{SITE}/a")
    assert explanation.verdict.startswith("fetched: ok")
    assert words(explanation, "crawl")[0].endswith("the newest that has claimed it")


async def test_each_name_is_asked_once_for_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = await begun()
    await seed(stage, Crawl(id="n-1", name="n", started_at_ms=NOW_MS + 1, seeds=("http://n/",)))
    asked: list[str] = []
    standing = stage.frontier.last_claim

    async def counted(name: str, url: str) -> StoredClaim | None:
        asked.append(name)
        return await standing(name, url)

    monkeypatch.setattr(stage.frontier, "last_claim", counted)
    assert (await told(stage, f"{SITE}/never")).url_status is UrlStatus.UNSEEN
    assert asked == [
        PLAN.name,
        "n",
        PLAN.name,
    ]  # The first lookup chooses the run, the second tries earlier names, the third explains.


async def test_robots_txt_is_requested_only_without_stored_copy() -> None:
    asked: list[str] = []

    async def ask(host: str, _crawl: Crawl) -> RobotsEntry:
        asked.append(host)
        return RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: *\nDisallow: /")

    stage = await begun()
    assert words(await told(stage, HOME), "robots")[0].startswith("no copy of")
    assert words(await told(stage, HOME, ask=ask), "robots")[0].startswith("line 2: Disallow: /")
    assert asked == [SITE]
    await stage.drain()
    assert (await told(stage, f"{SITE}/x", ask=ask)).refusal is None
    assert (await told(stage, f"{SITE}/no/x", ask=ask)).refusal is Reason.ROBOTS
    assert asked == [SITE]


async def test_missing_crawl_is_reported() -> None:
    with pytest.raises(UnknownCrawl, match="there is no crawl yet"):
        await told(Stage(), HOME)
    stage = await begun(replace(PLAN, scope=Scope.ANY))
    with pytest.raises(UnknownCrawl, match="no crawl has the id or name 'x'"):
        await told(stage, HOME, "x")


async def test_links_withdrawn_by_nofollow_are_reported() -> None:
    stage = Stage()
    stage.web.put(HOME, html(*(f"/{n}" for n in range(9)), x_robots_tag="nofollow"))
    await seed(stage, replace(PLAN, obey_robots=False))
    await stage.drain()
    page = f"a first page ({HOME})"
    assert f"{page} links to it with nofollow" in (await told(stage, f"{SITE}/2")).verdict
    beyond = (await told(stage, f"{SITE}/8")).verdict
    assert f"{page} asks not to follow its links, and may have one to it" in beyond
    files, backlog = MemoryFiles(stage.world), MemoryBacklog(stage.world)
    report = await control_of(stage).report(
        PLAN.id, files=files, backlog=backlog, frontier=MemoryFrontier(stage.world)
    )
    (line,) = report.skipped
    assert (line.reason, line.count) == ("seed_nofollow", 9)
    assert line.samples == tuple(f"{SITE}/{n}" for n in range(5))


async def test_seed_page_with_nofollow_is_named() -> None:
    stage = Stage()
    stage.web.put(HOME, html(f"{SITE}/other"))
    stage.web.put(f"{SITE}/other", html("/kept", "/withdrawn", x_robots_tag="nofollow"))
    seeds = (HOME, f"{SITE}/other", "no URL")
    await seed(stage, replace(PLAN, obey_robots=False, seeds=seeds))
    await stage.drain()
    found = (await told(stage, f"{SITE}/elsewhere")).verdict
    assert f"a first page ({SITE}/other) asks not to follow its links" in found


async def test_link_refused_for_depth_is_reported() -> None:
    stage = await begun(replace(PLAN, depth_max=0))
    await step(stage)
    told_of = {one.about: one.words for one in (await told(stage, f"{SITE}/a")).statements}
    assert told_of["linked by"] == (
        "some page: a link to it was refused as depth; pages whose links are left out are not kept"
    )


async def test_referrer_of_unseen_url_is_not_known(stage: Stage) -> None:
    told_of = {one.about: one.words for one in (await told(stage, "https://else/")).statements}
    assert told_of["linked by"] == "not known: pages whose links are left out are not kept"
