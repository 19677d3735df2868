"""Access control of the local console's requests, and security headers of its responses.

- The console listens on this machine only, behind the common checks (api/fence.py).
- A request needs the token that this start of the console created. The printed address contains it
  in the fragment, which browsers never send. The application sends it in a header.
- Files of the application need no token, because they are public.
- The headers allow only these files as scripts, enforce Trusted Types, and forbid framing.
"""

from __future__ import annotations

from orbweaver.api.fence import CLOSED, COMMON, LOOPBACK, LoopbackFence


def fence_at(port: int, token: str) -> LoopbackFence:
    return LoopbackFence(
        hosts=hosts_at(port),
        token=token,
        service="the console",
        remedy="open the address that `orbweaver console` printed",
        by_port=True,
    )


def hosts_at(port: int) -> frozenset[str]:
    """Return this machine's names with a port, as in Host headers."""
    return frozenset(f"{name}:{port}" for name in LOOPBACK)


def headers_of(*, frames: str = "'none'", connects: str = "'self'") -> dict[str, str]:
    """Return the security headers of responses.

    Pages can frame the origin `frames`, and send requests to the origins `connects`.
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
        **CLOSED,
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Frame-Options": "DENY",
    }


def headers_of_stored(console_port: int) -> dict[str, str]:
    """Return the headers of stored pages: only the console may frame them, and no script runs."""
    # A policy cannot contain IPv6 addresses (CSP 3, `host-source`).
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
