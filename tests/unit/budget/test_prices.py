"""The one table of prices."""

from __future__ import annotations

import pytest

from orbweaver.budget.billing_units import Term
from orbweaver.budget.prices import NANO, PRICES, dollars, each, nanodollars

MILLION = 1_000_000


def test_every_term_has_a_price() -> None:
    """What is counted can be priced."""
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
    ],
)
def test_what_so_many_cost(term: Term, number: int, amount: float) -> None:
    """As AWS puts it."""
    assert dollars({term: number}) == pytest.approx(amount)


def test_terms_are_added_up() -> None:
    """In nanodollars, and single units rounded up."""
    assert nanodollars({Term.WRITE: 2, Term.INVOCATIONS: 1}) == 2 * 625 + 200
    assert dollars({}) == 0
    assert dollars({Term.WRITE: NANO}) == pytest.approx(625)
    assert each(Term.READ_HALVES) == 63
    assert each(Term.READ_HALVES, 2) == 125
