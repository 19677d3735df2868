"""The words of the table: rows, the places that they are served from, and what is said there."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from tests.sites.steps import Act, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.integration.fetcher.authority import Leaf
    from tests.sites.hostile.wire import Heard

MAIN = "main"
FIRST_CASE, LAST_CASE = 31, 78
ATTEMPTS = 4  # how often something that may pass is asked for in all

# The folders of cases on the hosts that have many. Words, for a crawl may take numbers for one.
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

# Three crawls take all of it in: one that obeys robots.txt and stays on its hosts; one that goes
# anywhere and asks for no robots.txt, so that faults of hosts are the page's own; and one of hosts
# that ask for more patience than a test has, and that is called off.
Crawl = Literal["polite", "bold", "patient"]


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A request, and where everything is: `{name}` in a text stands for the port of a place."""

    heard: Heard
    ports: Mapping[str, int]

    @property
    def target(self) -> str:
        """Path and query, as they were sent."""
        return self.heard.target

    @property
    def turn(self) -> int:
        """How often this target was asked for, with this time."""
        return self.heard.turn

    def fill(self, text: str) -> str:
        """Put ports in for their names."""
        return fill(text, self.ports)


Script: TypeAlias = tuple[Step, ...] | Callable[[Asked], Iterable[Step]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One URL: what it serves, and what must become of it.

    `path` may be a whole URL, for what no place of ours serves. Without `say` it is a page that
    links to its children, which are pages that are fetched too, and to its ghosts, which are never
    asked for. `asks` is how often it is asked for; None where that is a matter of chance.
    """

    case: int
    path: str
    serves: str
    say: Script | None = None
    place: str = MAIN
    outcome: str = "fetched"
    reason: str = "ok"
    asks: int | None = 1
    children: tuple[str, ...] = ()
    ghosts: tuple[str, ...] = ()
    title: str | None = None
    charset: str | None = None
    # Whether a list of cases links to it; a goal of redirects is only reached by them.
    linked: bool = True

    @property
    def ours(self) -> bool:
        """Whether a place of ours serves it."""
        return self.path.startswith("/")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """A place without end: how many URLs of it a crawl may take, and by what it is stopped."""

    case: int
    serves: str
    urls_min: int
    urls_max: int
    stops: tuple[str, ...]  # refusals, of which at least one is counted


def allowing(asked: Asked) -> Iterable[Step]:
    """Say that everything may be asked for."""
    yield answer(b"User-agent: *\nAllow: /\n", "Content-Type: text/plain")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A port of its own; `other` answers for what no row and no child says."""

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
    # Whether the page at `/` is made of the rows' paths, and is a row of its own.
    start: bool = True
    seed: bool = True

    @property
    def secure(self) -> bool:
        """Whether its URLs are https."""
        return self.tls is not None or self.scheme == "https"


def fill(text: str, ports: Mapping[str, int]) -> str:
    """Put ports in for their names; other braces stay."""
    for name, port in ports.items():
        text = text.replace(f"{{{name}}}", str(port))
    return text


def transient(reason: str) -> dict[str, object]:
    """Describe an ending that is tried again until it is given up."""
    return {"outcome": "failed", "reason": reason, "asks": ATTEMPTS}


def answer(body: bytes = b"", *lines: str, status: str = "200 OK") -> bytes:
    """Write a whole answer with a Content-Length."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, lines: Iterable[str] = ()) -> bytes:
    """Write the head and some chunks of an answer, without its end."""
    head = ["HTTP/1.1 200 OK", "Content-Type: text/html", "Transfer-Encoding: chunked", *lines]
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + b"".join(parts)


def markup(title: str, links: Sequence[str] = (), *, head: str = "", text: str = "") -> str:
    """Write a page with links."""
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
    """Return a script that answers with these bytes as HTML."""
    return (answer(body, *(lines or ("Content-Type: text/html; charset=utf-8",))),)


def link(path: str) -> bytes:
    """Write a link as part of a page."""
    return f'<a href="{path}">{path}</a>'.encode()


def head(*lines: str, status: str = "200 OK") -> bytes:
    """Write the head of an answer without a length."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


def redirect(location: str | None, status: str = "302 Found", *lines: str) -> Script:
    """Return a script that redirects; None leaves the Location out."""

    def say(asked: Asked) -> Iterable[Step]:
        where = [] if location is None else [f"Location: {asked.fill(location)}"]
        yield answer(b"", *where, *lines, status=status)

    return say


def then(*scripts: Script) -> Script:
    """Return a script that says one after the other, and the last one again and again."""

    def say(asked: Asked) -> Iterable[Step]:
        yield from steps(scripts[min(asked.turn, len(scripts)) - 1], asked)

    return say


def steps(script: Script, asked: Asked) -> Iterable[Step]:
    """Play a script."""
    return script(asked) if callable(script) else script


NOT_FOUND = (
    answer(b"<title>Not found</title>", "Content-Type: text/html", status="404 Not Found"),
)
CLOSING = (Act.CLOSE,)
