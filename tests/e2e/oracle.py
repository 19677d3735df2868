"""Expected pages of a manual. The walk takes CPU seconds, so it runs during the deployment."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.sites import walk

BASE = "http://manual.invalid/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """HTML manual of a Debian package, and its minimum number of pages."""

    package: str
    folder: Path
    pages_min: int

    @property
    def absent(self) -> bool:
        return not (self.folder / "index.html").is_file()


PYTHON = Manual(
    package="python3.11-doc", folder=Path("/usr/share/doc/python3.11/html"), pages_min=500
)
POSTGRESQL = Manual(
    package="postgresql-doc-15",
    folder=Path("/usr/share/doc/postgresql-doc-15/html"),
    pages_min=1_100,
)
MANUALS = (PYTHON, POSTGRESQL)


@contextlib.contextmanager
def walking() -> Iterator[Mapping[str, Future[frozenset[str]]]]:
    """Walk the installed manuals in a separate process; yield package to page paths."""
    spawn = multiprocessing.get_context("spawn")  # A fork would copy pytest's threads.
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        yield {
            manual.package: pool.submit(pages_of, manual.folder)
            for manual in MANUALS
            if not manual.absent
        }


def pages_of(folder: Path) -> frozenset[str]:
    walked = asyncio.run(walk.walk_directory(folder, BASE))
    return frozenset(url.removeprefix(BASE) for url in walked.pages)
