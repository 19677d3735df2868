"""A crawl of a hostile site: it ends by itself, with each URL as in the site's table.

Three crawls run at once, because one cannot reach all cases (`tests/sites/hostile/model.py`): one
obeys robots.txt, one goes anywhere and ignores it, one visits hosts with very long delays. The
worker has shorter limits and trusts an extra authority.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.stand import Crawled, Stand, until
from tests.sites.hostile import links, traps
from tests.sites.hostile.expected import PLACES
from tests.sites.hostile.inward import CANARY
from tests.sites.hostile.robots import DELAYS
from tests.sites.hostile.site import Due, Hostile, trusted
from tests.sites.hostile.statuses import PATIENCE, REST_S
from tests.sites.server import HOST

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(300)]

FAILURES_MAX = 5
TOOK_S_MAX = 90
SLACK_S = 0.05  # Tolerance for a request delayed on its way.
PATIENT = "hostile-patient"
BLOCK_S_MIN, BLOCK_S_MAX = 60, 86_400 * 1.1
LIMITS = {
    "FETCH_TOTAL_S": 4,
    "RETRY_BASE_S": 0.5,
    "LINKS_PER_PAGE_MAX": links.LINKS_TAKEN,
    "FOLDER_URLS_MAX": traps.FOLDER_URLS_MAX,
    "QUERY_URLS_MAX": traps.QUERY_URLS_MAX,
}
# Not the whole loopback network or all its ports: the canary server is next to the site and on it.
ALLOWED = "127.0.0.1/32,::1/128"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Results of the crawls, and the site's request log."""

    site: Hostile
    polite: Crawled
    bold: Crawled
    blocked_s: dict[str, float]
    took_s: float

    def rows(self) -> list[dict[str, Any]]:
        return [*self.polite.rows, *self.bold.rows]

    def due(self) -> dict[str, Due]:
        return self.site.due("polite") | self.site.due("bold")


@contextmanager
def hardened(stand: Stand, folder: Path, site: Hostile) -> Iterator[None]:
    """Run the worker with this test's limits for a block.

    Some of the site's places are not seeds, so their ports are opened, except the canary's.
    """
    changed: dict[str, object] = {f"ORBWEAVER_{key}": value for key, value in LIMITS.items()}
    ports = (f"{HOST}:{port}" for name, port in site.ports.items() if name != CANARY)
    changed["ORBWEAVER_ALLOW_ADDRESSES"] = ",".join((ALLOWED, *ports))
    changed["SSL_CERT_FILE"] = trusted(folder)
    with stand.reconfigured(stand.outputs["WorkerFunction"], changed):
        yield


def blocks(stand: Stand, site: Hostile) -> dict[str, float]:
    """Return for how many seconds hosts are blocked; empty unless all of them are."""
    found: dict[str, float] = {}
    with stand.client("dynamodb") as dynamodb:
        for name in (*PATIENCE, "silent"):
            host = site.url(name).removesuffix("/")
            item = dynamodb.get_item(
                TableName=stand.outputs["HostsTable"], Key={"host": {"S": host}}
            ).get("Item", {})
            until_ms = int(item.get("blocked_until", {"N": "0"})["N"])
            found[name] = until_ms / 1000 - time.time()
    return found if min(found.values()) > 0 else {}


