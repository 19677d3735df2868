"""The fence of the console: which requests are answered.

Rules
- It listens on this machine alone, which any program and any page in a browser here can reach.
- A page that has its own name lead to this address (DNS rebinding) is told by `Host`, one of
  another site by `Origin` and `Sec-Fetch-Site`.
- Whatever looks or changes needs the token of this start. It comes in the fragment of the address
  that is printed, which browsers send to no server, and goes back in a header. It is no cookie:
  cookies know no ports (RFC 6265, 8.5), so any other server of this machine would be sent it.
- Files of the application need no token: they are the same everywhere.
- The browser is told to run nothing but these files, to make no element of a text (Trusted Types),
  and to show the console in no frame.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

SCHEME = "Bearer "
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a request is not answered."""

    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Decides by a request's headers; `port` is where the console listens."""

    port: int
    token: str = field(repr=False)

    def refusal(self, headers: Mapping[str, str], *, needs_token: bool) -> Unanswered | None:
        """Say why a request is refused; None if it is answered."""
        host = headers.get("Host", "")
        if host not in hosts_at(self.port):
            return Unanswered(421, "the console answers by the names of this machine alone")
        if headers.get("Origin", f"http://{host}") != f"http://{host}":
            return Unanswered(403, "the console answers no pages of other sites")
        if not needs_token:
            return None
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return Unanswered(403, "the console answers no pages of other sites")
        given = headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"{SCHEME}{self.token}".encode()):
            return Unanswered(401, "open the address that `orbweaver console` has printed")
        return None


def hosts_at(port: int) -> frozenset[str]:
    """Name this machine, as requests to a port of it do."""
    return frozenset(f"{name}:{port}" for name in LOOPBACK)


def headers_of(*, frames: str = "'none'", connects: str = "'self'") -> dict[str, str]:
    """Name the headers of everything that the console answers.

    `frames` is the origin of what it shows in frames, `connects` are those that it asks.
    """
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": connects,
        "frame-src": frames,
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return {
        **COMMON,
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Frame-Options": "DENY",
    }


def headers_of_stored(console_port: int) -> dict[str, str]:
    """Name the headers of stored pages: shown in the console's frames alone, and run nothing."""
    # The grammar of a policy knows no IPv6 addresses (CSP 3, `host-source`).
    names = (name for name in LOOPBACK if not name.startswith("["))
    framing = " ".join(f"http://{name}:{console_port}" for name in names)
    policy = (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:;"
        f" base-uri 'none'; form-action 'none'; frame-ancestors {framing}"
    )
    return {
        **COMMON,
        "Content-Security-Policy": policy,
        "Cross-Origin-Resource-Policy": "same-site",
    }
