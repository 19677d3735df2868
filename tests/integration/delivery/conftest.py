"""Fixtures: an OpenSSH server, and an SFTP connection to it (a courier)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.sftp import SftpCourier
from orbweaver.adapters.local.sftp_connection import Server, SftpIdentity, connected
from orbweaver.delivery.plan import host_keys_of
from orbweaver.exporting.manifest import PREFIX
from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.ports import Files
from tests.memory import MemoryFiles, World
from tests.sites import sshd
from tests.sites.sshd import Sshd

LOOPBACK = parse_allowed("127.0.0.0/8")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    if sshd.program() is None:
        pytest.skip(sshd.ABSENT)
    with sshd.serving(tmp_path / "sshd") as running:
        yield running


class Way:
    """Connection settings of a server; a test can change each of them."""

    def __init__(self, running: Sshd) -> None:
        self.sshd = running
        self.world = World()
        self.files: Files = MemoryFiles(self.world)
        self.clock = SystemClock()

    def server(self, **other: Any) -> Server:
        known = {
            "host": sshd.HOST,
            "port": self.sshd.port,
            "user": self.sshd.user,
            "keys": host_keys_of(self.sshd.host_key),
        }
        return Server(**{**known, **other})

    @asynccontextmanager
    async def courier(
        self, *, key: str | None = None, folder: str = "", **other: Any
    ) -> AsyncIterator[SftpCourier]:
        """Connect to the server; the courier writes below `folder`."""
        identity = SftpIdentity.parse(self.sshd.key if key is None else key)
        async with connected(self.server(**other), identity, LOOPBACK) as sftp:
            yield SftpCourier(
                sftp, files=self.files, prefix=PREFIX, folder=folder, clock=self.clock
            )

    def opener(self, **how: Any) -> Any:
        """Return a function that opens a courier, as the product expects it."""

        def opened() -> AbstractAsyncContextManager[SftpCourier]:
            return self.courier(**how)

        return opened


@pytest.fixture
def way(server: Sshd) -> Way:
    return Way(server)
