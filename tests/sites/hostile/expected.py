"""The table of all cases: their URLs and expected outcomes.

Rows and places (servers) are defined beside their content, in the modules of the families. This
module collects them. It also names the tests of cases that no single-machine site can serve.
"""

from __future__ import annotations

from tests.sites.hostile import (
    codings,
    content,
    handshakes,
    heads,
    inward,
    links,
    network,
    redirects,
    robots,
    sitemaps,
    statuses,
    traps,
)

_FAMILIES = (
    network,
    heads,
    redirects,
    statuses,
    codings,
    handshakes,
    inward,
    content,
    links,
    robots,
    sitemaps,
    traps,
)
ROWS = tuple(row for family in _FAMILIES for row in getattr(family, "ROWS", ()))
PLACES = tuple(place for family in _FAMILIES for place in getattr(family, "PLACES", ()))

# Cases that the site serves.
BY_CASE = frozenset(
    {row.case for row in ROWS} | {place.trap.case for place in PLACES if place.trap}
)

_FETCHER = "tests/integration/fetcher"
# Tests of cases that a single-machine site cannot serve, or not completely.
ELSEWHERE: dict[int, tuple[str, ...]] = {
    31: (
        f"{_FETCHER}/test_dialling.py::test_unknown_name_differs_from_failed_lookup",
        f"{_FETCHER}/test_dialling.py::test_silent_name_server_meets_lookup_limit",
    ),
    32: (f"{_FETCHER}/test_faults.py::test_network_unreachable",),
    53: (f"{_FETCHER}/test_dialling.py::test_corpus_of_private_addresses_is_refused",),
    54: (
        f"{_FETCHER}/test_dialling.py::test_name_with_one_private_address_is_refused",
        f"{_FETCHER}/test_dialling.py::test_rebound_name_is_refused_at_socket",
        f"{_FETCHER}/test_dialling.py::test_name_is_checked_at_each_lookup",
    ),
    56: (f"{_FETCHER}/test_dialling.py::test_literal_address_is_refused_before_dialling",),
    57: (f"{_FETCHER}/test_dialling.py::test_unusual_port_of_public_name_is_refused",),
    65: ("tests/unit/parsing/test_sitemap_bounds.py",),
    66: (
        "tests/unit/parsing/test_html_scan.py::test_megabyte_of_any_markup_is_scanned_in_linear_time",
    ),
    67: ("tests/unit/politeness/test_robots_cache.py",),
    78: ("tests/contract/test_queue.py::test_each_crawl_is_a_fairness_group",),
}
