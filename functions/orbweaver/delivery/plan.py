"""Plan the delivery of an export: which files to send, and which to remove first.

The receiver stores, next to the files, one ledger per day: a JSON file with the SHA-256 of each
delivered file. A file counts as delivered if it has the right length and the ledger has its
SHA-256.

SSH host keys of a server are configured as fingerprints (`SHA256:…`), public keys
(`ssh-ed25519 AAAA…`) or lines of `known_hosts`, separated by lines or commas. Names, addresses and
comments are ignored. asyncssh cannot read fingerprints and single keys. The machine that deploys
has no asyncssh, and its import takes 0.7 s of CPU. Sources: RFC 4251 5 (strings), RFC 4253 6.6
(keys), sshd(8) "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
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
from orbweaver.model.value import value_class

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
FINGERPRINT = re.compile(r"SHA256:([A-Za-z0-9+/]{43})=?")
KEY = re.compile(r"(?P<type>[a-z][a-z0-9@.-]*)\s+(?P<blob>AAAA[A-Za-z0-9+/]+={0,2})")
# `@revoked` and `@cert-authority` mean something else than "this is the server's key".
MARKER = re.compile(r"(?:^|,)\s*@[a-z]", re.MULTILINE)
LENGTH_BYTES = 4


class OrderError(ValueError):
    """The message is not a delivery order. The text shows the accepted forms."""


# --- orders -------------------------------------------------------------------------------------


@value_class
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


@value_class
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


@value_class
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


class HostKeyError(ValueError):
    """The text contains no valid host key. The message shows the accepted forms."""


@value_class
class HostKeys:
    """SHA-256 fingerprints of a server's keys, and the keys' types (`ssh-ed25519`).

    `types` is empty if the type of any key is unknown.
    """

    fingerprints: frozenset[str]
    # The types to request from the server, because it presents a key of one requested type.
    types: tuple[str, ...] = ()

    def include(self, fingerprint: str) -> bool:
        return fingerprint.rstrip("=") in self.fingerprints


def host_keys_of(text: str) -> HostKeys:
    """Parse host keys.

    Raises HostKeyError if the text has no key, or a marker such as `@revoked`.
    """
    fix = "give a line of `ssh-keyscan HOST`, or a fingerprint (SHA256:…)"
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    kept = "\n".join(lines)
    if MARKER.search(kept):
        raise HostKeyError(f"it has a marker (@…) in it: {fix}")
    found = {f"SHA256:{match[1]}" for match in FINGERPRINT.finditer(kept)}
    keys = [_key(match["type"], match["blob"]) for match in KEY.finditer(kept)]
    if not found and not keys:
        raise HostKeyError(f"it names no host key: {fix}")
    types = () if found else tuple(dict.fromkeys(kind for kind, _ in keys))
    return HostKeys(fingerprints=frozenset(found | {print_ for _, print_ in keys}), types=types)


def _key(kind: str, text: str) -> tuple[str, str]:
    try:
        blob = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise HostKeyError(f"a {kind} key in it is not whole") from error
    # The blob begins with the key's type, after its length.
    length = int.from_bytes(blob[:LENGTH_BYTES])
    if blob[LENGTH_BYTES : LENGTH_BYTES + length] != kind.encode():
        raise HostKeyError(f"a {kind} key in it is of another type, or not whole")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return kind, f"SHA256:{digest}"
