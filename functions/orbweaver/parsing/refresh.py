"""Detect pages that redirect by the `Refresh` header or `<meta http-equiv=refresh>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A refresh within this time is a redirect: people cannot read the page in this time, and sites that
# cannot set a status redirect in this way. A refresh after a longer time ("this page has moved") is
# a link.
REFRESH_S_MAX = 10
_CHARS_MAX = 10_000
_SECONDS_CHARS_MAX = 9

# HTML Standard, "shared declarative refresh steps": a number of seconds, then an optional URL with
# optional `url=` and quotes.
_REFRESH = re.compile(
    r"""[\t\n\f\r ]*+ (?:([0-9]++)|(?=\.)) [0-9.]*+
    (?: \Z | (?=[;,\t\n\f\r ]) [\t\n\f\r ]*+ [;,]?+ [\t\n\f\r ]*+ (.*) \Z )""",
    re.VERBOSE | re.DOTALL,
)
_URL = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """A refresh after `delay_s` seconds. Without `reference`, the page reloads itself."""

    delay_s: int
    reference: str | None = None

    @property
    def redirects(self) -> bool:
        """Whether the refresh is a redirect. Otherwise it is a link."""
        return self.delay_s <= REFRESH_S_MAX


def refresh_of(value: str) -> Refresh | None:
    """Parse a Refresh header or element. Returns None if browsers would ignore it."""
    found = _REFRESH.match(value[:_CHARS_MAX])
    if found is None:
        return None
    delay_s = int((found[1] or "0")[:_SECONDS_CHARS_MAX])
    reference: str = found[2] or ""
    named = _URL.match(reference)
    if named is not None:
        reference = reference[named.end() :]
    if reference[:1] in {"'", '"'}:
        reference = reference[1:].partition(reference[0])[0]
    return Refresh(delay_s=delay_s, reference=reference or None)
