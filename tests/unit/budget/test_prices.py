"""Dollar model: prices, and the cost of units, claims and visits (processing of one pack)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbweaver.budget import prices
from orbweaver.budget.billing_units import Term
from orbweaver.budget.prices import PRICES, dollars, unit_cost
from orbweaver.model.amounts import NANO

MILLION = 1_000_000
ROOT = Path(__file__).parents[3]


A_SECOND = prices.second(memory_mb=1_024)


def test_every_term_has_a_price() -> None:
    assert set(PRICES) == set(Term)


@pytest.mark.parametrize(
    ("term", "number", "amount"),
    [
        (Term.WRITE, MILLION, 0.625),
        (Term.READ_HALVES, 2 * MILLION, 0.125),
        (Term.SQS, MILLION, 0.5),
        (Term.S3_PUT, 1_000, 0.005),
        (Term.S3_GET, 1_000, 0.0004),
        (Term.EVENTS, MILLION, 1.0),
        (Term.LOG_BYTES, 1024**3, 0.5),
        (Term.SENT_BYTES, 1024**3, 0.09),
        (Term.INVOCATIONS, MILLION, 0.2),
        (Term.MB_MS, 1024 * 1000, 0.0000133334),
        (Term.MB_MS_X86, 1024 * 1000, 0.0000166667),
    ],
)
def test_dollars_follow_price_list_of_aws(term: Term, number: int, amount: float) -> None:
    assert dollars({term: number}) == pytest.approx(amount)


def test_dollars_of_terms_are_added() -> None:
    assert dollars({Term.WRITE: 2, Term.INVOCATIONS: 1}) * NANO == pytest.approx(2 * 625 + 200)
    assert dollars({}) == 0
    assert dollars({Term.WRITE: NANO}) == pytest.approx(625)
    assert unit_cost(Term.READ_HALVES) == 63
    assert unit_cost(Term.READ_HALVES, 2) == 125


@pytest.mark.parametrize(
    ("counts", "charged", "metered", "spent"),
    [
        ({}, None, None, None),
        ({"nanodollars": 1_250_000_000}, 1.25, None, 1.25),
        ({"nanodollars": NANO, "units.write.claim": MILLION}, 1.0, 0.625, 0.625),
    ],
)
def test_metered_usage_replaces_charged_budget(
    counts: dict[str, int], charged: float | None, metered: float | None, spent: float | None
) -> None:
    assert prices.charged(counts) == charged
    assert prices.metered(counts) == pytest.approx(metered)
    assert prices.spent(counts) == pytest.approx(spent)


def test_million_pages_of_polite_crawl_cost_2_to_8_dollars() -> None:
    # A full pack with one page a second; nine more visits share the function.
    visit = prices.visit(urls=25, again=1, files=1, seconds=2.5, a_second=A_SECOND)
    page = prices.CLAIM + visit / 25
    assert 2 < page * MILLION / NANO < 8


@pytest.mark.parametrize(
    ("more", "price"),
    [
        ({}, 0),
        ({"urls": 3}, 2 * prices.ASKED),
        ({"again": 2}, 2 * prices.AGAIN),
        ({"files": 1}, prices.FILE),
        ({"seconds": 3.0}, 2 * prices.GB_SECOND),
        ({"a_second": prices.second(memory_mb=2_048)}, prices.GB_SECOND),
    ],
)
def test_visit_cost_grows_with_each_parameter(more: dict[str, int], price: int) -> None:
    usual = {"urls": 1, "again": 0, "files": 0, "seconds": 1.0, "a_second": A_SECOND}
    assert prices.visit(**(usual | more)) - prices.visit(**usual) == price  # type: ignore[arg-type]


def test_second_costs_more_on_x86() -> None:
    """A function with a browser runs on x86."""
    assert prices.second(memory_mb=2_048) == 2 * prices.GB_SECOND
    dearer = prices.second(memory_mb=2_048, architecture="x86_64")
    assert dearer == pytest.approx(2 * 16_666.7, rel=1e-4)
    assert prices.time_term("x86_64") is Term.MB_MS_X86
    assert prices.time_term("arm64") is Term.MB_MS


def test_visit_never_costs_more_than_visit_most() -> None:
    most = prices.visit_cost_max(urls=25, seconds=40, a_second=A_SECOND)
    for again in (0, 13, 25):
        for seconds in (0, 39.999, 40):
            it = prices.visit(urls=25, again=again, files=1, seconds=seconds, a_second=A_SECOND)
            assert it <= most


def _numbers(tree: ast.AST) -> Iterator[tuple[int, float]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node.lineno, abs(node.value)


def _constants(tree: ast.AST, named: re.Pattern[str]) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for name in node.targets:
                if isinstance(name, ast.Name) and name.id.isupper() and named.search(name.id):
                    yield node.value


def test_prices_are_defined_in_one_module() -> None:
    """Only prices with more than one digit are searched for."""
    told: set[float] = set()
    for price in PRICES.values():
        for amount in (price.nanodollars, price.nanodollars / price.per):
            told |= {amount, amount / NANO, amount * MILLION / NANO}
    distinct = {round(one, 15) for one in told if len(f"{one:.9e}".split("e")[0].strip("0.")) > 1}
    assert {625, 0.625, 62.5, 13_333.4} <= distinct
    # A benchmark's limit in dollars per million pages is not a price.
    named = re.compile(r"PRICE|USD|COST|DOLLAR(?!S_MAX)")
    found = []
    for folder in ("functions", "bench", "infra", "localstack", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == Path(prices.__file__):
                continue
            tree = ast.parse(path.read_text())
            told_here = [one for one in _numbers(tree) if round(one[1], 15) in distinct]
            named_so = [number for value in _constants(tree, named) for number in _numbers(value)]
            found += [f"{path.relative_to(ROOT)}:{line}" for line, _ in (*told_here, *named_so)]
    assert not found
