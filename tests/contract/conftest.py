"""Fixtures: `world` is memory, then moto, then the emulator; `aws_world` only the latter two."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from aiobotocore.session import AioSession
from werkzeug.serving import make_server

from localstack import emulator, layout
from orbweaver.adapters.aws import Aws
from orbweaver.adapters.memory import ManualClock
from tests.contract.moto_inserts import WithInserts
from tests.contract.samples import NOW_MS
from tests.contract.worlds import AWS_WORLDS, AwsWorld, MemoryWorld, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.contract.worlds import Opener


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here."""
    for item in items:
        if "tests/contract" in item.path.as_posix():
            item.add_marker(pytest.mark.contract)


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Run moto in a thread, one request at a time: its transactions are not isolated."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    # Not by the first request, whose client does not wait that long where a machine is busy.
    for service in ("dynamodb", "events", "s3", "sqs"):
        import_module(f"moto.{service}.urls")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def ministack() -> Iterator[str]:
    """Run the emulator for the session."""
    running = emulator.start(port=0, keep=False)
    yield running.endpoint_url
    running.stop()


@pytest.fixture(scope="session")
def session() -> AioSession:
    """Make one session: the service models are parsed once."""
    return AioSession()


@pytest.fixture
def clock() -> ManualClock:
    """Start a clock at noon."""
    return ManualClock(NOW_MS)


@pytest.fixture
def opener(
    request: pytest.FixtureRequest,
    session: AioSession,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Opener:
    """Give what opens a world by its name."""

    @asynccontextmanager
    async def opened(name: str) -> AsyncIterator[World]:
        if name == "memory":
            yield MemoryWorld(clock)
            return
        endpoint_url = request.getfixturevalue("moto" if name == "moto" else "ministack")
        for variable, value in layout.client_environment(endpoint_url).items():
            monkeypatch.setenv(variable, value)
        async with Aws(session) as aws:
            world = AwsWorld(clock=clock, aws=aws)
            await world.open()
            if name == "moto":
                world.clients["dynamodb"] = WithInserts(world.clients["dynamodb"])
            yield world

    return opened


@pytest.fixture(params=["memory", *AWS_WORLDS])
async def world(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[World]:
    """Give every world."""
    async with opener(request.param) as opened:
        yield opened


@pytest.fixture(params=AWS_WORLDS)
async def aws_world(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[AwsWorld]:
    """Give the worlds that have clients."""
    async with opener(request.param) as opened:
        assert isinstance(opened, AwsWorld)
        yield opened


@pytest.fixture
async def moto_world(opener: Opener) -> AsyncIterator[AwsWorld]:
    """Give one world whose clients are made faulty: who answers behind them does not matter."""
    async with opener("moto") as opened:
        assert isinstance(opened, AwsWorld)
        yield opened
