"""Time limit, retries and Referer of requests, by origin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.model.backoff import ATTEMPTS_FEW, ATTEMPTS_MAX, attempts_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_codec import from_fields, to_fields
from orbweaver.model.crawl_settings import HostAccess, Referer
from orbweaver.model.host_access import (
    access_words,
    applied_words,
    longest_s,
    retries_of,
    timeout_of,
    with_referer,
)

A, B = "https://a.test", "https://b.test"
CRAWL = Crawl(id="a-1", name="a", started_at_ms=0, timeout_ms=5_000, retries=1)
OWN = replace(CRAWL, host_access=(HostAccess(origin=B, timeout_ms=60_000, retries=9),))
PAGE = replace(CRAWL, referer=Referer.PAGE)


def test_host_values_have_priority() -> None:
    assert timeout_of(Crawl(id="a-1", name="a", started_at_ms=0), A, 20.0) == (20.0, None)
    assert timeout_of(OWN, A, 20.0) == (5.0, 5.0)
    assert timeout_of(OWN, B, 20.0) == (60.0, 60.0)
    assert timeout_of(OWN, f"{B}:8443", 20.0) == (5.0, 5.0)
    assert (longest_s(OWN, 20.0), longest_s(CRAWL, 20.0)) == (60.0, 20.0)
    assert (retries_of(OWN, f"{A}/x"), retries_of(OWN, f"{B}/x")) == (1, 9)
    status_only = replace(CRAWL, retries=None, status_only=True)
    assert retries_of(status_only, f"{A}/x") == ATTEMPTS_FEW - 1


@pytest.mark.parametrize(
    ("most", "retries", "attempts"),
    [
        (ATTEMPTS_MAX, None, ATTEMPTS_MAX),
        (ATTEMPTS_MAX, 0, 1),
        (ATTEMPTS_MAX, 10, 11),
        (ATTEMPTS_FEW, 10, ATTEMPTS_FEW),
        (1, 10, 1),
    ],
)
def test_retries_raise_attempts_of_temporary_failures_only(
    most: int, retries: int | None, attempts: int
) -> None:
    assert attempts_of(most, retries) == attempts


@pytest.mark.parametrize(
    ("crawl", "url", "referrer", "sent"),
    [
        (CRAWL, f"{A}/x", f"{A}/page?q=1", None),
        (PAGE, f"{A}/x", f"{A}/page?q=1", f"{A}/page?q=1"),
        (PAGE, f"{A}/x", f"{A}/page#POST-json:{{}}", f"{A}/page"),
        (PAGE, f"{A}/x", None, None),
        (PAGE, f"{B}/x", f"{A}/page?q=1", f"{A}/"),
        (PAGE, f"{A}:8443/x", f"{A}/page", f"{A}/"),
        (PAGE, "http://a.test/x", f"{A}/page", None),
        (PAGE, f"{A}/x", "http://a.test/page", "http://a.test/"),
        (replace(PAGE, host_access=(HostAccess(origin=B, referer=Referer.OFF),)), f"{B}/x",
         f"{B}/page", None),
        (replace(CRAWL, host_access=(HostAccess(origin=B, referer=Referer.PAGE),)), f"{B}/x",
         f"{B}/page", f"{B}/page"),
    ],
)  # fmt: skip
def test_referer_follows_policy_of_browsers(
    crawl: Crawl, url: str, referrer: str | None, sent: str | None
) -> None:
    assert dict(with_referer((), crawl, url, referrer)).get("Referer") == sent
    fixed = (("referer", "https://fixed.test/"),)
    assert with_referer(fixed, crawl, url, referrer) == fixed


def test_words_describe_only_given_values() -> None:
    words = "for up to 1m each, with at most 9 retries"
    assert access_words(OWN.host_access[0]) == applied_words(OWN, B) == words
    assert applied_words(OWN, A) == "for up to 5s each, with at most 1 retry"
    assert applied_words(Crawl(id="a-1", name="a", started_at_ms=0), A) == ""
    assert applied_words(PAGE, A).endswith("with at most 1 retry, with the linking page as Referer")
    assert access_words(HostAccess(origin=A, referer=Referer.OFF)) == "without Referer"


def test_stored_crawl_keeps_host_values() -> None:
    crawl = replace(OWN, referer=Referer.PAGE)
    crawl = replace(
        crawl, host_access=(*OWN.host_access, HostAccess(origin=A, referer=Referer.OFF))
    )
    read = from_fields(to_fields(crawl))
    assert read == crawl
    assert read.host_access[1].referer is Referer.OFF
