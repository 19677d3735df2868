"""Divide the reasons of `model/outcome.py` into facts about the site and others.

The others are limits of the crawl, blocks, refusals and failed connections. They can be faults of
the crawler or of the network, so an audit reports them in a section of their own.
"""

from __future__ import annotations

from orbweaver.model.outcome import Reason, known

# The response describes the URL.
JUDGED = frozenset(
    {
        *(Reason.OK, Reason.TRUNCATED, Reason.SITEMAP, Reason.NOINDEX, Reason.REPEATED),
        *(Reason.SOFT_404, Reason.NOT_MODIFIED, Reason.REDIRECT, Reason.REFRESH, Reason.WIDENED),
        *(Reason.CONTENT_TYPE, Reason.EMPTY, Reason.CANONICAL, Reason.SITEMAP_INVALID),
        *(Reason.REDIRECT_INVALID, Reason.REDIRECT_LIMIT, Reason.HTTP_CLIENT_ERROR),
        *(Reason.HTTP_SERVER_ERROR, Reason.HTTP_STATUS, Reason.PROTOCOL, Reason.ENCODING),
        *(Reason.TLS, Reason.DNS_UNKNOWN),
    }
)
# A limit or a person ended the crawl, so it is not complete.
LIMITS = frozenset(
    {Reason.CANCELLED, Reason.DURATION, Reason.BYTES, Reason.DOLLARS, Reason.HOST_PAGES}
    | {Reason.DEPTH}
)


def meaning_of(reason: str) -> str:
    """Return the meaning of a reason of a record."""
    found = known(Reason, reason)
    return "a reason of another version of Orbweaver" if found is None else found.means
