"""Canonical URLs against the URL tests of the web platform (vectors beside the project)."""

from __future__ import annotations

import json
from typing import Any

from orbweaver.model.url import HOST_CHARS_MAX, canonicalize, hostname_of
from orbweaver.parsing import charset
from tests.corpora import corpus

# Nobody asks for a page in a charset's corner: an encoder's security rule, a private use character.


def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file, without the comments between them."""
    raw = json.loads(corpus("wpt-url", name).read_bytes())
    return [case for case in raw if isinstance(case, dict)]


def found(reference: str, base: str | None = None) -> str | None:
    """Return the canonical URL, or None where there is none."""
    try:
        return canonicalize(reference, base)
    except ValueError:
        return None


def expected(case: dict[str, Any]) -> str | None:
    """Return a case's URL by our rules: http(s) only, no fragment, no user name or password."""
    if "failure" in case or case["protocol"] not in {"http:", "https:"}:
        return None
    stem: str = case["protocol"] + "//" + case["host"] + case["pathname"]
    # "search" does not tell an empty query from none.
    mark = "?" if "?" in case["href"].partition("#")[0] and not case["search"] else ""
    return stem + mark + str(case["search"])


def test_references_of_the_web_platform() -> None:
    """All references of urltestdata mean what they should; none is left out.

    What is no http or https URL there, or is relative to one that is none, is refused here.
    """
    given = cases("urltestdata.json")
    assert len(given) >= 880
    wrong = {
        (case["input"], case["base"]): got
        for case in given
        if (got := found(case["input"], case["base"])) != expected(case)
    }
    assert wrong == {}


def test_hosts_of_the_web_platform() -> None:
    """All host names of toascii come out right; those that are too long for DNS are refused."""
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


def test_queries_in_other_charsets() -> None:
    """The query of a link is escaped in the charset of its page."""
    wrong = {}
    for case in cases("percent-encoding.json"):
        for name, output in case["output"].items():
            # Without the "#", what is at the end of a URL is stripped.
            reference = charset.encode_query(f"https://example.com/?{case['input']}#", name)
            if canonicalize(reference) != f"https://example.com/?{output}":
                wrong[case["input"], name] = reference
    assert wrong == {}
