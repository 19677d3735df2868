"""Requests of a crawl by kind (group of similar URLs): results, and suggested exclusions."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from orbweaver.budget.prices import spent_on
from orbweaver.diagnostics.refusal_report import RequestKind
from orbweaver.diagnostics.request_counts import (
    DIFFERENT_KEPT,
    KINDS_SAMPLED,
    NEAR_BITS,
    SAMPLE_BYTES_MAX,
    SAMPLES_BYTES_MAX,
    SAMPLES_MAX,
    Distinct,
    RequestCounts,
    digests_of,
    stored_text,
)
from orbweaver.frontier import warc
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url_kind import KINDS_MAX
from orbweaver.model.url_patterns import matches
from tests.memory import MemoryFiles, World

SITE = "https://example.com"
AT_MS = 1_795_251_600_000
TOTAL = {"claimed": 100, "nanodollars": 3_000_000}


def record(path: str, **fields: Any) -> PageRecord:
    known = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "latency_ms": 7, "charset": "utf-8"}
    known |= {"title": path, "sha256": path, "bytes": 100, "crawl": "c", "depth": 1}
    return PageRecord(url=SITE + path, fetched_at=AT_MS, **{**known, **fields})


def stored(path: str, **fields: Any) -> PageRecord:
    return record(path, **{"body_key": "k", "body_offset": 0, "body_length": 9, **fields})


def counts_of(records: list[PageRecord]) -> RequestCounts:
    counts = RequestCounts()
    for one in records:
        counts.add(one)
    return counts


def kinds_of(counts: RequestCounts, **digests: int) -> dict[str, RequestKind]:
    """Return the kinds by the path of their example."""
    by_url = {SITE + path: digest for path, digest in digests.items()}
    return {one.kind.removeprefix(SITE): one for one in counts.requests(TOTAL, by_url).kinds}


# --- counts -------------------------------------------------------------------------------------


def test_kind_counts_outcomes_titles_and_bodies() -> None:
    noindex = {"reason": Reason.NOINDEX, "title": "Log in", "sha256": "same"}
    failed = {"outcome": Outcome.FAILED, "reason": Reason.HTTP_SERVER_ERROR, "attempt": 4}
    unasked = {"outcome": Outcome.SKIPPED, "reason": Reason.ROBOTS, "latency_ms": None}
    counts = counts_of(
        [
            *(record(f"/login?to={number}", **noindex) for number in range(20)),
            record("/login?to=99", title=None, sha256=None, **failed),
            *(record(f"/item/{number}") for number in range(9)),
            *(record(f"/private/{number}", **unasked) for number in range(5)),
        ]
    )
    found = kinds_of(counts)
    assert [*found] == ["/login?to=0", "/item/0", "/private/0"]
    login, item, private = found.values()
    assert (login.urls, login.requests, login.noindex) == (21, 24, 20)
    assert (login.titles, login.bodies, login.exact) == (1, 1, True)
    assert login.outcomes == {"failed": 1, "fetched": 20}
    assert login.example.startswith(f"{SITE}/login?to=…")
    assert (item.titles, item.bodies, item.brought_little) == (9, 9, False)
    assert (private.requests, private.urls, private.brought_little) == (0, 5, False)


def test_estimated_titles_never_exceed_pages() -> None:
    estimates = []
    for pages in range(DIFFERENT_KEPT + 1, 4 * DIFFERENT_KEPT, 20):
        counts = counts_of([record(f"/{at}", title=f"{at}", sha256=f"{at}") for at in range(pages)])
        (told,) = kinds_of(counts).values()
        assert not told.exact
        assert max(told.titles, told.bodies) <= pages
        estimates.append(told.titles / pages)
    assert min(estimates) > 0.5


def test_costs_are_shared_by_claims_and_requests() -> None:
    counts = counts_of([*map(record, (f"/a/{number}" for number in range(75)))])
    for number in range(25):
        counts.add(record(f"/b/{number}", attempt=2))
    told = counts.requests(TOTAL)
    one, other = told.kinds
    assert one.usd + other.usd == pytest.approx(told.usd) == pytest.approx(0.003)
    assert one.usd == pytest.approx(spent_on(TOTAL, (75, 75), (100, 125)))
    assert other.usd > one.usd / 3
    half = counts.requests({**TOTAL, "claimed": 200}, unread=True)
    assert half.usd == pytest.approx(0.0015)
    assert half.unread
    assert RequestCounts().requests({}).usd == spent_on({}, (0, 0), (0, 0)) == 0


def test_distinct_is_exact_for_few_and_mergeable() -> None:
    few, many = Distinct(), Distinct()
    for number in range(DIFFERENT_KEPT):
        few.add(f"{number}")
        few.add(f"{number}")
    assert few.count == DIFFERENT_KEPT
    for number in range(20_000):
        many.add(f"{number}")
    assert len(many.kept) <= DIFFERENT_KEPT
    assert 15_000 < many.count < 25_000
    parts = [Distinct() for _ in range(7)]
    for number in Random(1).sample(range(20_000), 20_000):
        parts[number % 7].add(f"{number}")
    whole = Distinct()
    for part in parts:
        whole.merge(part)
    assert (whole.kept, whole.zeros) == (many.kept, many.zeros)


# --- kinds with few useful pages ----------------------------------------------------------------


def test_useless_kind_gets_exclusion_with_savings() -> None:
    noindex = {"reason": Reason.NOINDEX}
    edits = [record(f"/w?title=Page-{at}-of-all&action=edit", **noindex) for at in range(40)]
    pages = [record(f"/wiki/Page-{at}-of-all") for at in range(40)]
    rare = [record(f"/rare/{at}", **noindex) for at in range(9)]
    told = counts_of([*edits, *pages, *rare]).requests({**TOTAL, "claimed": 89})
    (pattern,) = told.suggested
    assert pattern == r"^https://example\.com/w\?title=[^&]*&action=edit$"
    assert all(matches((pattern,), one.url) for one in edits)
    assert not any(matches((pattern,), one.url) for one in (*pages, *rare))
    edit = next(one for one in told.kinds if one.exclude == pattern)
    assert (edit.saves_requests, told.saves_requests) == (40, 40)
    assert edit.saves_usd == told.saves_usd == pytest.approx(0.003 * 40 / 89)


def test_exclusion_losing_pages_is_not_suggested() -> None:
    ids = [record(f"/show/{at}a{at}", reason=Reason.NOINDEX) for at in range(30)]
    named = [record("/show/about"), record("/show/contact")]
    counts = counts_of([*ids, *named])
    assert counts.requests(TOTAL).suggested == ()
    found = kinds_of(counts)
    assert found["/show/*"].brought_little
    assert found["/show/*"].saves_requests == 32


def test_useless_kinds_of_many_folders_are_merged() -> None:
    sorts = [
        record(f"/{folder}/?C={column};O=D", title=f"Index of {folder}")
        for folder in ("docs", "pub", "pub/old", "a/b/c/d/e")
        for column in "NMSD"
    ]
    assert [*kinds_of(counts_of(sorts))] == ["/**/?C=*;O=*"]
    apart = [*sorts, *(record(f"/db/?C={at};O=D") for at in "NMSD")]
    found = kinds_of(counts_of(apart))
    assert "/**/?C=*;O=*" not in found
    assert found["/db/?C=*;O=*"].requests == 4


def test_kind_with_near_duplicate_texts_brought_little() -> None:
    near, far = 0b1, int("1" * (NEAR_BITS + 1), 2) << 8
    counts = counts_of([stored(f"/blob?h={at}") for at in range(40)])
    read = {
        place.url.removeprefix(SITE): near << at % 2 for at, place in enumerate(counts.samples())
    }
    assert len(read) == SAMPLES_MAX
    (told,) = kinds_of(counts, **read).values()
    assert (told.texts, told.texts_read, told.titles) == (1, SAMPLES_MAX, 40)
    assert told.brought_little
    read = {url: far << at for at, url in enumerate(read)}
    (told,) = kinds_of(counts, **read).values()
    assert told.texts > 1


REPEATS: list[PageRecord] = [
    stored(f"/log-in?to={at}", title="Log in", sha256=f"{at}") for at in range(30)
]
PATTERN = r"^https://example\.com/log-in\?to=[0-9]+$"
ITEMS = [record(f"/item/{at}") for at in range(30)]


@pytest.mark.parametrize(
    ("change", "texts", "suggested"),
    [
        ({}, 1, (PATTERN,)),
        ({"items": 1, "items_invalid": 1}, 1, (PATTERN,)),
        ({"items": 2, "items_invalid": 1}, 1, ()),
        ({"depth": 0}, 1, ()),
        ({"depth": 0, "referrer": f"{SITE}/"}, 1, (PATTERN,)),
        ({"title": None}, 1, (PATTERN,)),
        ({}, SAMPLES_MAX, ()),
        ({}, 0, ()),
    ],
)
def test_kind_with_new_content_gets_no_exclusion(
    change: dict[str, Any], texts: int, suggested: tuple[str, ...]
) -> None:
    """One page with an item, or one seed, is enough to count as new content."""
    first = replace(REPEATS[0], **change)
    counts = counts_of([first, *REPEATS[1:], *ITEMS])
    samples = [one.url for one in counts.samples() if "log-in" in one.url]
    digests = {url: at * 0x0123_4567_89AB if texts > 1 else 7 for at, url in enumerate(samples)}
    assert counts.requests(TOTAL, digests if texts else {}).suggested == suggested


def test_kind_linking_a_page_first_gets_no_exclusion() -> None:
    """Without this kind of URL, the page behind the link would be lost."""
    found = record("/item/no-1-of-all", referrer=f"{SITE}/log-in?to=3")
    digests = {one.url: 7 for one in REPEATS}
    assert counts_of([*REPEATS, *ITEMS]).requests(TOTAL, digests).suggested == (PATTERN,)
    assert counts_of([*REPEATS, *ITEMS, found]).requests(TOTAL, digests).suggested == ()


def test_exclusion_matching_seed_is_not_suggested() -> None:
    """A seed without a record counts too, because the crawl lists it."""
    digests = {one.url: 7 for one in REPEATS}
    counts = counts_of([*REPEATS, *ITEMS])
    assert counts.requests(TOTAL, digests, seeds=[f"{SITE}/log-in?to=999"]).suggested == ()
    assert counts.requests(TOTAL, digests, seeds=[f"{SITE}/"]).suggested == (PATTERN,)


def test_kind_leading_to_pages_gets_no_exclusion() -> None:
    lists = [record(f"/list?page={at}", title="List") for at in range(20)]
    links = [record(f"/item/no-{at}-of-all", referrer=f"{SITE}/list?page={at}") for at in range(9)]
    useless = [
        record("/list?page=99", title="List", referrer=f"{SITE}/list?page=1"),
        record("/log-in", reason=Reason.NOINDEX, referrer=f"{SITE}/list?page=1"),
        record("/gone", outcome=Outcome.FAILED, referrer=f"{SITE}/list?page=1"),
    ]
    found = kinds_of(counts_of([*lists, *links, *useless]))["/list?page=0"]
    assert (found.led_to, found.brought_little) == (9, True)
    more = [record(f"/item/no-{at}-of-all", referrer=f"{SITE}/list?page=5") for at in (90, 91)]
    counts = counts_of([*lists, *links, *useless, *more])
    assert not kinds_of(counts)["/list?page=0"].brought_little
    assert counts.requests(TOTAL).suggested == ()


def test_rare_kinds_are_merged() -> None:
    """A path word in less than 1 % of the requests becomes a wildcard."""
    often = [record(f"/tree/docs/{at}") for at in range(150)]
    rare = [record(f"/tree/{chr(97 + at)}x/{at}") for at in range(20)]
    found = kinds_of(counts_of([*often, *rare]))
    assert {kind: one.requests for kind, one in found.items()} == {
        "/tree/docs/0": 150,
        "/tree/*/0": 20,
    }
    assert found["/tree/*/0"].saves_requests == 170


def test_exclusion_within_another_is_not_suggested() -> None:
    noindex = {"reason": Reason.NOINDEX}
    ids = [record(f"/compare?ids={at}", **noindex) for at in range(30)]
    pairs = [record(f"/compare?ids={at}%2C{at}", **noindex) for at in range(30)]
    told = counts_of([*ids, *pairs]).requests(TOTAL)
    assert told.suggested == (r"^https://example\.com/compare\?ids=[^&;]*$",)
    assert told.saves_requests == 60


def test_same_title_on_all_pages_is_ignored() -> None:
    pages = [record(f"/a/{at}", title="Our site") for at in range(50)]
    counts = counts_of(pages)
    assert counts.requests(TOTAL).suggested == ()
    for at in range(50):
        counts.add(record(f"/b/{at}"))
    assert kinds_of(counts)["/a/0"].brought_little
    assert counts.requests(TOTAL).suggested == ()


def test_folders_merge_despite_few_leading_pages() -> None:
    sorts = [
        record(f"/{chr(97 + at)}x/?C={column};O=D", title=f"Index {at}")
        for at in range(20)
        for column in "NMSD"
    ]
    led = [
        record(f"/{chr(97 + at)}x/sub/page", referrer=f"{SITE}/ax/?C={column};O=D")
        for at in range(2)
        for column in "NM"
    ]
    found = kinds_of(counts_of([*sorts, *led]))
    assert (found["/**/?C=*;O=*"].requests, found["/**/?C=*;O=*"].led_to) == (80, 4)


def test_sitemaps_do_not_count_as_waste() -> None:
    counts = counts_of([record(f"/sitemap-{at}.xml", reason=Reason.SITEMAP) for at in range(20)])
    (told,) = kinds_of(counts).values()
    assert not told.brought_little


# --- texts --------------------------------------------------------------------------------------


def test_samples_do_not_depend_on_record_order() -> None:
    records = [stored(f"/{chr(97 + at % 30)}b/{at}") for at in range(1_500)]
    counts = counts_of(records)
    shuffled = counts_of(Random(3).sample(records, len(records)))
    assert counts.samples() == shuffled.samples()
    assert counts.requests(TOTAL) == shuffled.requests(TOTAL)
    assert len(counts.samples()) <= KINDS_SAMPLED * SAMPLES_MAX


def test_large_pages_are_sampled_less() -> None:
    counts = counts_of([stored(f"/a/{at}", bytes=SAMPLE_BYTES_MAX) for at in range(20)])
    assert len(counts.samples()) == SAMPLES_BYTES_MAX // SAMPLE_BYTES_MAX == 2


def test_only_small_stored_pages_have_text() -> None:
    page = stored("/a")
    found = stored_text(page)
    assert found is not None
    assert (found.key, found.offset, found.length, found.body) == ("k", 0, 9, True)
    with_text = stored_text(replace(page, text_offset=9, text_length=5))
    assert with_text is not None
    assert (with_text.offset, with_text.length, with_text.body) == (9, 5, False)
    for other in (
        record("/a"),
        replace(page, charset=None),
        replace(page, bytes=SAMPLE_BYTES_MAX + 1),
    ):
        assert stored_text(other) is None


async def test_digests_are_read_from_texts_or_bodies() -> None:
    world = World()
    files = MemoryFiles(world)
    words = " ".join(f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(60))
    document = {"text": words, "markdown": words}
    html = f"<html><body><main><p>{words}</p></main></body></html>".encode()
    answer = warc.response(
        f"{SITE}/body", AT_MS, status=200, headers={}, body=html, truncated=False, octets={},
        asked=(),
    )  # fmt: skip
    members = {
        "/text": warc.conversion(f"{SITE}/text", AT_MS, document, stored=False),
        "/body": answer,
        "/erased": warc.tombstone(200),
        "/broken": b"no record",
        "/list": warc.conversion(f"{SITE}/list", AT_MS, {"text": [1]}, stored=False),
    }
    places = []
    for path, member in members.items():
        await files.put(path, member)
        place = {"body_key": path, "body_length": len(member)}
        if path in ("/text", "/list"):
            place |= {"text_offset": 0, "text_length": len(member)}
        places.append(stored_text(stored(path, **place)))
    places.append(stored_text(stored("/gone", body_key="/gone")))
    found = await digests_of([place for place in places if place is not None], files)
    assert found.keys() == {f"{SITE}/text", f"{SITE}/body"}
    assert found[f"{SITE}/text"] == found[f"{SITE}/body"] != 0


# --- bounds -------------------------------------------------------------------------------------


def test_number_of_kinds_is_limited() -> None:
    words = [f"{chr(97 + at)}x" for at in range(12)]
    paths = [f"/{a}/{b}/{c}/{d}" for a in words for b in words for c in words for d in "01"]
    counts = counts_of([record(path) for path in paths])
    told = counts.requests({"claimed": len(paths)})
    assert len(told.kinds) <= KINDS_MAX
    assert (told.requests, told.records) == (len(paths), len(paths))
    assert sum(one.requests for one in told.kinds) + told.other_requests == len(paths)


def test_kind_takes_bounded_memory() -> None:
    """750 groups of similar URLs (kinds) take less than 60 MB."""
    counts, sizes = RequestCounts(), []
    tracemalloc.start()
    for number in range(15_001):
        counts.add(stored(f"/a/{number}", title=f"{number} " * 50))
        if number in (0, 5_000, 15_000):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # Includes a cache of words that were looked up.
    assert sizes[1] - sizes[0] < 600_000
    assert sizes[2] - sizes[1] < 300_000
