"""Fixtures for the contract tests.

A "world" is one backend: memory, SQLite, moto, the emulator or, for tables, DynamoDB Local.
`aws_world` only has the backends with AWS clients.
"""

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
from orbweaver.adapters.aws.clients import Aws
from tests.contract import dynamodb_local
from tests.contract.inserts import WithInserts, WithItems
from tests.contract.samples import NOW_MS
from tests.contract.worlds import AWS_WORLDS, LOCAL, AwsWorld, MemoryWorld, SqliteWorld, World
from tests.memory import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path
    from types import ModuleType

    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Frontier, Pages
    from orbweaver.politeness.ports import Hosts
    from tests.contract.worlds import Container, Opener

# Suites that use tables only.
OF_TABLES = {
    f"test_{suite}"
    for suite in (
        *(
            "backlog",
            "budgets",
            "booked",
            "costs",
            "crawls",
            "edits",
            "faults_claims",
            "frontier",
            "hosts",
        ),
        *("packs", "pages", "parked", "samples", "starts", "traces"),
    )
}
# Suites that use tables and also send messages.
SENDING = {"test_costs", "test_starts", "test_traces"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need no server, so that `make check` runs them."""
    for item in items:
        if "tests/contract" in item.path.as_posix():
            item.add_marker(pytest.mark.contract)
            if not any(world in item.name for world in ("memory", "sqlite")):
                item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Run moto in a thread, one request at a time, because its transactions are not isolated."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    # The first request would time out on a busy machine.
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
    running = emulator.start(port=0, keep=False)
    yield running.endpoint_url
    running.stop()


@pytest.fixture(scope="session")
def aws_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dynamodb_local.running(tmp_path_factory.mktemp("dynamodb-local")) as endpoint_url:
        yield endpoint_url


@pytest.fixture(scope="session")
def session() -> AioSession:
    """Return one session, so that service models are parsed once."""
    return AioSession()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def opener(
    request: pytest.FixtureRequest,
    session: AioSession,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Opener:
    """Return a function that opens a backend by name."""

    @asynccontextmanager
    async def opened(name: str) -> AsyncIterator[World]:
        if name == "memory":
            yield MemoryWorld(clock)
            return
        if name == "sqlite":
            world = SqliteWorld(clock, tmp_path / "store")
            yield world
            world.close()
            return
        endpoint_url = request.getfixturevalue("ministack" if name == "emulator" else "moto")
        for variable, value in layout.client_environment(endpoint_url).items():
            monkeypatch.setenv(variable, value)
        if name == LOCAL:
            monkeypatch.setenv(f"{layout.ENDPOINT}_DYNAMODB", request.getfixturevalue("aws_tables"))
        async with Aws(session, validates=True) as aws:
            played = AwsWorld(clock=clock, aws=aws)
            await played.open(queues=_suite(request.module) not in OF_TABLES - SENDING)
            lacking = {"moto": WithInserts, LOCAL: WithItems}.get(name)
            if lacking is not None:
                played.clients["dynamodb"] = lacking(played.clients["dynamodb"])
            yield played

    return opened


def _suite(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    aws = list(AWS_WORLDS)
    if _suite(metafunc.module) in OF_TABLES:
        # AWS's own DynamoDB decides. `make test-long` has the others, too.
        if dynamodb_local.is_installed():
            aws = [pytest.param(name, marks=pytest.mark.long) for name in ("moto", "emulator")]
        aws.append(pytest.param(LOCAL, marks=pytest.mark.emulator))
    for name, worlds in (("world", ["memory", "sqlite", *aws]), ("aws_world", aws)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, worlds, indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[World]:
    async with opener(request.param) as opened:
        yield opened


@pytest.fixture
def container(world: World) -> Container:
    """Return the adapters of one container; further containers come from `world.container()`."""
    return world.container()


@pytest.fixture
def backlog(container: Container) -> Backlog:
    return container.backlog


@pytest.fixture
def frontier(container: Container) -> Frontier:
    return container.frontier


@pytest.fixture
def hosts(container: Container) -> Hosts:
    return container.hosts


@pytest.fixture
def pages(container: Container) -> Pages:
    return container.pages


@pytest.fixture
async def aws_world(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[AwsWorld]:
    async with opener(request.param) as opened:
        assert isinstance(opened, AwsWorld)
        yield opened


@pytest.fixture
async def moto_world(opener: Opener) -> AsyncIterator[AwsWorld]:
    """Return one backend for tests that inject client faults; they do not depend on the backend."""
    async with opener("moto") as opened:
        assert isinstance(opened, AwsWorld)
        yield opened
