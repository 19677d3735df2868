"""Bounds, parts and counts in the guide of limits agree with the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from orbweaver.model.columns import INVALID_ITEMS, PAGES
from orbweaver.model.cuts import PARTS
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import COLUMNS
from orbweaver.rendering.task import RequestRefusal
from orbweaver.worker.page_rendering import SCREENSHOTS_LARGE

GUIDE = (Path(__file__).parents[3] / "docs" / "limits.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in GUIDE.splitlines()
    if line.startswith("| ") and not line.startswith(("| what ", "| --- "))
]
BOUND = re.compile(r"`([a-z][.\w]*)\.(\w+) = ([0-9.]+)`")
# Bounds of a page by module; each has a row.
BOUNDS = {
    "parsing.main_text": {"HTML_BYTES_MAX", "CONVERTED_BYTES_MAX", "HEAD_BYTES_MAX", "CHARS_MAX",
                          "TAGS_MAX", "WORDS_TAGS_MAX", "REFERENCES_MAX", "NESTED_MAX",
                          "ATTRIBUTES_MAX", "PLACES_MAX", "DEPTH_MAX"},
    "parsing.page": {"TEXT_CHARS_MAX", "LANGUAGE_CHARS_MAX"},
    "model.page_record": {"HEADER_CHARS_MAX", "DESCRIPTION_CHARS_MAX"},
    "worker.pack_context": {"ERROR_CHARS_MAX"},
    "parsing.links": {"LINKS_CHARS_MAX"},
    "extraction.extract": {"EXTRACTED_BYTES_MAX"},
    "extraction.json_ld": {"SCRIPTS_MAX", "SCRIPT_CHARS_MAX", "SCRIPTS_CHARS_MAX",
                           "DEPTH_MAX", "NODES_MAX", "NAMES_MAX"},
    "adapters.web.headers": {"HEADERS_CHARS_MAX"},
}  # fmt: skip
# Bounds without a row of their own, with the reason.
OTHERS = {
    "parsing.main_text": {
        "COLUMNS_MAX": "how wide a table is thought to be",
        "BEGINNING_BYTES_MAX": "where words that are compared are looked for",
        "PLAIN_TAGS_MAX": "from how many tags words are compared",
    },
    "parsing.links": {
        "CHARS_MAX": "how much of a Link header is read",
        "REFRESH_S_MAX": "the longest delay of a refresh that counts as a redirect",
    },
    "parsing.page": {"LINKS_MAX": "the default of links_per_page_max"},
    "extraction.extract": {
        "ERROR_CHARS_MAX": "words of an extractor's exception, in invalid_items"
    },
}


def _value_of(place: str, name: str) -> object:
    """Return the value of a constant, or the default of a field."""
    parts = place.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(f"orbweaver.{'.'.join(parts[:cut])}")
        except ModuleNotFoundError:
            continue
        for part in [*parts[cut:], name]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = fields[part].default if part in fields else getattr(found, part)
        return found
    raise AssertionError(place)


@pytest.mark.parametrize("bound", sorted(set(BOUND.findall(GUIDE))), ids="=".join)
def test_bound_equals_code_constant(bound: tuple[str, str, str]) -> None:
    place, name, number = bound
    assert _value_of(place, name) == pytest.approx(float(number))


@pytest.mark.parametrize("place", BOUNDS)
def test_each_bound_of_page_has_a_row(place: str) -> None:
    module = import_module(f"orbweaver.{place}")
    own = Path(module.__file__ or "").read_text()
    names = set(re.findall(r"^(?:[A-Z_]+, )*([A-Z][A-Z_]*_MAX)\b[^=\n]* = ", own, re.MULTILINE))
    assert names - OTHERS.get(place, {}).keys() == BOUNDS[place]
    listed = {name for module, name, _ in BOUND.findall(GUIDE) if module == place}
    assert BOUNDS[place] <= listed


def test_each_row_names_existing_count() -> None:
    known = {
        *(f"cut: {part}" for part in PARTS),
        *(f"refused.{reason}" for reason in Refusal),
        *(f"render.refused.{reason}" for reason in RequestRefusal),
        *(f"{outcome}: {reason}" for outcome in Outcome for reason in Reason),
        INVALID_ITEMS.name,
        SCREENSHOTS_LARGE,
        "error",
    }
    assert len(ROWS) > 40
    for row in ROWS:
        counted = re.findall(r"`([^`]+)`", row[3])
        assert counted, row[0]
        assert set(counted) <= known, row[0]


def test_each_part_has_row_text_and_export_column() -> None:
    assert {part for part in PARTS if f"`cut: {part}`" not in GUIDE} == set()
    assert all(PARTS.values())
    assert "cut" in COLUMNS
    assert "cut" in {column.name for column in PAGES.columns}
