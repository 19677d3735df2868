"""Pages that need scripts: counted, and shown in reports, explanations and summaries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.cli import crawl_summary, gauges
from orbweaver.control.progress.status import as_json
from orbweaver.diagnostics.explanation import explain
from orbweaver.diagnostics.refusal_report import Examples, report_of
from orbweaver.frontier.pack_result import EndedPage, PackResult, PageResult
from orbweaver.model.crawl import State
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.outcome import Outcome
from tests.contract import samples
from tests.unit.cli.views import view_of
from tests.unit.diagnostics.facts import CRAWL, facts, said

if TYPE_CHECKING:
    import pytest

URL = "https://example.com/a"
RECORD = samples.record(0, url=URL, needs_rendering=True)
COUNTS = {"claimed": 7, "fetched": 3, "fetched.ok": 3, "unchanged": 1, "needs_rendering": 3}


def test_pages_needing_scripts_are_counted() -> None:
    result = PackResult("c")
    records = (
        RECORD,
        replace(RECORD, url=f"{URL}2", needs_rendering=None),
        replace(RECORD, url=f"{URL}3", outcome=Outcome.UNCHANGED),
    )
    result.add(*(PageResult(end=EndedPage(record=record)) for record in records))
    assert result.journal([], 0).counts["needs_rendering"] == 2


def test_report_counts_pages_needing_scripts() -> None:
    examples = Examples.for_crawl(COUNTS)
    examples.add(replace(RECORD, url=f"{URL}0", needs_rendering=None))
    examples.add(RECORD)
    report = report_of(CRAWL, {**COUNTS, "incomplete.text": 1}, examples, {})
    *_, line = report.skipped
    assert (line.kind, line.reason, line.count) == ("needs_rendering", "scripts", 3)
    assert (line.samples, report.pages) == ((URL,), 4)
    assert line.means.startswith("it is empty until its scripts have run")


def test_explanation_mentions_scripts_only_for_page_needing_them() -> None:
    url = facts().reference
    assert "empty until its scripts have run" in said(facts(record=replace(RECORD, url=url)))
    other = facts(record=replace(RECORD, url=url, needs_rendering=None))
    assert not any(one.about == "scripts" for one in explain(other).statements)


def test_crawl_summary_shows_pages_needing_scripts() -> None:
    view = view_of(COUNTS, state=State.FINISHED)
    (line,) = (line for line in crawl_summary.lines(view) if line.startswith("scripts"))
    assert line == (
        "scripts  3 of 4 pages need scripts to show anything"
        " (column `needs_rendering`; orbweaver report shop-20261121-090000)"
        "; --render auto runs them"
    )
    others = view_of({**COUNTS, "needs_rendering": 0}, state=State.FINISHED)
    assert not any(line.startswith("scripts") for line in crawl_summary.lines(others))


def test_status_and_prometheus_contain_needs_rendering() -> None:
    view = view_of(COUNTS, state=State.FINISHED)
    assert as_json(view)["needs_rendering"] == 3
    (family,) = (
        one for one in gauges.families([view.reading.status], None) if "needing" in one.name
    )
    assert [sample.value for sample in family.samples] == [3]


def test_crawl_summary_shows_rendered_pages_and_browser_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = {**COUNTS, "rendered": 2, "render.asked": 9, "render.failed.crashed": 1}
    view = view_of(counts, state=State.FINISHED)
    lines = crawl_summary.lines(view)
    assert "rendered  2 pages, which requested 9 files more; 1 page could not be rendered" in lines
    assert as_json(view)["rendered"] == 2
    view = view_of(COUNTS, state=State.FINISHED, render=RenderMode.AUTO)
    for found, install in ((None, True), ("/usr/bin/chromium", False)):
        monkeypatch.setattr(crawl_summary, "find_browser", lambda found=found: found)
        (line,) = (line for line in crawl_summary.lines(view) if line.startswith("scripts"))
        assert ("install a Chromium" in line) is install


def test_explanation_mentions_rendering_only_for_rendered_page() -> None:
    record = replace(RECORD, needs_rendering=None, rendered=True)
    other = replace(record, rendered=None)
    about = [
        [one.about for one in explain(facts(record=one)).statements] for one in (record, other)
    ]
    assert ("rendered" in about[0], "rendered" in about[1]) == (True, False)
