"""A site by its sections: each URL counts once in every section that it lies in."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.diagnostics.site_sections import LEVELS_MAX, SECTIONS_MAX, SHOWN_MAX, SiteSections
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

SITE = "https://example.com"


def record(url: str, **fields: Any) -> PageRecord:
    """Make a record."""
    known: dict[str, Any] = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 1}
    return PageRecord(crawl="c", url=url, fetched_at=0, **{**known, **fields})


def summed(*records: PageRecord) -> SiteSections:
    """Sum records up."""
    found = SiteSections()
    for one in records:
        found.add(one)
    return found


def test_urls_are_summed_up_by_their_folders() -> None:
    """Hosts first; of a section its URLs, failures, mean latency, size, least depth."""
    found = summed(
        record(f"{SITE}/", depth=0, latency_ms=100, bytes=10),
        record(f"{SITE}/books/1?page=2", latency_ms=300, bytes=5),
        record(f"{SITE}/books/2", depth=3, outcome=Outcome.FAILED, reason=Reason.TIMEOUT),
        record("https://other.example/x"),
    )
    whole = found.shown("")
    assert whole is not None
    assert [row["at"] for row in whole["inner"]] == [SITE, "https://other.example"]
    host = found.shown(SITE)
    assert host is not None
    assert {key: host[key] for key in ("urls", "failed", "latency_ms", "bytes", "depth")} == {
        "urls": 3,
        "failed": 1,
        "latency_ms": 200,
        "bytes": 15,
        "depth": 0,
    }
    assert (host["own"], [row["at"] for row in host["inner"]]) == (1, [f"{SITE}/books"])
    books = found.shown(f"{SITE}/books")
    assert books is not None
    assert [(row["at"], row["sections"]) for row in books["inner"]] == [
        (f"{SITE}/books/1", 0),
        (f"{SITE}/books/2", 0),
    ]
    assert found.shown(f"{SITE}/nothing") is None


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=LEVELS_MAX + 3), max_size=30))
def test_what_is_within_adds_up(paths: list[list[str]]) -> None:
    """Of every section: its own URLs and those of its sections are all of them."""
    found = summed(*(record(f"{SITE}/{'/'.join(path)}") for path in paths))
    prefixes = [""]
    while prefixes:
        shown = found.shown(prefixes.pop())
        assert shown is not None
        assert shown["urls"] == shown["own"] + sum(row["urls"] for row in shown["inner"])
        prefixes += [row["at"] for row in shown["inner"]]


def test_a_trap_makes_no_more_sections_than_there_may_be() -> None:
    """Each URL in a folder of its own: they are counted, in bounded memory, and few are shown."""
    found = SiteSections()
    tracemalloc.start()
    for number in range(2 * SECTIONS_MAX):
        found.add(record(f"{SITE}/{number}/{'x/' * 20}"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 40_000_000
    host = found.shown(SITE)
    assert host is not None
    assert host["urls"] == 2 * SECTIONS_MAX
    assert len(host["inner"]) == SHOWN_MAX
    assert host["inner_more"] > 0
