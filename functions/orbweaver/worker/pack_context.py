"""Context of a pack (message with up to 25 URLs) in progress, and the results of its URLs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING

from orbweaver.frontier.body_file import Kept
from orbweaver.frontier.journal import NOTHING
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.pack_result import EndedPage, FoundLinks, PageResult
from orbweaver.model.crawl import UNSPENT, Crawl
from orbweaver.model.crawl_rules import rule_for_target
from orbweaver.model.cuts import Cuts, chars_beyond, column_text, counted, joined
from orbweaver.model.http_exchange import Failure, Response, one_line
from orbweaver.model.named_origins import NO_ORIGINS
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import DESCRIPTION_CHARS_MAX, HEADER_CHARS_MAX, PageRecord
from orbweaver.model.render_rules import RenderWhy
from orbweaver.model.target import Target
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.budget.reservation import Reservations
    from orbweaver.fetching.response_verdict import End
    from orbweaver.parsing.page import Page


@value_class
class PackContext:
    """One pack in progress: its crawl, and the time `until_ms` after which no request may start.

    `before` has the records of earlier runs, by URL. `seen` returns the URLs that the crawl is
    known to have claimed. `linked` returns True if the pack links to a URL, at a given depth or
    less.
    """

    crawl: Crawl
    until_ms: int
    reservations: Reservations
    # Time until which a login may send requests, which can take longer than a visit.
    login_until_ms: int = 0
    before: Mapping[str, PageRecord] = field(default_factory=dict)
    seen: Callable[[Collection[str]], AbstractSet[str]] = frozenset().intersection
    linked: Callable[[str, int], bool] = lambda _url, _depth: False
    # Origins that a person named, in a stack that may connect to non-public addresses.
    named: frozenset[str] = NO_ORIGINS
    # True if URLs without a slot join the host's waiting line. A pack of a backlog need not.
    lined: bool = True
    # True if this page may have killed a worker.
    suspected: bool = False
    # Called before each request, to start background work.
    asking: Callable[[], None] = lambda: None
    # Called with each host whose URLs were all requested or requeued.
    host_done: Callable[[str], Awaitable[None]] | None = None

    def ended(
        self,
        target: Target,
        record: PageRecord,
        kept: Kept | None = None,
        found: tuple[FoundLinks, ...] = (),
        counts: Mapping[str, int] = NOTHING,
    ) -> PageResult:
        """Return the result of a target that ended, without its record if a rule excludes it."""
        recorded = rule_for_target(self.crawl, target).record is not False
        end = EndedPage(record=record, recorded=recorded, kept=kept)
        return PageResult(end=end, found=found, counts=counts)

    def forbidden(
        self, target: Target, record: PageRecord, counts: Mapping[str, int] = NOTHING
    ) -> PageResult:
        # In an ordered crawl, deferred links can use the part of the page limit that this URL did
        # not use.
        if target.attempt == 1 and is_ordered(self.crawl):
            counts = {**counts, UNSPENT: 1}
        return self.ended(target, record, counts=counts)


ERROR_CHARS_MAX = 300
HEADERS_CUT = ("content_type", "etag", "last_modified")


def page_record(  # noqa: PLR0913 - parts of a result
    crawl_id: str,
    target: Target,
    end: End,
    at_ms: int,
    *,
    answer: Response | Failure | None = None,
    page: Page | None = None,
    cut: Cuts = (),
    render_why: RenderWhy | None = None,
    body_sha256: str | None = None,
) -> PageRecord:
    """Build the record of a URL that has ended. `cut` counts parts omitted while reading.

    `body_sha256` is the digest of the response's body, if known.
    """
    response = answer if isinstance(answer, Response) else None
    cuts = joined(cut, _cuts_of(end, response))
    # If a body is incomplete, its text may be in the missing part.
    empty = page is not None and page.needs_rendering and "body" not in dict(cuts)
    headers = response.headers if response else {}
    body = response.body if response else None
    return PageRecord(
        crawl=crawl_id,
        url=target.url,
        outcome=end.outcome,
        reason=end.reason,
        fetched_at=at_ms,
        depth=target.depth,
        referrer=target.referrer,
        status=response.status if response else None,
        content_type=_line(headers.get("content-type"), HEADER_CHARS_MAX),
        charset=page.charset if page else None,
        bytes=None if body is None else len(body),
        latency_ms=answer.latency_ms if answer else None,
        attempt=target.attempt,
        title=page.title if page else None,
        description=_cut(page.description, DESCRIPTION_CHARS_MAX) if page else None,
        language=page.language if page else None,
        canonical=page.canonical if page else None,
        links=len(page.links) if page else None,
        sha256=None if body is None else body_sha256 or sha256(body).hexdigest(),
        etag=_line(headers.get("etag"), HEADER_CHARS_MAX),
        last_modified=_line(headers.get("last-modified"), HEADER_CHARS_MAX),
        error=_cut(end.error, ERROR_CHARS_MAX),
        cut=column_text(cuts),
        needs_rendering=True if empty else None,
        rendered=True if response is not None and response.rendered else None,
        h1=page.h1 if page else None,
        render_why=None if render_why is None else str(render_why),
        proxy=answer.proxy if answer else None,
    )


def _cuts_of(end: End, response: Response | None) -> Cuts:
    error = chars_beyond(end.error, ERROR_CHARS_MAX)
    if response is None or end.outcome is not Outcome.FETCHED:
        return counted({"error": error})
    headers = {name: response.headers.get(name.replace("_", "-")) for name in HEADERS_CUT}
    return counted(
        {
            "body": int(response.truncated or end.reason is Reason.TRUNCATED),
            "render": int(response.render_cut),
            "unread": int(end.reason is Reason.COSTLY),
            **{name: chars_beyond(value, HEADER_CHARS_MAX) for name, value in headers.items()},
            "error": error,
            "headers": response.headers_cut,
        }
    )


def _line(value: str | None, chars_max: int) -> str | None:
    return _cut(value and one_line(value), chars_max)


def _cut(text: str | None, chars_max: int) -> str | None:
    return text[:chars_max] if text else None
