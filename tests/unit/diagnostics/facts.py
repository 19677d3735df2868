"""Facts about a URL for tests of its explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.diagnostics.explanation import explain
from orbweaver.diagnostics.url_status import Facts, Journey
from orbweaver.frontier.claims import StoredClaim
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target
from orbweaver.model.url_rules import UrlRule
from orbweaver.politeness.host_schedule import Host, RobotsEntry

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
STARTED_MS = NOW_MS - 60_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SITE = "https://example.com"
URL = f"{SITE}/a"
CRAWL = Crawl(id="site-1", name="site", started_at_ms=STARTED_MS, seeds=(f"{SITE}/",))
OVER = replace(CRAWL, state=State.FINISHED, stop=Stop.FINISHED)
CANCELLED = replace(CRAWL, state=State.FINISHED, stop=Stop.CANCELLED)
PAUSED = replace(CRAWL, state=State.PAUSED)
OLD = replace(OVER, id="site-0", started_at_ms=NOW_MS - DAY_MS)
RULES = RobotsEntry(fetched_at_ms=STARTED_MS, body=b"User-agent: *\nDisallow: /a")
CLAIM = StoredClaim(
    crawl="site-1",
    pack="f00d",
    at_ms=STARTED_MS,
    expires_s=STARTED_MS // 1000 + CRAWL.window_s,
    depth=1,
)
LAPSED = replace(CLAIM, at_ms=NOW_MS - 8 * DAY_MS, expires_s=NOW_MS // 1000)
OLD_CLAIM = replace(CLAIM, crawl="site-0", at_ms=NOW_MS - HOUR_MS)
TARGET = Target(url=URL, depth=1, referrer=f"{SITE}/")
JOURNEY = Journey(pack="beef", target=TARGET)
RULED = replace(
    CRAWL,
    rules=(
        UrlRule(match="/a", depth_max=7, express=True, delay_ms=1_500, window_s=3_600),
        UrlRule(match="/b", record=False),
        UrlRule(match="a$", depth_max=1, follow=False),
    ),
)
UNRECORDED = replace(
    CRAWL, rules=(UrlRule(match="/b", record=False), UrlRule(match="example", record=False))
)
BLOCKED = Host(name=SITE, blocked_until_ms=NOW_MS + 30_000, strikes=1, struck_at_ms=NOW_MS)
SILENT = Host(name=SITE, blocked_until_ms=NOW_MS + 30_000, failures=6)
DOWN = replace(SILENT, failures=9)


def record(outcome: Outcome, reason: Reason, **fields: Any) -> PageRecord:
    known = {"crawl": "site-1", "fetched_at": NOW_MS - 5_000, "depth": 1, "referrer": f"{SITE}/"}
    return PageRecord(url=URL, outcome=outcome, reason=reason, **{**known, **fields})


def facts(**known: Any) -> Facts:
    """Return facts with default values and these changes."""
    basis: dict[str, Any] = {
        "reference": URL,
        "crawl": CRAWL,
        "chosen": "the run you named",
        "now_ms": NOW_MS,
        "agent": "orbweaver/0.1",
        "retention_s": 30 * 86_400,
    }
    return Facts(**{**basis, **known})


def said(known: Facts) -> str:
    told = explain(known)
    return "\n".join([told.verdict, *(f"{one.about}: {one.words}" for one in told.statements)])
