"""What release 0.1.0 stores: each file is read, and written back with the same content.

A change that fails here needs a new version of the form (docs/upgrade.md).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orbweaver.control import definition
from orbweaver.control.definition_lines import document_in
from orbweaver.exporting.manifest import decode_manifest, encode_manifest
from orbweaver.frontier import journal_codec, messages
from orbweaver.model import crawl_codec, page_record
from orbweaver.model.compression import decompress

STORED = Path(__file__).parent.parent / "stored"


def _message(stored: Any) -> Any:
    pack = messages.decode(json.dumps(stored))
    assert isinstance(pack, messages.Pack), pack
    return json.loads(messages.encode(pack))


def _journal(stored: Any) -> Any:
    blob = zlib.compress(json.dumps(stored["plain"]).encode()) + bytes.fromhex(stored["digests"])
    plain, digests = decompress(journal_codec.encode(journal_codec.decode(blob)))
    return {"plain": json.loads(plain), "digests": digests.hex()}


def _manifest(stored: Any) -> Any:
    manifest = decode_manifest(json.dumps(stored).encode())
    assert manifest is not None
    return json.loads(encode_manifest(manifest))


FORMS: dict[str, Callable[[Any], Any]] = {
    "message": _message,
    "journal": _journal,
    "record": lambda stored: page_record.to_fields(page_record.from_fields(stored)),
    "crawl": lambda stored: _plain(crawl_codec.to_fields(crawl_codec.from_fields(stored))),
    "definition": lambda stored: _plain(definition.document_of(definition.parse(stored))),
    "manifest": _manifest,
}


def _plain(fields: dict[str, Any]) -> Any:
    return json.loads(json.dumps(fields))


@pytest.mark.parametrize("name", FORMS)
def test_stored_form_is_read_and_written_back(name: str) -> None:
    stored = json.loads((STORED / f"{name}.json").read_text())
    assert FORMS[name](stored) == stored


def test_definition_has_the_same_meaning() -> None:
    document = document_in((STORED / "definition.toml").read_text())
    written = definition.document_of(definition.parse(document))
    assert written == json.loads((STORED / "definition.json").read_text())
