"""Orbweaver, a serverless web crawler.

The way of one URL: a message on the queue -> `worker.batch` -> its host's robots.txt and slots
(`politeness`) -> a request (`adapters.web`) -> what the answer means (`fetching`), what the page
says (`parsing`), what rules find on it (`extraction`) -> links that belong to the crawl
(`frontier`) -> claims, record, commit and the next messages (`worker.apply_journal`).

Rooms, inner to outer. A room imports itself and the rooms above it in this list, never those
below; each says at its door what it decides and in which order its modules are read.

    model        values that every room speaks, settings, shared ports
    parsing      bytes to a page
    extraction   rules to typed items
    fetching     what an answer means
    rendering    pages whose scripts are run, by a browser without a network
    politeness   when a host may be asked
    frontier     the protocol's values and ports
    budget       bytes, pages, dollars
    worker       the way of one URL, in order
    exporting    a day into files
    delivery     exports brought elsewhere
    diagnostics  what is stored, in words for a person
    control      a person's commands
    erasure      the right to erasure
    adapters     technologies: AWS, DynamoDB, SQLite, the web, this machine
    api          the HTTP API
    app          wiring: settings and adapters become actors
    console      crawls in a browser
    cli          the command line
    library      functions and crawls for Python programs: `import orbweaver`

A module is pure (no I/O, async, clock, chance, environment, logging) unless it is on the list of
actors in `tests/unit/project/test_architecture.py`, which holds all of this.

To a Python program the package offers the names of `__all__` (docs/python.md). They are imported
when one is asked for: a function of the stack that imports a room imports nothing with it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orbweaver.library.blocking import Client, Crawled, crawl
    from orbweaver.library.client import AsyncClient, CrawlStatus
    from orbweaver.library.reading import (
        RobotsTxt,
        canonicalize,
        extract,
        parse_page,
        parse_robots,
        to_markdown,
    )
    from orbweaver.model.item import Item
    from orbweaver.parsing.page import Page

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "CrawlStatus",
    "Crawled",
    "Item",
    "Page",
    "RobotsTxt",
    "canonicalize",
    "crawl",
    "extract",
    "parse_page",
    "parse_robots",
    "to_markdown",
]

_MODULES = {
    **dict.fromkeys(("Client", "Crawled", "crawl"), "blocking"),
    **dict.fromkeys(("AsyncClient", "CrawlStatus"), "client"),
}

if not TYPE_CHECKING:  # type checkers would take any name for one of the package

    def __getattr__(name: str) -> object:
        """Import what the package offers (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"orbweaver.library.{_MODULES.get(name, 'reading')}")
        found = globals()[name] = getattr(module, name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
