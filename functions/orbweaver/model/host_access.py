"""Decide the time limit, the retries and the Referer of requests: by origin, or for the crawl.

Source of the Referer: W3C Referrer Policy, `strict-origin-when-cross-origin`, which browsers use by
default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.model.amounts import duration_text
from orbweaver.model.backoff import ATTEMPTS_FEW
from orbweaver.model.crawl_settings import HOST_BOUNDS, HostAccess, Referer
from orbweaver.model.http_exchange import Headers
from orbweaver.model.url import host_of
from orbweaver.model.user_agent import path_of_host, problems_of_hosts

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl

HOSTS_MAX = 50
_TWICE = "put its keys in one table"


def access_to(crawl: Crawl, host: str) -> HostAccess:
    """Return the values for a host (an origin, as of `host_of`)."""
    own = next((one for one in crawl.host_access if one.origin == host), None)
    if own is None:
        own = HostAccess(origin=host)
    return replace(
        own,
        timeout_ms=crawl.timeout_ms if own.timeout_ms is None else own.timeout_ms,
        retries=crawl.retries if own.retries is None else own.retries,
        referer=crawl.referer if own.referer is None else own.referer,
    )


def timeout_of(crawl: Crawl, host: str, default_s: float) -> tuple[float, float | None]:
    """Return the time limits of a request in seconds: in total, and without data (None: default).

    A given limit is both, because a slow server may send nothing until its response is ready.
    """
    given_ms = access_to(crawl, host).timeout_ms
    return (default_s, None) if given_ms is None else (given_ms / 1000, given_ms / 1000)


def longest_s(crawl: Crawl, default_s: float = 0.0) -> float:
    """Return the longest time limit of a request to any host, at least `default_s`."""
    given_ms = [one.timeout_ms for one in crawl.host_access if one.timeout_ms is not None]
    return max(default_s, (crawl.timeout_ms or 0) / 1000, *(one_ms / 1000 for one_ms in given_ms))


def retries_of(crawl: Crawl, url: str) -> int | None:
    """Return the maximum number of further attempts at a URL. None: its failure decides."""
    retries = access_to(crawl, host_of(url)).retries
    if retries is None and crawl.status_only:
        return ATTEMPTS_FEW - 1  # a check of a status is not worth more requests
    return retries


def with_referer(headers: Headers, crawl: Crawl, url: str, referrer: str | None) -> Headers:
    """Return request headers with a Referer, if the crawl sends one and `headers` has none.

    `referrer` is the URL of the page with the link.
    """
    if referrer is None or access_to(crawl, host_of(url)).referer is not Referer.PAGE:
        return headers
    page, here = host_of(referrer), host_of(url)
    is_downgrade = page.startswith("https:") and here.startswith("http:")
    if is_downgrade or any(name.lower() == "referer" for name, _ in headers):
        return headers
    # A Referer has no fragment (RFC 9110, 10.1.3), which has the body of a POST request.
    address = referrer.partition("#")[0]
    return (*headers, ("Referer", address if page == here else f"{page}/"))


def access_words(given: Crawl | HostAccess) -> str:
    """Describe the values that a user gave. Empty if there are none."""
    said = []
    if given.timeout_ms is not None:
        said.append(f"for up to {duration_text(given.timeout_ms)} each")
    if given.retries is not None:
        times = {0: "without retries", 1: "with at most 1 retry"}
        said.append(times.get(given.retries, f"with at most {given.retries} retries"))
    if given.referer is Referer.PAGE:
        said.append("with the linking page as Referer")
    elif given.referer is not None and isinstance(given, HostAccess):
        said.append("without Referer")
    return ", ".join(said)


def applied_words(crawl: Crawl, host: str) -> str:
    """Describe the values for a host, as `access_words`. Empty if all are defaults."""
    applied = access_to(crawl, host)
    return access_words(
        applied if applied.referer is Referer.PAGE else replace(applied, referer=None)
    )


class AccessError(ValueError):
    """The values of a host are invalid. The message has the host, the value and the fix."""


def with_origins(
    access: tuple[HostAccess, ...], origin_of: Callable[[str], str]
) -> tuple[HostAccess, ...]:
    """Return the same values by origin. Raises AccessError for a host that is given twice."""
    found: dict[str, HostAccess] = {}
    for one in access:
        origin = origin_of(one.origin)
        if origin in found:
            raise AccessError(f"{origin} is given twice: {_TWICE}")
        found[origin] = replace(one, origin=origin)
    return tuple(found.values())


def problems_of(access: tuple[HostAccess, ...]) -> Iterator[tuple[str, str]]:
    """Yield each problem: its path below the key of the hosts, and a message with the fix."""
    if len(access) > HOSTS_MAX:
        yield "", f"{len(access)} hosts are too many: give up to {HOSTS_MAX}"
        return
    yield from problems_of_hosts((one.origin for one in access), _TWICE)
    for one in access:
        for setting in HOST_BOUNDS:
            if (text := setting.problem_of(getattr(one, setting.name))) is not None:
                yield f"{path_of_host(one.origin)}.{setting.key.rpartition('.')[2]}", text
