"""Valid rounds of a benchmark, and the figures computed from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from bench.clients.worker import units_of
from bench.figures import Run, faults, order, rows, sequence

PATHS = frozenset({"/", "/a", "/b", "/c"})
RUN = Run(site="made-up", client="floor", round=0, paths=PATHS, pages=4, crawl_s=2.0, cpu_s=0.008)


def test_round_with_equal_pages_is_valid() -> None:
    assert not any(faults([RUN, replace(RUN, client="worker", requests=9)], served=4))


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (replace(RUN, failure="code 1: no"), "failed: code 1: no"),
        (replace(RUN, pages=3), "was given 4 pages and saw 3"),
        (replace(RUN, paths=PATHS - {"/b"}), "lacks 1 of 4 pages: /b"),
        (
            replace(RUN, paths=PATHS | {"/d"}, pages=5),
            "got 1 pages more than the others: /d",
        ),
    ],
)
def test_run_with_other_pages_than_the_floor_is_void_with_reason(run: Run, why: str) -> None:
    assert faults([RUN, replace(run, client="worker")]) == ["", why]


def test_client_must_get_all_pages_of_others_if_there_is_no_floor() -> None:
    runs = [replace(RUN, client="wget2"), replace(RUN, client="scrapy", paths=frozenset("/"))]
    assert faults(runs) == ["", "lacks 3 of 4 pages: /a, /b, /c"]


def test_round_without_all_served_pages_is_void() -> None:
    assert faults([replace(RUN, paths=frozenset(), pages=0)]) == ["no pages were fetched"]
    assert faults([RUN, RUN], served=5) == ["4 of 5 pages were fetched"] * 2


def test_rows_have_medians_and_spread() -> None:
    runs = [
        replace(RUN, round=n, crawl_s=took_s, cpu_s=cpu_s, resident_bytes_max=100 * n)
        for n, (took_s, cpu_s) in enumerate([(1.0, 0.004), (2.0, 0.008), (4.0, 0.1)])
    ]
    (row,) = rows(run.as_json() for run in runs)
    assert (row.site, row.client, row.rounds, row.pages) == ("made-up", "floor", 3, 4)
    assert row.pages_per_s == 2.0
    assert row.cpu_ms_per_page == 2.0
    assert row.resident_bytes_max == 100
    assert row.spread == (4.0 - 1.0) / 2.0
    assert row.dollars_per_million is None


def test_costs_come_from_metered_units_or_estimate() -> None:
    counts = {"nanodollars": 8_000, "claimed": 4}
    (row,) = rows([replace(RUN, **units_of(counts)).as_json()])
    assert row.dollars_per_million == pytest.approx(2.0)
    assert row.units_per_page == {}
    counts |= {"units.write.claim": 4, "units.write.store": 5}
    (row,) = rows([replace(RUN, **units_of(counts)).as_json()])
    assert row.dollars_per_million == pytest.approx(9 * 0.625 / 4)
    assert row.units_per_page == {"write": 9 / 4}


def test_json_of_run_has_number_and_hash_of_pages() -> None:
    first, second = RUN.as_json(), replace(RUN, client="worker").as_json()
    assert "paths" not in first
    assert first["pages_given"] == 4
    assert first["paths_sha256"] == second["paths_sha256"]


def test_order_rotates_and_then_reverses() -> None:
    clients = ["a", "b", "c"]
    orders = [order(clients, number) for number in range(6)]
    assert [first for first, *_ in orders[:3]] == clients
    assert orders[3:] == [turn[::-1] for turn in orders[:3]]
    assert set(chain(*orders)) == set(clients)


def test_client_with_more_turns_takes_them_last() -> None:
    taken = sequence({"floor": 3, "worker": 2, "peer": 1}, 0)
    assert taken == ["floor", "worker", "peer", "floor", "worker", "floor"]
    assert sequence({"floor": 1, "worker": 1}, 1) == order(["floor", "worker"], 1)
