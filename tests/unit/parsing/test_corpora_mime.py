"""Content-Type headers against the Web Platform Tests."""

from __future__ import annotations

import json
from typing import Any

import webencodings

from orbweaver.parsing.media_type import parse
from tests.corpora import corpus

LEAST = 70


def cases() -> list[dict[str, Any]]:
    vectors = corpus("mimesniff", "mime-types.json").read_text()
    return [case for case in json.loads(vectors) if isinstance(case, dict)]


def test_content_types_pass_all_web_platform_tests() -> None:
    wrong = []
    for case in cases():
        found = parse(case["input"])
        said = None if found is None else str(found)
        label = found.parameters.get("charset", "") if found else ""
        encoding = webencodings.lookup(label)
        name = encoding.name if encoding else None
        expected = case.get("encoding")
        right = said == case["output"] and (name == expected.lower() if expected else name is None)
        if not right:
            wrong.append((case, said, name))
    assert not wrong
    assert len(cases()) >= LEAST
