"""Journals (results of packs) and outboxes (their next messages).

No URL is lost, doubled or delayed too long, and packs (batches of URLs) have a bounded size.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.budget.prices import CLAIM
from orbweaver.frontier.journal import (
    DELAY_S_MAX,
    TOGETHER_S,
    Journal,
    Ledger,
    Requeue,
    Unrecorded,
    commit_counts,
    late_groups,
    outbox,
    outbox_late,
    surplus_of,
)
from orbweaver.frontier.journal_codec import VERSION, decode, encode
from orbweaver.frontier.late_links import BANDS_MAX, NOTHING_NEW, band_at
from orbweaver.frontier.messages import PLACE_CHARS_MAX
from orbweaver.frontier.pack_result import EndedPage, FoundLinks, PackResult, PageResult, Returning
from orbweaver.model.compression import compress
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import PACK_TARGETS_MAX, Target
from orbweaver.model.version import NewerVersion
from tests.contract import samples

URLS = st.builds("https://h{}.example/{}".format, st.integers(0, 4), st.integers(0, 400))
TARGETS = st.builds(
    Target,
    url=URLS,
    depth=st.integers(0, 40),
    attempt=st.integers(1, 4),
    hops=st.integers(0, 10),
    referrer=st.none() | URLS,
    express=st.booleans(),
    counted=st.booleans(),
    window_s=st.none() | st.integers(0, 90),
)
TEXT = st.none() | st.text(st.characters(codec=None), max_size=30)
RECORDS = st.builds(
    PageRecord,
    crawl=st.text(min_size=1, max_size=10),
    url=URLS,
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(Reason),
    fetched_at=st.integers(0, 2**50),
    depth=st.integers(0, 40),
    status=st.none() | st.integers(100, 999),
    bytes=st.none() | st.integers(0, 2**40),
    title=TEXT,
    error=TEXT,
)
AGAIN = st.builds(Requeue, target=TARGETS, delay_s=st.integers(1, DELAY_S_MAX))
KEYS = st.sampled_from(["fetched", "fetched.ok", "failed", "refused.scope", "refused.budget"])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def unique(items: list[Target]) -> tuple[Target, ...]:
    """Return the first target of each URL."""
    return tuple({item.url: item for item in items}.values())


JOURNALS = st.builds(
    Journal,
    at_ms=st.integers(0, 2**50),
    records=st.lists(RECORDS, max_size=5).map(tuple),
    returning=st.lists(AGAIN, max_size=25).map(tuple),
    candidates=st.lists(TARGETS, max_size=120).map(unique),
    counts=st.dictionaries(KEYS, st.integers(0, 1_000)),
    alone=st.booleans(),
    unrecorded=st.lists(
        st.builds(
            Unrecorded,
            url=URLS,
            outcome=st.sampled_from(Outcome),
            reason=st.sampled_from(Reason),
        ),
        max_size=3,
    ).map(tuple),
    late=st.lists(st.tuples(st.integers(0, BANDS_MAX), TARGETS), max_size=60).map(tuple),
    surplus_band=st.none() | st.integers(0, BANDS_MAX),
    delivery=st.integers(0, 2**53),
)


@st.composite
def settled(draw: st.DrawFn) -> tuple[Journal, Ledger]:
    """Return a journal, and a ledger that won some of its candidates."""
    journal = draw(JOURNALS)
    wins = draw(st.lists(st.booleans(), min_size=120, max_size=120))
    places = range(len(journal.candidates))
    children = tuple(place for place in places if wins[place])
    return journal, Ledger(pack="p", children=children, surplus=draw(st.booleans()))


@given(
    st.dictionaries(st.sampled_from(["records", "columns", "at", "again", "tally"]), JSON),
    st.integers(VERSION + 1, 2**40),
    st.binary(max_size=40),
)
def test_journal_of_newer_version_is_newer(
    raw: dict[str, Any], version: int, behind: bytes
) -> None:
    blob = compress(json.dumps({**raw, "v": version}).encode()) + behind
    with pytest.raises(NewerVersion):
        decode(blob)


@given(st.binary(min_size=1).filter(lambda blob: blob[0] not in b"\x78\x28"))
def test_journal_in_unknown_compression_is_newer(blob: bytes) -> None:
    with pytest.raises(NewerVersion):
        decode(blob)


@pytest.mark.thorough
@given(JOURNALS)
def test_journal_survives_encoding(journal: Journal) -> None:
    assert decode(encode(journal)) == journal


@pytest.mark.thorough
@given(settled())
def test_outbox_is_same_after_reading_journal(both: tuple[Journal, Ledger]) -> None:
    journal, ledger = both
    outgoing_packs = outbox("p", "c", journal, ledger)
    assert outgoing_packs == outbox("p", "c", decode(encode(journal)), ledger)
    assert len({outgoing.pack.id for outgoing in outgoing_packs}) == len(outgoing_packs)
    assert "p" not in {outgoing.pack.id for outgoing in outgoing_packs}


@pytest.mark.thorough
@given(settled())
def test_outbox_has_every_target_once(both: tuple[Journal, Ledger]) -> None:
    journal, ledger = both
    sent = Counter(
        target for outgoing in outbox("p", "c", journal, ledger) for target in outgoing.pack.targets
    )
    children = Counter(journal.candidates[place] for place in ledger.children)
    assert sent == children + Counter(item.target for item in journal.returning)


@pytest.mark.thorough
@given(settled())
def test_late_packs_have_every_link_in_its_band(both: tuple[Journal, Ledger]) -> None:
    journal, ledger = both
    packs = outbox_late("p", "c", journal, ledger)
    assert packs == outbox_late("p", "c", decode(encode(journal)), ledger)
    waiting = Counter((band_at(one.place), target) for one in packs for target in one.targets)
    expected = Counter(journal.late)
    if ledger.surplus and journal.surplus_band is not None:
        expected.update((journal.surplus_band, one) for one in surplus_of(journal, ledger))
    assert waiting == expected
    others = {outgoing.pack.id for outgoing in outbox("p", "c", journal, ledger)}
    assert len({one.id for one in packs} - others) == len(packs)
    assert all(len(one.place) <= PLACE_CHARS_MAX and one.late for one in packs)
    assert all(len(one.targets) <= PACK_TARGETS_MAX for one in packs)
    assert all(len({target.express for target in one.targets}) == 1 for one in packs)


@pytest.mark.thorough
@given(settled())
def test_packs_have_bounded_size_and_delay(both: tuple[Journal, Ledger]) -> None:
    journal, ledger = both
    due = Counter((item.target, item.delay_s) for item in journal.returning)
    for outgoing in outbox("p", "c", journal, ledger):
        targets = outgoing.pack.targets
        assert {target.express for target in targets} == {outgoing.express}
        assert 1 <= len(targets) <= PACK_TARGETS_MAX
        assert 0 <= outgoing.delay_s <= DELAY_S_MAX
        assert outgoing.pack.at_ms == journal.at_ms
        if outgoing.delay_s:
            assert not journal.alone or len(targets) == 1
            for target in targets:
                fitting = [
                    (again, delay_s)
                    for again, delay_s in due
                    if again == target and 0 <= outgoing.delay_s - delay_s < TOGETHER_S
                ]
                assert fitting


@pytest.mark.thorough
@given(settled())
def test_children_and_surplus_are_the_candidates(both: tuple[Journal, Ledger]) -> None:
    journal, ledger = both
    kept = [journal.candidates[place] for place in ledger.children]
    assert Counter(kept) + Counter(surplus_of(journal, ledger)) == Counter(journal.candidates)


@pytest.mark.thorough
@given(settled(), st.integers(0, 50))
def test_commit_counts_are_complete(both: tuple[Journal, Ledger], beyond: int) -> None:
    journal, ledger = both
    children = len(ledger.children)
    won = children + beyond
    counts = Counter(dict(commit_counts(journal, ledger, won, claim_nanodollars=CLAIM)))
    counts.subtract(journal.counts)
    cost = CLAIM * children
    late = late_groups(journal, ledger)
    expected = {
        "claimed": children,
        "refused.budget": beyond if journal.surplus_band is None else 0,
        "nanodollars": cost,
        "late_packs": len(late),
        "late_links": sum(len(targets) for _, targets in late),
        "late_barren": sum(band >= NOTHING_NEW for band, _ in late),
    }
    assert {key: count for key, count in counts.items() if count} == {
        key: count for key, count in expected.items() if count
    }


@given(st.lists(st.tuples(URLS, st.sampled_from(["end", "again", "link"]), st.floats(-10, 1e6))))
def test_result_keeps_every_url_in_journal(steps: list[tuple[str, str, float]]) -> None:
    result = PackResult("c")
    told: dict[str, set[str]] = {"end": set(), "again": set(), "link": set()}
    for url, kind, delay_s in steps:
        told[kind].add(url)
        target = Target(url=url, depth=0)
        if kind == "again":
            result.add(PageResult(end=Returning(target=target, delay_s=delay_s)))
        elif kind == "link":
            result.add_links(FoundLinks(admitted=(target,)))
        else:
            result.add(PageResult(end=EndedPage(record=samples.record(0, url=url))))
    order = [Target(url=url, depth=0) for url in told["end"] | told["again"]]
    journal = result.journal(order, 0)
    assert {record.url for record in journal.records} == told["end"]
    assert {item.target.url for item in journal.returning} == told["again"]
    assert {target.url for target in journal.candidates} == told["link"]
    assert all(1 <= item.delay_s <= DELAY_S_MAX for item in journal.returning)
