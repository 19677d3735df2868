"""How a URL ends by its response."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.fetching.response_verdict import End, Read, Redirect, Retry, Verdict, judge
from orbweaver.frontier.pack_result import Returning
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target
from orbweaver.model.url import DEFAULT_BOUNDS
from orbweaver.parsing.page import parse
from orbweaver.worker.page_outcome import (
    RELOADS_MAX,
    Answered,
    UrlEnd,
    UrlOutcome,
    asks_by_head,
    outcome_of,
)
from orbweaver.worker.page_reading import PageReading
from tests.unit.stage import CRAWL, SITE

URL = f"{SITE}/a"
PAGE = Target(url=URL, depth=1)
OK = Read(body=b"", reason=Reason.OK)
SETTING = Response(status=302, headers={}, body=b"", cookies=(b"a=1",))


BLOCKED = End(outcome=Outcome.FAILED, reason=Reason.BLOCKED)
REFRESH = b"<meta http-equiv=refresh content='0;url=/b'>"
SITE_CRAWL = replace(CRAWL, canonical_only=True, noindex_skipped=True, cookies=True)


def decided(answered: Answered, target: Target = PAGE, *, repeated: bool = False) -> UrlOutcome:
    return outcome_of(SITE_CRAWL, target, answered, repeated=repeated, bounds=DEFAULT_BOUNDS)


@pytest.mark.parametrize(
    ("verdict", "body", "outcome", "reason", "follows"),
    [
        (OK, b"<a href=/b>b</a>", Outcome.FETCHED, Reason.OK, True),
        (OK, b"<meta name=robots content=noindex>", Outcome.SKIPPED, Reason.NOINDEX, True),
        (OK, b"<link rel=canonical href=/b>", Outcome.SKIPPED, Reason.CANONICAL, True),
        (OK, REFRESH, Outcome.REDIRECTED, Reason.REFRESH, True),
        (Redirect(location="/b"), None, Outcome.REDIRECTED, Reason.REDIRECT, False),
        (Redirect(location="http://["), None, Outcome.FAILED, Reason.REDIRECT_INVALID, False),
        (BLOCKED, None, Outcome.FAILED, Reason.BLOCKED, False),
        (Retry(reason=Reason.TIMEOUT, error="slow"), None, Outcome.FAILED, Reason.TIMEOUT, False),
    ],
)
def test_outcome_of_last_attempt_ends_url(
    verdict: Verdict, body: bytes | None, outcome: Outcome, reason: Reason, follows: bool
) -> None:
    reading = None if body is None else PageReading(page=parse(body, URL, None))
    ended = decided(Answered(SETTING, verdict, reading), replace(PAGE, attempt=99))
    assert isinstance(ended, UrlEnd)
    assert (ended.end.outcome, ended.end.reason, ended.follows) == (outcome, reason, follows)


@pytest.mark.parametrize(
    ("repeated", "reason"), [(False, Reason.SOFT_404), (True, Reason.REPEATED)]
)
def test_outcome_of_repeated_page_follows_no_links(repeated: bool, reason: Reason) -> None:
    reading = PageReading(page=parse(b"<a href=/b>b</a>", URL, None), missing=True)
    ended = decided(Answered(SETTING, OK, reading), repeated=repeated)
    assert isinstance(ended, UrlEnd)
    assert (ended.end.reason, ended.follows) == (reason, not repeated)


def test_outcome_of_first_failed_attempt_is_retry() -> None:
    retry = Retry(reason=Reason.TIMEOUT, error="slow")
    assert decided(Answered(SETTING, retry)) == retry


@pytest.mark.parametrize(
    ("answer", "reason", "attempts"),
    [
        (Response(status=404, headers={}, body=None), Reason.HTTP_CLIENT_ERROR, 2),
        (Response(status=405, headers={}, body=None), Reason.HTTP_CLIENT_ERROR, 2),
        (Response(status=403, headers={}, body=None), Reason.FORBIDDEN, 2),
        (Response(status=429, headers={}, body=None), Reason.BLOCKED, 2),
        (Response(status=501, headers={}, body=None), Reason.HTTP_SERVER_ERROR, 2),
        (Failure(reason=Reason.PROTOCOL, detail="surplus"), Reason.PROTOCOL, 2),
        (Failure(reason=Reason.TIMEOUT, detail="slow"), Reason.TIMEOUT, 2),
        (Failure(reason=Reason.TLS, detail="expired"), Reason.TLS, 1),
    ],
)
def test_status_only_url_fails_after_one_get(
    answer: Response | Failure, reason: Reason, attempts: int
) -> None:
    crawl = replace(CRAWL, status_only=True)
    for attempt in range(1, 4):
        target = replace(PAGE, attempt=attempt)
        assert asks_by_head(crawl, target) is (attempt == 1)
        verdict = judge(answer, attempt=attempt, now_ms=0, status_only=True)
        given = Answered(answer, verdict)
        ended = outcome_of(crawl, target, given, repeated=False, bounds=DEFAULT_BOUNDS)
        if isinstance(ended, UrlEnd):
            assert (attempt, ended.end.reason) == (attempts, reason)
            return
    pytest.fail("the URL does not end")


def test_outcome_of_read_without_page_is_sitemap_to_read() -> None:
    assert decided(Answered(SETTING, OK)) == OK


@pytest.mark.parametrize("reloads", [0, RELOADS_MAX])
def test_outcome_of_cookie_redirect_to_itself_is_limited_reload(reloads: int) -> None:
    target = replace(PAGE, reloads=reloads)
    found = decided(Answered(SETTING, Redirect(location=URL)), target)
    if reloads < RELOADS_MAX:
        assert found == Returning(target=replace(target, reloads=reloads + 1), delay_s=0)
    else:
        assert isinstance(found, UrlEnd)
        assert found.end.reason is Reason.REDIRECT_LIMIT
