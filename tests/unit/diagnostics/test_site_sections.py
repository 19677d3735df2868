"""Sections of a site: each URL counts once in every enclosing section."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.diagnostics.run_comparison import LEVELS_MAX, SECTIONS_MAX, SHOWN_MAX, SiteSections
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

SITE = "https://example.com"


def record(url: str, **fields: Any) -> PageRecord:
    known: dict[str, Any] = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 1}
    return PageRecord(crawl="c", url=url, fetched_at=0, **{**known, **fields})


def summed(*records: PageRecord) -> SiteSections:
    found = SiteSections()
    for one in records:
        found.add(one)
    return found


def test_urls_are_summed_by_folder() -> None:
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
def test_urls_of_section_are_own_plus_inner(paths: list[list[str]]) -> None:
    found = summed(*(record(f"{SITE}/{'/'.join(path)}") for path in paths))
    prefixes = [""]
    while prefixes:
        shown = found.shown(prefixes.pop())
        assert shown is not None
        assert shown["urls"] == shown["own"] + sum(row["urls"] for row in shown["inner"])
        prefixes += [row["at"] for row in shown["inner"]]


def test_number_of_sections_is_bounded() -> None:
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
