"""The command `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.model.columns import PAGES
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.audit_site import LINKS
from tests.unit.cli.exports import NOON_MS, Rows, made, page, put
from tests.unit.cli.fakes import SITE, Machine, Row, Stage
from tests.unit.stage import answer

RUN = "example.com-20261121-090000"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [Row("/", title="Home"), Row("/lost", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR)]
    stage.run(f"crawl {SITE} --out first")
    return stage


def test_explanation_has_verdict_first_and_labels_once(stage: Stage) -> None:
    first, *rest = stage.output(f"explain {SITE}/lost").splitlines()
    assert first == f"failed: http_client_error ({Reason.HTTP_CLIENT_ERROR.means})"
    assert all(line.startswith("  ") for line in rest)
    assert f"crawl      {RUN} (finished): the newest run with this URL in scope" in stage.said
    assert f"means      {Reason.HTTP_CLIENT_ERROR.means}" in stage.said
    stage.run(f"explain HTTPS://EXAMPLE.com/x?utm_id=1#y --crawl {RUN}")
    assert stage.said.startswith("not found, and")
    assert stage.said.count("changed") == 1


def test_explanation_as_json_has_all_statements_and_record(stage: Stage) -> None:
    (body,) = stage.run_json(f"explain {SITE}/lost --json")
    assert (body["url"], body["crawl"], body["fate"]) == (f"{SITE}/lost", RUN, "ended")
    assert body["record"]["reason"] == "http_client_error"
    assert {"about": "scope", "words": body["statements"][2]["words"]} == body["statements"][2]
    (body,) = stage.run_json("explain http://elsewhere.example/ --json")
    assert (body["fate"], body["refusal"], body["record"]) == ("refused", "scope", None)
    (body,) = stage.run_json("explain mailto:x --json")
    assert (body["fate"], body["url"]) == ("malformed", None)


def test_robots_txt_is_fetched_only_on_request(stage: Stage) -> None:
    stage.answers[f"{SITE}/robots.txt"] = answer(200, b"User-agent: *\nDisallow: /lost")
    assert "--fetch requests it now" in stage.output(f"explain {SITE}/lost/2")
    stage.run(f"explain {SITE}/lost/2 --fetch")
    assert "refused as robots: line 2: Disallow: /lost (User-agent: *)" in stage.said
    assert SITE not in stage.world.hosts or stage.world.hosts[SITE].robots is None
    del stage.answers[f"{SITE}/robots.txt"]
    stage.run(f"explain {SITE}/lost/2 --fetch")
    assert "unreachable, so nothing is allowed: refused, as of 2026-11-21" in stage.said


def test_explanation_without_crawl_is_usage_error(tmp_path: Path) -> None:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    assert "there is no crawl yet" in stage.errors(f"explain {SITE}")
    assert stage.run("explain") == 2
    stage.run(f"start {SITE}")
    assert "no crawl has the id or name 'nope'" in stage.errors(f"explain {SITE} --crawl nope")


# --- pages that link to the URL -----------------------------------------------------------------


def links_of(*rows: tuple[str, str, str, str | None]) -> Rows:
    """Make tables of a run: pages, and links as (page, target, kind, text) in order of crawl."""
    made_of = [
        {"url": SITE + source, "target_url": SITE + target, "kind": kind, "text": said}
        | {"position": place, "fetched_at": NOON_MS + place}
        for place, (source, target, kind, said) in enumerate(rows)
    ]
    return [(PAGES, [page("", url=f"{SITE}/", depth=0)]), (LINKS, made_of)]


@pytest.fixture
def linked(stage: Stage) -> Stage:
    assert stage.run(f"crawl {SITE} --out second --links --window 0s --name linked") == 0
    return stage


def run_of(stage: Stage) -> str:
    stage.run(f"explain {SITE}/lost --crawl linked --json")
    return str(stage.objects()[0]["crawl"])


def test_explain_names_first_linking_pages(linked: Stage) -> None:
    pages = [(f"/p{n}", "/lost", "a", f"offer\x1b {n}") for n in range(40, 0, -1)]
    further = [("/p40", "/lost", "img", None), ("/lost", "/lost", "canonical", None)]
    sitemap = ("/sitemap.xml", "/lost", "sitemap", None)
    rows = links_of(*pages, *further, sitemap, ("/p1", "/found", "a", None))
    run = run_of(linked)
    put(linked.folder / "out", made(rows, crawl=run, names=("parquet",)))
    assert linked.run(f"explain {SITE}/lost --crawl {run}") == 0
    _, found = linked.said.split("40 pages link here, and 1 sitemap lists it:\n")
    first, *_, last = found.splitlines()
    assert first.split() == [f"{SITE}/p40", "a", "offer", "40"]
    assert last == "  \N{HORIZONTAL ELLIPSIS} 31 more"
    backlinks = linked.run_json(f"explain {SITE}/lost --crawl {run} --json")[-1]["backlinks"]
    assert (backlinks["pages"], backlinks["sitemaps"], len(backlinks["first"])) == (40, 1, 10)
    linked.run(f"explain {SITE}/found --crawl {run}")
    assert f"1 page links here:\n  {SITE}/p1  a" in linked.said
    assert "0 pages link here\n" in f"{linked.output(f'explain {SITE}/ --crawl {run}')}\n"


@pytest.mark.parametrize(
    ("name", "tables", "told"),
    [
        ("example.com", None, "a crawl with --links also shows which pages link here"),
        ("linked", None, "are not known: there are no exports in out"),
        ("linked", links_of()[:1], "are not known: out has no links of"),
    ],
)
def test_explain_without_links_notes_reason(
    linked: Stage, name: str, tables: Rows | None, told: str
) -> None:
    if tables is not None:
        put(linked.folder / "out", made(tables, crawl=run_of(linked), names=("parquet",)))
    assert told in linked.errors(f"explain {SITE}/lost --crawl {name}", code=0)
    assert "here" not in linked.said
