"""The demo: a shop is served, crawled and exported, and the export is checked.

    python -m tests.demo [--port 4599] [--books 1000]

The shop defines the pages that a crawl must find. The day's export must contain exactly these
pages, each once; otherwise the exit code is 1. The demo stops its own emulator at its end, and
keeps the state until the next demo, so that the console can show the crawl.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

from localstack import cdk, emulator, layout, stack
from localstack.errors import LocalStackError
from localstack.stack import Stack
from orbweaver.cli import main as cli_main
from orbweaver.cli import text
from orbweaver.cli.local_machine import ThisMachine, connect
from orbweaver.cli.stack import LOCAL_CONTEXT, settings_from
from orbweaver.control.crawl_control import Control, ControlPorts, Status
from orbweaver.exporting.manifest import (
    PREFIX,
    Manifest,
    days_between,
    decode_manifest,
    manifest_path,
)
from orbweaver.model.outcome import Outcome, Reason
from tests.sites import child
from tests.sites.bookshop import BOOKS, Expected

FOLDER = layout.LOCAL / "demo"
NAME = "demo"
# Of the demo's emulator, beside that of `orbweaver local up`.
PORT = 4599
# Extracted items of the shop's pages, and the table of its books.
DEFINITION = layout.ROOT / "tests/sites/bookshop/crawl.toml"
BOOKS_TABLE = f"items/{NAME}/books"
EXPORT_S = 120
SHOWN_MAX = 10
LOG_LINES_SHOWN = 20
SAMPLES = 3
COLUMNS_MAX = 160
INTERRUPTED = 130

Row = dict[str, Any]


class DemoError(Exception):
    """The demo has a wrong result; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Downloaded and verified files of a day: rows of pages, and of all tables."""

    folder: Path
    manifest: Manifest
    rows: tuple[Row, ...]
    tables: Mapping[str, list[Row]]


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument(
        "--port", type=int, help=f"of the emulator; 0: a free one, of which nothing is kept; {PORT}"
    )
    parser.add_argument("--books", type=int, default=BOOKS, help="how many the shop has")
    options = parser.parse_args(words)
    port: int = usual_port() if options.port is None else options.port
    keep = port != 0
    signal.signal(signal.SIGTERM, _interrupt)
    started_s = time.monotonic()
    try:
        with (
            child.start("bookshop", "--books", str(options.books)) as shop,
            # Own buckets, so that no earlier crawl is exported.
            stack.temporary(port=port, keep=keep, context=LOCAL_CONTEXT, say=say) as stood,
        ):
            demonstrate(shop, stood)
    except (DemoError, LocalStackError) as error:
        print(f"\nthe demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    say(f"all of it took {time.monotonic() - started_s:.0f} s")
    say(f"ask for rows of it: {program()} query --from {os.path.relpath(FOLDER)} --saved outcomes")
    if keep:
        say(f"see the crawl in a browser: {look_again(port)}")
    return 0


def usual_port() -> int:
    """Return the port of the demo's emulator: the usual one, or a free one if it is taken."""
    if not emulator.is_taken(PORT):
        return PORT
    say(f"port {PORT} is taken, so the emulator is on a free one, and nothing is kept of it")
    return 0


def look_again(port: int) -> str:
    """Return the command line that starts the stack again and opens the console."""
    return f"{program()} local up --port {port} && {program()} console --port {port}"


def program() -> str:
    return os.path.relpath(Path(sys.executable).with_name("orbweaver"))


