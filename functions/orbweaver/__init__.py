"""Orbweaver, a serverless web crawler.

The way of one URL: a message on the queue -> `worker.batch` -> robots.txt and a slot of its host
(`politeness`) -> a request (`adapters.web`) -> a verdict on the response (`fetching`), the page
(`parsing`) and its items (`extraction`) -> links within the crawl's scope (`frontier`) -> claims,
record, commit and further messages (`worker.apply_journal`).

Rooms, inner to outer. A room imports itself and rooms above it in this list. The docstring of a
room lists its modules in reading order.

    model        shared values, settings, shared ports
    parsing      bytes to a page
    extraction   rules to typed items
    fetching     verdicts on responses
    rendering    scripts of pages, in a browser without a network
    politeness   slots, delays and blocks of hosts
    frontier     values and ports of the protocol
    budget       limits of bytes, pages and dollars
    worker       the way of one URL, in order
    exporting    files of a day or a crawl
    delivery     exports sent to other places
    diagnostics  stored data as texts for people
    control      commands of people
    erasure      the right to erasure
    adapters     technologies: AWS, DynamoDB, SQLite, the web, this machine
    api          the HTTP API
    app          wiring of settings and adapters to components
    console      crawls in a browser
    cli          the command line
    library      `import orbweaver` for Python programs

A module is pure (no I/O, async, clock, randomness, environment, logging) unless the list of actors
in `tests/unit/project/test_architecture.py` names it. That test checks all of this.

`__all__` is the public interface (docs/python.md). A name is imported on first use, so that a
function of the stack that imports one room does not import the others.
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
