"""The whole way on this machine: a shop is served, crawled, exported, and the export is checked.

    python -m tests.demo [--port 0] [--books 1000]

The shop knows which of its pages a crawl must find; the export of the day must hold each of them
once, and no other. Exit code 1 if it does not. The emulator is the demo's own and goes at its end.
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
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localstack import cdk, layout, stack
from localstack.errors import LocalStackError
from orbweaver import cli
from orbweaver.cli import text
from orbweaver.cli.machine import ThisMachine, connect
from orbweaver.cli.stacks import LOCAL_CONTEXT, settings_from
from orbweaver.control import Control
from orbweaver.core.export import Place, days_between, decode_manifest, intact
from orbweaver.core.outcome import Outcome, Reason
from tests.sites import child
from tests.sites.bookshop import BOOKS, Expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import FrameType

    from localstack.stack import Stack
    from orbweaver.control import Status
    from orbweaver.core.export import Manifest

FOLDER = layout.LOCAL / "demo"
NAME = "demo"
PREFIX = "exports/"
SHOWN_MAX = 10
LOG_LINES_SHOWN = 20
SAMPLES = 3
COLUMNS_MAX = 160
INTERRUPTED = 130

Row = dict[str, Any]


class DemoError(Exception):
    """The demo did not come out as it must; the text says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A day's files, downloaded and verified."""

    folder: Path
    manifest: Manifest
    rows: tuple[Row, ...]


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the emulator; 0: a free one")
    parser.add_argument("--books", type=int, default=BOOKS, help="how many the shop has")
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _interrupt)
    started_s = time.monotonic()
    try:
        with (
            child.start("bookshop", "--books", str(options.books)) as shop,
            # Of its own: nothing that was crawled before is exported along, nothing is left.
            stack.temporary(port=options.port, context=LOCAL_CONTEXT, say=say) as stood,
        ):
            demonstrate(shop, stood)
    except (DemoError, LocalStackError) as error:
        print(f"\nthe demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    say(f"all of it took {time.monotonic() - started_s:.0f} s")
    return 0


def demonstrate(shop: child.Child, stood: Stack) -> None:
    """Crawl the shop through the stack that stands, export the day, and check what is in it."""
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
    show(status, exports, rows)


# --- crawl --------------------------------------------------------------------------------------


def crawl(url: str, stood: Stack) -> None:
    """Crawl as a person does: by the command line."""
    port = stood.emulator.port
    # Deep enough for all of the shop: its longest way is far beyond the usual 20 links.
    options = f"--name {NAME} --delay 0 --window 0s --max-depth 200 --port {port}"
    words = ["crawl", url, *options.split(), "--out", os.path.relpath(FOLDER / "crawl")]
    say(f"orbweaver {' '.join(words)}")
    code = cli.main(words)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise DemoError(f"the crawl ended with exit code {code}{log_of(stood)}")


def log_of(stood: Stack) -> str:
    """Read the emulator's last words, which go with it."""
    last = stood.emulator.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "; the emulator's last words:\n" + "\n".join(map(text.clean, last))


async def read_status(stood: Stack) -> Status:
    """Read the newest run of the demo's crawl, and its books."""
    settings = settings_from(stood.outputs, ThisMachine(), stood.environment())
    async with connect(settings, stood.environment()) as ports:
        control = Control(
            queue=ports.queue,
            crawls=ports.crawls,
            packs=ports.packs,
            pages=ports.pages,
            hosts=ports.hosts,
            clock=ports.clock,
            settings=settings,
        )
        return await control.status(NAME)


# --- export -------------------------------------------------------------------------------------


def export(day: str, stood: Stack) -> Export:
    """Have the exporter function write a day, then fetch and verify what the manifest names."""
    with cdk.client("lambda", stood.environment()) as functions:
        answer = functions.invoke(
            FunctionName=stood.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
        )
        said = answer["Payload"].read().decode()
    if "FunctionError" in answer or "rows" not in json.loads(said):
        raise DemoError(f"the exporter said {said}{log_of(stood)}")
    place = Place(prefix=PREFIX, day=day)
    with cdk.client("s3", stood.environment()) as buckets:

        def download(key: str) -> bytes:
            found = buckets.get_object(Bucket=stood.outputs["Bucket"], Key=key)
            body: bytes = found["Body"].read()
            file = FOLDER / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            return body

        manifest = decode_manifest(download(place.manifest))
        if manifest is None:
            raise DemoError(f"{place.manifest} is no manifest")
        bodies = [download(place.folder + part.name) for part in manifest.parts]
    lines: list[bytes] = []
    for part, body in zip(manifest.parts, bodies, strict=True):
        unpacked = gzip.decompress(body).splitlines()
        if not intact(part, body) or len(unpacked) != part.rows:
            raise DemoError(f"{place.folder}{part.name} is not the file that the manifest means")
        lines += unpacked
    rows = tuple(json.loads(line) for line in lines)
    return Export(folder=FOLDER / place.folder, manifest=manifest, rows=rows)


def is_page(row: Row) -> bool:
    """Whether a row is of a page that was fetched; sitemaps are fetched, too."""
    return bool(row["outcome"] == Outcome.FETCHED and row["reason"] != Reason.SITEMAP)


def compare(fetched: Sequence[str], expected: Expected) -> None:
    """Compare what was exported with what the shop has; raises DemoError with the difference.

    Pages that ask not to be indexed may be fetched or not: that is policy.
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


def listed(urls: Iterable[str]) -> str:
    """Write the first of some URLs."""
    ordered = sorted(urls)
    return " ".join(ordered[:SHOWN_MAX]) + (" …" if len(ordered) > SHOWN_MAX else "")


# --- show ---------------------------------------------------------------------------------------


def show(status: Status, exports: Sequence[Export], rows: Sequence[Row]) -> None:
    """Print what came of it: outcomes, speed, files, and three rows."""
    outcomes = Counter(row["outcome"] for row in rows)
    per_s = outcomes[Outcome.FETCHED] * 1000 / max(1, status.elapsed_ms)
    took = f"{len(rows):,} URLs in {status.elapsed_ms / 1000:.1f} s"
    print(f"\n{status.crawl.id}: {took}, {text.rate(per_s)} pages a second\n")
    numbers = [(f"  {outcome}", f"{number:,}") for outcome, number in outcomes.most_common()]
    print("\n".join(text.table(numbers, right=(1,))) + "\n")
    for one in exports:
        for name in ("manifest.json", *(part.name for part in one.manifest.parts)):
            file = one.folder / name
            print(f"  {file.relative_to(layout.ROOT)}  {text.size(file.stat().st_size)}")
    print()
    pages = [row for row in rows if is_page(row) and row["title"]]
    step = max(1, len(pages) // SAMPLES)
    for row in sorted(pages, key=lambda row: str(row["url"]))[::step][:SAMPLES]:
        shown = {key: row[key] for key in ("url", "status", "title", "links")}
        print(text.cut(f"  {json.dumps(shown, ensure_ascii=False)}", COLUMNS_MAX))
    print()


def say(words: str) -> None:
    """Tell what is being done."""
    print(f"[demo] {words}", flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
