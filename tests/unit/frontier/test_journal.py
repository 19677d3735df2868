"""The journal (redo log) of a pack, and the packs that follow from it."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest

from orbweaver.budget.prices import CLAIM
from orbweaver.frontier.journal import (
    Journal,
    Ledger,
    Requeue,
    Unrecorded,
    commit_counts,
    isolate_urls,
    outbox,
    surplus_of,
)
from orbweaver.frontier.journal_codec import decode, encode
from orbweaver.frontier.messages import Pack, child_id
from orbweaver.frontier.pack_result import (
    EndedPage,
    FoundLinks,
    InvalidUrl,
    LinkPlan,
    PackResult,
    PageResult,
    Returning,
)
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Prior, Target

NOW_MS = 1_795_251_600_000
SITE = "https://example.com"
PRIOR = Prior(crawl="c-1", at_ms=3)


def target(path: str, host: str = SITE) -> Target:
    return Target(url=f"{host}/{path}", depth=1, referrer=f"{host}/")


def record(path: str, size: int | None = None) -> PageRecord:
    return PageRecord(
        crawl="c",
        url=f"{SITE}/{path}",
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=NOW_MS,
        depth=1,
        bytes=size,
    )


def won(journal: Journal) -> Ledger:
    return Ledger(pack="p", children=tuple(range(len(journal.candidates))))


# --- draft ------------------------------------------------------------------------------------


def test_journal_keeps_url_order_of_pack() -> None:
    result = PackResult("c")
    order = [target(path) for path in "abcd"]
    ends = (
        EndedPage(record=record("d")),
        Returning(target=order[2], delay_s=3, why="retries"),
        EndedPage(record=record("b", size=10)),
        Returning(target=order[0], delay_s=3),
    )
    result.add(*(PageResult(end=end) for end in ends))
    journal = result.journal(order, NOW_MS)
    assert [item.url for item in journal.records] == [f"{SITE}/b", f"{SITE}/d"]
    assert [item.target for item in journal.returning] == [order[0], order[2]]
    assert journal.at_ms == NOW_MS
    assert journal.counts == {
        "bytes": 10,
        "deferrals": 1,
        "fetched": 2,
        "fetched.ok": 2,
        "retries": 1,
    }


def test_outcome_without_record_is_counted() -> None:
    result = PackResult("c")
    result.add(PageResult(end=InvalidUrl()))
    journal = result.journal([target("a")], NOW_MS)
    assert (journal.records, journal.unasked) == ((), ())
    assert journal.counts == {"skipped": 1, "skipped.invalid": 1}


@pytest.mark.parametrize(
    ("asked_s", "delay_s"),
    [(-5, 1), (0, 1), (0.3, 1), (1, 1), (1.01, 2), (899.5, 900), (900, 900), (86_400, 900)],
)
def test_requeue_delay_is_1_to_900_whole_seconds(asked_s: float, delay_s: int) -> None:
    result = PackResult("c")
    result.add(PageResult(end=Returning(target=target("a"), delay_s=asked_s)))
    (item,) = result.journal([target("a")], NOW_MS).returning
    assert item.delay_s == delay_s


def test_first_link_to_url_is_the_candidate() -> None:
    result = PackResult("c")
    first = target("a")
    again = replace(first, referrer="https://other.example/")
    result.add_links(FoundLinks(admitted=(first, again, target("b"))))
    assert result.candidates == (f"{SITE}/a", f"{SITE}/b")
    assert result.journal([], NOW_MS).candidates == (first, target("b"))


def test_journal_lists_links_of_plan() -> None:
    result = PackResult("c")
    found = FoundLinks(admitted=tuple(map(target, "abc")), left=(target("d"), target("e")))
    result.add_links(found)
    now = (replace(target("c"), prior=PRIOR), target("a"))
    plan = LinkPlan(now=now, late=[(2, target("b"))], left=[target("e")], surplus_band=0)
    journal = result.journal([], NOW_MS, plan)
    assert (journal.candidates, journal.late) == (now, ((2, target("b")),))
    assert (journal.left, journal.surplus_band) == ((target("e"),), 0)


def test_unrecorded_outcome_is_in_journal_and_counts() -> None:
    result = PackResult("c")
    unrecorded = EndedPage(record=record("a", size=10), recorded=False)
    result.add(PageResult(end=unrecorded), PageResult(end=EndedPage(record=record("b"))))
    journal = result.journal([target("a"), target("b")], NOW_MS)
    assert [one.url for one in journal.records] == [f"{SITE}/b"]
    assert journal.unrecorded == (
        Unrecorded(url=f"{SITE}/a", outcome=Outcome.FETCHED, reason=Reason.OK),
    )
    assert journal.counts == {"bytes": 10, "fetched": 2, "fetched.ok": 2}
    assert result.knows(f"{SITE}/a")
    assert result.outcome(f"{SITE}/a") is Outcome.FETCHED


def test_refusals_are_counted_by_reason() -> None:
    result = PackResult("c")
    refused = ((Refusal.SCOPE, 1, ()), (Refusal.SCOPE, 3, ()), (Refusal.DEPTH, 0, ()))
    result.add_links(FoundLinks(refused=refused, counts={"seeds": 1}))
    assert result.journal([], NOW_MS).counts == {"refused.scope": 4, "seeds": 1}


# --- outbox -----------------------------------------------------------------------------------


def test_children_are_packed_by_host_and_leftovers_mixed() -> None:
    hosts = {"https://a.example": 30, "https://b.example": 3}
    targets = tuple(
        target(str(place), host) for host, count in hosts.items() for place in range(count)
    )
    journal = Journal(at_ms=NOW_MS, candidates=targets)
    first, second = outbox("p", "c", journal, won(journal))
    assert first.pack == Pack(
        id=child_id("p", 0), crawl="c", at_ms=NOW_MS, targets=targets[:25], failures=0
    )
    assert second.pack.targets == targets[25:]
    assert second.pack.id == child_id("p", 1)
    assert {first.delay_s, second.delay_s} == {0}


def test_express_targets_have_their_own_packs() -> None:
    high = {path: replace(target(path), express=True) for path in "bd"}
    plain = {path: target(path) for path in "ac"}
    mixed = {**plain, **high}
    journal = Journal(
        at_ms=NOW_MS,
        candidates=tuple(mixed[path] for path in "abcd"),
        returning=tuple(Requeue(target=mixed[path], delay_s=3) for path in "abcd"),
    )
    packs = outbox("p", "c", journal, won(journal))
    sent = [(one.express, "".join(item.url[-1] for item in one.pack.targets)) for one in packs]
    assert sent == [(True, "bd"), (False, "ac"), (True, "bd"), (False, "ac")]
    lowered = replace(
        journal,
        candidates=tuple(target(path) for path in "abcd"),
        returning=tuple(Requeue(target=target(path), delay_s=3) for path in "abcd"),
    )
    assert [len(one.pack.targets) for one in outbox("p", "c", lowered, won(lowered))] == [4, 4]


def test_only_won_candidates_are_sent_and_others_are_surplus() -> None:
    journal = Journal(at_ms=NOW_MS, candidates=tuple(target(path) for path in "abc"))
    ledger = Ledger(pack="p", children=(0, 2))
    (outgoing,) = outbox("p", "c", journal, ledger)
    assert outgoing.pack.targets == (target("a"), target("c"))
    assert surplus_of(journal, ledger) == (target("b"),)


def test_requeues_within_5_s_share_pack() -> None:
    delays = {"a": 5, "b": 1, "c": 6, "d": 900}
    again = tuple(Requeue(target=target(path), delay_s=delay) for path, delay in delays.items())
    packs = outbox("p", "c", Journal(at_ms=NOW_MS, returning=again), Ledger(pack="p", children=()))
    held = [([item.url[-1] for item in one.pack.targets], one.delay_s) for one in packs]
    assert held == [(["a", "b"], 5), (["c"], 6), (["d"], 900)]


def test_failed_pack_is_split_into_single_urls() -> None:
    pack = Pack(id="p", crawl="c", at_ms=1, targets=(target("a"), target("b")), failures=3)
    journal = isolate_urls(pack, NOW_MS)
    packs = outbox("p", "c", journal, Ledger(pack="p", children=()))
    assert [outgoing.pack.targets for outgoing in packs] == [(target("a"),), (target("b"),)]
    assert [outgoing.pack.failures for outgoing in packs] == [0, 0]
    assert journal.counts == {}


# --- counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "children", "wins", "counts"),
    [
        ({}, (), 0, {"claimed": 0}),
        ({"fetched": 1}, (0, 1), 2, {"fetched": 1, "claimed": 2, "nanodollars": 2 * CLAIM}),
        ({"nanodollars": 9}, (0,), 1, {"claimed": 1, "nanodollars": 9 + CLAIM}),
        ({}, (0,), 3, {"claimed": 1, "refused.budget": 2, "nanodollars": CLAIM}),
        ({"refused.budget": 5}, (), 2, {"claimed": 0, "refused.budget": 7}),
    ],
)
def test_commit_counts_claims_and_budget_refusals(
    before: dict[str, int], children: tuple[int, ...], wins: int, counts: dict[str, int]
) -> None:
    journal = Journal(at_ms=NOW_MS, counts=before)
    ledger = Ledger(pack="p", children=children)
    assert commit_counts(journal, ledger, wins, claim_nanodollars=CLAIM) == counts


def test_journal_survives_encoding() -> None:
    journal = Journal(
        at_ms=NOW_MS,
        records=(record("a", size=10),),
        returning=(
            Requeue(target=target("b"), delay_s=7),
            Requeue(target=replace(target("d"), prior=PRIOR), delay_s=8),
        ),
        candidates=(target("c"), Target(url=SITE, depth=0, attempt=2, hops=3)),
        counts={"fetched": 1},
        alone=True,
        reserved={"bytes": 12},
        unrecorded=(Unrecorded(url=SITE, outcome=Outcome.FAILED, reason=Reason.DNS),),
    )
    assert decode(encode(journal)) == journal


def test_journal_without_optional_parts_is_decoded() -> None:
    journal = Journal(at_ms=NOW_MS, records=(record("b"),), counts={"fetched": 2})
    parts = json.loads(zlib.decompressobj().decompress(encode(journal)))
    for later in ("unrecorded", "unasked", "reserved", "crawl"):
        del parts[later]
    assert decode(zlib.compress(json.dumps(parts).encode())) == journal


def test_page_digests_survive_encoding() -> None:
    digests = ("0f" * 32, None, "f0" * 32, "no digest", "AB" * 32)
    records = tuple(
        replace(record(f"{place}"), sha256=digest) for place, digest in enumerate(digests)
    )
    journal = Journal(at_ms=NOW_MS, records=records)
    assert decode(encode(journal)) == journal
    assert b"0f0f" not in encode(journal)
