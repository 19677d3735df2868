"""Facts about URLs, each with the expected status and text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.diagnostics.url_status import Journey, UrlStatus
from orbweaver.frontier.dead_letters import DeadLetter, read
from orbweaver.frontier.journal import Unrecorded
from orbweaver.model.crawl import State, Stop
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target
from orbweaver.model.url_rules import UrlRule
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from tests.unit.diagnostics.facts import (
    BLOCKED,
    CANCELLED,
    CLAIM,
    CRAWL,
    DAY_MS,
    DOWN,
    JOURNEY,
    LAPSED,
    NOW_MS,
    OLD,
    OLD_CLAIM,
    OVER,
    PAUSED,
    RULED,
    RULES,
    SILENT,
    SITE,
    STARTED_MS,
    TARGET,
    UNRECORDED,
    URL,
    record,
)

LETTER = read(
    DeadLetter(id="m1", body="{}", reason="failed 4 times", receives=1, sent_at_ms=STARTED_MS)
)

AGAIN_AT = "again: by a new run of site with the same seeds, from 2026-11-22 09:00:00 UTC on, "
AGAIN_AFTER = "again: by a new run of site with the same seeds, once site-1 has ended: it has not"
FIRST_RULE = "rule: rules[0], where /a is found: depth 7, priority high, delay 1.5 s, window 1 h"
AGAIN_AT_ONCE = (
    "again: by a new run of site with the same seeds, at once: it has not been requested"
)
NO_COPY = "robots: no copy of https://example.com/robots.txt is stored; --fetch requests it now"

# Facts and expected texts by status.
URL_STATUSES: dict[UrlStatus, dict[str, tuple[dict[str, Any], list[str]]]] = {
    UrlStatus.DEAD_LETTER: {
        "a dead letter": (
            {"claim": CLAIM, "journey": JOURNEY, "letter": LETTER},
            [
                "dead letter (failed 4 times): `orbweaver dlq redrive --host example.com`",
                "since 2026-11-21 08:59:00 UTC: `orbweaver dlq show m1` shows it",
                "claim: by pack f00d",
            ],
        )
    },
    UrlStatus.WAITING: {
        "dead letters that were not read": (
            {"claim": CLAIM, "journey": JOURNEY, "letters_note": "they could not be read: denied"},
            ["dead letters: they could not be read: denied"],
        ),
        "claimed, and waiting": (
            {"claim": CLAIM, "journey": JOURNEY, "host": Host(name=SITE, tat_ms=NOW_MS + 2_000)},
            [
                "queued, or being requested now",
                f"linked by: {SITE}/",
                "attempt: 1 of at most 4",
                "queue: in pack beef: queued or in progress",
                f"host: {SITE} can be requested from 2026-11-21 09:00:02 UTC on",
            ],
        ),
        "claimed, its journal gone": (
            {"claim": CLAIM},
            ["linked by: unknown until it ends", "queue: its pack's journal is gone"],
        ),
        "a seed that waits": (
            {
                "reference": SITE,
                "claim": replace(CLAIM, depth=0),
                "journey": Journey(pack="beef", target=Target(url=f"{SITE}/", depth=0)),
            },
            ["changed: empty path written as /", "scope: it is a seed", "linked by: no page"],
        ),
        "had by a later run": (
            {"crawl": OVER, "claim": replace(CLAIM, crawl="site-2"), "owner": CRAWL},
            ["claim: by another run than site-1"],
        ),
        "of a host that is blocked": (
            {"claim": CLAIM, "journey": JOURNEY, "host": BLOCKED},
            ["is blocked until 2026-11-21 09:00:30 UTC: it answered 429 or 503"],
        ),
        "of a host that is silent": (
            {"claim": CLAIM, "journey": JOURNEY, "host": SILENT},
            ["until 2026-11-21 09:00:30 UTC: it did not answer 6 times in a row"],
        ),
        "of a host that is down": (
            {"claim": CLAIM, "journey": JOURNEY, "host": DOWN},
            ["it did not answer 9 times in a row: its URLs end unasked"],
        ),
    },
    UrlStatus.ENDED: {
        "fetched": (
            {"claim": CLAIM, "record": record(Outcome.FETCHED, Reason.OK, status=200)},
            [
                "fetched: ok (the page was read)",
                f"linked by: {SITE}/",
                "depth: 1 of 20",
                "claim: by pack f00d of site-1, 2026-11-21 08:59:00 UTC",
                "ended: fetched: ok, requested 2026-11-21 08:59:55 UTC",
                "status: 200",
                "body: not kept: bodies are not stored",
                "again: by a new run of site, from 2026-11-28 08:59:00 UTC on",
            ],
        ),
        "fetched, its body kept": (
            {
                "record": record(
                    Outcome.FETCHED, Reason.OK, body_key="b/1", body_offset=7, body_length=9
                )
            },
            ["body: b/1, 9 bytes from 7"],
        ),
        "redirected": (
            {
                "claim": CLAIM,
                "record": record(
                    Outcome.REDIRECTED, Reason.REDIRECT, status=301, error=f"{SITE}/b"
                ),
            },
            ["redirected: redirect (it redirects", f"leads to: {SITE}/b", "status: 301"],
        ),
        "skipped by robots.txt": (
            {"claim": CLAIM, "record": record(Outcome.SKIPPED, Reason.ROBOTS), "robots": RULES},
            [
                "skipped: robots (robots.txt forbids it)",
                "robots: line 2: Disallow: /a (User-agent: *), as of 2026-11-21 08:59:00 UTC",
                "ended: skipped: robots, decided 2026-11-21",
                AGAIN_AT,
                "or once site-1 has ended with --ignore-robots or another user agent",
            ],
        ),
        "skipped by robots.txt in an earlier run": (
            {
                "claim": OLD_CLAIM,
                "owner": OLD,
                "record": record(Outcome.SKIPPED, Reason.ROBOTS, crawl="site-0"),
            },
            ["claim: site-1 skips it: skipped (robots) within the window of 7 d"],
        ),
        "failed in an earlier run and this one": (
            {
                "claim": OLD_CLAIM,
                "owner": OLD,
                "record": record(Outcome.FAILED, Reason.FORBIDDEN, status=403),
            },
            ["claim: site-1 has requested it again", AGAIN_AFTER],
        ),
        "failed": (
            {
                "crawl": OVER,
                "claim": CLAIM,
                "record": record(
                    Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, status=404, error="gone"
                ),
            },
            [
                f"failed: http_client_error ({Reason.HTTP_CLIENT_ERROR.means})",
                "status: 404",
                "error: gone",
                "attempt: 1",
                "again: by a new run of site with the same seeds, at once: it has not been fetched",
            ],
        ),
        "had by an earlier run": (
            {
                "claim": OLD_CLAIM,
                "owner": OLD,
                "record": record(Outcome.FETCHED, Reason.OK, crawl="site-0"),
            },
            [
                "fetched: ok (the page was read), by the run site-0",
                "claim: site-1 skips it: requested within the window of 7 d",
            ],
        ),
        "asked for each time": (
            {
                "crawl": replace(OVER, window_s=0),
                "claim": CLAIM,
                "record": record(Outcome.UNCHANGED, Reason.NOT_MODIFIED, status=304),
            },
            ["again: by a new run of site, at once: the window is 0 s"],
        ),
        "widened": (
            {
                "reference": "https://www.example.com/",
                "record": replace(
                    record(Outcome.FETCHED, Reason.OK), url="https://www.example.com/"
                ),
            },
            [
                "https://www.example.com is not https://example.com, the host of the linking page",
                "; a redirect of a seed",
            ],
        ),
        "of a rule": (
            {"crawl": RULED, "claim": CLAIM, "record": record(Outcome.FETCHED, Reason.OK)},
            [
                FIRST_RULE,
                "rule: rules[2], where a$ is found: links not followed",
                "depth: 1 of 7",
                "again: by a new run of site, from 2026-11-21 09:59:00 UTC on",
            ],
        ),
        "not recorded, by a rule": (
            {
                "crawl": UNRECORDED,
                "claim": CLAIM,
                "journey": replace(
                    JOURNEY, end=Unrecorded(url=URL, outcome=Outcome.FETCHED, reason=Reason.OK)
                ),
            },
            [
                "fetched: ok (the page was read); rules[1] keeps no record of it",
                "rule: rules[1], where example is found: not recorded",
                f"linked by: {SITE}/",
            ],
        ),
        "not recorded, by a rule that is gone": (
            {
                "claim": CLAIM,
                "journey": replace(
                    JOURNEY, end=Unrecorded(url=URL, outcome=Outcome.FAILED, reason=Reason.DNS)
                ),
            },
            ["failed: dns (", "; no record was kept of it, by a rule of that time"],
        ),
        "skipped by its name": (
            {"claim": CLAIM, "record": record(Outcome.SKIPPED, Reason.CONTENT_TYPE)},
            ["skipped: content_type (", "decided 2026-", "why: skipped by its file name"],
        ),
        "a link that a later run requested again": (
            {
                "crawl": replace(OVER, seeds=(URL,), anchors=(f"{SITE}/",), retry_of="site-0"),
                "claim": CLAIM,
                "record": record(Outcome.FETCHED, Reason.OK, referrer=None, depth=2),
            },
            [
                "scope: scope host: same host",
                "linked by: a page of an earlier run",
                "--crawl site-0`",
                "depth: 2 of",
            ],
        ),
    },
    UrlStatus.RETRYING: {
        "retrying": (
            {
                "claim": CLAIM,
                "journey": replace(
                    JOURNEY,
                    target=replace(TARGET, attempt=2),
                    deferrals=3,
                    due_at_ms=NOW_MS + 10_000,
                ),
            },
            [
                "waiting for a retry: the last request failed",
                "attempt: 2 of at most 4, requeued at least 3 times",
                "queue: in pack beef, not before 2026-11-21 09:00:10 UTC",
            ],
        )
    },
    UrlStatus.WAITING_FOR_HOST: {
        "claimed, and behind others of its host": (
            {"claim": CLAIM, "journey": replace(JOURNEY, backlogged=True)},
            [
                "queued: it waits for its host's turn",
                "queue: in pack beef, which waits for its host's turn",
            ],
        )
    },
    UrlStatus.PARKED: {
        "parked": (
            {"crawl": PAUSED, "claim": CLAIM, "journey": JOURNEY},
            [
                "site-1 is paused; `orbweaver resume site-1` continues it",
                "queue: in pack beef, which is set",
            ],
        )
    },
    UrlStatus.UNASKED: {
        "cancelled": (
            {"crawl": CANCELLED, "claim": CLAIM, "journey": replace(JOURNEY, gone=True)},
            [
                "not requested: the crawl was cancelled before the request (skipped: cancelled,",
                AGAIN_AT_ONCE,
            ],
        ),
        "over, without a record": (
            {"crawl": OVER, "claim": CLAIM},
            ["site-1 is finished, and has no record of it"],
        ),
        "over for long": (
            {
                "crawl": OVER,
                "claim": replace(CLAIM, at_ms=NOW_MS - 31 * DAY_MS, expires_s=NOW_MS // 1000 + 9),
            },
            ["or its record is gone, which is kept for 30 d"],
        ),
        "of a run that is gone": (
            {"claim": replace(CLAIM, crawl="site-7")},
            ["not requested: site-7, whose URL it is, is not stored any more"],
        ),
        "not recorded, and its journal gone": (
            {"crawl": replace(UNRECORDED, state=State.FINISHED), "claim": CLAIM},
            ["not requested: or its journal is gone, for rules[1] keeps no record of it"],
        ),
        "passed over by the window of a rule": (
            {
                "crawl": replace(RULED, window_s=0),
                "claim": replace(OLD_CLAIM, at_ms=STARTED_MS - 5),
                "owner": OLD,
            },
            ["claim: site-1 skips it: requested within the window of 1 h"],
        ),
    },
    UrlStatus.LAPSED: {
        "lapsed": (
            {"crawl": OVER, "claim": LAPSED},
            [
                "queued once; its record is no longer kept",
                "again: at once: the claim has lapsed, 2026-11-21 09:00:00 UTC",
            ],
        )
    },
    UrlStatus.UNSEEN: {
        "of a host in doubt": (
            {"host": Host(name=SITE, failures=2)},
            ["can be requested now; 2 requests in a row without an answer"],
        ),
        "of a host with one failure": (
            {"host": Host(name=SITE, failures=1)},
            ["can be requested now; 1 request without an answer"],
        ),
        "let in by a rule alone": (
            {"crawl": replace(CRAWL, depth_max=0, rules=(UrlRule(match="/a", depth_max=1),))},
            ["it is crawled if a page"],
        ),
        "a sitemap, of which no rule is asked": (
            {"crawl": replace(RULED, sitemap_urls=(URL,))},
            [f"url: {URL}\ncrawl: site-1 (running): the run you named\nscope: it is a seed\n"],
        ),
        "a file of a crawl that stores all": (
            {"reference": f"{SITE}/set.zip", "crawl": replace(CRAWL, bodies=Bodies.ALL)},
            ["it is crawled if a page"],
        ),
        "a seed that is called like a file": (
            {"reference": f"{SITE}/set.zip", "crawl": replace(CRAWL, seeds=(f"{SITE}/set.zip",))},
            ["a seed that is not queued yet"],
        ),
        "never seen": (
            {"reference": "HTTPS://Example.com/a?utm_id=1#x"},
            [
                "it is crawled if a page within the scope links to it without nofollow",
                f"url: {URL}",
                "changed: parameter utm_id taken out",
                "crawl: site-1 (running): the run you named",
                "scope: scope host: same host as the linking page (https://example.com)",
                "trap: none",
                NO_COPY,
            ],
        ),
        "never seen, of a crawl that ignores nofollow": (
            {"crawl": replace(CRAWL, obey_nofollow=False)},
            ["it is crawled if a page within the scope links to it\n"],
        ),
        "withdrawn by nofollow": (
            {"crawl": OVER, "refused": ("nofollow",)},
            ["a page links to it with nofollow", "a link to it was refused as nof"],
        ),
        "of a crawl whose first page asks not to follow its links": (
            {"crawl": OVER, "seed_nofollow": True},
            ["never seen; a first page asks not to follow its links", "--ignore-nofollow"],
        ),
        "never seen, all allowed": (
            {"robots": RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow")},
            ["robots: there is none, so everything is allowed, as of 2026-11-21 09:00:00 UTC"],
        ),
        "never seen, no rule": (
            {"robots": RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: *\nDisallow: /b")},
            ["robots: no rule matches"],
        ),
        "never seen, robots ignored": (
            {"robots": RULES, "crawl": replace(CRAWL, obey_robots=False)},
            ["robots: ignored (--ignore-robots)"],
        ),
        "never seen, too late": (
            {"crawl": OVER},
            ["not found, and site-1 has ended; a new run", "(finished)"],
        ),
        "never seen, beyond the page limit": (
            {"crawl": replace(OVER, stop=Stop.MAX_PAGES, pages_max=4)},
            ["; the same command with a higher --max-pages than 4 continues it"],
        ),
        "late when the page limit was reached": (
            {
                "crawl": replace(OVER, stop=Stop.MAX_PAGES, pages_max=4),
                "late": True,
                "kind": (3, 0),
            },
            ["not requested: it waited", "; the same command with a higher --max-pages than 4"],
        ),
        "late when nothing new was to come": (
            {"crawl": replace(OVER, stop=Stop.NOTHING_NEW), "late": True},
            ["; the same command without --stop-when-nothing-new continues it"],
        ),
        "never seen, by the crawl of bare URLs": (
            {"crawl": replace(CRAWL, seeds=(), continuous=True)},
            ["scope: scope host: it depends on the page that links to it"],
        ),
        "a seed on its way": ({"reference": f"{SITE}/"}, ["a seed that is not queued yet"]),
    },
    UrlStatus.REFUSED: {
        "out of scope": (
            {"reference": "https://other.example/"},
            ["refused as scope: scope host: https://other.example is not https://example.com"],
        ),
        "too deep": (
            {"crawl": replace(CRAWL, depth_max=0)},
            ["refused as depth: site-1 follows no links"],
        ),
        "too deep, by a rule": (
            {"crawl": replace(CRAWL, rules=(UrlRule(match="/a", depth_max=0),))},
            ["refused as depth: rules[0] lets none in but seeds (depth 0)"],
        ),
        "excluded": (
            {"crawl": replace(CRAWL, exclude=("/x", "/a$"))},
            ["refused as exclude: --exclude /a$ is found in it"],
        ),
        "not included": (
            {"crawl": replace(CRAWL, include=("/x",))},
            ["refused as include: it matches no include pattern"],
        ),
        "of a trap": (
            {"reference": f"{SITE}/b/b/b/"},
            ["refused as repetition: a segment of its path", "trap: looks like one: a segment"],
        ),
        "another order of an index": (
            {"reference": f"{SITE}/pub/?C=M;O=D"},
            ["refused as index_order: it is a directory index", "trap: none"],
        ),
        "no page by its name": (
            {"reference": f"{SITE}/set.zip"},
            ["refused as content_type: its name says that it is no page (set.zip)"],
        ),
        "forbidden, and never seen": (
            {"robots": RULES},
            ["refused as robots: line 2: Disallow: /a"],
        ),
        "of nobody's rules": (
            {"robots": RobotsEntry(fetched_at_ms=NOW_MS, verdict="unreachable", detail="HTTP 500")},
            ["refused as robots: unreachable, so nothing is allowed: HTTP 500"],
        ),
        "of an address that is not public": (
            {"reference": "http://10.0.0.1/", "crawl": replace(CRAWL, scope=Scope.ANY)},
            ["refused as address: "],
        ),
    },
    UrlStatus.MALFORMED: {
        "malformed": (
            {"reference": "mailto:me@example.com"},
            ["it would be refused as invalid: not an http or https URL", "crawl: site-1 (running)"],
        )
    },
}
