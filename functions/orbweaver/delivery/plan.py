"""Plan the delivery of an export: which files to send, and which to remove first.

The receiver stores, next to the files, one ledger per day: a JSON file with the SHA-256 of each
delivered file. A file counts as delivered if it has the right length and the ledger has its
SHA-256.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.manifest import (
    ExportEventError,
    FilePlace,
    Manifest,
    check_day,
    manifest_path,
    place_of,
)

LEDGERS = "_delivered/"
LEDGER_VERSION = 1
SHA256 = re.compile("[0-9a-f]{64}")
NAME = re.compile(r"[^/\\\x00-\x1f\x7f]+")
# Attempts per order. The waits between them are 1, 2, 4, … minutes, then an hour each: about a day
# in all. A server under repair usually works again within hours, and more frequent attempts would
# not help.
TRIES_MAX = 30
RETRY_FIRST_S, RETRY_LAST_S = 60, 3_600
ORDERS = 'it is no event of an export, and no {"day": "YYYY-MM-DD", "crawl": ID or null}'


class OrderError(ValueError):
    """The message is not a delivery order. The text shows the accepted forms."""


# --- orders -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOrder:
    """Order to deliver an export to the receiver `to`, or to all receivers if None."""

    day: str
    crawl: str | None = None
    to: str | None = None
    # True: check every file at the receiver. False: a manifest at the receiver ends the order,
    # because receivers are allowed to move files away.
    again: bool = False

    @property
    def path(self) -> str:
        """Path of the manifest, relative to the prefix of all exports."""
        return manifest_path(self.day, self.crawl)


def order_of(body: str) -> DeliveryOrder:
    """Parse an order, or an event that reports a new export. Raises OrderError."""
    try:
        raw = json.loads(body)
        asked = raw.get("detail", raw)
        crawl, to, again = asked.get("crawl"), asked.get("to"), asked.get("again", False)
        day = check_day(asked.get("day"))
    except (ValueError, KeyError, TypeError, AttributeError, ExportEventError) as error:
        raise OrderError(ORDERS) from error
    fits = (crawl is None or _is_name(crawl)) and (to is None or isinstance(to, str))
    if not fits or not isinstance(again, bool):
        raise OrderError(ORDERS)
    return DeliveryOrder(day=day, crawl=crawl, to=to, again=again)


def spelled(order: DeliveryOrder) -> str:
    said = {"day": order.day, "crawl": order.crawl, "to": order.to, "again": order.again}
    return json.dumps({key: value for key, value in said.items() if value not in (None, False)})


def retry_s(receives: int) -> int:
    return min(RETRY_LAST_S, RETRY_FIRST_S << min(receives, TRIES_MAX) - 1)


def formats_of(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of formats. An empty text means all. Raises ValueError."""
    found = tuple(dict.fromkeys(part for word in text.split(",") if (part := word.strip())))
    for name in found:
        if name not in FORMATS:
            raise ValueError(f"{name!r} is no format: give some of {','.join(FORMATS)}")
    return found or FORMATS


def shipped(manifest: Manifest, formats: Collection[str]) -> Manifest:
    """Return a copy of a manifest with only the files of these formats.

    Raises ValueError if a path does not have the form of an export's file.
    """
    files = tuple(file for file in manifest.files if file.format in formats)
    if any(_place(file.path, manifest.day) is None for file in files):
        raise ValueError("the manifest names a file that no export has")
    return replace(manifest, files=files)


# --- state of the receiver ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRemoval:
    """A file to remove at the receiver. `sha256` is its digest in the ledger, or None."""

    path: str
    sha256: str | None = None


def ledger_path(day: str) -> str:
    return f"{LEDGERS}dt={day}.json"


def encode_ledger(day: str, ledger: Mapping[str, str]) -> bytes:
    body = {"v": LEDGER_VERSION, "day": day, "files": dict(sorted(ledger.items()))}
    return json.dumps(body, indent=0).encode() + b"\n"


def decode_ledger(day: str, body: bytes | None) -> Mapping[str, str]:
    """Decode the ledger of a day: SHA-256 by path.

    An invalid ledger counts as empty. Paths that no export of the day can have are left out.
    """
    # Any client with access to the receiver may have written the ledger.
    try:
        raw: dict[str, Any] = json.loads(body or b"")
        if raw["v"] != LEDGER_VERSION or raw["day"] != day:
            return {}
        found = dict(raw["files"])
    except (ValueError, KeyError, TypeError):
        return {}
    return {
        path: sha256
        for path, sha256 in found.items()
        if isinstance(sha256, str) and SHA256.fullmatch(sha256) and _place(path, day)
    }


# --- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Changes at the receiver before files are sent: remove manifests and files, write the ledger.

    They are made in this order. Then each file of the right length has the content that the
    manifest lists.
    """

    # Manifests to remove. Readers start from a manifest, so it is removed before any of its files,
    # and written after all of them.
    manifests: tuple[str, ...]
    # Files to remove before the new ledger is written. If the worker dies in between, a changed
    # file is missing and never has a wrong content.
    remains: tuple[FileRemoval, ...]
    ledger: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """True if the receiver needs no changes before files are sent."""
        return not self.remains


def steps_of(manifest: Manifest, ledger: Mapping[str, str], formats: Collection[str]) -> Steps:
    """Return the changes that a receiver needs before the files of a manifest are sent.

    `ledger` is the receiver's current ledger. `formats` are the formats that the receiver accepts.
    """
    wanted = {file.path: file.sha256 for file in manifest.files}
    # Files of an earlier version of the export. Files of formats that the receiver does not accept
    # are not removed.
    surplus = {
        path
        for path in ledger.keys() - wanted.keys()
        if (place := _place(path, manifest.day))
        and place.format in formats
        and manifest.crawl in (None, place.crawl)
    }
    changed = {path for path, sha256 in wanted.items() if ledger.get(path) != sha256}
    gone = sorted(surplus | changed)
    crawls = {place.crawl for path in gone if (place := _place(path, manifest.day))}
    # A day and each of its crawls may have manifests that list the same files.
    named = {manifest.path, manifest_path(manifest.day)}
    named |= {manifest_path(manifest.day, crawl) for crawl in crawls}
    kept = {path: sha256 for path, sha256 in ledger.items() if path not in surplus}
    return Steps(
        manifests=tuple(sorted(named)) if gone else (),
        remains=tuple(FileRemoval(path=path, sha256=ledger.get(path)) for path in gone),
        ledger=kept | wanted,
    )


def _place(path: object, day: str) -> FilePlace | None:
    """Parse a path from an untrusted source.

    Return None if no export file of the day can have it.
    """
    if not isinstance(path, str) or not all(map(_is_name, path.split("/"))):
        return None
    place = place_of(path)
    return place if place is not None and place.day == day and place.format in FORMATS else None


def _is_name(part: object) -> bool:
    """Whether a value is the name of one file or folder."""
    return isinstance(part, str) and part not in (".", "..") and bool(NAME.fullmatch(part))
