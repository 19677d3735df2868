"""Deliveries: what of an export is brought elsewhere, and what must be there before it.

- Where an export is brought there lies, beside its files, a ledger a day: which content each file
  there has of this stack. What the ledger does not say is not believed: a file counts as delivered
  if it is as long as it should be *and* the ledger says of its content what the manifest does.
- So that this stays true, a file that is to have another content is removed first, then the ledger
  says the new content, and only then the file comes. A worker that dies between leaves a file that
  is missing, and never one that is taken for another.
- Readers go by the manifest: it is withdrawn before anything that it names changes, and comes last.
  Of a day and of its crawls there may be several, over the same files.
- What an earlier version of the export had and this one has not is removed, where the ledger says
  that it was delivered, and only in the formats that are delivered.
- What is read there was written by any client with access there: paths that no export has are
  passed over, whatever they say.
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
# Deliveries of a message: one, two, four … minutes between them, then an hour: about a day in all.
# A server that is being put right is so within hours; more often than hourly helps no server.
TRIES_MAX = 30
RETRY_FIRST_S, RETRY_LAST_S = 60, 3_600
ORDERS = 'it is no event of an export, and no {"day": "YYYY-MM-DD", "crawl": ID or null}'


class OrderError(ValueError):
    """A message asks for no delivery; the text says what one looks like."""


# --- what is asked for --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOrder:
    """An export to be delivered: to one receiver, or to all; `again` looks at every file anew.

    Without that, a manifest that stands there already means that there is nothing to do: receivers
    may take files away.
    """

    day: str
    crawl: str | None = None
    to: str | None = None
    again: bool = False

    @property
    def path(self) -> str:
        """Where the manifest lies, below the exports' prefix."""
        return manifest_path(self.day, self.crawl)


def order_of(body: str) -> DeliveryOrder:
    """Read a message: the bus's event, or an order as `spelled` has it."""
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
    """Spell an order as a message."""
    said = {"day": order.day, "crawl": order.crawl, "to": order.to, "again": order.again}
    return json.dumps({key: value for key, value in said.items() if value not in (None, False)})


def retry_s(receives: int) -> int:
    """Say how long to wait before a message that was received so often is received again."""
    return min(RETRY_LAST_S, RETRY_FIRST_S << min(receives, TRIES_MAX) - 1)


def formats_of(text: str) -> tuple[str, ...]:
    """Read a comma-separated list of formats, all if it is empty; ValueError names what is none."""
    found = tuple(dict.fromkeys(part for word in text.split(",") if (part := word.strip())))
    for name in found:
        if name not in FORMATS:
            raise ValueError(f"{name!r} is no format: give some of {','.join(FORMATS)}")
    return found or FORMATS


def shipped(manifest: Manifest, formats: Collection[str]) -> Manifest:
    """Reduce a manifest to the files of these formats: what is not delivered is not named there."""
    files = tuple(file for file in manifest.files if file.format in formats)
    if any(_place(file.path, manifest.day) is None for file in files):
        raise ValueError("the manifest names a file that no export has")
    return replace(manifest, files=files)


# --- what lies there ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Something to be removed: a file, and what was begun of the content that it was to have."""

    path: str
    sha256: str | None = None


def ledger_path(day: str) -> str:
    """Say where the ledger of a day lies."""
    return f"{LEDGERS}dt={day}.json"


def encode_ledger(day: str, ledger: Mapping[str, str]) -> bytes:
    """Render a ledger: SHA-256 of the content by path."""
    body = {"v": LEDGER_VERSION, "day": day, "files": dict(sorted(ledger.items()))}
    return json.dumps(body, indent=0).encode() + b"\n"


def decode_ledger(day: str, body: bytes | None) -> Mapping[str, str]:
    """Read a ledger back; what is none says nothing, nor does a line that fits no export."""
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


# --- what is to be done -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What comes before the files, in this order: manifests go, then remains, then the ledger.

    After that a file of the manifest that is there, and as long as it should be, is that file.
    """

    manifests: tuple[str, ...]
    remains: tuple[Remains, ...]
    ledger: Mapping[str, str]

    @property
    def nothing(self) -> bool:
        """Whether the files may come at once."""
        return not self.remains


def steps_of(manifest: Manifest, ledger: Mapping[str, str], formats: Collection[str]) -> Steps:
    """Say what has to be done at the receiver before the files of a manifest are brought."""
    wanted = {file.path: file.sha256 for file in manifest.files}
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
    named = {manifest.path, manifest_path(manifest.day)}
    named |= {manifest_path(manifest.day, crawl) for crawl in crawls}
    kept = {path: sha256 for path, sha256 in ledger.items() if path not in surplus}
    return Steps(
        manifests=tuple(sorted(named)) if gone else (),
        remains=tuple(Remains(path=path, sha256=ledger.get(path)) for path in gone),
        ledger=kept | wanted,
    )


def _place(path: object, day: str) -> FilePlace | None:
    """Read a path of any origin."""
    if not isinstance(path, str) or not all(map(_is_name, path.split("/"))):
        return None
    place = place_of(path)
    return place if place is not None and place.day == day and place.format in FORMATS else None


def _is_name(part: object) -> bool:
    """Whether it can be the name of one file or folder, and leads nowhere else."""
    return isinstance(part, str) and part not in (".", "..") and bool(NAME.fullmatch(part))
