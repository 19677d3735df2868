"""The running site: a port for every place (server), lists of all cases, and the log."""

from __future__ import annotations

import contextlib
import dataclasses
import ssl
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from tests.integration.fetcher.authority import authority, server_context
from tests.sites.hostile import codings, model, wire
from tests.sites.hostile.expected import PLACES, ROWS
from tests.sites.hostile.inward import SPELLINGS as SPELT
from tests.sites.hostile.model import (
    FOLDERS,
    MAIN,
    NOT_FOUND,
    Asked,
    Crawl,
    Place,
    Row,
    Script,
    page,
    steps,
)
from tests.sites.server import HOST, in_thread
from tests.sites.steps import Step

EDGE = "edge"
FINE = "/fine"
BY_NAME: dict[str, Place] = {place.name: place for place in PLACES}
# Case lists of each crawl, a page per case.
LISTS: dict[str, Crawl] = {MAIN: "polite", EDGE: "bold"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Expected outcome of one URL; `row` is None for ordinary pages beside the cases."""

    url: str
    place: str
    target: str
    outcome: str
    reason: str
    asks: int | None
    title: str | None = None
    charset: str | None = None
    row: Row | None = None


class Hostile:
    """All places at once."""

    def __init__(self) -> None:
        self.log = wire.Log()
        self.ports: dict[str, int] = {}
        self.servers: dict[str, wire.Server] = {}
        self._scripts = {place.name: _scripts(place) for place in PLACES}

    def url(self, place: str, target: str = "/") -> str:
        scheme = "https" if _place(place).secure else "http"
        return f"{scheme}://{HOST}:{self.ports[place]}{target}"

    def seeds(self, crawl: Crawl) -> list[str]:
        return [self.url(p.name) for p in PLACES if p.crawl == crawl and p.seed]

    def due(self, crawl: Crawl) -> dict[str, Due]:
        """Return the expected outcome of each URL of a crawl, without traps."""
        found: dict[str, Due] = {}
        for place in PLACES:
            if place.crawl != crawl or place.trap:
                continue
            for target, row in _targets(place):
                due = self._due(place, target, row)
                found.setdefault(due.url, due)
        return found

    def _due(self, place: Place, target: str, row: Row | None) -> Due:
        if row is None or (row.ours and row.path != target):  # An ordinary page, or a child.
            return Due(
                url=self.url(place.name, target),
                place=place.name,
                target=target,
                outcome="fetched",
                reason="ok",
                asks=1,
                title=target,
            )
        if not row.ours:
            target = model.fill(target, self.ports)
        return Due(
            url=self.url(place.name, target) if row.ours else target,
            place=place.name,
            target=target,
            outcome=row.outcome,
            reason=row.reason,
            asks=row.asks if row.ours else None,
            title=row.title or (row.path if row.ours and row.say is None else None),
            charset=row.charset,
            row=row,
        )

    @contextlib.asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[None]:
        """Serve all places; the main one on a given port."""
        async with contextlib.AsyncExitStack() as stack:
            codings.warm()
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for place in PLACES:
                if place.kind == "server":
                    server = self._server(place, folder)
                    await stack.enter_async_context(
                        server.listening(port if place.name == MAIN else 0)
                    )
                    self.servers[place.name] = server
                    self.ports[place.name] = server.port
                else:
                    held = wire.deaf() if place.kind == "deaf" else wire.hole()
                    self.ports[place.name] = stack.enter_context(held)
            yield

    def _server(self, place: Place, folder: Path) -> wire.Server:
        scripts = self._scripts[place.name]

        def say(heard: wire.Heard) -> Iterable[Step]:
            asked = Asked(heard, self.ports)
            if heard.target.partition("?")[0] == "/robots.txt":
                return steps(place.robots, asked)
            return steps(scripts.get(heard.target) or place.other or NOT_FOUND, asked)

        return wire.Server(
            place.name,
            self.log,
            say,
            greet=(lambda: place.greet or ()) if place.greet else None,
            tls=_tls(place, folder),
        )

    def in_background(self, port: int = 0) -> contextlib.AbstractContextManager[None]:
        """Serve from a thread with its own loop, for blocking tests."""
        return in_thread(self.listening(port))


def trusted(folder: Path) -> Path:
    """Write the certificate authority of the valid certificates; return the file's path."""
    file = folder / "hostile-authority.pem"
    file.write_bytes(authority("trusted").pem)
    return file


def _place(name: str) -> Place:
    return BY_NAME[name]


def rows_of(place: str) -> list[Row]:
    return [row for row in ROWS if row.place == place]


def _listed(crawl: Crawl) -> dict[int, list[str]]:
    """List the linked URLs of a crawl's cases, by case."""
    listed: dict[int, list[str]] = {}
    home = next(name for name, which in LISTS.items() if which == crawl)
    for row in ROWS:
        place = _place(row.place)
        if place.crawl != crawl or not row.linked:
            continue
        if row.ours and row.place != home:
            if place.seed or place.name == "arrival":
                continue
            scheme = "https" if place.secure else "http"
            listed.setdefault(row.case, []).append(f"{scheme}://{HOST}:{{{row.place}}}{row.path}")
        else:
            listed.setdefault(row.case, []).append(SPELT.get(row.path, row.path))
    for place in PLACES:
        if place.trap and place.crawl == crawl and not place.seed:
            host = "localhost" if place.trap.case == 74 else HOST
            listed.setdefault(place.trap.case, []).append(f"http://{host}:{{{place.name}}}/")
    return listed


def _starts(home: Place) -> list[str]:
    """List further seeds; a crawl that stays on its hosts ignores them."""
    if home.crawl != "polite":
        return []
    starts = (place for place in PLACES if place.seed and place is not home)
    return [f"{'https' if p.secure else 'http'}://{HOST}:{{{p.name}}}/" for p in starts]


def _targets(place: Place) -> list[tuple[str, Row | None]]:
    rows = rows_of(place.name)
    targets: list[tuple[str, Row | None]] = [(row.path, row) for row in rows]
    targets += [(child, row) for row in rows for child in row.children]
    if place.name in LISTS:
        for case in _listed(LISTS[place.name]):
            targets += [(f"/{FOLDERS[case]}/", None), (f"/{FOLDERS[case]}{FINE}", None)]
        targets.append(("/", None))
    elif place.start:
        targets += [("/", None), (FINE, None)]
    return targets


def _scripts(place: Place) -> dict[str, Script]:
    scripts: dict[str, Script] = {}
    rows = rows_of(place.name)
    for row in rows:
        scripts.update({child: page(child) for child in row.children})
    for row in rows:
        if row.ours:
            scripts[row.path] = row.say or page(row.path, [*row.children, *row.ghosts])
    if place.name in LISTS:
        listed = _listed(LISTS[place.name])
        scripts["/"] = page("/", [*(f"/{FOLDERS[case]}/" for case in listed), *(_starts(place))])
        for case, links in listed.items():
            scripts[f"/{FOLDERS[case]}/"] = page(
                f"/{FOLDERS[case]}/", [*links, f"/{FOLDERS[case]}{FINE}"]
            )
            scripts[f"/{FOLDERS[case]}{FINE}"] = page(f"/{FOLDERS[case]}{FINE}")
    elif place.start:
        scripts["/"] = page("/", [*(row.path for row in rows if row.linked), FINE])
        scripts[FINE] = page(FINE)
    return scripts


def _tls(place: Place, folder: Path) -> ssl.SSLContext | None:
    if place.tls is None:
        return None
    context = server_context(place.tls, folder)
    if place.tls_version_max:
        with warnings.catch_warnings():
            # The deprecated version is the case to test.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion[place.tls_version_max]
    return context
