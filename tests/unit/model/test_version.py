"""Versions of stored values are checked first, so that older code never misreads newer data."""

from __future__ import annotations

import json
import zlib
from enum import StrEnum
from typing import Any

import pytest

from orbweaver.frontier import envelope, journal_codec
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.messages import Malformed, decode
from orbweaver.model import crawl_codec, page_record
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.version import NewerVersion, check, one_of

NOW_MS = 1_795_251_600_000
CRAWL = Crawl(id="c", name="c", started_at_ms=1)
ROW = {"crawl": "c", "url": "http://a/", "outcome": "fetched", "reason": "ok"} | {
    "fetched_at": 5,
    "depth": 0,
}
# Enumeration values that code of each codec version can read. A new value needs a new version,
# because older code would misread it. The codec writes the new version only where that value
# occurs.
_CRAWL_1: dict[type[StrEnum], set[str]] = {
    State: {"running", "paused", "stopping", "finished"},
    Scope: {"host", "domain", "prefix", "any"},
    Bodies: {"off", "html", "all"},
    Stop: {"finished", "max_pages", "duration", "bytes", "dollars", "cancelled", "nothing_new"},
}
VALUES: dict[tuple[str, int], dict[type[StrEnum], set[str]]] = {
    ("crawl", 1): _CRAWL_1,
    ("record", 1): {Outcome: {"fetched", "unchanged", "redirected", "skipped", "failed"}},
}
# For each version, the number of reasons and a checksum of their names.
REASONS = {("record", 1): (51, "af463c2f")}


def test_new_enumeration_value_needs_new_version() -> None:
    now = {"crawl": crawl_codec.VERSION, "record": page_record.VERSION}
    for name, version in now.items():
        for kind, values in VALUES[name, version].items():
            assert {str(value) for value in kind} == values, f"{kind}: raise {name}'s version"
    names = " ".join(sorted(Reason))
    told = (len(Reason), f"{zlib.crc32(names.encode()):08x}")
    assert told == REASONS["record", page_record.VERSION], (
        "a further reason: raise the record's version"
    )


@pytest.mark.parametrize("version", [None, 1, 2])
def test_check_accepts_same_or_older_version(version: int | None) -> None:
    check({} if version is None else {"v": version}, "a thing", 2)


def test_newer_version_error_names_thing_and_version() -> None:
    text = "stored by a newer version: a thing of version 3, but this version reads up to 2"
    with pytest.raises(NewerVersion, match=text) as caught:
        check({"v": 3, "x": object()}, "a thing", 2)
    assert caught.value.version == 3
    with pytest.raises(NewerVersion, match="of version unknown, but this version reads up to 2"):
        one_of(State, "asleep", "a thing", 2)


@pytest.mark.parametrize(
    "raw",
    [
        {"v": 2},
        {"v": 2, "state": "asleep", "seeds": 7},
        {"v": 2, **dict.fromkeys(crawl_codec.COLUMNS)},
    ],
)
def test_crawl_of_newer_version_is_not_interpreted(raw: dict[str, Any]) -> None:
    with pytest.raises(NewerVersion):
        crawl_codec.from_fields(raw)
    fields = crawl_codec.to_fields(CRAWL)
    assert fields.pop("v") == 1
    assert crawl_codec.from_fields(fields) == CRAWL
    with pytest.raises(NewerVersion, match="the crawl 'c' of version 2"):
        crawl_codec.from_fields({**fields, "v": 2})


@pytest.mark.parametrize("changed", [{"v": 2}, {"outcome": "dreamt"}, {"reason": "asleep"}])
def test_record_of_newer_version_is_recognised(changed: dict[str, Any]) -> None:
    assert page_record.from_fields(ROW).url == "http://a/"
    with pytest.raises(NewerVersion):
        page_record.from_fields(ROW | changed)
    columns = {name: [value] for name, value in (ROW | changed).items()}
    body = {"v": 1, "at": 5, "columns": columns, "again": [], "candidates": []}
    body |= {"tally": {}, "alone": False}
    with pytest.raises(NewerVersion):
        journal_codec.decode(zlib.compress(json.dumps(body).encode()))


@pytest.mark.parametrize(
    "blob",
    [
        zlib.compress(b'{"v":2}'),
        zlib.compress(b'{"v":2,"columns":7}') + b"behind",
        b"\x04\x22\x4d\x18 another compression",
        b"\x00",
    ],
)
def test_journal_of_newer_version_is_recognised(blob: bytes) -> None:
    with pytest.raises(NewerVersion):
        journal_codec.decode(blob)


@pytest.mark.parametrize("blob", [b"", b"\x78", zlib.compress(b'{"v":2}')[:-3]])
def test_incomplete_journal_is_not_reported_as_newer(blob: bytes) -> None:
    with pytest.raises(ValueError, match="compressed"):
        journal_codec.decode(blob)


@pytest.mark.parametrize(
    ("body", "crawl", "at_ms"),
    [
        ('{"v":2,"crawl":"c","at":5,"pack":7}', "c", 5),
        ('{"v":2,"close":"c","at":5}', "c", 5),
        ('{"v":2}', None, None),
        ('{"v":3,"crawl":"a b","at":-1}', None, None),
        ('{"v":3,"crawl":["c"],"at":true}', None, None),
    ],
)
def test_envelope_of_newer_message_is_read(body: str, crawl: str | None, at_ms: int | None) -> None:
    message = decode(body)
    assert isinstance(message, Newer)
    assert (message.crawl, message.at_ms) == (crawl, at_ms)
    assert f"reads up to {envelope.VERSION}" in message.said


@pytest.mark.parametrize("version", ["0", "-1", '"2"', "null", "2.5", "[2]", "9" * 20])
def test_invalid_version_is_malformed(version: str) -> None:
    assert isinstance(decode(f'{{"v":{version},"crawl":"c","at":5}}'), Malformed)
