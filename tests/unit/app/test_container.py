"""The wiring of ports, and a container that serves several invocations."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.adapters.web.client import HttpFetcher
from orbweaver.adapters.web.proxy_client import ProxyingFetcher
from orbweaver.app import container, wiring
from orbweaver.app.aws_ports import Ports
from orbweaver.control.schedule import ScheduleError
from orbweaver.delivery.plan import order_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import Permanent
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from orbweaver.model.settings import Settings, SettingsError
from orbweaver.rendering.renderer import Renderer
from orbweaver.worker.batch import Worker
from orbweaver.worker.pack import Delivery
from tests.memory import ManualClock, World
from tests.unit.containers import FakeMessages, close, ports_over
from tests.unit.delivering import exported, taken
from tests.unit.stage import NOW_MS, SITE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from orbweaver.app.container import Container

DELIVERY = Delivery(id="m1", body=SITE, receives=1)


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an environment in which AWS clients can be created; they send no request."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(autouse=True)
def logs() -> Iterator[logging.Logger]:
    logger = logging.getLogger("orbweaver")
    before = (logger.handlers[:], logger.level, logger.propagate)
    logger.handlers[:] = []
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before


async def test_connect_makes_every_port_once() -> None:
    settings = Settings.of(crawl_queue_url="q", urls_table="u", bucket="b")
    async with container.connect(settings) as ports:
        assert ports.settings is settings
        assert ports.pages.shards == settings.worker.pages_shards
        for name in [name for name, kind in vars(Ports).items() if type(kind) is cached_property]:
            assert getattr(ports, name) is getattr(ports, name), name
        assert isinstance(wiring.worker_of(ports), Worker)


async def test_renderer_exists_only_if_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Renderer] = []

    async def close(renderer: Renderer) -> None:
        closed.append(renderer)

    monkeypatch.setattr(Renderer, "close", close)
    async with container.connect(Settings()) as ports:
        assert ports.renderer is None
    assert not closed
    async with container.connect(Settings.of(browser=str(tmp_path))) as ports:
        renderer = ports.renderer
        assert renderer is not None
        assert renderer.browser is None
        assert not closed
    assert closed == [renderer]


@pytest.mark.parametrize(("secret", "kind"), [("", HttpFetcher), ("pool", ProxyingFetcher)])
async def test_proxies_are_used_if_secret_is_configured(secret: str, kind: type) -> None:
    async with container.connect(Settings.of(proxy_secret=secret)) as ports:
        assert type(wiring.fetcher_of(ports)) is kind


# --- the container ----------------------------------------------------------------------------


class FakeWorker:
    """Records its batches, and raises for an empty one."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, int]] = []
        self.flushed = 0

    async def run(self, deliveries: list[Delivery], deadline_ms: int) -> tuple[str, ...]:
        self.batches.append((deliveries, deadline_ms))
        if not deliveries:
            raise RuntimeError("broken")
        return tuple(delivery.id for delivery in deliveries)

    def flush(self) -> None:
        self.flushed += 1


