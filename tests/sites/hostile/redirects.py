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


def _moved(path: str, serves: str, location: str, *children: str) -> Row:
    return Row(42, path, serves, redirect(location), "redirected: redirect", children=children)


def _hop(number: int) -> Row:
    last, following = number == HOPS_MAX, f"/astray/hop/{number + 1}"
    return Row(
        42,
        f"/astray/hop/{number}",
        f"hop {number} of a chain of {CHAIN}",
        redirect(following),
        "failed: redirect_limit" if last else "redirected: redirect",
        ghosts=(following,) if last else (),
        linked=not number,
    )


ROWS = (
    *(
        Row(41, f"/moved/{status}", f"a redirect by {status}",
            redirect(f"/moved/goal-of-{status}", f"{status} {reason}"), "redirected: redirect",
            children=(f"/moved/goal-of-{status}",))
        for status, reason in STATUSES.items()
    ),
    Row(42, "/astray/self", "a redirect to itself", redirect("/astray/self"),
        "failed: redirect_limit"),
    _moved("/astray/here", "one half of a loop", "/astray/there"),
    _moved("/astray/there", "the other half of a loop", "/astray/here"),
    *(_hop(number) for number in range(HOPS_MAX + 1)),
    Row(42, "/astray/no-location", "a redirect without a Location", redirect(None),
        "failed: http_status"),
    Row(42, "/astray/empty", "a redirect with an empty Location", redirect(""),
        "failed: http_status"),
    _moved("/astray/relative", "a relative one", "goal?of=relative", "/astray/goal?of=relative"),
    _moved("/astray/host", "one to another host, which is not in scope", "//elsewhere.invalid/"),
    # A head is encoded in ISO 8859-1.
    _moved("/astray/non-ascii", "one in bytes that are not ASCII",
           "/astray/goal-é".encode().decode("latin-1"), "/astray/goal-%C3%A9"),
    *(
        Row(42, f"/astray/to-{name}", f"a redirect to {location[:20]}", redirect(location),
            "failed: redirect_invalid", ghosts=("/astray/ghost",))
        for name, location in SCHEMES.items()
    ),
    Row(43, "/", "a redirect to another host, with a cookie",
        redirect("http://127.0.0.1:{arrival}/carried/landed", "302 Found",
                 "Set-Cookie: id=1; Path=/"),
        "redirected: widened", place="moved"),
    Row(43, "/carried/landed", "the other host: no cookie and no authorization comes in",
        page("/carried/landed", ["http://user:secret@127.0.0.1:{arrival}/carried/userinfo"]),
        place="arrival", children=("/carried/userinfo",)),
    Row(44, "/", "a redirect from https to http, with a secure cookie",
        redirect("http://127.0.0.1:{arrival}/plain/landed", "302 Found",
                 "Set-Cookie: id=1; Secure"),
        "redirected: widened", place="secure"),
    Row(44, "/plain/landed", "plain http: nothing secret", place="arrival"),
)  # fmt: skip

PLACES = (
    Place(name="moved", start=False),
    Place(name="secure", start=False, tls=Leaf(addresses=("127.0.0.1",))),
    # No page links to it: only a redirect leads to it.
    Place(name="arrival", start=False, seed=False),
)
