"""The summary of an ended crawl."""

from __future__ import annotations

import pytest

from orbweaver.cli import crawl_summary
from orbweaver.control.progress.status import as_json
from orbweaver.model.crawl import State, Stop
from tests.unit.cli.views import view_of

ENDED = {"claimed": 3, "fetched": 3, "fetched.ok": 3}
CUT = {"incomplete.text": 1, "incomplete.links": 2, "incomplete.pages": 2}


def test_crawl_ended_by_first_page_explains_it() -> None:
    counts = {"claimed": 1, "fetched": 1, "fetched.ok": 1, "refused.seed_nofollow": 14}
    lines = crawl_summary.lines(view_of(counts, state=State.FINISHED))
    (line,) = (line for line in lines if line.startswith("nofollow"))
    assert line.startswith("nofollow  14 links left out, because a seed has nofollow")
    assert "--ignore-nofollow" in line
    usual = view_of({**counts, "refused.seed_nofollow": 0, "refused.nofollow": 3})
    assert not any(line.startswith("nofollow") for line in crawl_summary.lines(usual))


def test_numbers_of_outcomes_are_right_aligned() -> None:
    counts = {"fetched": 1_233, "fetched.ok": 1_233, "failed": 1, "failed.timeout": 1}
    assert crawl_summary.outcomes(view_of(counts, state=State.FINISHED)) == [
        "outcome  pages  reasons",
        "fetched  1,233  ok 1,233",
        "failed       1  timeout 1",
    ]


def test_summary_of_page_limit_lists_counted_urls() -> None:
    total = {"claimed": 62, "unspent": 2, "fetched": 57, "redirected": 3, "skipped": 2}
    view = view_of(total, state=State.FINISHED, stop=Stop.MAX_PAGES)
    (line,) = (line for line in crawl_summary.lines(view) if line.startswith("limit"))
    assert line == (
        "limit  60 URLs requested: fetched 57 · redirected 3;"
        " 2 refused without a request do not count"
    )


@pytest.mark.parametrize(("claimed", "is_named"), [(1, True), (2, False)])
def test_run_with_only_failures_of_earlier_runs_names_window(
    claimed: int, *, is_named: bool
) -> None:
    total = {"claimed": claimed, "fetched": claimed - 1, "failed": 1, "requested_again": 1}
    shown = "\n".join(crawl_summary.lines(view_of(total, state=State.FINISHED)))
    assert "\nagain  1 URL of earlier runs that failed or were disallowed by robots.txt" in shown
    assert (
        "; the others were fetched within the window of 7 days: --window 0s crawls everything again"
        in shown
    ) is is_named


def test_truncated_pages_are_summarized_by_part() -> None:
    view = view_of({**ENDED, **CUT}, state=State.FINISHED)
    (line,) = (line for line in crawl_summary.lines(view) if line.startswith("cut"))
    assert line == (
        "cut  2 pages with omitted parts: links 2 · text 1"
        " (column `cut`; orbweaver report shop-20261121-090000)"
    )
    whole = view_of(ENDED, state=State.FINISHED)
    assert not any(line.startswith("cut") for line in crawl_summary.lines(whole))


def test_json_counts_truncated_pages_by_part() -> None:
    view = view_of({**ENDED, **CUT}, state=State.FINISHED)
    assert as_json(view)["incomplete"] == {"links": 2, "pages": 2, "text": 1}
    assert crawl_summary.result(view, None, 0)["incomplete"]["pages"] == 2
