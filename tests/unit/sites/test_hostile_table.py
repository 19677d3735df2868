"""The table of the hostile site: it has every case, and speaks the product's words."""

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
    """No case from 31 to 78 is without a row, a trap or a test that has it."""
    assert case in BY_CASE or ELSEWHERE[case]


def test_there_are_no_other_cases() -> None:
    """A case that is numbered wrongly would hide one that is missing."""
    assert BY_CASE | ELSEWHERE.keys() == set(CASES)


@pytest.mark.parametrize("test", sorted({test for tests in ELSEWHERE.values() for test in tests}))
def test_tests_elsewhere_exist(test: str) -> None:
    """What the table names is there."""
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    functions = [
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert name in functions if name else functions


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.place}{row.path}")
def test_row_makes_sense(row: Row) -> None:
    """Outcomes and reasons are those that there are; what is ours has a place that is served."""
    assert row.outcome in set(Outcome)
    assert row.reason in set(Reason)
    assert row.serves
    assert BY_NAME[row.place].kind == "server" or not row.ours
    assert not set(row.children) & set(row.ghosts)
    assert row.asks is None or 0 <= row.asks <= ATTEMPTS


def test_attempts_are_those_of_a_crawl() -> None:
    """What may pass is asked for as often as the product does."""
    assert ATTEMPTS == ATTEMPTS_MAX


def test_targets_and_places_are_named_once() -> None:
    """Two rows of one URL would contradict each other."""
    targets = Counter((row.place, row.path) for row in ROWS)
    assert max(targets.values()) == 1
    assert max(Counter(place.name for place in PLACES).values()) == 1
    assert len(set(FOLDERS.values())) == len(FOLDERS)


def test_traps_are_stopped_by_refusals_that_there_are() -> None:
    """Every trap names what ends it, and bounds."""
    assert {trap.case for trap in TRAPS} == {*range(69, 78)}
    for trap in TRAPS:
        assert set(trap.stops) <= set(Refusal)
        assert 0 < trap.urls_min <= trap.urls_max


@pytest.mark.thorough
def test_each_case_has_innocents_beside_it() -> None:
    """Beside what is hostile there is a page that must not be harmed by it."""
    site = Hostile()
    with site.in_background():
        due = {**site.due("polite"), **site.due("bold")}
        for row in ROWS:
            if not row.ours or not BY_NAME[row.place].start:
                continue
            folder = f"/{FOLDERS[row.case]}" if row.place in LISTS else ""
            fine = due.get(site.url(row.place, f"{folder}/fine"))
            assert (fine and fine.outcome == "fetched") or BY_NAME[row.place].crawl == "patient"


def test_by_hand_it_prints_all_cases_with_their_urls() -> None:
    """Every case has a line: a URL with its outcome, or the test that has it."""
    site = Hostile()
    with site.in_background():
        printed = lines(site)
    assert {int(line.split()[0]) for line in printed} == set(CASES)
    assert len(printed) >= len(ROWS)
