"""The fence of the console: which requests are answered, and what a browser may do with answers.

Rules
- The console listens on this machine alone, behind the fence of such servers (api/fence.py).
- A request needs the token of this start. It comes in the fragment of the address that is printed,
  which browsers send to no server, and goes back in a header.
- Files of the application need no token: they are the same everywhere.
- The browser is told to run nothing but these files, to make no element of a text (Trusted Types),
  and to show the console in no frame.
"""

from __future__ import annotations

from orbweaver.api.fence import CLOSED, COMMON, LOOPBACK, LoopbackFence


def fence_at(port: int, token: str) -> LoopbackFence:
    """Make the fence of a console that listens at a port."""
    return LoopbackFence(
        hosts=hosts_at(port),
        token=token,
        service="the console",
        remedy="open the address that `orbweaver console` printed",
        by_port=True,
    )


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
        **CLOSED,
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
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
