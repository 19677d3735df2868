"""Types of the table: rows (URLs), places (servers), and scripts (their answers)."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from tests.integration.fetcher.authority import Leaf
from tests.sites.hostile.wire import Heard
from tests.sites.steps import Step

MAIN = "main"
FIRST_CASE, LAST_CASE = 31, 78
ATTEMPTS = 4  # Total requests for a transient failure.

# Folders of cases on hosts with many cases. They are words, because a crawl can treat numbers as
# one group of similar URLs.
FOLDERS = {
    31: "names",
    32: "refused",
    33: "hole",
    34: "slow",
    35: "endless",
    36: "lengths",
    37: "chunks",
    38: "garbage",
    39: "heads",
    40: "bytes",
    41: "moved",
    42: "astray",
    43: "carried",
    44: "plain",
    45: "busy",
    46: "status",
    47: "nothing",
    48: "bombs",
    49: "spoilt",
    50: "handshakes",
    51: "broken",
    52: "strays",
    53: "inside",
    55: "inward",
    58: "charsets",
    59: "types",
    60: "shapes",
    61: "many",
    62: "bases",
    63: "refreshes",
    64: "wishes",
    66: "openings",
    74: "wildcard",
    75: "tarpit",
}

# Three crawls cover the site. One obeys robots.txt and stays on its hosts. One goes anywhere and
# ignores robots.txt, so that host faults become the page's own. One visits hosts with longer delays
# than a test allows, and is cancelled.
Crawl = Literal["polite", "bold", "patient"]


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A request, and all ports: `{name}` in a text is replaced by a place's port."""

    heard: Heard
    ports: Mapping[str, int]

    @property
    def target(self) -> str:
        """Return path and query as sent."""
        return self.heard.target

    @property
    def turn(self) -> int:
        """Return the number of requests for this target, including this one."""
        return self.heard.turn

    def fill(self, text: str) -> str:
        """Replace names by ports."""
        return fill(text, self.ports)


Script: TypeAlias = tuple[Step, ...] | Callable[[Asked], Iterable[Step]]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One URL: its answer, and its expected end (outcome and reason).

    `path` can be a whole URL, for URLs that no place (server) of the site serves. Without `say` it
    is a page that links to its children, which are fetched pages too, and to its ghosts, which must
    never be requested. `asks` is the expected number of requests; None if it depends on chance.
    """

    case: int
    path: str
    serves: str
    say: Script | None = None
    end: str = "fetched: ok"
    _: dataclasses.KW_ONLY
    place: str = MAIN
    asks: int | None = 1
    children: tuple[str, ...] = ()
    ghosts: tuple[str, ...] = ()
    title: str | None = None
    charset: str | None = None
    # True if a list of cases links to it. A redirect's target is reached only by redirects.
    linked: bool = True

    @property
    def outcome(self) -> str:
        return self.end.partition(": ")[0]

    @property
    def reason(self) -> str:
        return self.end.partition(": ")[2]

    @property
    def ours(self) -> bool:
        """True if a place (server) of the site serves it."""
        return self.path.startswith("/")


@dataclasses.dataclass(frozen=True, slots=True)
class Trap:
    """An endless place: maximum URLs that a crawl may fetch, and its stop reasons."""

    case: int
    serves: str
    urls_min: int
    urls_max: int
    stops: tuple[str, ...]  # Reasons of refused links, of which at least one is counted.


def allowing(asked: Asked) -> Iterable[Step]:
    yield answer(b"User-agent: *\nAllow: /\n", "Content-Type: text/plain")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A separate port; `other` answers all other paths."""

    name: str
    crawl: Crawl = "polite"
    robots: Script = allowing
    other: Script | None = None
    tls: Leaf | None = None
    tls_version_max: str | None = None
    greet: tuple[Step, ...] | None = None
    scheme: str = "http"
    kind: Literal["server", "deaf", "hole"] = "server"
    trap: Trap | None = None
    # True if the page at `/` lists the rows' paths, and is a row of its own.
    start: bool = True
    seed: bool = True

    @property
    def secure(self) -> bool:
        return self.tls is not None or self.scheme == "https"


def fill(text: str, ports: Mapping[str, int]) -> str:
    """Replace names by ports; other braces stay."""
    for name, port in ports.items():
        text = text.replace(f"{{{name}}}", str(port))
    return text


def answer(body: bytes = b"", *lines: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, lines: Iterable[str] = ()) -> bytes:
    """Encode an answer's head and some chunks, without its end."""
    head = ["HTTP/1.1 200 OK", "Content-Type: text/html", "Transfer-Encoding: chunked", *lines]
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + b"".join(parts)


def markup(title: str, links: Sequence[str] = (), *, head: str = "", text: str = "") -> str:
    items = "".join(f'<li><a href="{html.escape(link)}">{html.escape(link)}</a>' for link in links)
    name = html.escape(title)
    return (
        f"<!doctype html><meta charset=utf-8><title>{name}</title>{head}<h1>{name}</h1>"
        f"<p>{html.escape(text)}<ul>{items}</ul>"
    )


def page(
    title: str, links: Sequence[str] = (), *lines: str, head: str = "", text: str = ""
) -> Script:
    """Return a script that answers with a page; `{name}` in links and head becomes a port."""

    def say(asked: Asked) -> Iterable[Step]:
        body = markup(title, [asked.fill(link) for link in links], head=asked.fill(head), text=text)
        yield answer(body.encode(), "Content-Type: text/html; charset=utf-8", *lines)

    return say


def html_of(body: bytes, *lines: str) -> Script:
    return (answer(body, *(lines or ("Content-Type: text/html; charset=utf-8",))),)


def link(path: str) -> bytes:
    return f'<a href="{path}">{path}</a>'.encode()


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


def redirect(location: str | None, status: str = "302 Found", *lines: str) -> Script:
    """Return a script that redirects; None omits the Location."""

    def say(asked: Asked) -> Iterable[Step]:
        where = [] if location is None else [f"Location: {asked.fill(location)}"]
        yield answer(b"", *where, *lines, status=status)

    return say


def then(*scripts: Script) -> Script:
    """Return a script that gives answers in turn, the last one repeated."""

    def say(asked: Asked) -> Iterable[Step]:
        yield from steps(scripts[min(asked.turn, len(scripts)) - 1], asked)

    return say


def steps(script: Script, asked: Asked) -> Iterable[Step]:
    """Return the steps of a script's answer to a request."""
    return script(asked) if callable(script) else script


NOT_FOUND = (
    answer(b"<title>Not found</title>", "Content-Type: text/html", status="404 Not Found"),
)
