"""The table of the hostile site has every case, with outcomes of the product."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.outcome import Outcome, Reason, Refusal
from tests.sites.hostile.__main__ import lines
from tests.sites.hostile.expected import BY_CASE, ELSEWHERE, PLACES, ROWS
from tests.sites.hostile.model import ATTEMPTS, FIRST_CASE, FOLDERS, LAST_CASE, Row
from tests.sites.hostile.site import BY_NAME, LISTS, Hostile

ROOT = Path(__file__).parents[3]
CASES = range(FIRST_CASE, LAST_CASE + 1)
TRAPS = [place.trap for place in PLACES if place.trap]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_served_or_tested_elsewhere(case: int) -> None:
    assert case in BY_CASE or ELSEWHERE[case]


def test_table_has_no_unknown_cases() -> None:
    assert BY_CASE | ELSEWHERE.keys() == set(CASES)


@pytest.mark.parametrize("test", sorted({test for tests in ELSEWHERE.values() for test in tests}))
def test_tests_elsewhere_exist(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    functions = [
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert name in functions if name else functions


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.place}{row.path}")
def test_row_has_valid_outcome_reason_and_place(row: Row) -> None:
    assert row.outcome in set(Outcome)
    assert row.reason in set(Reason)
    assert row.serves
    assert BY_NAME[row.place].kind == "server" or not row.ours
    assert not set(row.children) & set(row.ghosts)
    assert row.asks is None or 0 <= row.asks <= ATTEMPTS


def test_attempts_equal_product_limit() -> None:
    assert ATTEMPTS == ATTEMPTS_MAX


def test_targets_and_places_are_unique() -> None:
    targets = Counter((row.place, row.path) for row in ROWS)
    assert max(targets.values()) == 1
    assert max(Counter(place.name for place in PLACES).values()) == 1
    assert len(set(FOLDERS.values())) == len(FOLDERS)


def test_traps_name_refusals_and_bounds() -> None:
    assert {trap.case for trap in TRAPS} == {*range(69, 78)}
    for trap in TRAPS:
        assert set(trap.stops) <= set(Refusal)
        assert 0 < trap.urls_min <= trap.urls_max


@pytest.mark.thorough
def test_each_case_has_ordinary_page_beside_it() -> None:
    site = Hostile()
    with site.in_background():
        due = {**site.due("polite"), **site.due("bold")}
        for row in ROWS:
            if not row.ours or not BY_NAME[row.place].start:
                continue
            folder = f"/{FOLDERS[row.case]}" if row.place in LISTS else ""
            fine = due.get(site.url(row.place, f"{folder}/fine"))
            assert (fine and fine.outcome == "fetched") or BY_NAME[row.place].crawl == "patient"


def test_printed_lines_have_all_cases() -> None:
    site = Hostile()
    with site.in_background():
        printed = lines(site)
    assert {int(line.split()[0]) for line in printed} == set(CASES)
    assert len(printed) >= len(ROWS)
