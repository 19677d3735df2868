"""Reasons have the meanings that the guide states, and every rule has a text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orbweaver.diagnostics.rule_texts import moment, never_requested_reason, span, trap_rule
from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.outcome import Reason, Refusal

OPERATIONS = (Path(__file__).parents[3] / "docs/operations.md").read_text()


def table(heading: str) -> list[list[str]]:
    found = re.search(
        rf"^\| {re.escape(heading)} \|\n\| ---.*\n((?:\|.*\n)+)", OPERATIONS, re.MULTILINE
    )
    assert found, heading
    lines = re.sub(r" \(\[[^\]]*\]\([^)]*\)\)", "", found[1]).replace("`", "").splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_reasons_have_meanings_of_guide() -> None:
    told = {(row[0], row[1], row[2]) for row in table("outcome | reason | means")}
    assert told == {(reason.outcome, reason, reason.means) for reason in Reason}


def test_refusals_have_meanings_of_guide() -> None:
    told = {(row[0], row[1]) for row in table("refused | means")}
    assert told == {(refusal, refusal.means) for refusal in Refusal}


LOCAL = parse_allowed("127.0.0.0/8,::1", frozenset({4566}))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:8000/x", None),
        ("http://localhost:8000/", None),
        ("http://a.localhost:8000/", None),
        ("http://127.0.0.1:6379/", "no seed names 127.0.0.1:6379: give http://127.0.0.1:6379/"),
        ("http://localhost:6379/", "no seed names 127.0.0.1:6379"),
        ("http://localhost:4566/", "port 4566 there is the stack's own"),
        ("http://[::1]:8000/", "deploy with allow_addresses=[::1]:8000"),
        ("http://10.0.0.1/", "10.0.0.1 is private"),
        ("http://example.com:6379/", "port 6379 is not one of"),
        ("http://example.com/", None),
    ],
)
def test_url_never_requested_is_explained_with_fix(url: str, why: str | None) -> None:
    said = never_requested_reason(url, LOCAL, {"http://127.0.0.1:8000"})
    assert said is None if why is None else why in str(said)


def test_only_trap_refusals_have_trap_rule() -> None:
    ruled = {refusal for refusal in Refusal if trap_rule(refusal)}
    assert ruled == {Refusal.PATH_DEPTH, Refusal.REPETITION, Refusal.QUERY}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (1, "1 s"), (90, "90 s"), (120, "2 min"), (7_200, "2 h"), (604_800, "7 d")],
)
def test_span_uses_largest_whole_unit(seconds: int, words: str) -> None:
    assert span(seconds) == words


def test_moment_is_in_utc() -> None:
    assert moment(1_795_251_600_999) == "2026-11-21 09:00:00 UTC"
