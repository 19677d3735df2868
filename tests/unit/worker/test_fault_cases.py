"""Every known fault case of delivery and state has a test or a simulated fault.

Docstrings of tests and modules of the simulation name cases as `(case 7)`, `(cases 7, 11)` or
`(cases 3 to 6)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SIMULATION = TESTS / "simulation"
LABEL = re.compile(r"\(cases? (\d[^()]*)\)")
RANGE = re.compile(r"(\d+)(?: to (\d+))?")

CASES = {
    1: "the same message twice, at once",
    2: "the same message again after it is done",
    3: "a crash after the fetch, before anything is stored",
    4: "a crash after storing, before sending children",
    5: "a crash after marking URLs as seen, before sending them",
    6: "a crash after sending, before acknowledging",
    7: "one malformed message among ten",
    8: "a body that is no JSON, nested too deep, or of another version",
    9: "the handler raises",
    10: "the time-out is near",
    11: "a batch item failure that names an unknown message",
    12: "a batch of messages that is taken in part",
    13: "a batch that is larger than a request may be",
    14: "characters that the queue refuses",
    15: "a URL that is too long",
    16: "throttling for minutes",
    17: "a conditional write with an unknown outcome",
    18: "a claim that lapses while its worker lives",
    19: "an expired item that is not deleted yet",
    20: "a record that is larger than an item may be",
    21: "a hot host",
    22: "long chains of links and of deferrals",
    23: "the worker switched off",
    24: "dead letters moved back",
    25: "clocks that are wrong, and that jump",
    26: "messages of another release",
    27: "the exporter invoked twice",
    28: "the exporter killed at any write",
    29: "a warm container",
    30: "dead connections after a thaw",
}


def labels(text: str) -> Iterator[int]:
    for label in LABEL.findall(text):
        for first, last in RANGE.findall(label):
            yield from range(int(first), int(last or first) + 1)


def texts(path: Path) -> Iterator[str]:
    """Yield the texts that may name a case: docstrings of tests, and modules of the simulation."""
    source = path.read_text()
    if SIMULATION in path.parents and not path.name.startswith("test_"):
        yield source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield ast.get_docstring(node) or ""


@cache
def covered() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for text in texts(path):
            for number in labels(text):
                found.setdefault(number, []).append(path.name)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("number", CASES, ids=CASES.values())
def test_fault_case_has_test(number: int) -> None:
    assert covered().get(number), f"no test and no simulated fault names (case {number})"


def test_labels_are_parsed() -> None:
    text = "Twice (case 1), in part (cases 12, 17), any (cases 3 to 6); 7 of (8) in case 9."
    assert sorted(labels(text)) == [1, 3, 4, 5, 6, 12, 17]
