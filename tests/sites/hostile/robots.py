"""Cases 67 and 68: robots.txt in every variety, and their delays."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from tests.sites.hostile.model import Asked, Place, Row, Script, answer, redirect
from tests.sites.steps import Act, Step

RULES = "User-agent: *\nDisallow: /private\n"
LINE = "# a line that says nothing, of just sixty-four bytes in all...\n"
KIB600 = LINE * (600 * 1024 // len(LINE))
HTML = "<!doctype html><title>Not found</title><p>Disallow: /private is not a rule here"
HOPS_MAX = 5


def _file(body: bytes, content_type: str = "text/plain") -> Script:
    return (answer(body, f"Content-Type: {content_type}"),)


def _status(status: str) -> Script:
    return (answer(b"User-agent: *\nDisallow: /\n", "Content-Type: text/plain", status=status),)


# By name: the answer, the file, and whether /private may be requested.
FILES: dict[str, tuple[str, Script, bool]] = {
    "plain": ("as it should be", _file(RULES.encode()), False),
    "html": ("a page", _file(HTML.encode(), "text/html"), True),
    "bom": ("a byte order mark", _file(codecs.BOM_UTF8 + RULES.encode()), False),
    "utf-16": ("UTF-16", _file(codecs.BOM_UTF16_LE + RULES.encode("utf-16-le")), False),
    "cr": ("lines that end in CR", _file(RULES.replace("\n", "\r").encode()), False),
    "zeros": ("NULs", _file(b"\0" * 1_000 + b"\n" + RULES.encode()), False),
    "early-600": ("600 KiB, the rule first", _file((RULES + KIB600).encode()), False),
    "late-600": ("600 KiB, the rule last", _file((KIB600 + RULES).encode()), True),
    "404": ("404", _status("404 Not Found"), True),
    "403": ("403", _status("403 Forbidden"), True),
    "empty": ("nothing", _file(b""), True),
}
# By name: the answer and the file. No URL may be requested.
UNREACHABLE: dict[str, tuple[str, Script]] = {
    "429": ("429", _status("429 Too Many Requests")),
    "500": ("500", _status("500 Internal Server Error")),
    "503": ("503", _status("503 Service Unavailable")),
    "silent": ("no answer", (Act.HANG,)),
    "broken": ("a connection that is closed", (Act.CLOSE,)),
    "garbage": ("what is not HTTP", (b"garbage\r\n\r\n", Act.CLOSE)),
}


def _hops(number: int) -> Script:
    """Redirect this many times, and then forbid /private."""

    def say(asked: Asked) -> Iterable[Step]:
        hop = int(asked.target.partition("?hop=")[2] or 0)
        if hop < number:
            location = f"Location: /robots.txt?hop={hop + 1}"
            yield answer(b"", location, status="301 Moved Permanently")
        else:
            yield from _file(RULES.encode())  # type: ignore[misc] # a tuple

    return say


FILES["5-hops"] = ("five redirects", _hops(HOPS_MAX), False)
FILES["6-hops"] = ("six redirects", _hops(HOPS_MAX + 1), True)
FILES["moved"] = (
    "a redirect to another host's file",
    redirect("http://127.0.0.1:{robots-plain}/robots.txt"),
    False,
)
# Accepted delays in seconds. By name: the text, and the crawl's delay.
DELAYS = {"0": 0.0, "10": 10.0, "-1": 0.0, "soon": 0.0}


def _private(name: str, serves: str, *, allowed: bool) -> Row:
    end = "fetched: ok" if allowed else "skipped: robots"
    where = f"robots-{name}"
    return Row(
        67, "/private", f"a robots.txt of {serves}", None, end, place=where, asks=int(allowed)
    )


ROWS = (
    *(_private(name, serves, allowed=allowed) for name, (serves, _, allowed) in FILES.items()),
    *(
        Row(67, "/", f"a robots.txt of {serves}", None, "skipped: robots_unreachable",
            place=f"robots-{name}", asks=0)
        for name, (serves, _) in UNREACHABLE.items()
    ),
    *(Row(68, "/second", f"Crawl-delay: {delay}", place=f"delay-{delay}") for delay in DELAYS),
    Row(68, "/second", "Crawl-delay: 86400, which is taken for a minute", None,
        "skipped: cancelled", place="delay-day", asks=0),
)  # fmt: skip


def _delaying(delay: str) -> Script:
    return _file(f"User-agent: *\nCrawl-delay: {delay}\n".encode())


PLACES = (
    *(Place(name=f"robots-{name}", robots=say) for name, (_, say, _) in FILES.items()),
    *(
        Place(name=f"robots-{name}", robots=say, start=False)
        for name, (_, say) in UNREACHABLE.items()
    ),
    *(Place(name=f"delay-{delay}", robots=_delaying(delay)) for delay in DELAYS),
    Place(name="delay-day", robots=_delaying("86400"), crawl="patient"),
)
