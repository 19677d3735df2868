"""The exporter as its own process, with a data limit enforced by the kernel."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from bench.measure import peak

MIB = 2**20
# The whole stack of a thread counts as data: 8 MB by default, although it uses a few KB.
STACK_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Cost of an export."""

    rows: dict[str, int]
    files: int
    bytes: dict[str, int]
    seconds: float
    cpu_seconds: float
    idle_rss_mb: float
    peak_rss_mb: float


def limit_data(limit_mb: int) -> None:
    """Limit the data. Raises RuntimeError if the kernel does not enforce the limit."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit_mb * MIB, limit_mb * MIB))
    try:
        bytearray(limit_mb * MIB)
    except MemoryError:
        return
    raise RuntimeError("the limit is not enforced")


async def export(
    folder: Path, bodies: Path, formats: tuple[str, ...], part_rows_max: int
) -> Measured:
    """Export the day's table into a folder. The environment contains the table's endpoint."""
    from orbweaver.adapters.aws.clients import Aws
    from orbweaver.adapters.dynamodb.pages import DynamoPages
    from orbweaver.adapters.dynamodb.table import Dynamo
    from orbweaver.adapters.local.clock import SystemClock
    from orbweaver.adapters.local.folder import FolderFiles
    from orbweaver.exporting.exporter import ExporterParts, InProcessExporter, WaitingExport
    from orbweaver.exporting.file_store import FolderWorkspace
    from tests.exports_scale.records import CRAWL, DAY, SHARDS, crawl
    from tests.memory import MemoryCrawls, World

    clock, random, waiting = SystemClock(), Random(1), WaitingExport()
    aws = Aws()
    try:
        dynamo = Dynamo(await aws.client("dynamodb"), clock=clock, random=random)
        scratch = folder.with_name("scratch")
        scratch.mkdir(parents=True, exist_ok=True)
        exporter = ExporterParts(
            pages=DynamoPages(
                dynamo, clock=clock, pages_table="pages", retention_s=1, shards=SHARDS
            ),
            crawls=MemoryCrawls(World(crawls={CRAWL: crawl()})),
            files=FolderFiles(folder),
            bodies=FolderFiles(bodies),
            orders=waiting,
            clock=clock,
            random=random,
            formats=formats,
            part_rows_max=part_rows_max,
            part_bytes_max=256 * MIB,
            workspace=FolderWorkspace(folder=scratch),
            prefix="",
        ).exporter()
        idle = peak(os.getpid()) / MIB
        began, worked = time.monotonic(), time.process_time()
        manifest = await InProcessExporter(exporter=exporter, waiting=waiting).export(DAY)
        seconds, cpu_seconds = time.monotonic() - began, time.process_time() - worked
    finally:
        await aws.close()
    names = sorted({file.format for file in manifest.files})
    return Measured(
        rows=dict(manifest.rows),
        files=len(manifest.files),
        bytes={
            name: sum(file.bytes for file in manifest.files if file.format == name)
            for name in names
        },
        seconds=round(seconds, 2),
        cpu_seconds=round(cpu_seconds, 2),
        idle_rss_mb=round(idle, 1),
        peak_rss_mb=round(peak(os.getpid()) / MIB, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--formats", required=True)
    parser.add_argument("--limit-mb", type=int, required=True)
    parser.add_argument("--part-rows-max", type=int, required=True)
    asked = parser.parse_args()
    threading.stack_size(STACK_BYTES)
    limit_data(asked.limit_mb)
    formats = tuple(asked.formats.split(","))
    measured = asyncio.run(export(asked.folder, asked.bodies, formats, asked.part_rows_max))
    json.dump(asdict(measured), sys.stdout)


if __name__ == "__main__":
    main()