def demonstrate(shop: child.Child, stood: Stack) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    expected = Expected.from_json(shop.control("expected.json"))
    say(f"the shop is open at {shop.url}/: a crawl must find its {len(expected.pages):,} pages")
    crawl(shop.url + "/", stood)
    status = asyncio.run(read_status(stood))
    say(f"exporting the day, as the schedule does every night: {stood.outputs['ExporterFunction']}")
    ended_ms = status.crawl.finished_at_ms or status.at_ms
    days = days_between(status.crawl.started_at_ms, ended_ms)
    exports = [export(day, stood) for day in days]
    rows = [row for one in exports for row in one.rows if row["crawl"] == status.crawl.id]
    compare([row["url"] for row in rows if is_page(row)], expected)
    books = [row for one in exports for row in one.tables.get(BOOKS_TABLE, ())]
    compare_books(books, shop.control("totals.json"))
    show(status, exports, rows)
    show_books(books)


def crawl(url: str, stood: Stack) -> None:
    port = stood.emulator.port
    # The longest path of the shop is much deeper than the default of 20 links.
    options = f"--name {NAME} --delay 0 --window 0s --max-depth 200 --port {port}"
    options += f" --config {os.path.relpath(DEFINITION)}"
    words = ["crawl", url, *options.split(), "--out", os.path.relpath(FOLDER / "crawl")]
    say(f"orbweaver {' '.join(words)}")
    code = cli_main.main(words)
    if code > 128:  # A signal ended it.
        raise KeyboardInterrupt
    if code:
        raise DemoError(f"the crawl ended with exit code {code}{log_of(stood)}")


def log_of(stood: Stack) -> str:
    last = stood.emulator.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "; the emulator's last words:\n" + "\n".join(map(text.clean, last))


async def read_status(stood: Stack) -> Status:
    settings = settings_from(stood.outputs, ThisMachine(), stood.environment())
    async with connect(settings, stood.environment()) as ports:
        control = Control(
            ControlPorts(
                queue=ports.queue,
                crawls=ports.crawls,
                packs=ports.packs,
                pages=ports.pages,
                hosts=ports.hosts,
                clock=ports.clock,
                settings=settings,
            ),
        )
        return await control.status(NAME)


def export(day: str, stood: Stack) -> Export:
    """Let the exporter write a day; download and verify the files of the manifest."""
    with cdk.client("lambda", stood.environment()) as functions:
        answer = functions.invoke(
            FunctionName=stood.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
        )
        said = answer["Payload"].read().decode()
    if "FunctionError" in answer or json.loads(said) != {"days": [day]}:
        raise DemoError(f"the exporter said {said}{log_of(stood)}")
    with cdk.client("s3", stood.environment()) as buckets:

        def download(path: str) -> bytes:
            key = PREFIX + path
            found = buckets.get_object(Bucket=stood.outputs["Bucket"], Key=key)
            body: bytes = found["Body"].read()
            file = FOLDER / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            return body

        _await(manifest_path(day), stood, buckets)
        manifest = decode_manifest(download(manifest_path(day)))
        if manifest is None:
            raise DemoError(f"{manifest_path(day)} is no manifest")
        bodies = [download(file.path) for file in manifest.files]
    tables: defaultdict[str, list[Row]] = defaultdict(list)
    for file, body in zip(manifest.files, bodies, strict=True):
        if (len(body), sha256(body).hexdigest()) != (file.bytes, file.sha256):
            raise DemoError(f"{file.path} is not the file that the manifest means")
        if file.format == "jsonl":
            tables[file.table] += [json.loads(line) for line in gzip.decompress(body).splitlines()]
    rows = tuple(tables["pages"])
    return Export(folder=FOLDER / PREFIX, manifest=manifest, rows=rows, tables=tables)


def _await(path: str, stood: Stack, buckets: Any) -> None:
    """Wait until an export exists; raise DemoError after a timeout."""
    until_s = time.monotonic() + EXPORT_S
    while time.monotonic() < until_s:
        listed = buckets.list_objects_v2(Bucket=stood.outputs["Bucket"], Prefix=PREFIX + path)
        if listed.get("Contents"):
            return
        time.sleep(1)
    raise DemoError(f"there is no export after {EXPORT_S} s{log_of(stood)}")


