"""Memory of seen pages, shared between workers: news reach a receiver, forged news are ignored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.seen_content import (
    MET_MAX,
    NEWS_BYTES_MAX,
    NEWS_MAX,
    RUNS_NEWS_MAX,
    SeenContent,
    text_hash,
)

HOST = "https://example.com"
WHATS = st.lists(st.text(max_size=3), max_size=30)
FIRSTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)
TEXTS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=20), max_size=5)


def met(seen: list[str], firsts: list[tuple[int, int]], texts: list[list[int]]) -> SeenContent:
    known = SeenContent()
    for what in seen:
        known.add(what)
    for part, url in firsts:
        known.note_first(part, url)
    for runs in texts:
        known.add_runs(runs, HOST)
    return known


@given(WHATS, FIRSTS, TEXTS, WHATS, FIRSTS)
def test_shared_news_is_known_to_receiver(
    seen: list[str],
    firsts: list[tuple[int, int]],
    texts: list[list[int]],
    own_seen: list[str],
    own_firsts: list[tuple[int, int]],
) -> None:
    one, other = met(seen, firsts, texts), met(own_seen, own_firsts, [])
    before = {part: other.first_url(part, -1) for part in range(10)}
    other.encode_news()
    told = one.encode_news()
    assert len(told) <= NEWS_BYTES_MAX
    assert not one.has_news
    other.add_news(told)
    assert not other.has_news
    assert all(not other.add(what) for what in (*seen, *own_seen))
    for part, url in before.items():
        assert other.first_url(part, -1) == (one.first_url(part, -1) if url == -1 else url)
    assert not any(other.add_runs(runs, HOST) for runs in texts)


@given(st.binary(max_size=100), st.booleans())
def test_invalid_news_is_ignored(told: bytes, cut: bool) -> None:
    known = met(["a"], [(1, 2)], [[1, 2, 3, 4]])
    if cut:
        whole = met(["b"], [(3, 4)], [[5, 6]]).encode_news()
        told = whole[: max(0, len(whole) - 1 - len(told))] if told else b"\x02" + whole[1:]
    fresh = SeenContent()
    fresh.add_news(told)
    known.add_news(told)
    assert not known.add("a")
    assert known.first_url(1, 0) == 2
    if cut:
        assert fresh.add("b")
        assert fresh.first_url(3, 0) == 0


def test_memory_and_news_are_bounded() -> None:
    known, other = SeenContent(), SeenContent()
    for number in range(MET_MAX + 10):
        known.add(str(number))
        known.note_first(number, number)
    for number in range(100):
        known.add_runs(range(number << 20, (number << 20) + 4_000, 4), HOST)
    told = known.encode_news()
    assert NEWS_MAX * 15 < len(told) <= NEWS_BYTES_MAX
    other.add_news(told)
    assert not other.add(str(NEWS_MAX - 1))
    assert other.add(str(NEWS_MAX))
    assert known.add("1")  # The memory was cleared.
    assert RUNS_NEWS_MAX >= 4_000
    assert text_hash("a") != text_hash("b")
