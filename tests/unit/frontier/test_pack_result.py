"""Result of a pack: choice among several links to one URL."""

from __future__ import annotations

from itertools import permutations

import pytest

from orbweaver.frontier.body_file import Kept
from orbweaver.frontier.pack_result import (
    EndedPage,
    FoundLinks,
    NotRequested,
    PackResult,
    PageResult,
    Returning,
)
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target, TargetKind

URL = "https://example.com/a"
DEEP, SHALLOW = Target(url=URL, depth=3), Target(url=URL, depth=2)
SITEMAP = Target(url=URL, depth=4, kind=TargetKind.SITEMAP)


@pytest.mark.parametrize(
    ("links", "taken"), [((DEEP, SHALLOW), SHALLOW), ((DEEP, SHALLOW, SITEMAP), SITEMAP)]
)
def test_shallowest_link_to_url_is_taken(links: tuple[Target, ...], taken: Target) -> None:
    """The order in which pages end does not matter. A sitemap has precedence over pages."""
    for order in permutations(links):
        result = PackResult("crawl")
        for target in order:
            result.add_links(FoundLinks(admitted=(target,)))
        assert list(result.links) == [taken]


def test_known_link_is_judged_again_at_smaller_depth() -> None:
    result = PackResult("crawl")
    result.add_links(FoundLinks(admitted=(DEEP,)))
    assert result.links_to(URL)
    assert [result.links_to(URL, depth) for depth in (2, 3, 4)] == [False, True, True]
    assert not result.links_to(f"{URL}b", 3)


def test_page_result_is_added_as_a_whole() -> None:
    target, link = Target(url=URL, depth=1), Target(url=f"{URL}/b", depth=2)
    found = FoundLinks(admitted=(link,), refused=((Refusal.DEPTH, 2, (f"{URL}/c",)),), left=(DEEP,))
    record = PageRecord(
        crawl="crawl", url=URL, outcome=Outcome.FETCHED, reason=Reason.OK, fetched_at=1, depth=1
    )
    kept = Kept(url=URL)
    ends = (
        EndedPage(record=record, kept=kept),
        EndedPage(record=record, kept=kept, recorded=False),
        Returning(target=target, delay_s=7, why="retries"),
        NotRequested(target=target, reason=Reason.BYTES),
    )
    for end in ends:
        result = PackResult("crawl")
        result.add(PageResult(end=end, found=(found,), counts={"cut.bytes": 1}))
        assert (result.links, result.left) == ((link,), (DEEP,))
        assert result.samples == {Refusal.DEPTH: (f"{URL}/c",)}
        journal = result.journal([target], 1)
        assert (journal.counts["cut.bytes"], journal.counts["refused.depth"]) == (1, 2)
        assert result.knows(URL)
        assert (len(journal.records), len(result.kept)) == ((1, 1) if end is ends[0] else (0, 0))
        assert len(journal.unrecorded) == (end is ends[1])
        assert [item.delay_s for item in journal.returning] == ([7] if end is ends[2] else [])
        assert journal.unasked == ((URL,) if end is ends[3] else ())
