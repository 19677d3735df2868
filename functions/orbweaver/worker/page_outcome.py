"""Decide how a URL ends by its response: with an outcome and links, or with another attempt.

The functions only decide. `worker/response_handling.py` reads the page before, and performs what
they return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias, assert_never

from orbweaver.fetching import response_verdict as answers
from orbweaver.fetching.response_verdict import End, Read, Redirect, Retry, Verdict
from orbweaver.frontier.admission import LIFTABLE, admit_redirect, leaves_scope, link_target
from orbweaver.frontier.journal import NOTHING
from orbweaver.frontier.pack_result import FoundLinks, Returning
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.host_access import retries_of
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.render_rules import RenderWhy
from orbweaver.model.request_url import is_post
from orbweaver.model.target import Target, TargetKind, next_attempt
from orbweaver.model.url import Bounds, canonicalize, resolved
from orbweaver.model.value import value_class
from orbweaver.parsing.page import Page
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES
from orbweaver.worker.page_reading import PageReading, wants_json

# Servers that have both forms of a page return JSON. All types are read, because many servers
# declare JSON as another type.
_JSON_TYPES = frozenset({"application/json", ANY_TYPE})
_ALL_TYPES = HTML_TYPES | {ANY_TYPE}
RELOADS_MAX = 2  # limit for a URL that redirects to itself and sets a cookie


class Answered(NamedTuple):
    """A response with its verdict and content, and the reason why it is rendered or not."""

    answer: Response | Failure
    verdict: Verdict
    reading: PageReading | None = None
    counts: Mapping[str, int] = NOTHING
    why: RenderWhy | None = None

    @property
    def page(self) -> Page | None:
        return None if self.reading is None else self.reading.page

    @property
    def is_json(self) -> bool:
        return self.reading is not None and self.reading.json

    @property
    def headers(self) -> Mapping[str, str]:
        return self.answer.headers if isinstance(self.answer, Response) else {}


@value_class
class UrlEnd:
    """End of a URL. `found` has its redirect, and `follows` means that the page's links count."""

    end: End
    found: tuple[FoundLinks, ...] = ()
    follows: bool = False


# A `Read` without a page is a sitemap, which is read in parts. A `Retry` needs a delay.
UrlOutcome: TypeAlias = UrlEnd | Returning | Retry | Read


def outcome_of(
    crawl: Crawl, target: Target, answered: Answered, *, repeated: bool, bounds: Bounds
) -> UrlOutcome:
    """Decide how a URL ends. `repeated` means that too many pages of its host are equal."""
    answer, verdict = answered.answer, answered.verdict
    match verdict:
        case Retry():
            retries = retries_of(crawl, target.url)
            ended = answers.exhausted(verdict, target.attempt, retries)
            return verdict if ended is None else UrlEnd(end=ended)
        case Redirect(location=location):
            return _redirected(crawl, target, answer, location, bounds)
        case Read():
            reading, page = answered.reading, answered.page
            if reading is None or page is None:
                return verdict
            return _page_end(crawl, target, reading, page, verdict.reason, bounds, repeated)
        case End():
            return _get_after_head(crawl, target, answer, verdict) or UrlEnd(end=verdict)
        case _:
            assert_never(verdict)


def _redirected(
    crawl: Crawl, target: Target, answer: Response | Failure, location: str, bounds: Bounds
) -> UrlEnd | Returning:
    if crawl.cookies and answers.sets_cookies(answer):
        led_to = resolved(location, target.url, tracking=crawl.removed_parameters)
        if led_to == target.url and target.reloads < RELOADS_MAX:
            return Returning(target=replace(target, reloads=target.reloads + 1), delay_s=0)
    repeats = isinstance(answer, Response) and answer.status in answers.REPEATING
    if repeats and is_post(target.url):
        # Only a person chooses where a POST is sent.
        said = f"a POST is redirected to {location}: give that URL"
        return UrlEnd(end=End(outcome=Outcome.FAILED, reason=Reason.REDIRECT_INVALID, error=said))
    itself = answers.why_to_itself(answer, cookies=crawl.cookies)
    end, onward = _redirect(crawl, target, location, bounds, itself=itself)
    return UrlEnd(end=end, found=(onward,))


def asks_by_head(crawl: Crawl, target: Target) -> bool:
    """Return whether this attempt is a HEAD request. All further attempts are GET requests."""
    first = target.kind is TargetKind.PAGE and target.attempt == 1
    return crawl.status_only and first and not is_post(target.url)