def is_page(row: Row) -> bool:
    """True if a row is a fetched page; sitemaps are fetched, too."""
    return bool(row["outcome"] == Outcome.FETCHED and row["reason"] != Reason.SITEMAP)


def compare(fetched: Sequence[str], expected: Expected) -> None:
    """Compare exported pages with the shop; raise DemoError with the difference.

    Noindex pages may be fetched or not.
    """
    found = set(fetched)
    faults = {
        "missing": expected.pages - found,
        "too many": found - expected.pages - expected.noindex,
        "more than once": {url for url, number in Counter(fetched).items() if number > 1},
    }
    wrong = [f"{len(urls):,} {what}: {listed(urls)}" for what, urls in faults.items() if urls]
    if wrong:
        raise DemoError("the export is not what the shop has\n  " + "\n  ".join(wrong))
    say(f"checked: the export holds each of the shop's {len(expected.pages):,} pages, once")


def totals_of(books: Iterable[Row]) -> dict[str, Any]:
    """Return sums of book rows, in the form of the shop's sums."""
    found: dict[str, Any] = {"books": 0, "prices": {}, "stock": 0, "ratings": 0}
    prices: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in books:
        prices[row["price_currency"]] += Decimal(str(row["price"]))
        found["books"] += 1
        found["stock"] += row["stock"]
        found["ratings"] += row["rating"]
    found["prices"] = {currency: f"{total:.2f}" for currency, total in sorted(prices.items())}
    return found


def compare_books(books: Sequence[Row], truth: Mapping[str, Any]) -> None:
    """Compare sums of extracted books with the shop's own; raise DemoError if they differ."""
    found = totals_of(books)
    if found != truth:
        raise DemoError(f"the books are not what the shop has\n  {found}\n  {truth}")
    prices = ", ".join(f"{total} {currency}" for currency, total in found["prices"].items())
    say(f"checked: the {found['books']:,} books add up as in the shop's own data: {prices}")


def listed(urls: Iterable[str]) -> str:
    """List the first of some URLs."""
    ordered = sorted(urls)
    return " ".join(ordered[:SHOWN_MAX]) + (" …" if len(ordered) > SHOWN_MAX else "")


def show(status: Status, exports: Sequence[Export], rows: Sequence[Row]) -> None:
    """Print the results: outcomes, speed, files, and three rows."""
    outcomes = Counter(row["outcome"] for row in rows)
    per_s = outcomes[Outcome.FETCHED] * 1000 / max(1, status.elapsed_ms)
    took = f"{len(rows):,} URLs in {status.elapsed_ms / 1000:.1f} s"
    print(f"\n{status.crawl.id}: {took}, {text.rate(per_s)} pages a second\n")
    numbers = [(f"  {outcome}", f"{number:,}") for outcome, number in outcomes.most_common()]
    print("\n".join(text.table(numbers, right=(1,))) + "\n")
    for one in exports:
        for path in (one.manifest.path, *(file.path for file in one.manifest.files)):
            file = one.folder / path
            print(f"  {file.relative_to(layout.ROOT)}  {text.size(file.stat().st_size)}")
    print()
    pages = [row for row in rows if is_page(row) and row["title"]]
    step = max(1, len(pages) // SAMPLES)
    for row in sorted(pages, key=lambda row: str(row["url"]))[::step][:SAMPLES]:
        shown = {key: row[key] for key in ("url", "status", "title", "links")}
        print(text.cut(f"  {json.dumps(shown, ensure_ascii=False)}", COLUMNS_MAX))
    print()


def show_books(books: Sequence[Row]) -> None:
    for row in sorted(books, key=lambda row: str(row["url"]))[:SAMPLES]:
        names = ("title", "price", "price_currency", "stock", "rating", "author")
        shown = {name: row[name] for name in names}
        print(text.cut(f"  {json.dumps(shown, ensure_ascii=False)}", COLUMNS_MAX))
    print()


def say(words: str) -> None:
    print(f"[demo] {words}", flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
