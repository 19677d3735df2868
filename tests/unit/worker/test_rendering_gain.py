"""Gain of rendering, and the rendering credit of kinds (groups of similar URLs)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.model.crawl import LEARNED, Counters, CounterShard
from orbweaver.worker.rendering_gain import (
    CREDIT_MAX,
    FIRST,
    KINDS_MAX,
    MARKED_FIRST,
    SAMPLE,
    LearnedKinds,
    PageContent,
    gain_of,
    is_sample,
    text_chars,
)

SITE = "https://example.com"
SOME = frozenset(f"{SITE}/{place}" for place in range(20))
FETCHED = PageContent(text_chars=1_000, links=SOME, unknown=SOME, items=1)


def more(number: int) -> frozenset[str]:
    """Return the links of the fetched page, and new ones."""
    return SOME | {f"{SITE}/more/{place}" for place in range(number)}


@pytest.mark.parametrize(
    ("rendered", "gained"),
    [
        (FETCHED, False),
        (replace(FETCHED, leaves=True), True),
        (replace(FETCHED, items=2), True),
        (replace(FETCHED, items=0, text_chars=0, links=frozenset(), unknown=frozenset()), False),
        (replace(FETCHED, links=more(1), unknown=more(1)), True),
        (replace(FETCHED, links=more(4)), False),
        (replace(FETCHED, links=more(5)), True),
        (replace(FETCHED, text_chars=1_199), False),
        (replace(FETCHED, text_chars=1_200), True),
    ],
)
def test_gain_needs_new_links_text_items_or_redirect(
    rendered: PageContent, *, gained: bool
) -> None:
    """The text must grow by a fifth."""
    assert gain_of(FETCHED, rendered) is gained


def test_few_words_are_no_gain() -> None:
    empty = PageContent(text_chars=0, links=frozenset(), unknown=frozenset())
    assert not gain_of(empty, replace(empty, text_chars=39))
    assert gain_of(empty, replace(empty, text_chars=40))


def test_text_chars_ignore_scripts_and_use_charset() -> None:
    body = "<title>x</title><p>caf\xe9<script>let a = 1;</script>".encode("latin-1")
    assert text_chars(body, "text/html; charset=latin-1") == len("café")


@pytest.mark.parametrize(("marked", "first"), [(True, MARKED_FIRST), (False, FIRST)])
def test_credit_falls_without_gain_and_rises_with_it(*, marked: bool, first: int) -> None:
    kinds = LearnedKinds()
    kind = kinds.key(f"{SITE}/a/1", marked=marked)
    assert kinds.credit(kind, marked=marked) == first
    for left in range(first - 1, -1, -1):
        assert kinds.learn(kind, marked=marked, gained=False)
        assert kinds.credit(kind, marked=marked) == left
    assert kinds.learn(kind, marked=marked, gained=False) == {}
    assert not kinds.has_gained(kind)
    for left in (2, 4, 6, 6):
        kinds.learn(kind, marked=marked, gained=True)
        assert kinds.credit(kind, marked=marked) == left
    assert kinds.has_gained(kind)


def test_kinds_differ_by_host_shape_and_mark() -> None:
    kinds = LearnedKinds()
    urls = [f"{SITE}/a/1", f"{SITE}/b/1", "https://example.org/a/1"]
    names = {kinds.key(url, marked=marked) for url in urls for marked in (True, False)}
    assert len(names) == 6
    assert kinds.key(f"{SITE}/a/2", marked=True) == kinds.key(urls[0], marked=True)
    for place in range(3 * KINDS_MAX):
        kind = kinds.key(f"{SITE}/{place // 26:c}{place % 26:c}".translate(_WORDS), marked=False)
        kinds.learn(kind, marked=False, gained=True)
    found = {
        kinds.key(f"{SITE}/{'x' * place}/folder/1", marked=False)
        for place in range(1, 3 * KINDS_MAX)
    }
    assert len(found) <= KINDS_MAX + 1


_WORDS = {place: f"/w{place}x/" for place in range(26)}


@given(pages=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=60))
def test_workers_agree_on_credit_after_reads(pages: list[tuple[int, bool, bool]]) -> None:
    workers = [LearnedKinds() for _ in range(3)]
    committed: Counter[str] = Counter()
    kind = workers[0].key(f"{SITE}/a/1", marked=True)
    for number, gained, reads in pages:
        worker = workers[number]
        committed.update(worker.learn(kind, marked=True, gained=gained))
        if reads:
            worker.replace_counters(_learned(committed))
        assert 0 <= worker.credit(kind, marked=True) <= CREDIT_MAX
    for worker in workers:
        worker.replace_counters(_learned(committed))
    assert len({worker.credit(kind, marked=True) for worker in workers}) == 1
    for gained, credit in ((True, CREDIT_MAX), (False, 0)):
        for _ in range(CREDIT_MAX):
            workers[0].learn(kind, marked=True, gained=gained)
        assert workers[0].credit(kind, marked=True) == credit


def _learned(committed: Counter[str]) -> dict[str, int]:
    shards = (CounterShard(counts={"claimed": 3, **committed}),)
    counters = Counters.build(shards)
    assert counters.total == {"claimed": 3}
    assert all(key.startswith(LEARNED) for key in counters.learned)
    return dict(counters.learned)


def test_one_url_in_forty_is_sample() -> None:
    for shape in ("/books/{}", "/{}/a", "/?id={}"):
        taken = sum(is_sample(SITE + shape.format(place)) for place in range(8_000))
        assert 0.8 * 8_000 / SAMPLE <= taken <= 1.2 * 8_000 / SAMPLE
