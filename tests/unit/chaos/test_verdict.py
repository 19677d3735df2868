"""The verdict of a chaos run: kept promises hold, and each broken promise is named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos import verdict
from tests.chaos.evidence import Ended, Evidence, Expected, Letter, Planted, Row, Storm, Wanted
from tests.chaos.faults import Fault
from tests.chaos.gaps import Gaps

HOST = "http://host"
COUNTS = {
    "claimed": 4,
    "fetched": 2,
    "fetched.ok": 2,
    "redirected": 1,
    "redirected.redirect": 1,
    "skipped": 1,
    "skipped.robots": 1,
}
ROWS = tuple(
    Row(url=HOST + path, outcome=outcome, reason=reason, sent_ms=0)
    for path, outcome, reason in (
        ("/a", "fetched", "ok"),
        ("/b", "fetched", "ok"),
        ("/moved", "redirected", "redirect"),
        ("/private", "skipped", "robots"),
    )
)
GAPS = Gaps(requests=3, delay_ms=40, smallest_ms=39, fair_ms=41, held_up_ms=2, close=1, short=0)
GOOD = Evidence(
    seed=7,
    expected=Expected(
        pages=frozenset({HOST + "/a", HOST + "/b"}),
        redirects=frozenset({HOST + "/moved"}),
        forbidden=frozenset({HOST + "/private"}),
        requests_in_vain=1,
    ),
    rows=ROWS,
    main=Ended(crawl="chaos", state="finished", counts=COUNTS, announced=(COUNTS,)),
    others=(
        Ended(
            crawl="lethal",
            state="finished",
            counts={"claimed": 1, "fetched": 1},
            announced=({"claimed": 1, "fetched": 1},),
        ),
    ),
    counts_before_late=COUNTS,
    queued=0,
    requests={HOST + "/a": 1, HOST + "/b": 3, HOST + "/moved": 1},
    gaps={HOST: GAPS},
    planted=(Planted(name="poison", text="POISON", reason="body is"),),
    dead=(Letter(body="a POISON b", reason="body is no JSON"),),
    dead_left=0,
    storm=Storm(
        faults=dict.fromkeys(Fault, 2),
        calls=100,
        kills=3,
        lethal_kills=4,
        replayed=5,
        replayed_late=6,
        timeouts=0,
        storm_s=60.0,
        total_s=120.0,
    ),
    wanted=Wanted(kinds=frozenset(Fault), kills=3, replayed=5),
)
OTHER = Letter(body="pack", reason="failed 4 times")


def violated(evidence: Evidence) -> list[str]:
    return [line.promise for line in verdict.judge(evidence) if not line.holds]


def test_good_run_holds() -> None:
    lines = verdict.judge(GOOD)

    assert violated(GOOD) == []
    assert verdict.text(GOOD, lines).endswith("everything holds")
    assert verdict.document(GOOD, lines)["holds"] is True
    assert json.loads(json.dumps(verdict.document(GOOD, lines)))["seed"] == 7


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"rows": ROWS[1:]}, "fetched.ok: each URL has one record"),
        ({"rows": (*ROWS, ROWS[0])}, "fetched.ok: each URL has one record"),
        ({"rows": (*ROWS, replace(ROWS[2], url=HOST + "/x"))}, "redirected.redirect: each"),
        ({"rows": (*ROWS, replace(ROWS[0], outcome="failed"))}, "no record has another outcome"),
        ({"main": replace(GOOD.main, state="running")}, "the crawl is finished"),
        ({"queued": 1}, "the crawl is finished"),
        ({"main": replace(GOOD.main, counts=COUNTS | {"claimed": 5})}, "claimed = ended = rows"),
        ({"main": replace(GOOD.main, counts=COUNTS | {"fetched.ok": 3})}, "counters are exact"),
        ({"counts_before_late": COUNTS | {"claimed": 3}}, "late copies count nothing"),
        ({"requests": {HOST + "/a": 1, HOST + "/moved": 1}}, "every page was asked for"),
        ({"requests": {**GOOD.requests, HOST + "/private": 1}}, "every page was asked for"),
        ({"gaps": {HOST: replace(GAPS, short=1)}}, f"{HOST} is asked every 40 ms"),
        ({"dead": ()}, "what was planted lies with the dead letters"),
        ({"dead": (*GOOD.dead, OTHER)}, "what was planted lies with the dead letters"),
        ({"dead_left": 1}, "no dead letter comes later"),
        ({"main": replace(GOOD.main, announced=())}, "CrawlCompleted of chaos"),
        ({"main": replace(GOOD.main, announced=(COUNTS, {}))}, "CrawlCompleted of chaos"),
        ({"others": (replace(GOOD.others[0], state="running"),)}, "CrawlCompleted of lethal"),
        ({"storm": replace(GOOD.storm, kills=2)}, "enough went wrong"),
        ({"storm": replace(GOOD.storm, faults={})}, "enough went wrong"),
        ({"storm": replace(GOOD.storm, replayed=4)}, "enough went wrong"),
    ],
)
def test_broken_promise_is_named(changes: dict[str, Any], promise: str) -> None:
    evidence = replace(GOOD, **changes)
    lines = verdict.judge(evidence)

    assert any(name.startswith(promise) for name in violated(evidence))
    assert f"violated: {promise}" in verdict.text(evidence, lines)
    assert verdict.document(evidence, lines)["holds"] is False


def test_repeated_dead_letter_or_event_breaks_no_promise() -> None:
    evidence = replace(
        GOOD, dead=GOOD.dead * 2, main=replace(GOOD.main, announced=(COUNTS, COUNTS))
    )

    assert violated(evidence) == []
