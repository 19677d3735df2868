"""Canonical URLs against the URL tests of the web platform."""

from __future__ import annotations

import json
from typing import Any

from orbweaver.model.url import HOST_CHARS_MAX, canonicalize, hostname_of
from orbweaver.parsing import charset
from tests.corpora import corpus

# Not covered: a security rule of encoders and a private use character.


def cases(name: str) -> list[dict[str, Any]]:
    raw = json.loads(corpus("wpt-url", name).read_bytes())
    return [case for case in raw if isinstance(case, dict)]


def found(reference: str, base: str | None = None) -> str | None:
    try:
        return canonicalize(reference, base)
    except ValueError:
        return None


def expected(case: dict[str, Any]) -> str | None:
    """Return the expected URL by our rules: http(s) only, no fragment, no user name or password."""
    if "failure" in case or case["protocol"] not in {"http:", "https:"}:
        return None
    stem: str = case["protocol"] + "//" + case["host"] + case["pathname"]
    # "search" is empty both for an empty query and for no query.
    mark = "?" if "?" in case["href"].partition("#")[0] and not case["search"] else ""
    return stem + mark + str(case["search"])


def test_canonicalize_passes_all_urltestdata_cases() -> None:
    given = cases("urltestdata.json")
    assert len(given) >= 880
    wrong = {
        (case["input"], case["base"]): got
        for case in given
        if (got := found(case["input"], case["base"])) != expected(case)
    }
    assert wrong == {}


def test_canonicalize_passes_all_toascii_cases() -> None:
    wrong = {}
    given = cases("toascii.json")
    assert len(given) >= 80
    for case in given:
        output = case["output"]
        if output and len(output) > HOST_CHARS_MAX:
            output = None
        url = found(f"https://{case['input']}/x")
        if (hostname_of(url) if url else None) != output:
            wrong[case["input"]] = url
    assert wrong == {}


def test_link_query_is_escaped_in_charset_of_page() -> None:
    wrong = {}
    for case in cases("percent-encoding.json"):
        for name, output in case["output"].items():
            # Without the "#", spaces at the end of the URL would be stripped.
            reference = charset.encode_query(f"https://example.com/?{case['input']}#", name)
            if canonicalize(reference) != f"https://example.com/?{output}":
                wrong[case["input"], name] = reference
    assert wrong == {}
