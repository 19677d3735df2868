"""Export a day of pages under a memory limit, read it back, and report the cost."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.exports_scale.reading import check
from tests.exports_scale.records import segments

FORMATS = "jsonl,csv,parquet"


@contextmanager
def table_of(rows: int, *, bodies: bool) -> Iterator[str]:
    """Run a process that serves the table, and yield its endpoint."""
    words = [sys.executable, "-m", "tests.exports_scale.table", "--rows", str(rows)]
    words += ["--bodies"] if bodies else []
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            port = server.stdout.readline().strip()
            yield f"http://127.0.0.1:{port}"
        finally:
            server.communicate()


def run(
    folder: Path, *, rows: int, limit_mb: int, part_rows_max: int = 100_000, bodies: bool = False
) -> dict[str, Any]:
    exported, stored = folder / "export", folder / "stored"
    if bodies:
        for key, body in segments(rows):
            (stored / key).parent.mkdir(parents=True, exist_ok=True)
            (stored / key).write_bytes(body)
    words = [sys.executable, "-m", "tests.exports_scale.exporting", str(exported), str(stored)]
    words += ["--formats", f"{FORMATS},warc" if bodies else FORMATS]
    words += ["--limit-mb", str(limit_mb), "--part-rows-max", str(part_rows_max)]
    with table_of(rows, bodies=bodies) as endpoint:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            # More arenas reserve memory without using it, which would count as data.
            "MALLOC_ARENA_MAX": "2",
        }
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    measured: dict[str, Any] = json.loads(done.stdout)
    return {"measured": measured, "read": check(exported, rows, bodies=bodies)}


def say(result: dict[str, Any], rows: int, limit_mb: int) -> None:
    measured = result["measured"]
    seconds, cpu_seconds = measured["seconds"], measured["cpu_seconds"]
    sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in measured["bytes"].items())
    print(
        f"{rows:,} pages under a limit of {limit_mb} MB of data: {seconds:.0f} s,"
        f" {rows / seconds:,.0f} pages/s ({rows / cpu_seconds:,.0f} a second of CPU)\n"
        f"rows: {measured['rows']}\n"
        f"{measured['files']} files: {sizes}\n"
        f"peak resident memory: {measured['peak_rss_mb']} MB,"
        f" of these {measured['idle_rss_mb']} MB before the first row\n"
        f"read back by DuckDB, the same in each format: {result['read']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--limit-mb", type=int, default=256)
    parser.add_argument("--part-rows-max", type=int, default=100_000)
    parser.add_argument("--bodies", action="store_true", help="with texts and a WARC, too")
    parser.add_argument("--folder", type=Path, help="where to leave the files")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp())
    try:
        result = run(
            folder,
            rows=asked.rows,
            limit_mb=asked.limit_mb,
            part_rows_max=asked.part_rows_max,
            bodies=asked.bodies,
        )
        say(result, asked.rows, asked.limit_mb)
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
