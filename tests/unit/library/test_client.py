"""Clients of a store and of a stack: poll intervals and refused functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

import orbweaver
from orbweaver.cli.session import stack_session
from orbweaver.cli.stack import AWS_POLL_S, LOCAL_POLL_S, StackPlace
from orbweaver.cli.store import POLL_S, is_store
from orbweaver.model.settings import STORE, Settings
from tests.unit.cli.fakes import LOCAL, NOW_MS, SITE, Everything, Machine, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orbweaver.app.ports import PortSet


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
    client._session = stack_session(cast("PortSet", Everything(stage, settings)), place)
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
