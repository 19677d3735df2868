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

URL_STATUSES: dict[str, tuple[dict[str, Any], UrlStatus, list[str]]] = {
    "a dead letter": (
        {"claim": CLAIM, "journey": JOURNEY, "letter": LETTER},
        UrlStatus.DEAD_LETTER,
        [
            "dead letter (failed 4 times): `orbweaver dlq redrive --host example.com`",
            "since 2026-11-21 08:59:00 UTC: `orbweaver dlq show m1` shows it",
            "claim: by pack f00d",
        ],
    ),
    "dead letters that were not read": (
        {"claim": CLAIM, "journey": JOURNEY, "letters_note": "they could not be read: denied"},
        UrlStatus.WAITING,
        ["dead letters: they could not be read: denied"],
    ),
    "fetched": (
        {"claim": CLAIM, "record": record(Outcome.FETCHED, Reason.OK, status=200)},
        UrlStatus.ENDED,
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
        UrlStatus.ENDED,
        ["body: b/1, 9 bytes from 7"],
    ),
    "redirected": (
        {
            "claim": CLAIM,
            "record": record(Outcome.REDIRECTED, Reason.REDIRECT, status=301, error=f"{SITE}/b"),
        },
        UrlStatus.ENDED,
        ["redirected: redirect (it redirects", f"leads to: {SITE}/b", "status: 301"],
    ),
    "skipped by robots.txt": (
        {"claim": CLAIM, "record": record(Outcome.SKIPPED, Reason.ROBOTS), "robots": RULES},
        UrlStatus.ENDED,
        [
            "skipped: robots (robots.txt forbids it)",
            "robots: line 2: Disallow: /a (User-agent: *), as of 2026-11-21 08:59:00 UTC",
            "ended: skipped: robots, decided 2026-11-21",
            "again: by a new run of site with the same seeds, from 2026-11-22 09:00:00 UTC on, ",
            "or once site-1 has ended with --ignore-robots or another user agent",
        ],
    ),
    "skipped by robots.txt in an earlier run": (
        {
            "claim": OLD_CLAIM,
            "owner": OLD,
            "record": record(Outcome.SKIPPED, Reason.ROBOTS, crawl="site-0"),
        },
        UrlStatus.ENDED,
        ["claim: site-1 skips it: skipped (robots) within the window of 7 d"],
    ),
    "failed in an earlier run and this one": (
        {
            "claim": OLD_CLAIM,
            "owner": OLD,
            "record": record(Outcome.FAILED, Reason.FORBIDDEN, status=403),
        },
        UrlStatus.ENDED,
        [
            "claim: site-1 has requested it again",
            "again: by a new run of site with the same seeds, once site-1 has ended: it has not",
        ],
    ),
    "failed": (
        {
            "crawl": OVER,
            "claim": CLAIM,
            "record": record(Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, status=404, error="gone"),
        },
        UrlStatus.ENDED,
        [
            f"failed: http_client_error ({Reason.HTTP_CLIENT_ERROR.means})",
            "status: 404",
            "error: gone",
            "attempt: 1",
            "again: by a new run of site with the same seeds, at once: it has not been fetched",
        ],
    ),
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
        UrlStatus.RETRYING,
        [
            "waiting for a retry: the last request failed",
            "attempt: 2 of at most 4, requeued at least 3 times",
            "queue: in pack beef, not before 2026-11-21 09:00:10 UTC",
        ],
    ),
    "claimed, and waiting": (
        {"claim": CLAIM, "journey": JOURNEY, "host": Host(name=SITE, tat_ms=NOW_MS + 2_000)},
        UrlStatus.WAITING,
        [
            "queued, or being requested now",
            f"linked by: {SITE}/",
            "attempt: 1 of at most 4",
            "queue: in pack beef: queued or in progress",
            f"host: {SITE} can be requested from 2026-11-21 09:00:02 UTC on",
        ],
    ),
    "claimed, and behind others of its host": (
        {"claim": CLAIM, "journey": replace(JOURNEY, backlogged=True)},
        UrlStatus.WAITING_FOR_HOST,
        [
            "queued: it waits for its host's turn",
            "queue: in pack beef, which waits for its host's turn",
        ],
    ),
    "claimed, its journal gone": (
        {"claim": CLAIM},
        UrlStatus.WAITING,
        ["linked by: unknown until it ends", "queue: its pack's journal is gone"],
    ),
    "a seed that waits": (
        {
            "reference": SITE,
            "claim": replace(CLAIM, depth=0),
            "journey": Journey(pack="beef", target=Target(url=f"{SITE}/", depth=0)),
        },
        UrlStatus.WAITING,
        ["changed: empty path written as /", "scope: it is a seed", "linked by: no page"],
    ),
    "parked": (
        {"crawl": PAUSED, "claim": CLAIM, "journey": JOURNEY},
        UrlStatus.PARKED,
        [
            "site-1 is paused; `orbweaver resume site-1` continues it",
            "queue: in pack beef, which is set",
        ],
    ),
    "cancelled": (
        {"crawl": CANCELLED, "claim": CLAIM, "journey": replace(JOURNEY, gone=True)},
        UrlStatus.UNASKED,
        [
            "not requested: the crawl was cancelled before the request (skipped: cancelled,",
            "again: by a new run of site with the same seeds, at once: it has not been requested",
        ],
    ),
    "over, without a record": (
        {"crawl": OVER, "claim": CLAIM},
        UrlStatus.UNASKED,
        ["site-1 is finished, and has no record of it"],
    ),
    "over for long": (
        {
            "crawl": OVER,
            "claim": replace(CLAIM, at_ms=NOW_MS - 31 * DAY_MS, expires_s=NOW_MS // 1000 + 9),
        },
        UrlStatus.UNASKED,
        ["or its record is gone, which is kept for 30 d"],
    ),
    "of a run that is gone": (
        {"claim": replace(CLAIM, crawl="site-7")},
        UrlStatus.UNASKED,
        ["not requested: site-7, whose URL it is, is not stored any more"],
    ),
    "lapsed": (
        {"crawl": OVER, "claim": LAPSED},
        UrlStatus.LAPSED,
        [
            "queued once; its record is no longer kept",
            "again: at once: the claim has lapsed, 2026-11-21 09:00:00 UTC",
        ],
    ),
    "had by an earlier run": (
        {
            "claim": OLD_CLAIM,
            "owner": OLD,
            "record": record(Outcome.FETCHED, Reason.OK, crawl="site-0"),
        },
        UrlStatus.ENDED,
        [
            "fetched: ok (the page was read), by the run site-0",
            "claim: site-1 skips it: requested within the window of 7 d",
        ],
    ),
    "had by a later run": (
        {"crawl": OVER, "claim": replace(CLAIM, crawl="site-2"), "owner": CRAWL},
        UrlStatus.WAITING,
        ["claim: by another run than site-1"],
    ),
    "asked for each time": (
        {
            "crawl": replace(OVER, window_s=0),
            "claim": CLAIM,
            "record": record(Outcome.UNCHANGED, Reason.NOT_MODIFIED, status=304),
        },
        UrlStatus.ENDED,
        ["again: by a new run of site, at once: the window is 0 s"],
    ),
    "of a host that is blocked": (
        {"claim": CLAIM, "journey": JOURNEY, "host": BLOCKED},
        UrlStatus.WAITING,
        ["is blocked until 2026-11-21 09:00:30 UTC: it answered 429 or 503"],
    ),
    "of a host that is silent": (
        {"claim": CLAIM, "journey": JOURNEY, "host": SILENT},
        UrlStatus.WAITING,
        ["until 2026-11-21 09:00:30 UTC: it did not answer 6 times in a row"],
    ),
    "of a host that is down": (
        {"claim": CLAIM, "journey": JOURNEY, "host": DOWN},
        UrlStatus.WAITING,
        ["it did not answer 9 times in a row: its URLs end unasked"],
    ),
    "of a host in doubt": (
        {"host": Host(name=SITE, failures=2)},
        UrlStatus.UNSEEN,
        ["can be requested now; 2 requests in a row without an answer"],
    ),
    "of a host with one failure": (
        {"host": Host(name=SITE, failures=1)},
        UrlStatus.UNSEEN,
        ["can be requested now; 1 request without an answer"],
    ),
    "widened": (
        {
            "reference": "https://www.example.com/",
            "record": replace(record(Outcome.FETCHED, Reason.OK), url="https://www.example.com/"),
        },
        UrlStatus.ENDED,
        [
            "https://www.example.com is not https://example.com, the host of the linking page",
            "; a redirect of a seed",
        ],
    ),
    "out of scope": (
        {"reference": "https://other.example/"},
        UrlStatus.REFUSED,
        ["refused as scope: scope host: https://other.example is not https://example.com"],
    ),
    "too deep": (
        {"crawl": replace(CRAWL, depth_max=0)},
        UrlStatus.REFUSED,
        ["refused as depth: site-1 follows no links"],
    ),
    "of a rule": (
        {"crawl": RULED, "claim": CLAIM, "record": record(Outcome.FETCHED, Reason.OK)},
        UrlStatus.ENDED,
        [
            "rule: rules[0], where /a is found: depth 7, priority high, delay 1.5 s, window 1 h",
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
        UrlStatus.ENDED,
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
        UrlStatus.ENDED,
        ["failed: dns (", "; no record was kept of it, by a rule of that time"],
    ),
    "not recorded, and its journal gone": (
        {"crawl": replace(UNRECORDED, state=State.FINISHED), "claim": CLAIM},
        UrlStatus.UNASKED,
        ["not requested: or its journal is gone, for rules[1] keeps no record of it"],
    ),
    "too deep, by a rule": (
        {"crawl": replace(CRAWL, rules=(UrlRule(match="/a", depth_max=0),))},
        UrlStatus.REFUSED,
        ["refused as depth: rules[0] lets none in but seeds (depth 0)"],
    ),
    "let in by a rule alone": (
        {"crawl": replace(CRAWL, depth_max=0, rules=(UrlRule(match="/a", depth_max=1),))},
        UrlStatus.UNSEEN,
        ["it is crawled if a page"],
    ),
    "passed over by the window of a rule": (
        {
            "crawl": replace(RULED, window_s=0),
            "claim": replace(OLD_CLAIM, at_ms=STARTED_MS - 5),
            "owner": OLD,
        },
        UrlStatus.UNASKED,
        ["claim: site-1 skips it: requested within the window of 1 h"],
    ),
    "a sitemap, of which no rule is asked": (
        {"crawl": replace(RULED, sitemap_urls=(URL,))},
        UrlStatus.UNSEEN,
        [f"url: {URL}\ncrawl: site-1 (running): the run you named\nscope: it is a seed\n"],
    ),
    "excluded": (
        {"crawl": replace(CRAWL, exclude=("/x", "/a$"))},
        UrlStatus.REFUSED,
        ["refused as exclude: --exclude /a$ is found in it"],
    ),
    "not included": (
        {"crawl": replace(CRAWL, include=("/x",))},
        UrlStatus.REFUSED,
        ["refused as include: it matches no include pattern"],
    ),
    "of a trap": (
        {"reference": f"{SITE}/b/b/b/"},
        UrlStatus.REFUSED,
        ["refused as repetition: a segment of its path", "trap: looks like one: a segment"],
    ),
    "another order of an index": (
        {"reference": f"{SITE}/pub/?C=M;O=D"},
        UrlStatus.REFUSED,
        ["refused as index_order: it is a directory index", "trap: none"],
    ),
    "no page by its name": (
        {"reference": f"{SITE}/set.zip"},
        UrlStatus.REFUSED,
        ["refused as content_type: its name says that it is no page (set.zip)"],
    ),
    "a file of a crawl that stores all": (
        {"reference": f"{SITE}/set.zip", "crawl": replace(CRAWL, bodies=Bodies.ALL)},
        UrlStatus.UNSEEN,
        ["it is crawled if a page"],
    ),
    "a seed that is called like a file": (
        {"reference": f"{SITE}/set.zip", "crawl": replace(CRAWL, seeds=(f"{SITE}/set.zip",))},
        UrlStatus.UNSEEN,
        ["a seed that is not queued yet"],
    ),
    "skipped by its name": (
        {"claim": CLAIM, "record": record(Outcome.SKIPPED, Reason.CONTENT_TYPE)},
        UrlStatus.ENDED,
        ["skipped: content_type (", "decided 2026-", "why: skipped by its file name"],
    ),
    "forbidden, and never seen": (
        {"robots": RULES},
        UrlStatus.REFUSED,
        ["refused as robots: line 2: Disallow: /a"],
    ),
    "of nobody's rules": (
        {"robots": RobotsEntry(fetched_at_ms=NOW_MS, verdict="unreachable", detail="HTTP 500")},
        UrlStatus.REFUSED,
        ["refused as robots: unreachable, so nothing is allowed: HTTP 500"],
    ),
    "of an address that is not public": (
        {"reference": "http://10.0.0.1/", "crawl": replace(CRAWL, scope=Scope.ANY)},
        UrlStatus.REFUSED,
        ["refused as address: "],
    ),
    "never seen": (
        {"reference": "HTTPS://Example.com/a?utm_id=1#x"},
        UrlStatus.UNSEEN,
        [
            "it is crawled if a page within the scope links to it without nofollow",
            f"url: {URL}",
            "changed: parameter utm_id taken out",
            "crawl: site-1 (running): the run you named",
            "scope: scope host: same host as the linking page (https://example.com)",
            "trap: none",
            "robots: no copy of https://example.com/robots.txt is stored; --fetch requests it now",
        ],
    ),
    "never seen, of a crawl that ignores nofollow": (
        {"crawl": replace(CRAWL, obey_nofollow=False)},
        UrlStatus.UNSEEN,
        ["it is crawled if a page within the scope links to it\n"],
    ),
    "withdrawn by nofollow": (
        {"crawl": OVER, "refused": ("nofollow",)},
        UrlStatus.UNSEEN,
        ["a page links to it with nofollow", "a link to it was refused as nof"],
    ),
    "of a crawl whose first page asks not to follow its links": (
        {"crawl": OVER, "seed_nofollow": True},
        UrlStatus.UNSEEN,
        ["never seen; a first page asks not to follow its links", "--ignore-nofollow"],
    ),
    "never seen, all allowed": (
        {"robots": RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow")},
        UrlStatus.UNSEEN,
        ["robots: there is none, so everything is allowed, as of 2026-11-21 09:00:00 UTC"],
    ),
    "never seen, no rule": (
        {"robots": RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: *\nDisallow: /b")},
        UrlStatus.UNSEEN,
        ["robots: no rule matches"],
    ),
    "never seen, robots ignored": (
        {"robots": RULES, "crawl": replace(CRAWL, obey_robots=False)},
        UrlStatus.UNSEEN,
        ["robots: ignored (--ignore-robots)"],
    ),
    "never seen, too late": (
        {"crawl": OVER},
        UrlStatus.UNSEEN,
        ["not found, and site-1 has ended; a new run", "(finished)"],
    ),
    "never seen, beyond the page limit": (
        {"crawl": replace(OVER, stop=Stop.MAX_PAGES, pages_max=4)},
        UrlStatus.UNSEEN,
        ["; the same command with a higher --max-pages than 4 continues it"],
    ),
    "late when the page limit was reached": (
        {"crawl": replace(OVER, stop=Stop.MAX_PAGES, pages_max=4), "late": True, "kind": (3, 0)},
        UrlStatus.UNSEEN,
        ["not requested: it waited", "; the same command with a higher --max-pages than 4"],
    ),
    "late when nothing new was to come": (
        {"crawl": replace(OVER, stop=Stop.NOTHING_NEW), "late": True},
        UrlStatus.UNSEEN,
        ["; the same command without --stop-when-nothing-new continues it"],
    ),
    "a link that a later run requested again": (
        {
            "crawl": replace(OVER, seeds=(URL,), anchors=(f"{SITE}/",), retry_of="site-0"),
            "claim": CLAIM,
            "record": record(Outcome.FETCHED, Reason.OK, referrer=None, depth=2),
        },
        UrlStatus.ENDED,
        [
            "scope: scope host: same host",
            "linked by: a page of an earlier run",
            "--crawl site-0`",
            "depth: 2 of",
        ],
    ),
    "never seen, by the crawl of bare URLs": (
        {"crawl": replace(CRAWL, seeds=(), continuous=True)},
        UrlStatus.UNSEEN,
        ["scope: scope host: it depends on the page that links to it"],
    ),
    "a seed on its way": (
        {"reference": f"{SITE}/"},
        UrlStatus.UNSEEN,
        ["a seed that is not queued yet"],
    ),
    "malformed": (
        {"reference": "mailto:me@example.com"},
        UrlStatus.MALFORMED,
        ["it would be refused as invalid: not an http or https URL", "crawl: site-1 (running)"],
    ),
}
