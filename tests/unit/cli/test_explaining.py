"""The command `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.model.http_exchange import Response
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.fakes import SITE, Machine, Row, Stage

RUN = "example.com-20261121-090000"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [Row("/", title="Home"), Row("/lost", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR)]
    stage.run(f"crawl {SITE} --out first")
    return stage


def test_explanation_has_verdict_first_and_labels_once(stage: Stage) -> None:
    assert stage.run(f"explain {SITE}/lost") == 0
    first, *rest = stage.said.splitlines()
    assert first == f"failed: http_client_error ({Reason.HTTP_CLIENT_ERROR.means})"
    assert all(line.startswith("  ") for line in rest)
    assert f"crawl      {RUN} (finished): the newest run with this URL in scope" in stage.said
    assert f"means      {Reason.HTTP_CLIENT_ERROR.means}" in stage.said
    stage.run(f"explain HTTPS://EXAMPLE.com/x?utm_id=1#y --crawl {RUN}")
    assert stage.said.startswith("not found, and")
    assert stage.said.count("changed") == 1


def test_explanation_as_json_has_all_statements_and_record(stage: Stage) -> None:
    assert stage.run(f"explain {SITE}/lost --json") == 0
    (body,) = stage.objects()
    assert (body["url"], body["crawl"], body["fate"]) == (f"{SITE}/lost", RUN, "ended")
    assert body["record"]["reason"] == "http_client_error"
    assert {"about": "scope", "words": body["statements"][2]["words"]} == body["statements"][2]
    stage.run("explain http://elsewhere.example/ --json")
    (body,) = stage.objects()
    assert (body["fate"], body["refusal"], body["record"]) == ("refused", "scope", None)
    assert stage.run("explain mailto:x --json") == 0
    (body,) = stage.objects()
    assert (body["fate"], body["url"]) == ("malformed", None)


def test_robots_txt_is_fetched_only_on_request(stage: Stage) -> None:
    stage.answers[f"{SITE}/robots.txt"] = Response(
        status=200, headers={}, body=b"User-agent: *\nDisallow: /lost"
    )
    stage.run(f"explain {SITE}/lost/2")
    assert "--fetch requests it now" in stage.said
    stage.run(f"explain {SITE}/lost/2 --fetch")
    assert "refused as robots: line 2: Disallow: /lost (User-agent: *)" in stage.said
    assert SITE not in stage.world.hosts or stage.world.hosts[SITE].robots is None
    del stage.answers[f"{SITE}/robots.txt"]
    stage.run(f"explain {SITE}/lost/2 --fetch")
    assert "unreachable, so nothing is allowed: refused, as of 2026-11-21" in stage.said


def test_explanation_without_crawl_is_usage_error(tmp_path: Path) -> None:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    assert stage.run(f"explain {SITE}") == 2
    assert "there is no crawl yet" in stage.noted
    assert stage.run("explain") == 2
    stage.run(f"start {SITE}")
    assert stage.run(f"explain {SITE} --crawl nope") == 2
    assert "no crawl has the id or name 'nope'" in stage.noted
