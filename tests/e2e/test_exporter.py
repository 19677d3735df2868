"""The exporter function on its deployed stack: the same files however it is run."""

from __future__ import annotations

import gzip
import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.stand import until
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PAGES = 60
# Lambda halts a function that invokes itself after 16 rounds, unless its loops are allowed.
PARTS_MIN = 18
# A part is begun only with 30 s left: with no more in all, every invocation writes just one.
SHORT_S = 30


@pytest.fixture(scope="module")
def day(stand: Stand) -> str:
    """Have records of a day that no test adds to any more; its name."""
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        crawled = stand.crawl(f"{site.url}/0", "--name", "exported", "--delay", "0")
    stand.wait_idle()
    return str(crawled.rows[0]["fetched_at"])[: len("2026-11-21")]


def invoke(stand: Stand, day: str) -> dict[str, Any]:
    """Have a day exported; what the function returned."""
    with stand.client("lambda") as functions:
        answer = functions.invoke(
            FunctionName=stand.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
        )
        said = answer["Payload"].read()
    assert "FunctionError" not in answer, f"{said!r}\n{stand.log()}"
    body: dict[str, Any] = json.loads(said)
    return body


def files(stand: Stand, prefix: str = "exports/") -> dict[str, bytes]:
    """Download what lies in the bucket below a prefix."""
    with stand.client("s3") as s3:
        bucket = stand.outputs["Bucket"]
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def rows(found: dict[str, bytes], day: str) -> list[bytes]:
    """Read a day's rows in the order of its manifest, which must fit the files."""
    folder = f"exports/dt={day}/"
    parts = json.loads(found[f"{folder}manifest.json"])["parts"]
    assert set(found) == {f"{folder}manifest.json", *(folder + part["name"] for part in parts)}
    lines: list[bytes] = []
    for part in parts:
        body = found[folder + part["name"]]
        assert hashlib.sha256(body).hexdigest() == part["sha256"]
        lines += gzip.decompress(body).splitlines()
    return lines


@contextmanager
def reconfigured(stand: Stand, *, timeout_s: int, part_rows_max: int) -> Iterator[None]:
    """Have the function run with other limits for the length of a block."""
    name = stand.outputs["ExporterFunction"]
    with stand.client("lambda") as functions:
        before = functions.get_function_configuration(FunctionName=name)
        variables = before["Environment"]["Variables"]
        changed = {**variables, "ORBWEAVER_PART_ROWS_MAX": str(part_rows_max)}
        functions.update_function_configuration(
            FunctionName=name, Timeout=timeout_s, Environment={"Variables": changed}
        )
        try:
            yield
        finally:
            functions.update_function_configuration(
                FunctionName=name,
                Timeout=before["Timeout"],
                Environment={"Variables": variables},
            )


def test_a_day_exported_twice_is_the_same_to_the_byte(stand: Stand, day: str) -> None:
    """Files and manifest follow from the records alone."""
    said = invoke(stand, day)
    once = files(stand)
    invoke(stand, day)

    assert said == {"day": day, "rows": len(rows(once, day))}
    assert said["rows"] >= PAGES
    assert files(stand) == once


def test_a_day_too_long_for_one_run_goes_on_by_itself(stand: Stand, day: str) -> None:
    """Cut short after every part, the function invokes itself until the day is done.

    It takes more rounds than Lambda's recursive loop detection lets pass, which the emulator
    enforces for functions that invoke themselves.
    """
    invoke(stand, day)
    whole = files(stand)
    expected = rows(whole, day)
    step = max(1, len(expected) // PARTS_MIN)
    with reconfigured(stand, timeout_s=SHORT_S, part_rows_max=step):
        assert invoke(stand, day) == {"continued": day}
        manifest, state = f"exports/dt={day}/manifest.json", "exports/_work/"
        until(
            lambda: files(stand, manifest) and not files(stand, state),
            "the export is complete",
            log=stand.log,
        )
        found = files(stand)

    assert len(found) - 1 == -(-len(expected) // step) >= PARTS_MIN
    assert rows(found, day) == expected
    invoke(stand, day)
    assert files(stand) == whole
