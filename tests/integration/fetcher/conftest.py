"""Fixtures of the fetcher tests."""

from __future__ import annotations

import socket

import pytest

from tests.integration.fetcher.authority import authority


@pytest.fixture
def trusted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path_factory.mktemp("trusted") / "trusted.pem"
    store.write_bytes(authority("trusted").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(store))


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []
    connect = socket.socket.connect

    def noted(sock: socket.socket, address: tuple[str, int]) -> None:
        seen.append((address[0], address[1]))
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    return seen