@pytest.fixture(scope="module")
def done(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("hostile")
    site = Hostile()

    def crawl(name: str, *options: str) -> Crawled:
        words = [*site.seeds(name), "--name", f"hostile-{name}", "--delay", "0", *options]  # type: ignore[arg-type]
        return stand.start(*words)

    with site.in_background(), hardened(stand, folder, site), ThreadPoolExecutor() as pool:
        started_s = time.monotonic()
        patience = ("--name", PATIENT, "--delay", "0", "--concurrency", "1", "--json")
        said = stand.orbweaver("start", *site.seeds("patient"), *patience)
        # Their hosts must be blocked before the others begin.
        blocked_s = until(
            lambda: blocks(stand, site), "the hosts are left alone", timeout_s=30, log=stand.log
        )
        bold = pool.submit(
            crawl,
            "bold",
            *("--scope", "any", "--ignore-robots", "--max-depth", str(traps.BOLD_DEPTH_MAX)),
        )
        polite = crawl("polite", "--max-depth", str(traps.DEPTH_MAX))
        crawled = Done(
            site=site,
            polite=polite,
            bold=bold.result(),
            blocked_s=blocked_s,
            took_s=time.monotonic() - started_s,
        )
        stand.orbweaver("cancel", said.result["crawl"])
        stand.purge()  # The rest would return after a quarter of an hour.
        stand.wait_idle()
        yield crawled


def test_every_url_ends_as_table_expects(done: Done) -> None:
    due = done.due()
    rows = [row for row in done.rows() if not trapped(done.site, row["url"])]

    assert not {url: n for url, n in Counter(row["url"] for row in rows).items() if n > 1}
    got = {row["url"]: (row["outcome"], row["reason"]) for row in rows}
    wanted = {url: (one.outcome, one.reason) for url, one in due.items()}
    different = {
        f"{(one := due.get(url)) and one.row and one.row.case} {one and one.place} {url}": (
            f"got {got.get(url)}, expected {wanted.get(url)}"
        )
        for url in got.keys() | wanted
        if got.get(url) != wanted.get(url)
    }
    assert not different, "\n".join(f"{url}: {what}" for url, what in sorted(different.items()))


def test_pages_are_stored_under_their_own_urls(done: Done) -> None:
    rows = {row["url"]: row for row in done.rows()}
    for url, due in done.due().items():
        if due.title and due.outcome == "fetched":
            assert rows[url]["title"] == due.title, url
        if due.charset:
            assert rows[url]["charset"] == due.charset, url


def test_retries_stay_within_limit_per_outcome(done: Done) -> None:
    asked = Counter((heard.origin, heard.target) for heard in done.site.log.of())
    wrong = {
        f"{one.place} {one.target}": f"asked {asked[one.place, one.target]}, expected {one.asks}"
        for one in done.due().values()
        if one.asks is not None and asked[one.place, one.target] != one.asks
    }
    assert not wrong, "\n".join(f"{url}: {what}" for url, what in sorted(wrong.items()))


def test_no_request_reaches_canary(done: Done) -> None:
    assert done.site.servers["canary"].connections == 0
    assert not [heard for heard in done.site.log.of() if heard.secrets]
    assert not [server.faults for server in done.site.servers.values() if server.faults]


@pytest.mark.parametrize("name", [place.name for place in PLACES if place.trap], ids=str)
def test_endless_site_is_requested_up_to_limit(done: Done, name: str) -> None:
    place = next(place for place in PLACES if place.name == name)
    trap = place.trap
    assert trap is not None
    crawled = done.polite if place.crawl == "polite" else done.bold
    urls = [row["url"] for row in crawled.rows if trapped(done.site, row["url"]) == name]

    assert trap.urls_min <= len(urls) <= trap.urls_max
    assert any(crawled.result["refused"].get(stop) for stop in trap.stops), crawled.result
    targets = [target for target in done.site.log.targets(name) if target != "/robots.txt"]
    assert len(targets) <= len(urls), "a page was asked for twice"


@pytest.mark.parametrize("name", ["busy-seconds", "busy-date", "storm-429", "storm-503"])
def test_host_is_not_requested_during_retry_after(done: Done, name: str) -> None:
    heard = done.site.log.of(name)
    rest_s = REST_S if name.startswith("busy") else 1
    busy = [one.at_s for one in heard if one.target == "/busy"]
    assert len(busy) > 1
    assert min(gaps(busy)) >= rest_s - SLACK_S


def test_crawl_delay_of_robots_is_kept(done: Done) -> None:
    for delay, delay_s in DELAYS.items():
        times = [h.at_s for h in done.site.log.of(f"delay-{delay}") if h.target != "/robots.txt"]
        assert len(times) == 3
        assert min(gaps(times)) >= delay_s - SLACK_S, delay


def test_requested_delays_are_bounded(done: Done) -> None:
    assert BLOCK_S_MAX / 1.2 < done.blocked_s["ten-years"] <= BLOCK_S_MAX
    assert BLOCK_S_MIN / 2 < done.blocked_s["garbage"] <= BLOCK_S_MIN * 1.1
    for name in PATIENCE:
        busy = [heard.at_s for heard in done.site.log.of(name) if heard.target == "/busy"]
        assert busy
        assert min(gaps(busy), default=BLOCK_S_MIN) >= BLOCK_S_MIN - SLACK_S
    asked = [heard.at_s for heard in done.site.log.of("delay-day")][1:]
    assert asked
    assert min(gaps(asked), default=BLOCK_S_MIN) >= BLOCK_S_MIN - SLACK_S


def test_silent_host_is_blocked_after_five_failures(done: Done) -> None:
    asked = [heard.at_s for heard in done.site.log.of("silent") if heard.target[1:].isdigit()]
    assert max(gaps(asked[:FAILURES_MAX])) < BLOCK_S_MIN / 2
    assert min(gaps(asked[FAILURES_MAX - 1 :]), default=BLOCK_S_MIN) >= BLOCK_S_MIN - SLACK_S
    assert BLOCK_S_MIN / 2 < done.blocked_s["silent"] <= BLOCK_S_MIN * 1.1


def test_slow_answers_do_not_delay_others(done: Done) -> None:
    assert done.took_s < TOOK_S_MAX
    refused = done.polite.result["refused"]
    assert refused["cut"] >= links.LINKS_TAKEN  # Of a million pages, those before the limit.


def gaps(times_s: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times_s)]


def trapped(site: Hostile, url: str) -> str | None:
    port = urlsplit(url).port
    return next((p.name for p in PLACES if p.trap and site.ports[p.name] == port), None)
