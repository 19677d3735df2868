"""Access checks of the HTTP servers that listen on this machine.

- Any program of this machine, and any page in its browsers, can reach the port.
- `Host` must name this machine, because another name can resolve to it (DNS rebinding).
- `Origin` and `Sec-Fetch-Site` identify requests from pages of other sites.
- A request needs the token, so other users of the machine are refused. The token is not a cookie:
  cookies ignore ports (RFC 6265, 8.5), so every other server of this machine would receive it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import field

from orbweaver.model.value import positional_value_class, value_class

SCHEME = "Bearer "
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# Headers of every response: caches must not store it. With CLOSED, other sites cannot embed it.
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
CLOSED = {**COMMON, "Cross-Origin-Resource-Policy": "same-origin"}


@positional_value_class
class Unanswered:
    """Status and text of a refused request."""

    status: int
    text: str


@value_class
class LoopbackFence:
    """Checks a request's headers. If `token` is None, every program of this machine has access."""

    # Accepted values of `Host`, without ports unless `by_port`.
    hosts: frozenset[str]
    token: str | None = field(repr=False)
    service: str
    # Tells users where to find the token.
    remedy: str
    by_port: bool = False

    def refusal(self, headers: Mapping[str, str], *, needs_token: bool = True) -> Unanswered | None:
        """Return the refusal of a request, or None if it is accepted."""
        host = headers.get("Host", "")
        if (host if self.by_port else _without_port(host)) not in self.hosts:
            return Unanswered(421, f"{self.service} answers by the names of this machine alone")
        other_site = Unanswered(403, f"{self.service} answers no pages of other sites")
        if headers.get("Origin", f"http://{host}") != f"http://{host}":
            return other_site
        if not needs_token:
            return None
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return other_site
        given = headers.get("Authorization", "").encode()
        if self.token is None or hmac.compare_digest(given, f"{SCHEME}{self.token}".encode()):
            return None
        return Unanswered(401, self.remedy)


def _without_port(host: str) -> str:
    return host if host.endswith("]") else host.rpartition(":")[0] or host
