"""Cases 41 to 44: redirects, and their headers."""

from __future__ import annotations

from tests.integration.fetcher.authority import Leaf
from tests.sites.hostile.model import Place, Row, page, redirect

STATUSES = {301: "Moved", 302: "Found", 303: "See Other", 307: "Temporary", 308: "Permanent"}
HOPS_MAX = 10  # Redirects of a chain. A crawl follows the tenth as the last one.
CHAIN = 21
# Forbidden redirect targets.
SCHEMES = {
    "file": "file:///proc/self/environ",
    "javascript": "javascript:alert(1)",
    "data": "data:text/html,<a href=/astray/ghost>x</a>",
    "ftp": "ftp://127.0.0.1/x",
    "not-a-url": "http://[bad/",
}


def _moved(path: str, case: int, location: str, serves: str, *children: str) -> Row:
    return Row(
        case=case,
        path=path,
        serves=serves,
        say=redirect(location),
        outcome="redirected",
        reason="redirect",
        children=children,
    )


def _hop(number: int) -> Row:
    last = number == HOPS_MAX
    return Row(
        case=42,
        path=f"/astray/hop/{number}",
        serves=f"hop {number} of a chain of {CHAIN}",
        say=redirect(f"/astray/hop/{number + 1}"),
        outcome="failed" if last else "redirected",
        reason="redirect_limit" if last else "redirect",
        ghosts=(f"/astray/hop/{number + 1}",) if last else (),
        linked=not number,
    )


ROWS = (
    *(
        Row(
            case=41,
            path=f"/moved/{status}",
            serves=f"a redirect by {status}",
            say=redirect(f"/moved/goal-of-{status}", f"{status} {reason}"),
            outcome="redirected",
            reason="redirect",
            children=(f"/moved/goal-of-{status}",),
        )
        for status, reason in STATUSES.items()
    ),
    Row(
        case=42,
        path="/astray/self",
        serves="a redirect to itself",
        say=redirect("/astray/self"),
        outcome="failed",
        reason="redirect_limit",
    ),
    _moved("/astray/here", 42, "/astray/there", "one half of a loop"),
    _moved("/astray/there", 42, "/astray/here", "the other half of a loop"),
    *(_hop(number) for number in range(HOPS_MAX + 1)),
    Row(
        case=42,
        path="/astray/no-location",
        serves="a redirect without a Location",
        say=redirect(None),
        outcome="failed",
        reason="http_status",
    ),
    Row(
        case=42,
        path="/astray/empty",
        serves="a redirect with an empty Location",
        say=redirect(""),
        outcome="failed",
        reason="http_status",
    ),
    _moved(
        "/astray/relative", 42, "goal?of=relative", "a relative one", "/astray/goal?of=relative"
    ),
    _moved(
        "/astray/host", 42, "//elsewhere.invalid/", "one to another host, which is not in scope"
    ),
    _moved(
        "/astray/non-ascii",
        42,
        "/astray/goal-é".encode().decode("latin-1"),  # A head is encoded in ISO 8859-1.
        "one in bytes that are not ASCII",
        "/astray/goal-%C3%A9",
    ),
    *(
        Row(
            case=42,
            path=f"/astray/to-{name}",
            serves=f"a redirect to {location[:20]}",
            say=redirect(location),
            outcome="failed",
            reason="redirect_invalid",
            ghosts=("/astray/ghost",),
        )
        for name, location in SCHEMES.items()
    ),
    Row(
        case=43,
        path="/",
        serves="a redirect to another host, with a cookie",
        place="moved",
        say=redirect(
            "http://127.0.0.1:{arrival}/carried/landed", "302 Found", "Set-Cookie: id=1; Path=/"
        ),
        outcome="redirected",
        reason="widened",
    ),
    Row(
        case=43,
        path="/carried/landed",
        serves="the other host: no cookie and no authorization comes in",
        place="arrival",
        say=page("/carried/landed", ["http://user:secret@127.0.0.1:{arrival}/carried/userinfo"]),
        children=("/carried/userinfo",),
    ),
    Row(
        case=44,
        path="/",
        serves="a redirect from https to http, with a secure cookie",
        place="secure",
        say=redirect(
            "http://127.0.0.1:{arrival}/plain/landed", "302 Found", "Set-Cookie: id=1; Secure"
        ),
        outcome="redirected",
        reason="widened",
    ),
    Row(case=44, path="/plain/landed", serves="plain http: nothing secret", place="arrival"),
)

PLACES = (
    Place(name="moved", start=False),
    Place(name="secure", start=False, tls=Leaf(addresses=("127.0.0.1",))),
    # No page links to it: only a redirect leads to it.
    Place(name="arrival", start=False, seed=False),
)
