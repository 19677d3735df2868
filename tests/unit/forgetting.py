"""A stage with data to erase in every table, queue and file."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any

from pyarrow import parquet as pq

from orbweaver.erasure.erasure import Forgetter
from orbweaver.erasure.ports import Stores
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.chunk import page_row, text_row
from orbweaver.exporting.formats import archive as warc_writer
from orbweaver.exporting.formats import writer
from orbweaver.exporting.manifest import PREFIX, File, Manifest, Sums, encode_manifest, path_of
from orbweaver.exporting.snapshot import SnapshotEntry, bundled, entry_line
from orbweaver.frontier import warc
from orbweaver.frontier.backlog import Lease, WaitingPack
from orbweaver.frontier.body_file import Kept, Segment, with_body_location
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.messages import Pack, SeedsMessage, encode
from orbweaver.model.columns import PAGES, TEXTS
from orbweaver.model.crawl import State
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, day_of, page_key
from orbweaver.model.target import Target
from orbweaver.model.url import host_of
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from tests.memory import (
    Claim,
    Mail,
    MemoryCatalogue,
    MemoryDeadLetters,
    MemoryEvents,
    MemoryFiles,
    MemoryTraces,
)
from tests.memory.world import Gate, World, open_gate
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.exporting.formats.hashed_file import FinishedFile

PATH = "/people/jane-roe-1971"
URL = f"{SITE}{PATH}"
OTHER = f"{SITE}/people/"
ELSEWHERE = "https://other.example/about"
URLS = (URL, OTHER, ELSEWHERE)
ENDED = replace(
    CRAWL, seeds=(OTHER, URL, ELSEWHERE), state=State.FINISHED, finished_at_ms=NOW_MS - 60_000
)
DAY = day_of(NOW_MS)
FORMATS = ("jsonl", "csv", "parquet")


def record_of(url: str, crawl: str = ENDED.id, **more: Any) -> PageRecord:
    known: dict[str, Any] = {"referrer": OTHER, "content_type": "text/html", "status": 200} | more
    return PageRecord(
        crawl=crawl,
        url=url,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=NOW_MS,
        depth=1,
        **known,
    )


def kept_of(url: str) -> Kept:
    """Return the stored parts of a page: an answer and a text."""
    headers = {"Content-Type": "text/html"}
    body = f"<title>{url}</title>".encode()
    document = {"title": url, "text": "words", "markdown": "words"}
    return Kept(
        url=url,
        response=warc.response(
            url,
            NOW_MS,
            status=200,
            headers=headers,
            body=body,
            truncated=False,
            asked=(("Host", "h"), ("User-Agent", "bot/1"), ("Accept", "text/html")),
        ),
        conversion=warc.conversion(url, NOW_MS, document, stored=True),
    )


def fill(world: World, folder: Path) -> None:
    """Add a finished crawl with all its data and exports."""
    world.crawls[ENDED.id] = ENDED
    segment = Segment(ENDED.id, NOW_MS, Random(3))
    records = []
    for url in URLS:
        kept = kept_of(url)
        records.append(with_body_location(record_of(url), segment.add(kept)))
    # One page leads to another, and an item names the other one.
    link = Item(table="people", place=0, fields={"name": "J", "page": URL})
    records[1] = replace(records[1], canonical=URL, extracted=(link,))
    records[2] = replace(records[2], referrer=URL)
    world.files[segment.key] = segment.whole()
    for record in records:
        world.pages[page_key(record, 16)] = record
        claim = Claim(url=record.url, pack="p0", at_ms=1, expires_s=2, crawl=ENDED.id)
        world.claims[ENDED.name, record.url] = claim
        host = host_of(record.url)
        robots = RobotsEntry(fetched_at_ms=NOW_MS, body=b"#", verdict="rules", detail=None)
        world.hosts[host] = Host(name=host, tat_ms=NOW_MS - 1, robots=robots)
    targets = tuple(Target(url=url, depth=1, referrer=OTHER) for url in URLS)
    world.journals["p0"] = Journal(at_ms=1, candidates=targets, crawl=ENDED.id)
    world.journals["p1"] = Journal(at_ms=1, records=tuple(records), crawl=ENDED.id)
    world.ledgers["p0"] = Ledger(pack="p0", children=(0, 1, 2), sent=True)
    world.samples[ENDED.id] = {"scope": (URL, ELSEWHERE)}
    pack = Pack(id="p2", crawl=ENDED.id, at_ms=1, targets=targets)
    seeds = SeedsMessage(id="s1", crawl=ENDED.id, at_ms=1, references=URLS)
    world.parked[ENDED.id, "p2"] = encode(pack)
    for place in ("1.p3", "1.p4"):
        body = encode(replace(pack, id=place.partition(".")[2], place=place))
        world.backlog[ENDED.id, SITE][place] = WaitingPack(place=place, body=body)
    world.out[ENDED.id, SITE] = Lease(epoch=1, place="1.p3", holder="p0")
    world.sent += [Mail(body=encode(pack)), Mail(body=encode(seeds)), Mail(body=URL)]
    world.buried += [Mail(body=encode(pack), reason="crashed"), Mail(body=encode(seeds))]
    export(world, folder, records)
    entries = [SnapshotEntry(url, True, "00", ENDED.id, 1, OTHER) for url in URLS]
    folder_of = f"{PREFIX}_snapshots/{ENDED.name}/{ENDED.id}/"
    world.files[f"{folder_of}pages-0000-00000.jsonl.gz"] = bundled(map(entry_line, entries))
    world.files["athena-results/1.csv"] = f'"{URL}"\n'.encode()


def export(world: World, folder: Path, records: list[PageRecord]) -> None:
    files: list[File] = []
    for name in FORMATS:
        for table in (PAGES, TEXTS):
            rows = writer(name, table, folder)
            for record in records:
                document = {"title": None, "text": "words", "markdown": "words"}
                row = page_row(record) if table is PAGES else text_row(record, document)
                rows.add(cells_of(table)(row))
            files.append(_put(world, rows.close(), table.name, name))
    answers = warc_writer(folder, "part-00-00000.warc.gz")
    for record in records:
        member = kept_of(record.url).response
        assert member is not None
        answers.add(record, member)
    files += [_put(world, made, "pages", "warc") for made in answers.close()]
    rows_of = {"pages": len(records), "texts": len(records)}
    sums = Sums(name=ENDED.name, rows=rows_of, outcomes={"fetched": len(records)})
    for crawl in (None, ENDED.id):
        manifest = Manifest(day=DAY, crawl=crawl, crawls={ENDED.id: sums}, files=tuple(files))
        world.files[PREFIX + manifest.path] = encode_manifest(manifest)


def _put(world: World, made: FinishedFile, table: str, name: str) -> File:
    path = path_of(table, name, DAY, ENDED.id, 0, 0, made.suffix)
    world.files[PREFIX + path] = made.path.read_bytes()
    made.path.unlink()
    return File(
        path=path,
        table=table,
        format=name,
        crawl=ENDED.id,
        rows=made.rows,
        bytes=made.bytes,
        sha256=made.sha256,
    )


def stores_of(stage: Stage, gate: Gate = open_gate) -> Stores:
    stage.restart(gate)
    world = stage.world
    return Stores(
        traces=MemoryTraces(world, gate),
        dead_letters=MemoryDeadLetters(world, gate, clock=stage.clock),
        queue=stage.queue,
        crawls=stage.crawls,
        pages=stage.pages,
        files=MemoryFiles(world, gate),
        events=MemoryEvents(world, gate),
        clock=stage.clock,
        catalogue=MemoryCatalogue(world, gate),
    )


def forgetter_of(stage: Stage, gate: Gate = open_gate) -> Forgetter:
    return Forgetter(stores_of(stage, gate))


# --- contents -----------------------------------------------------------------------------------


def everything(world: World) -> dict[str, str]:
    """Return all stored data as text by place; archives are unpacked."""
    found = {}
    for shelf in ("claims", "pages", "journals", "crawls", "hosts", "parked", "backlog", "samples"):
        for key, thing in getattr(world, shelf).items():
            found[f"{shelf} {key}"] = str(thing)
    for shelf in ("sent", "buried"):
        for place, mail in enumerate(getattr(world, shelf)):
            found[f"{shelf} {place}"] = json.dumps(asdict(mail))
    for key, body in world.files.items():
        found[f"file {key}"] = unpacked(key, body)
    return found


def unpacked(key: str, body: bytes) -> str:
    if key.endswith(".gz"):
        return gzip.decompress(body).decode("utf-8", "replace")
    if key.endswith(".parquet"):
        return str(pq.read_table(BytesIO(body)).to_pylist())
    return body.decode("utf-8", "replace")


# Places whose data an erasure leaves, because it expires and workers skip it.
EXPIRING = ("journals", "parked", "backlog", "sent")


def traces_of(world: World, *needles: str) -> list[str]:
    """Return the places to erase whose content has any of these words. Keys do not count."""
    return [
        place
        for place, text in everything(world).items()
        if place.split()[0] not in EXPIRING and any(needle in text for needle in needles)
    ]
