"""`scrape`: print one web page, fetched and parsed as in a crawl.

robots.txt, the host's delay, redirects, charset and limits apply as in a crawl. The command keeps
the delay to requests of crawls in the store of this folder, or of `--store`. It makes one attempt
and stores no record. The exit code is 1 if the page could not be read or an item is invalid.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orbweaver.app.wiring import previewing
from orbweaver.cli import text
from orbweaver.cli.causes import code_of
from orbweaver.cli.command import command, exclusive_options, option, store_option
from orbweaver.cli.commands.crawl import check_needs_no_login, checked
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.commands.robots_url import canonical
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import add_request, given
from orbweaver.cli.exit_codes import FAILED, NO_PAGE, OK, UsageError
from orbweaver.cli.store import is_store, opened_store
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.seed_preview import SeedPreviewer, SeedReading
from orbweaver.frontier import warc
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.settings import STORE


async def scrape(arguments: Namespace, around: CliContext) -> int:
    crawl = _crawl_of(arguments, around)
    async with _previewer(arguments, around) as previewer:
        found = await previewer.read(crawl)
    for url in found.preview.redirects:
        around.note(f"redirected from {text.clean(url)}")
    items = () if found.reading is None else found.reading.items or ()
    if arguments.json:
        around.write(json.dumps(_object(found, arguments.items is not None)))
    if found.reading is None:
        around.note(f"{text.clean(found.preview.url or arguments.page)}: {found.preview.why}")
        return NO_PAGE if found.reason is None else code_of(found.reason)
    if arguments.items is not None:
        if found.reading.items is None:
            around.note(f"no rule of {arguments.items} matches {found.preview.url}")
        if not arguments.json:
            around.write(*(json.dumps(_item(item), ensure_ascii=False) for item in items))
        return OK if items and all(item.valid for item in items) else FAILED
    if not arguments.json:
        around.write_bytes(f"{_document(found)['markdown'] or ''}\n".encode())
    return OK


def _crawl_of(arguments: Namespace, around: CliContext) -> Crawl:
    url = canonical(arguments.page)
    plan = CrawlSpec() if arguments.items is None else plan_in(arguments.items, around)
    plan = replace(plan, **{**given(arguments), "seeds": (url,), "sitemap_urls": (), "texts": True})
    crawl = checked(plan, around)
    check_needs_no_login(crawl, url, "scrape")
    if arguments.items is not None and not crawl.items:
        fix = "add [[items]] (docs/extraction.md)"
        raise UsageError(f"{arguments.items} has no item rules: {fix}")
    return crawl


@asynccontextmanager
async def _previewer(arguments: Namespace, around: CliContext) -> AsyncIterator[SeedPreviewer]:
    """Open the store of this folder or of the options, or else a temporary store."""
    folder = around.folder / (arguments.store or STORE)
    with TemporaryDirectory(prefix="orbweaver-") as temporary:
        place = folder if is_store(folder) else Path(temporary) / STORE
        async with (
            opened_store(place, around.environment, writes=True) as ports,
            previewing(ports) as previewer,
        ):
            yield previewer


def _object(found: SeedReading, with_items: bool) -> Mapping[str, Any]:
    """Return the fetched page, or the reason why there is none, as one JSON object."""
    preview, reading = found.preview, found.reading
    body: dict[str, Any] = {
        "url": preview.url,
        "redirects": list(preview.redirects),
        "status": preview.status,
        "robots": preview.robots,
        "error": preview.why,
    }
    if reading is None or reading.page is None:
        return body
    page = reading.page
    body |= _document(found) | {
        "canonical": page.canonical,
        "charset": page.charset,
        "noindex": page.noindex,
        "needs_rendering": page.needs_rendering,
        "links": list(page.links),
        "cut": dict(reading.cut),
        "left_out": reading.why,
    }
    if with_items:
        body["items"] = [_item(item) for item in reading.items or ()]
    return body


def _document(found: SeedReading) -> dict[str, Any]:
    """Return the main text and title of the page, in the form of a crawl's table `texts`."""
    kept = None if found.reading is None else found.reading.kept
    known = dict.fromkeys(("title", "description", "language", "text", "markdown"))
    if kept is None or kept.conversion is None:
        return known
    document = json.loads(warc.read(kept.conversion).payload)
    return {name: document.get(name) for name in known}


def _item(item: Item) -> dict[str, Any]:
    body: dict[str, Any] = {"rule": item.table, **item.fields}
    return body if item.valid else {**body, "problems": list(item.problems)}


COMMANDS = (
    command(
        "scrape",
        scrape,
        option("page URL", "URL of the page"),
        exclusive_options(
            option("--markdown", "print its main text as Markdown (default)"),
            option("--json", "print one object: text, Markdown, links, status"),
        ),
        option(
            "--items FILE", "print the items that the rules of this definition find, as JSON lines"
        ),
        add_request,
        parents=(store_option,),
    ),
)
