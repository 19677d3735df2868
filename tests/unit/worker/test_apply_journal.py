"""Applying a journal (redo log of a pack): claims, commits, outgoing packs, and crashes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.journal import Journal, Ledger, Requeue
from orbweaver.frontier.late_links import DOUBTFUL, FEW_OUT, UNKNOWN
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.worker.apply_journal import claimer_of
from orbweaver.worker.rounds import Round
from orbweaver.worker.shutdown import ShutdownSignal
from tests.memory import Claim, Moment
from tests.memory.world import Gate, ShardItem
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    ROOT,
    SITE,
    Stage,
    fail_on,
    kill_at,
    noting,
    pack_of,
    survives,
    urls_of,
)

TARGETS = tuple(Target(url=f"{SITE}/{path}", depth=1) for path in "abcde")
URLS = {target.url for target in TARGETS}
RECORD = PageRecord(
    crawl=CRAWL.id,
    url=f"{SITE}/",
    outcome=Outcome.FETCHED,
    reason=Reason.OK,
    fetched_at=NOW_MS,
    depth=0,
)
LATER = Requeue(target=Target(url=f"{SITE}/later", depth=0), delay_s=30)
JOURNAL = Journal(
    at_ms=NOW_MS,
    records=(RECORD,),
    returning=(LATER,),
    candidates=TARGETS,
    counts={"fetched": 1, "fetched.ok": 1},
)
EMPTY = Journal(at_ms=NOW_MS, records=(RECORD,), counts={"fetched": 1})


def stage_of(crawl: Crawl = CRAWL, gate: Gate | None = None) -> Stage:
    stage = Stage() if gate is None else Stage(gate=gate)
    stage.world.crawls[crawl.id] = crawl
    return stage


def hold(stage: Stage, url: str, pack: str, *, at_ms: int = NOW_MS, expires_s: int = 0) -> None:
    expires_s = expires_s or NOW_MS // 1000 + 86_400
    claim = Claim(url=url, pack=pack, at_ms=at_ms, expires_s=expires_s)
    stage.world.claims[CRAWL.name, url] = claim


def owners(stage: Stage) -> dict[str, str]:
    return {url: claim.pack for (_, url), claim in stage.world.claims.items()}


# --- apply ------------------------------------------------------------------------------------


async def test_apply_claims_commits_and_sends() -> None:
    stage = stage_of()
    ledger = await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert ledger == Ledger(pack=ROOT, children=(0, 1, 2, 3, 4))
    assert owners(stage) == dict.fromkeys(URLS, ROOT)
    assert list(stage.world.pages.values()) == [RECORD]
    assert stage.counts() == {"fetched": 1, "fetched.ok": 1, "claimed": 5}
    assert [mail.delay_s for mail in stage.world.sent] == [0, 30]
    assert urls_of(stage.sent()) == URLS | {LATER.target.url}
    assert stage.world.ledgers[ROOT] == replace(ledger, sent=True)


async def test_express_crawl_sends_by_express_queue() -> None:
    stage = stage_of()
    await stage.applier.apply(replace(CRAWL, express=True), ROOT, JOURNAL)
    assert [mail.express for mail in stage.world.sent] == [True, True]


@pytest.mark.parametrize(
    ("journal", "expected"),
    [
        (EMPTY, ["pages.store", "packs.commit"]),
        (
            Journal(at_ms=NOW_MS, candidates=TARGETS[:1]),
            ["frontier.claim", "packs.commit", "queue.send", "packs.sent"],
        ),
    ],
    ids=["empty outbox", "seeds"],
)
async def test_absent_part_of_journal_makes_no_write(journal: Journal, expected: list[str]) -> None:
    effects: list[str] = []
    stage = stage_of(gate=noting(effects))
    await stage.applier.apply(CRAWL, ROOT, journal)
    assert effects == expected


async def test_pack_is_sent_again_if_another_delivery_acquired_lease() -> None:
    async def gate(effect: str, moment: Moment) -> None:
        ledger = stage.world.ledgers.get(ROOT)
        if (effect, moment) == ("packs.sent", Moment.BEFORE) and ledger and not ledger.leases:
            stage.world.ledgers[ROOT] = replace(ledger, leases=1)

    stage = stage_of(gate=gate)
    await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert [mail.delay_s for mail in stage.world.sent] == [0, 30] * 2
    assert stage.world.ledgers[ROOT].sent


async def test_early_pack_without_sent_message_sends_no_outbox() -> None:
    """Another worker committed it. If this worker died, no message would repeat the sending."""
    stage = stage_of()
    ledger = await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert ledger is not None
    stage.world.sent.clear()
    round_ = Round(
        clock=stage.clock,
        settings=Settings(),
        deadline_ms=NOW_MS + 900_000,
        ending=ShutdownSignal(),
    )

    async def nothing(_pack: object = None) -> None: ...

    await round_.run(nothing(), nothing)
    round_.take_on(pack_of(f"{SITE}/", pack=ROOT), after="earlier")
    round_.ended("earlier")
    await stage.applier.resend(CRAWL, ROOT, JOURNAL, ledger, round_=round_)
    assert stage.world.sent == []


async def test_urls_claimed_by_other_packs_are_not_sent() -> None:
    stage = stage_of()
    hold(stage, f"{SITE}/b", "other")
    ledger = await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert ledger == Ledger(pack=ROOT, children=(0, 2, 3, 4))
    assert stage.counts()["claimed"] == 4
    assert owners(stage)[f"{SITE}/b"] == "other"
    assert f"{SITE}/b" not in urls_of(stage.sent())


@pytest.mark.parametrize(
    ("at_ms", "expires_s", "window_s", "won"),
    [
        (NOW_MS - 1, NOW_MS // 1000 + 9, 7 * 86_400, False),
        # Expired, and not yet deleted.
        (NOW_MS - 1, NOW_MS // 1000, 7 * 86_400, True),
        # Older than the window.
        (NOW_MS - 60_001, NOW_MS // 1000 + 9, 60, True),
        (NOW_MS - 60_000, NOW_MS // 1000 + 9, 60, False),
        # With a window of 0, URLs claimed before this run are requested once more.
        (NOW_MS - 1, NOW_MS // 1000 + 9, 0, True),
        (NOW_MS, NOW_MS // 1000 + 9, 0, False),
    ],
)
async def test_lapsed_claim_is_overwritten(
    at_ms: int, expires_s: int, window_s: int, *, won: bool
) -> None:
    """The expiry time decides, even if the item still exists (case 19)."""
    stage = stage_of()
    hold(stage, f"{SITE}/a", "other", at_ms=at_ms, expires_s=expires_s)
    ledger = await stage.applier.apply(replace(CRAWL, window_s=window_s), ROOT, JOURNAL)
    assert ledger is not None
    assert (0 in ledger.children) is won


def test_claim_is_not_dated_before_its_crawl() -> None:
    """Otherwise a forced run would take it for a claim of an earlier run (case 25)."""
    slow = claimer_of(replace(CRAWL, window_s=0), ROOT, NOW_MS - 600_000)
    assert slow.at_ms == NOW_MS == slow.stale_before_ms
    assert claimer_of(CRAWL, ROOT, NOW_MS + 5).at_ms == NOW_MS + 5


@pytest.mark.parametrize(("pages_max", "before"), [(3, 0), (7, 4), (4, 4), (5, 0), (9, 4)])
async def test_claims_beyond_page_budget_are_released(pages_max: int, before: int) -> None:
    crawl = replace(CRAWL, pages_max=pages_max)
    stage = stage_of(crawl)
    stage.count(crawl, claimed=before)
    ledger = await stage.applier.apply(crawl, ROOT, JOURNAL)
    kept = min(5, pages_max - before)
    assert ledger == Ledger(pack=ROOT, children=tuple(range(kept)), surplus=kept < 5)
    assert stage.counts()["claimed"] == before + kept
    assert stage.counts().get("refused.budget", 0) == 5 - kept
    assert stage.counts()["fetched"] == 1
    assert set(owners(stage)) == {target.url for target in TARGETS[:kept]}
    assert urls_of(stage.sent()) == set(owners(stage)) | {LATER.target.url}


async def test_concurrent_commit_reduces_budget() -> None:
    crawl = replace(CRAWL, pages_max=4)
    commits = 0

    async def gate(effect: str, moment: Moment) -> None:
        nonlocal commits
        if (effect, moment) == ("packs.commit", Moment.BEFORE):
            commits += 1
            if commits == 2:
                stage.count(crawl, claimed=3)

    stage = stage_of(crawl, gate)
    ledger = await stage.applier.apply(crawl, ROOT, JOURNAL)
    assert ledger is not None
    assert ledger.children == (0,)
    assert stage.counts()["claimed"] == 4
    assert commits == 3


async def test_first_commit_wins_and_later_claims_are_released() -> None:
    stage = stage_of()
    stage.world.ledgers[ROOT] = Ledger(pack=ROOT, children=(0, 1))
    ledger = await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert ledger == Ledger(pack=ROOT, children=(0, 1))
    assert stage.counts() == {}
    assert set(owners(stage)) == {f"{SITE}/a", f"{SITE}/b"}
    assert urls_of(stage.sent()) == {f"{SITE}/a", f"{SITE}/b", LATER.target.url}


async def test_sent_outbox_is_not_sent_again() -> None:
    stage = stage_of()
    stage.world.ledgers[ROOT] = Ledger(pack=ROOT, children=(0,), sent=True)
    await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    assert stage.world.sent == []


async def test_journal_after_crawl_end_claims_nothing() -> None:
    stage = stage_of()
    stage.world.shards[CRAWL.id, 0] = ShardItem(closed=True)
    assert await stage.applier.apply(CRAWL, ROOT, JOURNAL) is None
    assert owners(stage) == {}
    assert stage.world.sent == []
    assert stage.counts() == {}


# --- crashes ----------------------------------------------------------------------------------


async def repeat(stage: Stage, crawl: Crawl) -> None:
    """Deliver the pack again."""
    stage.restart()
    known = (await stage.packs.recall([ROOT])).get(ROOT)
    if known is not None and known.ledger is not None:
        await stage.applier.resend(crawl, ROOT, JOURNAL, known.ledger)
    else:
        await stage.applier.apply(crawl, ROOT, JOURNAL)


@pytest.mark.parametrize("pages_max", [1_000, 3, 0])
async def test_crash_at_any_step_is_repaired_by_redelivery(pages_max: int) -> None:
    """Every redelivery has the same result (cases 4 to 6)."""
    crawl = replace(CRAWL, pages_max=pages_max)
    calm = stage_of(crawl)
    await calm.applier.apply(crawl, ROOT, JOURNAL)
    moment = 1
    while True:
        stage = stage_of(crawl, kill_at(moment))
        if await survives(stage.applier.apply(crawl, ROOT, JOURNAL)):
            break
        await repeat(stage, crawl)
        assert stage.counts() == calm.counts(), moment
        assert owners(stage) == owners(calm), moment
        assert stage.world.pages == calm.world.pages, moment
        assert {mail.body for mail in stage.world.sent} == {mail.body for mail in calm.world.sent}
        assert stage.world.ledgers == calm.world.ledgers, moment
        moment += 1
    assert moment > 10


@pytest.mark.parametrize(
    "effect", ["frontier.claim", "pages.store", "packs.commit", "queue.send", "packs.sent"]
)
@pytest.mark.parametrize("moment", Moment)
async def test_failed_or_unanswered_write_is_repeated(effect: str, moment: Moment) -> None:
    """The write is repeated with the same effect (cases 12, 17)."""
    stage = stage_of(gate=fail_on(effect, moment))
    with pytest.raises(Transient):
        await stage.applier.apply(CRAWL, ROOT, JOURNAL)
    await repeat(stage, CRAWL)
    assert stage.counts() == {"fetched": 1, "fetched.ok": 1, "claimed": 5}
    assert owners(stage) == dict.fromkeys(URLS, ROOT)
    assert urls_of(stage.sent()) == URLS | {LATER.target.url}
    assert stage.world.ledgers[ROOT].sent


@pytest.mark.parametrize(("surplus", "released"), [(True, True), (False, False)])
async def test_resend_releases_surplus_if_ledger_says_so(*, surplus: bool, released: bool) -> None:
    stage = stage_of()
    for target in TARGETS:
        hold(stage, target.url, ROOT)
    stage.world.ledgers[ROOT] = ledger = Ledger(pack=ROOT, children=(0,), surplus=surplus)
    await stage.applier.resend(CRAWL, ROOT, JOURNAL, ledger)
    assert (set(owners(stage)) == {f"{SITE}/a"}) is released
    assert urls_of(stage.sent()) == {f"{SITE}/a", LATER.target.url}
    assert stage.world.ledgers[ROOT].sent
    await stage.applier.resend(CRAWL, ROOT, JOURNAL, stage.world.ledgers[ROOT])
    assert stage.world.sent == []


# --- look -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("band", "out", "state", "sent"),
    [
        (UNKNOWN, FEW_OUT, State.RUNNING, True),
        (UNKNOWN, FEW_OUT + 1, State.RUNNING, False),
        (DOUBTFUL, 2, State.RUNNING, False),
        (UNKNOWN, 2, State.STOPPING, False),
    ],
)
async def test_late_pack_is_sent_while_few_urls_are_in_flight(
    band: int, out: int, state: State, *, sent: bool
) -> None:
    crawl = replace(CRAWL, pages_max=500, state=state)
    stage = stage_of(crawl)
    put = Journal(at_ms=NOW_MS, late=((band, TARGETS[0]),), counts={"fetched": 101})
    await stage.applier.apply(crawl, ROOT, put)
    stage.count(crawl, claimed=101 + out)
    await stage.applier.send_promising(crawl.id)
    assert len(stage.world.sent) == sent
    await stage.applier.send_promising("gone")
