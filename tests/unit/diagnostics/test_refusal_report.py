"""Report of URLs that a crawl left out: counts, meanings, examples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import crawl_of
from orbweaver.diagnostics import refusal_report
from orbweaver.diagnostics.refusal_report import Examples, report_of
from orbweaver.frontier.pack_result import SAMPLES_MAX, FoundLinks, PackResult
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from tests.contract import samples

if TYPE_CHECKING:
    import pytest

NOW_MS = 1_795_251_600_000
SITE = "https://example.com"
CRAWL = crawl_of(CrawlSpec(seeds=(f"{SITE}/",)), NOW_MS)
COUNTS = {
    "claimed": 20,
    "failed": 9,
    "failed.dns": 7,
    "failed.tls": 2,
    "skipped": 3,
    "skipped.robots": 3,
    "skipped.cancelled": 1,
    "skipped.from_the_future": 1,
    "refused.scope": 40,
    "refused.depth": 50,
    "fetched.ok": 8,
    "host.0.failed": 9,
    "refused.budget": 0,
}


def record(path: str, outcome: Outcome, reason: Reason) -> PageRecord:
    return samples.record(0, url=f"{SITE}{path}", outcome=outcome, reason=reason)


def test_report_lists_reasons_by_frequency_with_meaning() -> None:
    report = report_of(
        CRAWL, COUNTS, Examples.for_crawl(COUNTS), {"scope": ("https://other.example/",)}
    )
    assert [(line.kind, line.reason, line.count) for line in report.skipped] == [
        ("refused", "depth", 50),
        ("refused", "scope", 40),
        ("skipped", "robots", 3),
        ("skipped", "cancelled", 1),
        ("skipped", "from_the_future", 1),
        ("failed", "dns", 7),
        ("failed", "tls", 2),
    ]
    means = {line.reason: line.means for line in report.skipped}
    assert (means["depth"], means["tls"]) == (Refusal.DEPTH.means, Reason.TLS.means)
    assert means["from_the_future"] == ""
    assert report.skipped[1].samples == ("https://other.example/",)


def test_examples_are_searched_up_to_five_per_reason() -> None:
    examples = Examples.for_crawl({"failed.dns": 7, "skipped.robots": 1})
    for number in range(8):
        assert not examples.is_complete
        examples.add(record(f"/{number}", Outcome.FAILED, Reason.DNS))
        examples.add(record(f"/ok/{number}", Outcome.FETCHED, Reason.OK))
    examples.add(record("/robots", Outcome.SKIPPED, Reason.ROBOTS))
    assert examples.is_complete
    lines = report_of(CRAWL, {"failed.dns": 7, "skipped.robots": 1}, examples, {}).skipped
    assert lines[0].samples == (f"{SITE}/robots",)
    assert lines[1].samples == tuple(f"{SITE}/{number}" for number in range(5))


def test_search_for_examples_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_report, "RECORDS_MAX", 2)
    examples = Examples.for_crawl({"skipped.cancelled": 3})
    for _ in range(2):
        assert not examples.is_complete
        examples.add(record("/ok", Outcome.FETCHED, Reason.OK))
    assert examples.is_complete
    assert Examples.for_crawl({"refused.scope": 3}).is_complete


# --- refused links ------------------------------------------------------------------------------


def test_result_keeps_five_redacted_examples_per_refusal() -> None:
    result = PackResult("c")
    deep = tuple(f"{SITE}/{number}" for number in range(20))
    refused = (
        *((Refusal.SCOPE, 1, (f"https://me:pw@other.example/{n % 2}?token=x",)) for n in range(9)),
        (Refusal.DEPTH, 20, deep),
        (Refusal.NOFOLLOW, 3, ()),
        (Refusal.CUT, 0, ()),
    )
    result.add_links(FoundLinks(refused=refused))
    assert result.samples == {
        "scope": ("https://…@other.example/0?…", "https://…@other.example/1?…"),
        "depth": tuple(f"{SITE}/{number}" for number in range(SAMPLES_MAX)),
    }
    counts = result.journal((), NOW_MS).counts
    assert counts == {"refused.scope": 9, "refused.depth": 20, "refused.nofollow": 3}


def test_report_lists_each_error_once() -> None:
    examples = Examples.for_crawl({"skipped.robots_unreachable": 3})
    for number, error in enumerate(("refused", "refused", "no route")):
        gone = record(f"/{number}", Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE)
        examples.add(replace(gone, error=error))
    (line,) = report_of(CRAWL, {"skipped.robots_unreachable": 3}, examples, {}).skipped
    assert line.causes == ("refused", "no route")
    assert len(line.samples) == 3
