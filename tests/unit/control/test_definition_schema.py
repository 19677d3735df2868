"""The JSON schema of definitions covers every key that the parser reads."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.definition import document_of, parse
from orbweaver.control.definition_keys import DEFINABLE, KEYS, schema_of_definition
from tests.unit.control.defining import DOCUMENT

SCHEMA = schema_of_definition()


def fits(document: Any) -> bool:
    return jsonschema_rs.is_valid(SCHEMA, document)


def test_schema_describes_every_key() -> None:
    paths = set()
    for name, schema in SCHEMA["properties"].items():
        inner = schema.get("properties")
        paths |= {f"{name}.{key}" for key in inner} if inner else {name}
    assert paths == {key.path for key in DEFINABLE}
    assert {key.path for key in KEYS} - paths == {"seeds_file"}


def test_schema_accepts_documents_of_plans() -> None:
    for document in (DOCUMENT, document_of(parse(DOCUMENT)), document_of(CrawlSpec())):
        jsonschema_rs.validate(SCHEMA, document)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"sedes": []},
        {"seeds": "https://example.com/"},
        {"seeds": [1]},
        {"priority": "higher"},
        {"limits": {"pages": 0}},
        {"limits": {"pages": "5"}},
        {"limits": 5},
        {"scope": {"links": "hosts"}},
        {"politeness": {"robots": "no"}},
        {"identity": {"headers": {"A": 1}}},
        {"identity": {"hosts": {"example.org": {"header": {"A": "b"}}}}},
        {"identity": {"hosts": {"example.org": {"headers": {"A": 1}}}}},
        {"rules": [{"match": "/a", "deep": 1}]},
        {"rules": [{"depth": 1}]},
        {"seeds_file": "/etc/passwd"},
        {"schedule": {"overlap": "perhaps"}},
    ],
)
def test_schema_refuses_unknown_keys_and_wrong_types(document: Any) -> None:
    assert not fits(document)
