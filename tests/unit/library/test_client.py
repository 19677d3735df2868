"""Clients of a store and of a stack: poll intervals, refused functions and workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import orbweaver
from orbweaver.cli.session import stack_session
from orbweaver.cli.stack import AWS_POLL_S, LOCAL_POLL_S, StackPlace
from orbweaver.cli.store import POLL_S, is_store
from orbweaver.library import blocking
from orbweaver.model.settings import ALONE_PAGES_MAX, CORES, STORE, Settings, workers_for
from tests.unit.cli.fakes import LOCAL, NOW_MS, SITE, Machine, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Slept(Exception):
    """Raised when the client would sleep for this many seconds."""


class Alarm:
    """A clock whose first sleeper wakes at once."""

    def now_ms(self) -> int:
        return NOW_MS

    async def sleep(self, seconds: float) -> None:
        raise Slept(seconds)


def on_stack(stage: Stage, environment: Mapping[str, str]) -> orbweaver.AsyncClient:
    client, settings = orbweaver.AsyncClient(stack="Orbweaver"), Settings()
    place = StackPlace(machine=Machine(), settings=settings, environment=environment)
    client._session = stack_session(stage.ports(settings), place)
    return client


@pytest.mark.parametrize("options", [{}, {"store": STORE}])
async def test_client_of_store_polls_as_often_as_command(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with orbweaver.AsyncClient(**options, workers=0) as client:
        assert is_store(tmp_path / STORE)
        begun = await client.start(SITE)
        cast("Any", client._session).ports.clock = Alarm()
        with pytest.raises(Slept) as slept:
            await client.wait(begun)
    assert slept.value.args == (POLL_S,)


@pytest.mark.parametrize(("environment", "poll_s"), [(LOCAL, LOCAL_POLL_S), ({}, AWS_POLL_S)])
async def test_client_of_stack_polls_by_location_until_end(
    environment: Mapping[str, str], poll_s: float
) -> None:
    stage = Stage(per_step=1)
    client = on_stack(stage, environment)
    begun = await client.start(SITE)
    told: list[orbweaver.CrawlStatus] = []
    status = await client.wait(begun, progress=told.append)
    assert (status.state, status.pages) == ("finished", 3)
    assert stage.clock.at_ms - NOW_MS == (len(told) - 1) * poll_s * 1000


async def test_client_of_stack_with_page_hook_is_refused() -> None:
    client = on_stack(Stage(), LOCAL)
    begun = await client.start(SITE)
    with pytest.raises(ValueError, match="those of a stack are in `pages`"):
        await client.wait(begun, on_page=print)


# --- number of workers ----------------------------------------------------------------------------

SMALL, LARGE = {"max_pages": ALONE_PAGES_MAX}, {"max_pages": ALONE_PAGES_MAX + 1}


@pytest.mark.parametrize(
    ("pages_max", "number"),
    [(1, 1), (ALONE_PAGES_MAX, 1), (ALONE_PAGES_MAX + 1, CORES), (None, CORES)],
)
def test_crawl_with_small_limit_has_one_worker(pages_max: int | None, number: int) -> None:
    """One process orders links better than several processes."""
    assert workers_for(pages_max) == number


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (SMALL, 1),
        ({"definition": {"limits": {"pages": ALONE_PAGES_MAX}}}, 1),
        (LARGE, CORES),
        ({}, CORES),
        ({**SMALL, "workers": 3}, 3),
        ({"extractors": {"one": len}}, 1),
    ],
)
def test_program_has_same_workers_as_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], number: int
) -> None:
    taken = []

    class Refused(Exception):
        """Raised instead of opening the store."""

    def client(**given: Any) -> object:
        taken.append(given["workers"])
        raise Refused

    monkeypatch.setattr(blocking, "Client", client)
    with pytest.raises(Refused):
        orbweaver.crawl("https://shop.example/", store=tmp_path, **options)
    assert taken == [number]
