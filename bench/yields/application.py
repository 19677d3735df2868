"""An application of this benchmark: how to make it, serve it, and find articles in requests."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bench.yields import packages
from bench.yields.judging import Truth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.yields.place import Place

TRUTH = "truth.json"


class Prepare(Protocol):
    """Fills a new folder with an application and its content. Returns its articles."""

    def __call__(self, place: Place) -> Truth: ...


class Serve(Protocol):
    """Starts all servers of an application. The server on `port` writes the access log."""

    def __call__(self, place: Place, port: int) -> None: ...


class KeysOf(Protocol):
    """Returns the keys of the articles that a GET of a target shows, usually none."""

    def __call__(self, target: str) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application with content."""

    name: str
    title: str
    prepare: Prepare
    serve: Serve
    keys_of: KeysOf
    packages: Sequence[str] = ()
    start: str = "/"
    # Options that our crawler needs to crawl the application at all.
    owner: Sequence[str] = ()

    def made(self, place: Place) -> Truth:
        """Make the application, once per version of its code. Return its articles."""
        packages.unpack(self.packages)
        stamp = place.path(".made")
        source = inspect.getsource(sys.modules[self.prepare.__module__])
        version = hashlib.sha256(source.encode()).hexdigest()
        if not stamp.is_file() or stamp.read_text() != version:
            place.renew()
            _write(place, self.prepare(place))
            place.open.close()  # stops servers that were started to make it
            stamp.write_text(version)
        return _read(place)


def _write(place: Place, truth: Truth) -> None:
    if not truth.articles:
        raise RuntimeError(f"{place.name} was made without articles")
    kept = {"articles": sorted(truth.articles), "aliases": dict(truth.aliases)}
    place.write(TRUTH, json.dumps(kept, ensure_ascii=False, indent=1))


def _read(place: Place) -> Truth:
    kept = json.loads(place.path(TRUTH).read_text())
    return Truth(articles=frozenset(kept["articles"]), aliases=kept["aliases"])
