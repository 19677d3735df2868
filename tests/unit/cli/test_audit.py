"""`audit`: the checks on exported tables, and the comparison with an earlier run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.cli.audit.catalog import Check, Need, checks
from orbweaver.cli.audit.judgement import LIMITS
from orbweaver.model.outcome import Reason
from tests.unit.cli.audit_site import (
    OURS,
    PRODUCTS,
    Site,
    at,
    expected,
    faults,
    new_faults,
    site_with,
)
from tests.unit.cli.exports import made, put, put_into

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.audit_site import Fault
    from tests.unit.cli.conftest import Desk

FIRST, SECOND = "shop-20261121-120000", "shop-20261122-120000"
# The second run does not have these faults.
FIXED = 12


def export(folder: Path, crawl: str, made_of: list[Fault]) -> None:
    put(folder / crawl, made(site_with(made_of).rows, crawl=crawl, names=("parquet",)))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    export(folder, FIRST, faults())
    export(folder, SECOND, faults()[FIXED:] + new_faults())
    (folder / "map.csv").write_text(
        "old,new\nhttps://shop.example/map/old,https://shop.example/map/new\n"
    )
    return folder


def audited(desk: Desk, exports: Path, options: str) -> dict[str, Any]:
    words = f"audit --from {exports} --redirect-map {exports}/map.csv --format json {options}"
    assert desk.run(words) == 0, desk.noted
    found: dict[str, Any] = json.loads(desk.said)
    return found


def findings(report: dict[str, Any], *statuses: str) -> set[tuple[str, str, str | None]]:
    return {
        (one["check"], finding["url"], finding["target"])
        for one in report["checks"]
        for finding in one["findings"]
        if finding["status"] in statuses
    }


@pytest.mark.thorough
def test_audit_of_site_with_planted_faults_finds_exactly_these(desk: Desk, exports: Path) -> None:
    assert len(faults()) >= 60
    report = audited(desk, exports, FIRST)
    found = findings(report, "present")
    assert (found - expected(faults()), expected(faults()) - found) == (set(), set())
    assert [one["check"] for one in report["checks"] if one["not_run"]] == []
    assert {one.check for one in faults()} == {*checks()} - {"broken-url"}


@pytest.mark.thorough
def test_audit_since_earlier_run_reports_new_and_fixed_faults(desk: Desk, exports: Path) -> None:
    report = audited(desk, exports, f"{SECOND} --since {FIRST}")
    assert findings(report, "fixed") == expected(faults()[:FIXED])
    assert findings(report, "new") == expected(new_faults())
    assert findings(report, "remaining") == expected(faults()[FIXED:])
    assert findings(report, "present", "uncompared", "unjudged") == set()


# --- unjudged URLs ------------------------------------------------------------------------------


def test_blocks_limits_and_failed_connections_are_not_judged() -> None:
    assert {Reason.BLOCKED, Reason.FORBIDDEN, Reason.TIMEOUT, Reason.ROBOTS, *LIMITS} <= OURS
    # An unresponsive host can be a problem of the network between us and the host.
    assert {reason for reason in Reason if reason.silence} <= OURS


@pytest.mark.thorough
def test_unjudged_urls_are_counted_by_reason(desk: Desk, exports: Path) -> None:
    report = audited(desk, exports, FIRST)
    counts = {one["reason"]: one["urls"] for one in report["unjudged"]}
    expected_counts: dict[str, int] = dict.fromkeys(OURS - LIMITS, 1)
    expected_counts |= {"robots": 2, "needs_rendering": 1}
    assert counts.pop("not_requested") > PRODUCTS
    assert counts == expected_counts


def small(*pages: dict[str, Any], links: list[dict[str, Any]] | None = None) -> Site:
    """Make a site of the first page and further pages."""
    site = Site()
    site.page("/", linked=False, depth=0, referrer=None)
    site.bare("/sitemap.xml", "sitemap", status=200)
    for page in pages:
        site.page(**page)
    site.links = site.links if links is None else links
    return site


def put_run(desk: Desk, site: Site, crawl: str = "small-1", **more: Any) -> None:
    put(desk.folder / "runs" / crawl, made(site.rows, crawl=crawl, names=("parquet",), **more))


def report_of(desk: Desk, options: str = "", code: int = 0) -> dict[str, Any]:
    assert desk.run(f"audit --from runs --format json {options}") == code, desk.noted
    found: dict[str, Any] = json.loads(desk.said)
    return found


def not_run(report: dict[str, Any]) -> dict[str, str]:
    return {one["check"]: one["not_run"] for one in report["checks"] if one["not_run"]}


def test_crawl_without_links_lists_checks_as_not_run(desk: Desk) -> None:
    site = small()
    site.broken("/gone")
    site.links, site.texts = [], {}
    put_run(desk, site)
    report = report_of(desk)
    assert findings(report, "present") == {("broken-url", at("/"), at("/gone"))}
    needs = [one.name for one in checks().values() if Need.LINKS in one.needs]
    assert {one: not_run(report)[one] for one in needs} == dict.fromkeys(
        needs, "the crawl kept no links: crawl again with --links --window 0s"
    )
    assert (
        not_run(report)["thin-page"]
        == "the crawl kept no texts: crawl again with --text --window 0s"
    )
    assert "broken-link" in desk.output("audit --from runs").partition("checks that did not run")[2]


LIMITED = (
    lambda site: site.bare("/late", Reason.DURATION),
    lambda site: site.link("/", "/late", decision="budget"),
    lambda site: site.link("/", "/late", decision="waiting"),
    lambda site: site.link("/", "/late"),
    lambda site: site.page("/long", cut="link_rows=7"),
)


@pytest.mark.parametrize("limit", LIMITED)
def test_limited_crawl_reports_no_orphans(desk: Desk, limit: Callable[[Site], object]) -> None:
    site = small({"path": "/orphan", "linked": False})
    put_run(desk, site)
    assert ("orphan-page", at("/orphan"), None) in findings(report_of(desk), "present")
    limit(site)
    put_run(desk, site)
    report = report_of(desk)
    assert findings(report, "present") == set()
    assert not_run(report)["orphan-page"].startswith("limits or rules of the crawl")


def test_fault_of_unjudged_page_is_not_fixed(desk: Desk) -> None:
    first = small({"path": "/a", "title": None}, {"path": "/b", "title": None})
    second = small({"path": "/b"})
    second.bare("/a", Reason.TIMEOUT)
    put_run(desk, first, "small-1")
    put_run(desk, second, "small-2", day="2026-11-22")
    report = report_of(desk, "small-2 --since small-1")
    assert findings(report, "unjudged") == {("missing-title", at("/a"), None)}
    assert ("missing-title", at("/b"), None) in findings(report, "fixed")


def test_check_without_earlier_result_is_uncompared(desk: Desk) -> None:
    first, second = small(), small({"path": "/a"})
    first.links = []
    second.link("/a", "/x.png", "img", text=None)
    put_run(desk, first, "small-1")
    put_run(desk, second, "small-2")
    report = report_of(desk, "small-2 --since small-1 --fail-on new:warning")
    assert ("missing-alt", at("/a"), at("/x.png")) in findings(report, "uncompared")
    assert findings(report, "new") == set()


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", ["docs-2", "docs-1-retry1"])
def test_continued_run_is_audited_with_earlier_run(desk: Desk, later: str) -> None:
    first = small({"path": "/a", "title": None}, {"path": "/b", "title": None})
    rest = Site(number=50)
    if "retry" in later:  # it also requests the first page
        rest.page("/", depth=0, linked=False)
    rest.page("/b")
    rest.page("/c", title=None)
    put_run(desk, first, "docs-1")
    put_run(desk, rest, later)
    report = report_of(desk, "docs")
    assert report["crawl"] == later
    only_before = ["/a", "/sitemap.xml", *([] if "retry" in later else ["/"])]
    assert report["urls_before"] == len(only_before)
    named = {row for row in findings(report, "present") if row[0] == "missing-title"}
    assert named == {("missing-title", at(path), None) for path in ("/a", "/c")}


def test_since_name_selects_previous_run_of_crawl(desk: Desk) -> None:
    for number in range(3):
        put_run(desk, small(), f"small-{number}")
    assert report_of(desk, "docs --since docs")["since"] == "small-1"


def test_reason_of_newer_version_is_not_judged(desk: Desk) -> None:
    put_run(desk, small({"path": "/a", "reason": "odd", "title": None}))
    report = report_of(desk)
    assert ("missing-title", at("/a"), None) not in findings(report, "present")
    assert {"odd"} <= {one["reason"] for one in report["unjudged"]}


def test_since_names_folder_of_earlier_export(desk: Desk) -> None:
    put_run(desk, small({"path": "/a", "title": None}), "small-2")
    (desk.folder / "runs").rename(desk.folder / "before")
    put_run(desk, small({"path": "/a"}), "small-3")
    report = report_of(desk, "--since before/small-2")
    assert report["since"] == "small-2"
    assert ("missing-title", at("/a"), None) in findings(report, "fixed")


def test_audit_of_stack_fetches_its_exports(desk: Desk) -> None:
    put_into(desk.world, made(small({"path": "/a", "title": None}).rows, of_day=True))
    assert "error missing-title: 1" in desk.output("audit --target local --only missing-title")
    assert "fetching" in desk.noted


def test_text_of_site_is_escaped(desk: Desk) -> None:
    title = "<script>alert(1)</script>\x1b[31m" + "long " * 20
    put_run(desk, small({"path": '/a"b', "title": title}))
    for form in ("text", "html", "junit"):
        assert "\x1b" not in desk.output(f"audit --from runs --format {form} --only long-title")
        assert "long " in desk.said
        assert "<script>" not in desk.said or form == "text"


# --- command line ---------------------------------------------------------------------------------

CODES = {"": 0, "--fail-on error": 1, "--fail-on error --only slow-page": 0}


@pytest.mark.parametrize("options", CODES)
def test_exit_code_follows_fail_on(desk: Desk, options: str) -> None:
    put_run(desk, small({"path": "/a", "title": None}))
    assert desk.run(f"audit --from runs {options}") == CODES[options]


REFUSED = {
    "--fail-on new:error": "name the earlier run with --since",
    "--only nothing": "there is no check 'nothing'",
    "other": "no pages of other",
    "small-1 --since small-1": "no pages of small-1 before small-1: runs: none",
    "--redirect-map map.csv": "map.csv:2: write `old URL,new URL`",
    "--redirect-map none.csv": "No such file",
    "--format yaml": "text",
    "--target local": "a folder is no stack",
}


@pytest.mark.parametrize("options", REFUSED)
def test_refusal_names_the_fix(desk: Desk, options: str) -> None:
    put_run(desk, small())
    (desk.folder / "map.csv").write_text(
        "https://a.example/,https://b.example/\nhttps://c.example\n"
    )
    assert REFUSED[options] in desk.errors(f"audit --from runs {options}")


def test_list_names_all_checks(desk: Desk) -> None:
    listed = [line.split()[:2] for line in desk.output("audit --list").splitlines()]
    assert listed == [[one.severity, one.name] for one in checks().values()]
    assert len(listed) >= 30


def test_report_shows_limited_findings_and_says_so(desk: Desk) -> None:
    put_run(desk, small(*({"path": f"/{number}", "title": None} for number in range(9))))
    assert desk.run("audit --from runs --only missing-title --limit 2") == 0
    assert desk.said.count("https://shop.example/") == 4  # each row also names the linking page
    assert "… 7 more (--limit)" in desk.said


@pytest.mark.thorough
def test_out_writes_file_and_reports_summary(desk: Desk, exports: Path) -> None:
    assert not desk.output(f"audit {FIRST} --from {exports} --format html --out made/report.html")
    assert (desk.folder / "made" / "report.html").read_text().startswith("<!doctype html>")
    said = "written to made/report.html\n22 errors, 26 warnings, 23 notices, 1 check did not run"
    assert desk.noted.startswith(said)


@pytest.mark.parametrize("check", checks().values(), ids=checks())
def test_check_has_sentence_and_fix(check: Check) -> None:
    for said in (check.sentence, check.fix):
        assert said.endswith(".")
        assert len(said.split()) <= 20
    assert "url" in check.sql
    assert "ORDER BY" in check.sql