def page_types(crawl: Crawl, target: Target) -> frozenset[str]:
    """Return the media types of bodies to read."""
    if crawl.status_only:
        return frozenset()
    if target.api is not None or wants_json(crawl, target.url):
        return _JSON_TYPES
    return _ALL_TYPES if crawl.bodies is Bodies.ALL else HTML_TYPES


def _get_after_head(
    crawl: Crawl, target: Target, answer: Response | Failure, end: End
) -> Returning | None:
    """Return a GET request if the server refused HEAD, which many servers do. None: it did not."""
    if end.outcome is not Outcome.FAILED or not asks_by_head(crawl, target):
        return None
    if isinstance(answer, Failure) and answer.reason is not Reason.PROTOCOL:
        return None
    again = next_attempt(target, answers.failure_of(answer))
    return Returning(target=again, delay_s=0, why="retries")


def _page_end(
    crawl: Crawl,
    target: Target,
    reading: PageReading,
    page: Page,
    reason: Reason,
    bounds: Bounds,
    repeated: bool,
) -> UrlEnd:
    end, onward = _onward(crawl, target, page, bounds)
    if repeated:
        refused = FoundLinks(refused=((Refusal.REPEATED, len(page.links), page.links),))
        end = end or End(outcome=Outcome.FETCHED, reason=Reason.REPEATED)
        return UrlEnd(end=end, found=(onward, refused))
    if end is None and reading.left is not None:
        end = End(outcome=Outcome.FETCHED, reason=Reason.COSTLY, error=reading.why)
    if end is None:
        reason = Reason.SOFT_404 if reading.missing else reason
        reason = Reason.NOINDEX if page.noindex else reason
        end = End(outcome=Outcome.FETCHED, reason=reason)
    return UrlEnd(end=end, found=(onward,), follows=True)


def _onward(
    crawl: Crawl, target: Target, page: Page, bounds: Bounds
) -> tuple[End | None, FoundLinks]:
    """Return the end of a page that names another URL or must not be indexed, and its links.

    The end is None if neither applies.
    """
    if page.refresh is not None:
        return _redirect(crawl, target, page.refresh, bounds, Reason.REFRESH)
    url = page.canonical
    # The referrer may name this page as its canonical URL.
    if crawl.canonical_only and url is not None and url not in (target.url, target.referrer):
        # A canonical URL never widens the scope.
        admitted = None
        if not leaves_scope(crawl, url, target):
            admitted = admit_redirect(crawl, url, target, bounds)
        if isinstance(admitted, Target):
            end = End(outcome=Outcome.SKIPPED, reason=Reason.CANONICAL, error=url)
            return end, FoundLinks(admitted=(admitted,))
    if crawl.noindex_skipped and page.noindex:
        return End(outcome=Outcome.SKIPPED, reason=Reason.NOINDEX), FoundLinks()
    return None, FoundLinks()


def _redirect(
    crawl: Crawl,
    target: Target,
    location: str,
    bounds: Bounds,
    reason: Reason = Reason.REDIRECT,
    itself: str = "it leads to itself",
) -> tuple[End, FoundLinks]:
    try:
        url = canonicalize(location, target.url, tracking=crawl.removed_parameters)
    except ValueError as error:
        why, said = Reason.REDIRECT_INVALID, str(error)
        return End(outcome=Outcome.FAILED, reason=why, error=said), FoundLinks()
    admitted = admit_redirect(crawl, url, target, bounds)
    if admitted is Refusal.REDIRECTS or url == target.url:
        why, said = Reason.REDIRECT_LIMIT, itself if url == target.url else url
        return End(outcome=Outcome.FAILED, reason=why, error=said), FoundLinks()
    if isinstance(admitted, Refusal):
        left: tuple[Target, ...] = ()
        if admitted in LIFTABLE:
            onward = link_target(target, url, target.depth)
            left = (replace(onward, hops=target.hops + 1, bound=target.bound),)
        found = FoundLinks(refused=((admitted, 1, (url,)),), left=left)
    else:
        found = FoundLinks(admitted=(admitted,))
        if leaves_scope(crawl, url, target):
            reason = Reason.WIDENED
    return End(outcome=Outcome.REDIRECTED, reason=reason, error=url), found
