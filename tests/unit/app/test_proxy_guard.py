"""Workers without the proxies of a crawl must not request its URLs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.app.proxy_guard import ProxyGuard
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.app.store_service import ScheduleClock
from orbweaver.app.wiring import api_of, control_of, starting
from orbweaver.app.worker_proxies import lacking_proxies
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.schedule import Scheduled, firing_input
from orbweaver.fetching.proxy_config import DIRECT, ProxyConfig
from orbweaver.model.crawl import State
from orbweaver.model.errors import ControlError
from tests.contract import samples
from tests.unit.api.stage import JSON, event_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from orbweaver.control.crawl_control import Control

A, B = "http://p.test:1", "http://q.test:2"
LISTED = ProxyConfig(urls=(A,))
SEED = "https://example.com/"


@pytest.mark.parametrize(
    ("before", "now", "proxied", "state"),
    [
        (LISTED, DIRECT, True, State.PAUSED),
        (ProxyConfig(https=A), DIRECT, True, State.PAUSED),
        (LISTED, ProxyConfig(http=A), True, State.PAUSED),
        (LISTED, ProxyConfig(urls=(B,)), True, State.RUNNING),
        (ProxyConfig(https=A), ProxyConfig(https=B), True, State.RUNNING),
        (ProxyConfig(https=A, no_proxy="*"), DIRECT, True, State.RUNNING),
        (LISTED, DIRECT, False, State.RUNNING),
        (DIRECT, DIRECT, True, State.RUNNING),
    ],
)
@pytest.mark.parametrize("which", ["first", "retry", "next"])
async def test_crawl_pauses_if_worker_lacks_its_proxies(
    tmp_path: Path,
    before: ProxyConfig,
    now: ProxyConfig,
    state: State,
    which: str,
    *,
    proxied: bool,
) -> None:
    ports = StorePorts(store_settings({}), tmp_path)
    at_ms = ports.clock.now_ms()
    about: dict[str, Any] = {"seeds": (SEED,), "proxied": proxied, "started_at_ms": at_ms}
    crawls = {
        "first": (first := samples.crawl(**about)),
        "retry": samples.crawl(**about, id="retry", retry_of=first.id),
        "next": samples.crawl(**about | {"id": "next", "started_at_ms": at_ms + 1}),
    }
    with ports.ending:
        for one in crawls.values():
            await ports.crawls.create(one)
        ports.proxies = before
        await ProxyGuard(ports).check([first.id])
        ports.proxies = now
        crawl = crawls[which]
        await ProxyGuard(ports).check([crawl.id])
        found = await ports.crawls.get(crawl.id)
        assert found is not None
        assert found.state is state
        why = await lacking_proxies(ports.crawls, crawl, now)
        assert (f"{first.id} uses proxies, and the workers have none" in why) is (
            state is State.PAUSED
        )


SPEC = CrawlSpec(name="shop", seeds=(SEED,))
DOCUMENT = {"name": "shop", "seeds": [SEED], "schedule": {"every": "5m", "overlap": "allow"}}


async def fire(ports: StorePorts, event: Mapping[str, Any]) -> None:
    with starting(ports) as starter:
        await starter.fire(event)


# Each way to a run. All of them lead through `Control`.
WAYS: dict[str, Callable[[StorePorts, Control, str], Awaitable[object]]] = {
    "crawl": lambda _, control, __: control.decide(SPEC, busy=lambda: False),
    "start": lambda _, control, __: control.start(SPEC),
    "resume": lambda _, control, run: control.resume(run),
    "retry": lambda _, control, run: control.retry(run),
    "refetch": lambda _, control, __: control.refetch(replace(SPEC, texts=True)),
    "schedule": lambda ports, _, __: fire(
        ports, {"due": "2026-11-21T09:00:00Z", "definition": DOCUMENT}
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_to_a_run_lacks_check_of_proxies(tmp_path: Path, way: str) -> None:
    ports = StorePorts(store_settings({}), tmp_path)
    with ports.ending:
        control = control_of(ports)
        first = await control.start(SPEC)
        await ports.crawls.note_proxied(first.id, {"https"})
        ports.held_by("own")
        why = f"{first.id} uses proxies, and the workers have none for https: give the workers"
        with pytest.raises(ControlError, match=why):
            await WAYS[way](ports, control, first.id)
        assert [run.id for run in await ports.crawls.list()] == [first.id]
        ports.proxies = LISTED
        await WAYS[way](ports, control, first.id)


@pytest.mark.parametrize(
    ("mark", "proxied", "status"),
    [(None, True, 201), ("", True, 400), ("digest", True, 201), ("", False, 201)],
)
async def test_posted_run_is_refused_while_workers_lack_its_proxies(
    tmp_path: Path, mark: str | None, status: int, *, proxied: bool
) -> None:
    """Without workers, a later worker pauses the run if it lacks the proxies."""
    ports = StorePorts(store_settings({}), tmp_path)
    with ports.ending, ExitStack() as others:
        first = samples.crawl(seeds=(SEED,), started_at_ms=ports.clock.now_ms())
        await ports.crawls.create(first)
        await ports.crawls.note_proxied(first.id, {"https"})
        if mark is not None:
            others.enter_context(StoreProcesses(tmp_path).taking_part(mark))
        document = {"name": "shop", "seeds": [SEED], "identity": {"proxies": proxied}}
        event = event_of("POST", "/crawls", document, JSON)
        answer = await api_of(ports, signed=False).answer(event)
        assert answer["statusCode"] == status
        assert ("uses proxies" in answer["body"]) is (status == 400)


async def test_schedule_without_proxies_of_crawl_becomes_dead_letter(tmp_path: Path) -> None:
    ports = StorePorts(store_settings({}), tmp_path)
    with ports.ending:
        first = samples.crawl(seeds=(SEED,), started_at_ms=ports.clock.now_ms())
        await ports.crawls.create(first)
        await ports.crawls.note_proxied(first.id, {"https"})
        ports.held_by("own")
        told = firing_input(DOCUMENT)
        schedule = Scheduled(
            name="shop", expression="rate(5 minutes)", timezone=None, first_ms=0, input=told
        )
        await ports.schedules.put(schedule)
        ports.schedules.fired("shop", ports.clock.now_ms() - 600_000)
        await ScheduleClock(ports).poll()
        assert ports.inbox(QueueName.DEAD_LETTERS).depth().waiting == 1
