"""Erasure of single values: matches are removed, mentions are cut, the rest is unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.erasure.rules import (
    AGAIN_S,
    definition_left,
    ended,
    in_journal,
    message_left,
    record_left,
    samples_left,
)
from orbweaver.erasure.scope import ErasureScope
from orbweaver.frontier.journal import Journal, Requeue, Unrecorded
from orbweaver.frontier.messages import Close, Loose, Pack, SeedsMessage, decode
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target

if TYPE_CHECKING:
    from orbweaver.frontier.messages import Message

URL = "https://example.com/jane?a=1"
OTHER = "https://example.com/"
THERE = "https://other.example/x"
WHOLE = ErasureScope(urls=frozenset({URL}))
HOST = ErasureScope(host="example.com")
RUN = ErasureScope(runs=frozenset({"c-1"}))
CRAWL = Crawl(id="c-1", name="c", started_at_ms=0)
SAME = object()


def record(**fields: Any) -> PageRecord:
    known: dict[str, Any] = {"crawl": "c-1", "url": THERE} | fields
    return PageRecord(outcome=Outcome.FETCHED, reason=Reason.OK, fetched_at=1, depth=0, **known)


def pack(*targets: Target, crawl: str = "c-1") -> Pack:
    return Pack(id="p", crawl=crawl, at_ms=1, targets=targets)


def target(url: str, referrer: str | None = None) -> Target:
    return Target(url=url, depth=1, referrer=referrer)


# --- records and rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["referrer", "canonical", "title", "description", "error"])
@pytest.mark.parametrize("text", [URL, f"see {URL}, {OTHER}"])
def test_mentions_in_record_are_cut(name: str, text: str) -> None:
    full = dict.fromkeys(("referrer", "canonical", "title", "description", "error"), THERE)
    known = record(**full | {name: text})
    assert record_left(known, WHOLE) == record(**full | {name: None})
    whole = record(**full)
    assert record_left(whole, WHOLE) is whole


@pytest.mark.parametrize("scope", [HOST, RUN], ids=["host", "run"])
def test_record_of_scope_is_removed(scope: ErasureScope) -> None:
    assert record_left(record(url=URL), scope) is None
    other = record(crawl="c-2")
    assert record_left(other, scope) is other
    assert record_left(record(url=URL), WHOLE) is None


@pytest.mark.parametrize(
    ("item", "left"),
    [
        (Item(table="t", place=0, fields={"a": URL, "b": 1}), {"a": None, "b": 1}),
        (Item(table="t", place=0, fields={"a": [URL, THERE]}), {"a": [THERE]}),
        (Item(table="t", place=0, fields={"a": THERE}), None),
    ],
)
def test_mentions_in_items_of_record_are_cut(item: Item, left: dict[str, Any] | None) -> None:
    other = Item(table="t", place=1, fields={"a": THERE}, problems=("x",))
    known = record(extracted=(item, other))
    found = record_left(known, WHOLE)
    if left is None:
        assert found is known
    else:
        assert found is not None
        assert found.extracted[0].fields == left
        assert found.extracted[1] is other


def test_problems_quoting_url_are_removed() -> None:
    item = Item(table="t", place=0, fields={"a": 1}, problems=(f"{URL} is no price", "b"))
    found = record_left(record(extracted=(item,)), WHOLE)
    assert found is not None
    assert found.extracted == (replace(item, problems=("b",)),)


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (URL, None),
        (f"see {URL}!", None),
        (THERE, SAME),
        ([URL, None, THERE], [None, THERE]),
        ((URL,), []),
        ([None, THERE], SAME),
        (7, SAME),
        (None, SAME),
    ],
)
def test_mentions_in_cell_are_cut(value: object, left: object) -> None:
    found = WHOLE.value_left(value)
    assert found is value if left is SAME else found == left


def test_row_of_scope_is_removed_and_mentions_are_cut() -> None:
    row = {"url": THERE, "crawl": "c-2", "text": f"see {URL}", "markdown": URL, "title": URL}
    assert WHOLE.row_left(row) == row | {"title": None}
    cut = {"title": None, "text": None, "markdown": None}
    assert replace(WHOLE, mentions=True).row_left(row) == row | cut
    assert WHOLE.row_left(row | {"url": URL}) is None
    assert RUN.row_left(row | {"crawl": "c-1"}) is None
    changed = {"url": THERE, "crawl": "c-2", "previous_crawl": "c-1", "title": "c-1"}
    assert RUN.row_left(changed) == changed | {"previous_crawl": None}
    other = changed | {"previous_crawl": "c-0"}
    assert RUN.row_left(other) is other


# --- crawls -------------------------------------------------------------------------------------


def test_definition_loses_seeds_sitemaps_and_headers_of_scope() -> None:
    crawl = replace(
        CRAWL,
        seeds=(OTHER, URL, THERE),
        seed_depths=(1, 2, 3),
        sitemap_urls=(f"{OTHER}s.xml", f"{THERE}.xml"),
        anchors=(OTHER, THERE),
        roots=(URL, THERE),
        host_headers=(("https://example.com", (("a", "b"),)), ("https://o.example", ())),
        hosts_counted=("https://example.com", "https://other.example"),
        exclude=("example.com",),
    )
    left = definition_left(crawl, WHOLE)
    assert left == replace(crawl, seeds=(OTHER, THERE), seed_depths=(1, 3), roots=(THERE,))
    assert definition_left(crawl, HOST) == replace(
        crawl,
        seeds=(THERE,),
        seed_depths=(3,),
        sitemap_urls=(f"{THERE}.xml",),
        anchors=(THERE,),
        roots=(THERE,),
        host_headers=(("https://o.example", ()),),
        hosts_counted=("", "https://other.example"),
    )
    without = replace(crawl, seed_depths=())
    assert definition_left(without, WHOLE).seed_depths == ()


def test_samples_possibly_of_scope_are_removed() -> None:
    samples = {"scope": ("https://example.com/jane?…", THERE), "depth": (THERE,), "budget": (URL,)}
    assert samples_left(samples, WHOLE) == {"scope": (THERE,), "depth": (THERE,), "budget": ()}


# --- messages and journals ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (pack(target(URL)), None),
        (pack(target(OTHER)), SAME),
        (pack(target(URL), target(OTHER, URL)), pack(target(OTHER))),
        (pack(target(OTHER, THERE), target(THERE, URL)), pack(target(OTHER, THERE), target(THERE))),
        (SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(URL,)), None),
        (
            SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(f"{URL}#top", OTHER)),
            SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(OTHER,)),
        ),
        (SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(OTHER,)), SAME),
        (Loose(crawl="c-1", references=(URL, "x")), Loose(crawl="c-1", references=("x",))),
        (Close(crawl="c-1", at_ms=1), SAME),
    ],
)
def test_message_keeps_other_urls_without_referrer(
    message: Message, left: Message | object | None
) -> None:
    found = message_left(message, "", WHOLE)
    assert found is message if left is SAME else found == left
    assert message_left(message, "", RUN) is None
    other = ErasureScope(runs=frozenset({"c-2"}))
    assert message_left(message, "", other) is message


@pytest.mark.parametrize(
    ("body", "scope", "goes"),
    [
        (f'{{"strange": "{URL}"}}', WHOLE, True),
        ('{"strange": "x"}', WHOLE, False),
        ('{"v":2,"crawl":"c-1","at":1}', WHOLE, True),
        ('{"v":2,"crawl":"c-1","at":1}', RUN, True),
        ('{"v":2,"crawl":"c-2","at":1}', RUN, False),
        ('{"v":2,"at":1}', RUN, True),
    ],
)
def test_unreadable_message_is_removed_if_in_scope(
    body: str, scope: ErasureScope, *, goes: bool
) -> None:
    message = decode(body)
    assert message_left(message, body, scope) is (None if goes else message)


@pytest.mark.parametrize(
    "journal",
    [
        Journal(at_ms=1, records=(record(url=URL),)),
        Journal(at_ms=1, records=(record(), record(referrer=URL))),
        Journal(at_ms=1, returning=(Requeue(target=target(URL), delay_s=1),)),
        Journal(at_ms=1, candidates=(target(OTHER), target(OTHER, URL))),
        Journal(at_ms=1, left=(target(URL),)),
        Journal(at_ms=1, unasked=(OTHER, URL)),
        Journal(
            at_ms=1,
            unrecorded=(Unrecorded(url=URL, outcome=Outcome.SKIPPED, reason=Reason.OK),),
        ),
    ],
)
def test_journal_is_in_scope_if_it_names_url(journal: Journal) -> None:
    assert in_journal(journal, WHOLE)
    assert not in_journal(journal, ErasureScope(urls=frozenset({f"{URL}0"})))
    assert not in_journal(replace(journal, crawl="c-2"), ErasureScope(runs=frozenset({"c-3"})))
    assert in_journal(replace(journal, crawl="c-3"), ErasureScope(runs=frozenset({"c-3"})))


def test_journal_without_crawl_belongs_to_its_records() -> None:
    assert in_journal(Journal(at_ms=1, records=(record(),)), RUN)
    assert not in_journal(Journal(at_ms=1, records=(record(crawl="c-2"),)), RUN)


def test_ended_pack_counts_erased_urls_and_defers_others() -> None:
    crawl = replace(CRAWL, hosts_counted=("https://example.com",))
    found = ended(pack(target(URL), target(OTHER, URL), target(THERE)), crawl, WHOLE, 7)
    assert (found.at_ms, found.crawl, found.unasked) == (7, "c-1", (URL,))
    assert [(one.target, one.delay_s) for one in found.returning] == [
        (target(OTHER), AGAIN_S),
        (target(THERE), AGAIN_S),
    ]
    counted = {key: count for key, count in found.counts.items() if count}
    assert counted == {
        "skipped": 1,
        "skipped.forgotten": 1,
        "deferrals": 2,
        "host.0.done": 1,
    }
    whole = ended(pack(target(URL)), crawl, WHOLE, 7)
    assert (whole.unasked, whole.returning) == ((URL,), ())


def test_late_pack_loses_erased_urls_and_keeps_waiting() -> None:
    crawl = Crawl(id="c-1", name="c", started_at_ms=1)
    waiting = pack(target(URL), target(OTHER, URL), target(THERE))
    late = replace(waiting, late=True, place="4.000001.00000000000001.p")
    found = ended(late, crawl, WHOLE, 7)
    assert [(band, one.url, one.referrer) for band, one in found.late] == [
        (4, OTHER, None),
        (4, THERE, None),
    ]
    assert (found.unasked, found.returning, found.candidates, found.records) == ((), (), (), ())
    assert found.counts == {"late_packs_taken": 1, "late_links_taken": 3}
    assert in_journal(Journal(at_ms=1, late=((4, target(URL)),)), WHOLE)
    assert not in_journal(found, WHOLE)