class Warm:
    """A container over ports in memory, and its objects."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        self.messages = FakeMessages()
        self.worker = FakeWorker()
        self.connected = 0
        self.closed = 0
        monkeypatch.setattr(container, "connect", self._connect)
        monkeypatch.setattr(container, "worker_of", self._worker_of)
        self.container: Container = container.Container()

    @contextlib.asynccontextmanager
    async def _connect(self, settings: Settings, meter: UsageMeter) -> AsyncIterator[Any]:
        self.connected += 1

        yield ports_over(
            self.world,
            settings=settings,
            meter=meter,
            clock=ManualClock(NOW_MS),
            messages=self.messages,
        )
        self.closed += 1

    def _worker_of(self, _ports: Ports) -> FakeWorker:
        assert self.connected == 1
        return self.worker


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Warm]:
    monkeypatch.setenv("ORBWEAVER_PART_ROWS_MAX", "1")
    started = Warm(monkeypatch)
    yield started
    close(started.container)
    assert started.closed == started.connected


def test_warm_container_serves_further_invocations(warm: Warm) -> None:
    """Event loop, connections and worker are created once (case 29)."""
    for _ in range(2):
        assert warm.container.process_batch([DELIVERY], 60_000) == ("m1",)
    assert warm.worker.batches == [([DELIVERY], NOW_MS + 60_000)] * 2
    assert (warm.connected, warm.worker.flushed) == (1, 2)


def test_failed_invocation_leaves_container_usable(warm: Warm) -> None:
    """Metrics are written, and the next batch succeeds (case 9)."""
    with pytest.raises(RuntimeError):
        warm.container.process_batch([], 60_000)
    assert warm.worker.flushed == 1
    assert warm.container.process_batch([DELIVERY], 60_000) == ("m1",)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ('{"url": "https://example.com/"}', 202, "application/json"),
        ("{", 400, "application/problem+json"),
    ],
)
def test_answer_has_format_of_api_gateway(warm: Warm, body: str, status: int, kind: str) -> None:
    headers = {"Content-Type": "application/json"}
    event = {"httpMethod": "POST", "path": "/seeds", "headers": headers, "body": body}
    for _ in range(2):  # the API is made once
        answered = warm.container.answer({**event, "requestContext": {"requestId": "r"}})
        assert answered["statusCode"] == status
        assert answered["multiValueHeaders"]["Content-Type"] == [kind]
        assert isinstance(json.loads(answered["body"]), dict)


@pytest.mark.parametrize(("remaining_ms", "orders"), [(600_000, 2), (1_000, 4)])
def test_export_of_day_continues_over_invocations(
    warm: Warm, remaining_ms: int, orders: int
) -> None:
    for path in "ab":
        record = PageRecord(
            crawl="c",
            url=f"{SITE}/{path}",
            outcome=Outcome.FETCHED,
            reason=Reason.OK,
            fetched_at=NOW_MS,
            depth=0,
        )
        warm.world.pages[page_key(record, 16)] = record
    day = "2026-11-21"
    assert warm.container.export({"day": day}, "request", 60_000) == {"days": [day]}
    done = 0
    while warm.messages.sent:
        order = {"Records": [{"body": warm.messages.sent.pop(0)}]}
        assert warm.container.export(order, "another", remaining_ms) == {}
        done += 1
    assert done == orders
    manifest, key = warm.world.exported[0]
    assert (key, manifest.rows) == (f"exports/manifests/dt={day}.json", {"pages": 2})


def test_firing_starts_crawl_in_warm_container(
    warm: Warm, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"due": "2026-11-21T09:00:00Z", "definition": {"seeds": [SITE]}}
    for _ in range(2):
        assert warm.container.fire(event) == {"crawl": "example.com-20261121-090000"}
    assert capsys.readouterr().out.count('"SchedulesStarted"') >= 2
    with pytest.raises(ScheduleError):
        warm.container.fire({})
    assert (warm.connected, len(warm.world.crawls)) == (1, 1)


def test_webhook_is_sent_in_warm_container(warm: Warm, capsys: pytest.CaptureFixture[str]) -> None:
    assert warm.container.notify({"detail": {"crawl": "c"}}) == {"webhook": "none"}
    crawl = Crawl(id="c", name="c", started_at_ms=0, webhook="https://a.example/")
    warm.world.crawls["c"] = crawl
    with pytest.raises(Permanent, match="there is no secret"):
        warm.container.notify({"detail": {"crawl": "c"}})
    warm.world.crawls["c"] = replace(crawl, webhook="http://127.0.0.1:9/")
    warm.world.secrets[""] = "a key that nobody guesses"
    assert warm.container.notify({"detail": {"crawl": "c"}}) == {"webhook": "refused"}
    (mail,) = warm.world.buried
    assert mail.reason == "address: 127.0.0.1 is loopback"
    assert '"WebhooksRefused"' in capsys.readouterr().out


def test_delivery_order_runs_in_warm_container(
    warm: Warm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings.of(
        sftp_host="127.0.0.1",
        sftp_user="crawler",
        sftp_host_key=f"SHA256:{'A' * 43}",
        sftp_secret="the-key",
        copy_bucket="theirs",
    )
    monkeypatch.setattr(warm.container, "_settings", settings)
    exported(warm.world.files, {"c": [b"one"]})
    assert warm.container.deliver(taken(), 60_000) == ()
    first, second = (mail.body for mail in warm.world.sent)
    assert (order_of(first).to, order_of(second).to) == ("bucket", "sftp")
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    for secret in ("no key", key):
        warm.world.secrets["the-key"] = secret
        assert warm.container.deliver(taken(second), 60_000) == ()
    reasons = [mail.reason or "" for mail in warm.world.buried]
    assert "private key cannot be read" in reasons[0]
    assert reasons[1] == "127.0.0.1 must not be dialled: 127.0.0.1 is loopback"
    assert '"DeliveriesRefused"' in capsys.readouterr().out


def test_invalid_setting_stops_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORBWEAVER_RECEIVE_MAX", "none")
    with pytest.raises(SettingsError, match="ORBWEAVER_RECEIVE_MAX"):
        container.Container()


def test_process_has_one_container(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeWorker] = []

    def make() -> FakeWorker:
        made.append(FakeWorker())
        return made[-1]

    monkeypatch.setattr(container, "Container", make)
    container.container.cache_clear()
    try:
        assert container.container() is container.container()
    finally:
        container.container.cache_clear()
    assert len(made) == 1


def test_log_event_is_one_json_line(warm: Warm, logs: logging.Logger) -> None:
    """Every field of an event becomes a key, whatever its content (case 81)."""
    container._log_as_json(UsageMeter())
    # pytest adds its own handlers.
    (handler,) = (one for one in logs.handlers if type(one) is logging.StreamHandler)
    stream = io.StringIO()
    handler.setStream(stream)
    url = 'https://example.com/\n{"level":"ERROR"}\x1b[31m'
    logging.getLogger("orbweaver.worker.batch").info("page.fetched", extra={"url": url})
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["url"] == url
    assert json.loads(line)["message"] == "page.fetched"
    assert line.isprintable()


def test_process_age_is_read_from_start_time(tmp_path: Path) -> None:
    """Unknown formats give an age of 0."""
    assert 0 < container.process_age_s() < time.clock_gettime(time.CLOCK_BOOTTIME)
    ticks = os.sysconf("SC_CLK_TCK")
    started_s = int(time.clock_gettime(time.CLOCK_BOOTTIME)) - 5
    fields = ["S", *["0"] * 18, str(started_s * ticks), "0"]
    (stat := tmp_path / "stat").write_text(f"1 (a) b) {' '.join(fields)}")
    assert container.process_age_s(stat) >= 5
    stat.write_text("1 (a) S")
    assert container.process_age_s(stat) == container.process_age_s(tmp_path / "none") == 0
