"""Late links (requested when few others are in flight): order, release and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier import late_links
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, child_id, decode, encode
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Response
from orbweaver.worker import kind_learning, page_reading
from orbweaver.worker.seen_store import SeenStore
from tests.memory import Moment
from tests.memory.world import Gate, Mail, open_gate
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    SITE,
    Killed,
    Stage,
    answer,
    control_of,
    explainer_of,
    html,
    pack_of,
    survives,
)

HOME = f"{SITE}/wiki/Home_of_all"
WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay")
WIKI = replace(CRAWL, delay_ms=0)
ROBOTS = b"User-agent: *\nDisallow: /edit\n"


def name(number: int) -> str:
    letters = "".join("abcdefghij"[int(digit)] for digit in f"{number:02}")
    return f"Of_{letters}_k"


def wiki(articles: int = 40, forms: int = 3, gate: Gate = open_gate) -> Stage:
    """Serve a wiki: each article links to two others and to barren forms (no new pages)."""
    stage = Stage(gate=gate)
    for number in range(-1, articles):
        follow = (2 * number + 2, 2 * number + 3)
        links = [f"/wiki/{name(more)}" for more in follow if more < articles]
        own = "Home_of_all" if number < 0 else name(number)
        of_forms = [f"/edit?title={own}&action={'xyz'[form]}dit" for form in range(forms)]
        text = " ".join(Random(own).choices(WORDS, k=80))
        page = html(*of_forms, *links, title=f"About {own.replace('_', ' ')}")
        body = (page.body or b"") + f"<p>{text}".encode()
        stage.web.put(f"{SITE}/wiki/{own}", replace(page, body=body))
        for form in of_forms:
            stage.web.put(f"{SITE}{form}", html(title="Edit", x_robots_tag="noindex"))
    return stage


def asked(stage: Stage) -> list[str]:
    return [url.removeprefix(SITE) for url in stage.web.urls if not url.endswith("/robots.txt")]


def articles_of(urls: Iterable[str]) -> int:
    return sum(url.startswith("/wiki/") for url in urls)


async def crawled(stage: Stage, crawl: Crawl) -> Crawl:
    await stage.crawl(crawl, HOME)
    return stage.world.crawls[crawl.id]


async def test_limit_is_spent_on_fruitful_links() -> None:
    """Each article has three forms, and the limit is a third of all pages."""
    stage = wiki()
    ended = await crawled(stage, replace(WIKI, pages_max=54))
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.MAX_PAGES)
    assert len(asked(stage)) == 54
    assert articles_of(asked(stage)) >= 38
    counts = stage.counts()
    assert counts["claimed"] == 54
    assert counts["late_links"] > counts["late_links_taken"]


@pytest.mark.parametrize("pages_max", [20, 54])
async def test_links_beyond_limit_do_not_count_as_scheduled(pages_max: int) -> None:
    stage = wiki()
    ended = await crawled(stage, replace(WIKI, pages_max=pages_max))
    known = stage.pack_fetcher.kinds.learner_for(ended).scores._kinds.known.values()
    assert sum(one.requested for one in known) == pages_max
    assert all(one.scheduled <= one.requested for one in known)


async def test_unlimited_crawl_requests_everything_once() -> None:
    stage = wiki()
    ended = await crawled(stage, replace(WIKI, pages_max=5_000))
    assert ended.stop is Stop.FINISHED
    assert len(asked(stage)) == len(set(asked(stage))) == 41 * 4
    assert articles_of(asked(stage)[:60]) == 41
    counts = stage.counts()
    assert counts["late_links"] == counts["late_links_taken"]
    assert counts["late_packs"] == counts["late_packs_taken"]
    assert not any(stage.world.backlog.values())


async def test_released_claims_are_requested_later(monkeypatch: pytest.MonkeyPatch) -> None:
    note_journal = SeenStore.note_journal

    def remembering(self: SeenStore, crawl: Crawl, journal: Journal) -> None:
        note_journal(self, crawl, journal)
        self._claimed.add(crawl.id, [target.url for _, target in journal.late], NOW_MS)

    monkeypatch.setattr(SeenStore, "note_journal", remembering)
    stage = wiki(articles=12)
    ended = await crawled(stage, replace(WIKI, pages_max=5_000))
    assert ended.stop is Stop.FINISHED
    assert len(asked(stage)) == len(set(asked(stage))) == 13 * 4


@pytest.mark.parametrize("articles", [12, 40])
async def test_crawl_stops_if_no_new_page_is_expected(articles: int) -> None:
    stage = wiki(articles=articles)
    crawl = replace(WIKI, pages_max=5_000, stop_when_nothing_new=True)
    ended = await crawled(stage, crawl)
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.NOTHING_NEW)
    assert articles_of(asked(stage)) == articles + 1
    assert len(asked(stage)) < (articles + 1) * 3
    counts = Counter(stage.counts())
    assert counts["claimed"] == len(asked(stage))
    waiting = [decode(one.body) for one in stage.world.backlog[crawl.id, LANE].values()]
    left = [target.url for pack in waiting if isinstance(pack, Pack) for target in pack.targets]
    assert len(left) == counts["late_links"] - counts["late_links_taken"] > 0
    packs = counts["late_packs"] - counts["late_packs_taken"]
    assert packs == counts["late_barren"] - counts["late_barren_taken"] == len(waiting)
    assert {url.removeprefix(SITE) for url in left}.isdisjoint(asked(stage))
    assert len(left) + len(asked(stage)) == (articles + 1) * 4
    ((announced, _),) = stage.world.announced
    assert announced.stop is Stop.NOTHING_NEW
    _, told = await explainer_of(stage).explain(left[0])
    assert "it waited when site-1 ended as nothing new was to come" in told.verdict


@pytest.mark.parametrize(
    ("forms", "pages_max", "stop", "requested"),
    [(0, 5_000, Stop.FINISHED, 41), (3, 20, Stop.MAX_PAGES, 20)],
    ids=["fruitful kinds", "limit first"],
)
async def test_fruitful_or_limited_crawl_does_not_stop_early(
    forms: int, pages_max: int, stop: Stop, requested: int
) -> None:
    stage = wiki(forms=forms)
    crawl = replace(WIKI, pages_max=pages_max, stop_when_nothing_new=True)
    assert (await crawled(stage, crawl)).stop is stop
    assert len(asked(stage)) == requested
    assert forms or articles_of(asked(stage)) == requested


async def test_crawl_without_own_limit_learns_no_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    learners = []
    monkeypatch.setattr(kind_learning, "KindLearner", lambda: learners.append(1))
    monkeypatch.setattr(page_reading, "plain_words", lambda *_: learners.append(1))
    stage = wiki()
    await crawled(stage, replace(WIKI, pages_max=1_000_000))
    assert len(asked(stage)) == 41 * 4
    assert not learners
    assert stage.counts().get("late_packs", 0) == 0


async def test_urls_forbidden_by_robots_free_their_budget() -> None:
    stage = wiki()
    stage.web.put(f"{SITE}/robots.txt", answer(200, ROBOTS))
    ended = await crawled(stage, replace(WIKI, pages_max=41, obey_robots=True))
    counts = stage.counts()
    assert counts["skipped.robots"] == counts["unspent"] > 0
    assert counts["claimed"] - counts["unspent"] == articles_of(asked(stage)) == 41
    assert ended.stop in (Stop.MAX_PAGES, Stop.FINISHED)


@pytest.mark.parametrize(
    ("path", "host_pages_max", "skipped"),
    [("/edit?n={}", None, 400), ("/edit/{}.zip", None, 400), ("/go?n={}", 14, 398)],
)
async def test_skipped_late_links_do_not_take_one_round_each(
    path: str, host_pages_max: int | None, skipped: int
) -> None:
    stage = wiki(articles=8, forms=0)
    links = [path.format(number) for number in range(400)]
    links += ["/log?of=a_b", "/talk/of_a_b", "/old?page=a_b&of=c_d"]  # several kinds
    home = stage.web.answers[HOME][0]
    assert isinstance(home, Response)
    more = "".join(f'<a href="{link}">x</a>' for link in links).encode()
    stage.web.put(HOME, replace(home, body=(home.body or b"") + more))
    stage.web.put(f"{SITE}/robots.txt", answer(200, ROBOTS))
    crawl = replace(WIKI, pages_max=2_000, obey_robots=True, host_pages_max=host_pages_max)
    await stage.deliver(stage.begin(crawl, HOME))
    delivered = await stage.drain(4_000)
    assert stage.counts()["skipped"] == skipped
    assert 20 < delivered < 140


@pytest.mark.parametrize("dead", [0, 1])
@pytest.mark.parametrize("soon", [False, True])
@pytest.mark.parametrize("dies", [False, True])
async def test_unsent_late_packs_are_sent_when_queue_is_empty(
    monkeypatch: pytest.MonkeyPatch, *, dies: bool, soon: bool, dead: int
) -> None:
    monkeypatch.setattr(kind_learning.KindLearning, "looks_soon", lambda *_: soon)
    monkeypatch.setattr(late_links, "has_few_for_promising", lambda _: True)
    monkeypatch.setattr(late_links, "UNKNOWN", late_links.BANDS_MAX)
    monkeypatch.setattr(late_links, "OUT_PERCENT", 20 * dead)  # as if there were hundreds of pages
    failing = False
    notes = troubles = 0

    async def gate(effect: str, moment: Moment) -> None:
        nonlocal failing, notes, troubles
        if (effect, moment) == ("backlog.note_sent", Moment.AFTER):
            notes += 1
            failing = notes % 2 == 1
        elif failing and (effect, moment) == ("queue.send", Moment.BEFORE):
            failing, troubles = False, troubles + 1
            raise Killed if dies else Transient(effect)

    stage = wiki(articles=12, gate=gate)
    first = stage.begin(replace(WIKI, pages_max=500), HOME)
    for number in range(dead):
        stage.count(CRAWL, claimed=1)
        buried = pack_of(f"{SITE}/dead/{number}", pack=child_id("dead", number), failures=99)
        assert await stage.deliver(buried) == []
    stage.world.sent.append(Mail(body=encode(first)))
    receives: Counter[str] = Counter()
    while stage.world.sent:
        mail = stage.world.sent.pop(0)
        receives[mail.body] += 1
        done: list[list[int]] = []

        async def deliver(mail: Mail = mail, done: list[list[int]] = done) -> None:
            done.append(await stage.deliver(mail.body, receives=receives[mail.body]))

        if not await survives(deliver()):
            stage.restart(gate)
        if done != [[]]:
            stage.world.sent.append(mail)
    assert troubles > 3
    assert stage.world.crawls[CRAWL.id].stop is (None if dead else Stop.FINISHED)
    assert len(asked(stage)) == len(set(asked(stage))) == 13 * 4


async def test_raised_limit_continues_with_late_links() -> None:
    stage = wiki(articles=12)
    control = control_of(stage)
    spec = CrawlSpec(seeds=(HOME,), name="w", delay_ms=0, obey_robots=False, pages_max=14)
    await control.start(spec)
    await stage.drain()
    assert len(asked(stage)) == 14
    stage.clock.at_ms += 60_000
    second = await control.start(replace(spec, pages_max=500))
    await stage.drain()
    assert second.pages_carried == 14
    assert stage.world.crawls[second.id].stop is Stop.FINISHED
    assert len(asked(stage)) == len(set(asked(stage))) == 13 * 4


@pytest.mark.parametrize("dead", [3, 60])
async def test_dead_letters_do_not_delay_late_links(dead: int) -> None:
    stage = wiki()
    crawl = replace(WIKI, pages_max=5_000)
    first = stage.begin(crawl, HOME)
    for number in range(dead):
        stage.count(crawl, claimed=1)
        buried = pack_of(f"{SITE}/dead/{number}", crawl=crawl.id, pack=child_id("dead", number))
        assert await stage.deliver(replace(buried, failures=99)) == []
    assert len(stage.world.buried) == dead
    assert await stage.deliver(first) == []
    await stage.drain()
    assert len(asked(stage)) == 41 * 4
    assert stage.world.crawls[crawl.id].state is State.RUNNING


async def test_late_pack_delivered_twice_counts_once() -> None:
    stage = wiki()
    crawl = replace(WIKI, pages_max=5_000)
    assert await stage.deliver(stage.begin(crawl, HOME)) == []
    seen = 0
    while stage.world.sent:
        mail = stage.world.sent.pop(0)
        message = decode(mail.body)
        late = isinstance(message, Pack) and message.late
        seen += late
        for _ in range(1 + late):
            assert await stage.deliver(mail.body) == []
    assert seen
    assert stage.world.crawls[crawl.id].stop is Stop.FINISHED
    assert len(asked(stage)) == len(set(asked(stage))) == 41 * 4


async def test_late_pack_after_duration_is_not_requested() -> None:
    stage = wiki()
    crawl = replace(WIKI, pages_max=5_000, duration_max_s=50)
    assert await stage.deliver(stage.begin(crawl, HOME)) == []
    while stage.world.sent and not stage.counts().get("late_packs_taken"):
        assert await stage.deliver(stage.world.sent.pop(0).body) == []
    stage.clock.at_ms += 60_000
    await stage.drain()
    ended = stage.world.crawls[crawl.id]
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.DURATION)


async def test_explain_reports_late_link_and_yield_of_its_kind() -> None:
    stage = wiki()
    crawl = replace(WIKI, pages_max=54)
    assert await stage.deliver(stage.begin(crawl, HOME)) == []
    for _ in range(12):
        assert await stage.deliver(stage.world.sent.pop(0).body) == []
    waits = [
        target.url
        for packs in stage.world.backlog.values()
        for one in packs.values()
        if isinstance(pack := decode(one.body), Pack)
        for target in pack.targets
    ]
    _, told = await explainer_of(stage).explain(waits[-1])
    assert told.verdict.startswith("waiting: other kinds of URL come first")
    await stage.drain()
    spared = set(waits) - {f"{SITE}{one}" for one in asked(stage)}
    _, told = await explainer_of(stage).explain(max(spared))
    assert told.verdict.startswith(f"not requested: it waited when {crawl.id} reached its limit")
    assert "URLs of its kind" in told.verdict
