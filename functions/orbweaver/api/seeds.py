"""Handler that adds seeds to a running crawl, from the request or from a file in the bucket.

The handler checks all URLs before it sends the first, so it accepts all of them or none. Message
ids derive from the client's key, or from the request's id, so a message that is sent twice is
detected. A URL with a forbidden address is refused here too, although the worker would refuse it
later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.problems import FLAWS_MAX, Refused
from orbweaver.api.requests import SEEDS_FOLDER, Keyed, Seeds
from orbweaver.api.responses import Accepted
from orbweaver.control.definition import DefinitionProblem, lines_of
from orbweaver.diagnostics.rule_texts import never_requested_reason
from orbweaver.frontier.messages import REFERENCE_CHARS_MAX, seeds_of
from orbweaver.model.errors import TooLarge, UnknownCrawl
from orbweaver.model.url import canonicalize, host_of, redacted
from orbweaver.worker.seeding import crawl_for

URLS_MAX = 10_000
# Limit of URLs in a file. The function has time to send this number, 100 per message.
LINES_MAX = 100_000
FILE_BYTES_MAX = 10_000_000


async def take(means: HandlerContext, *, headers: Keyed, body: Seeds, request_id: str) -> Reply:
    """Queue URLs for a crawl."""
    references, name = await _references(means, body)
    flaws = closed(references, name, means)
    if flaws:
        detail = f"{flaws[0]}; nothing was taken"
        raise Refused(400, detail, flaws)
    now_ms = means.clock.now_ms()
    crawl = await crawl_for(means.crawls, body.crawl, now_ms)
    if crawl is None:
        raise UnknownCrawl(f"there is no crawl {body.crawl!r}")
    if not crawl.live:
        raise Refused(409, f"crawl {crawl.id} is {crawl.state}: start another")
    key = headers.idempotency_key
    origin = request_id if key is None else f"{crawl.id} {key}"
    seeds = seeds_of(origin, crawl.id, references, at_ms=now_ms, planned=False)
    await means.queue.send_seeds(seeds, express=crawl.express)
    return Reply(status=202, body=Accepted(crawl=crawl.id, accepted=len(references)))


async def _references(means: HandlerContext, body: Seeds) -> tuple[Sequence[str], str]:
    """Return the given URLs, and the name of the parameter that contains them."""
    given = [name for name in ("url", "urls", "s3") if getattr(body, name) is not None]
    if len(given) != 1:
        raise Refused(400, "give one of url, urls and s3")
    if body.s3 is not None:
        return await _lines(means, body.s3), "line"
    references = (body.url,) if body.url is not None else body.urls or ()
    if len(references) > URLS_MAX:
        raise Refused(413, f"at most {URLS_MAX:,} URLs a request: put more into a file (s3)")
    return references, "urls" if body.url is None else "url"


async def _lines(means: HandlerContext, key: str) -> Sequence[str]:
    if ".." in key.split("/"):
        raise Refused(400, f"s3: give a name below {SEEDS_FOLDER}")
    try:
        content = await means.files.get(key, FILE_BYTES_MAX)
    except TooLarge as error:
        raise Refused(413, f"s3: {error}") from error
    if content is None:
        raise Refused(400, f"s3: there is no file {key!r} in the stack's bucket")
    try:
        lines = lines_of(content.decode())
    except UnicodeDecodeError as error:
        raise Refused(400, f"s3: {key!r} is no text in UTF-8") from error
    if len(lines) > LINES_MAX:
        raise Refused(413, f"s3: {key!r} has more than {LINES_MAX:,} URLs: cut it into several")
    if not lines:
        raise Refused(400, f"s3: {key!r} has no URL")
    return lines


def closed(
    references: Iterable[str], name: str, means: HandlerContext
) -> tuple[DefinitionProblem, ...]:
    """Return the problems of URLs that cannot be crawled, at most `FLAWS_MAX`.

    `name` is the parameter that contains the URLs.
    """
    found: list[DefinitionProblem] = []
    for place, reference in enumerate(references):
        why = _problem(reference, means)
        if why is not None:
            where = name if name == "url" else f"{name}[{place}]"
            text = f"{redacted(reference)!a} cannot be crawled: {why}"
            found.append(DefinitionProblem(where, text))
            if len(found) >= FLAWS_MAX:
                break
    return tuple(found)


def _problem(reference: str, means: HandlerContext) -> str | None:
    if len(reference) > REFERENCE_CHARS_MAX:
        return f"it is longer than {REFERENCE_CHARS_MAX:,} characters"
    try:
        url = canonicalize(reference)
    except ValueError as error:
        return str(error)
    return never_requested_reason(url, means.allowed, frozenset({host_of(url)}))
