"""Versions are read first, and every value that older code would misread has raised one."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest

from orbweaver.frontier import envelope, journal_codec
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import Journal
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
# By the codec's version: the values of enumerations that code of this version reads. A value more
# is misread by such code: it needs a new version, which the codec writes where that value is.
_CRAWL_1: dict[type[StrEnum], set[str]] = {
    State: {"running", "paused", "stopping", "finished"},
    Scope: {"host", "domain", "prefix", "any"},
    Bodies: {"off", "html", "all"},
    Stop: {"finished", "max_pages", "duration", "bytes", "dollars", "cancelled"},
}
VALUES: dict[tuple[str, int], dict[type[StrEnum], set[str]]] = {
    ("crawl", 1): _CRAWL_1,
    ("crawl", 2): _CRAWL_1 | {Stop: _CRAWL_1[Stop] | {"nothing_new"}},
    ("record", 1): {Outcome: {"fetched", "unchanged", "redirected", "skipped", "failed"}},
    ("record", 2): {Outcome: {"fetched", "unchanged", "redirected", "skipped", "failed"}},
}
# Reasons are many: their number, and a digest of their names.
REASONS = {("record", 1): (46, "e58c0c73"), ("record", 2): (47, "84f830a7")}


def test_a_further_value_of_an_enumeration_is_a_new_version() -> None:
    """Code of the same version reads all values that code of this one writes."""
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
def test_what_is_not_newer_is_read(version: int | None) -> None:
    """Without a version it is of the first one."""
    check({} if version is None else {"v": version}, "a thing", 2)


def test_what_is_newer_says_what_to_do() -> None:
    """The text names the thing, its version and what is read here."""
    text = "stored by a newer version: a thing of version 3, and up to 2 is read here"
    with pytest.raises(NewerVersion, match=text) as caught:
        check({"v": 3, "x": object()}, "a thing", 2)
    assert caught.value.version == 3
    with pytest.raises(NewerVersion, match="of version unknown, and up to 2"):
        one_of(State, "asleep", "a thing", 2)


@pytest.mark.parametrize(
    "raw",
    [
        {"v": 3},
        {"v": 3, "state": "asleep", "seeds": 7},
        {"v": 3, **dict.fromkeys(crawl_codec.COLUMNS)},
    ],
)
def test_a_crawl_of_a_newer_version_is_not_interpreted(raw: dict[str, Any]) -> None:
    """Whatever its fields hold, its version says it all; that is written with every crawl."""
    with pytest.raises(NewerVersion):
        crawl_codec.from_fields(raw)
    fields = crawl_codec.to_fields(CRAWL)
    assert fields.pop("v") == 1
    assert crawl_codec.from_fields(fields) == CRAWL
    with pytest.raises(NewerVersion, match="the crawl 'c' of version 3"):
        crawl_codec.from_fields({**fields, "v": 3})


def test_a_crawl_is_of_the_lowest_version_that_reads_it() -> None:
    """Code of the first version would not end one that is to stop when nothing new comes."""
    crawl = replace(CRAWL, stop_when_nothing_new=True, stop=Stop.NOTHING_NEW)
    fields = crawl_codec.to_fields(crawl)
    assert fields["v"] == crawl_codec.VERSION == 2
    assert crawl_codec.from_fields(fields) == crawl


@pytest.mark.parametrize("changed", [{"v": 3}, {"outcome": "dreamt"}, {"reason": "asleep"}])
def test_a_record_of_a_newer_version_is_told(changed: dict[str, Any]) -> None:
    """By its version, or by a value that is not known here; so is one within a journal."""
    assert page_record.from_fields(ROW).url == "http://a/"
    with pytest.raises(NewerVersion):
        page_record.from_fields(ROW | changed)
    body = {"v": 1, "at": 5, "records": [ROW | changed], "again": [], "candidates": []}
    body |= {"tally": {}, "alone": False}
    with pytest.raises(NewerVersion):
        journal_codec.decode(zlib.compress(json.dumps(body).encode()))


@pytest.mark.parametrize(
    "blob",
    [
        zlib.compress(b'{"v":4}'),
        zlib.compress(b'{"v":4,"records":7,"columns":[]}') + b"behind",
        b"\x04\x22\x4d\x18 another compression",
        b"\x00",
    ],
)
def test_a_journal_of_a_newer_version_is_told(blob: bytes) -> None:
    """By its version, or by a compression that is not known here."""
    with pytest.raises(NewerVersion):
        journal_codec.decode(blob)


@pytest.mark.parametrize("blob", [b"", b"\x78", zlib.compress(b'{"v":2}')[:-3]])
def test_a_journal_that_is_not_whole_is_no_newer_one(blob: bytes) -> None:
    """It is an error of value, as ever."""
    with pytest.raises(ValueError, match="compressed"):
        journal_codec.decode(blob)


def test_stored_journals_of_both_layouts_are_read() -> None:
    """Their bytes as they lie in tables: rows of records, and columns with digests behind."""
    rows = {
        "v": 1,
        "at": NOW_MS,
        "records": [ROW | {"sha256": "0f" * 32}],
        "again": [["http://a/x", 1, 2, 0, None, 7]],
        "candidates": [["http://a/y", 1, 1, 0, "http://a/"]],
        "tally": {"fetched": 1},
        "alone": False,
    }
    columns = {key: value for key, value in rows.items() if key != "records"} | {
        "v": 2,
        "columns": {key: [value] for key, value in ROW.items()} | {"sha256": [True]},
    }
    first = journal_codec.decode(zlib.compress(json.dumps(rows).encode(), 9))
    second = journal_codec.decode(
        zlib.compress(json.dumps(columns).encode(), 6) + bytes.fromhex("0f" * 32)
    )
    assert first == second
    assert isinstance(first, Journal)
    assert (first.records[0].sha256, first.again[0].delay_s) == ("0f" * 32, 7)


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
def test_the_envelope_of_a_newer_message_is_read(
    body: str, crawl: str | None, at_ms: int | None
) -> None:
    """Its crawl and time mean the same in every version, as far as they can be read."""
    message = decode(body)
    assert isinstance(message, Newer)
    assert (message.crawl, message.at_ms) == (crawl, at_ms)
    assert f"up to {envelope.VERSION} is read" in message.said


@pytest.mark.parametrize("version", ["0", "-1", '"2"', "null", "2.5", "[2]", "9" * 20])
def test_what_is_no_version_is_malformed(version: str) -> None:
    """A version is a whole number above zero."""
    assert isinstance(decode(f'{{"v":{version},"crawl":"c","at":5}}'), Malformed)
