"""HTTP API of a store."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from aiohttp.test_utils import TestClient, TestServer

from orbweaver.api.routes import document
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.app.store_service import (
    BODY_BYTES_MAX,
    TOKEN_FILE,
    api_fence,
    http_api,
    read_or_create_token,
)
from tests.unit.api.stage import Reply, checked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiohttp import web

    Caller = TestClient[web.Request, web.Application]


TOKEN = "the token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[StorePorts]:
    made = StorePorts(store_settings({}), tmp_path / "store")
    yield made
    await made.aclose()


@pytest.fixture
async def caller(ports: StorePorts) -> AsyncIterator[Caller]:
    async with TestClient(
        TestServer(http_api(ports, api_fence((), TOKEN))), headers=BEARER
    ) as client:
        yield client


async def ask(caller: Caller, method: str, path: str, **given: object) -> Reply:
    async with caller.request(method, path, **given) as answer:  # type: ignore[arg-type]
        headers = {"Content-Type": [answer.content_type]}
        raw = {"statusCode": answer.status, "multiValueHeaders": headers}
        return checked(method, path, raw | {"body": await answer.text()}, signed=False)


async def test_store_api_serves_its_own_document(caller: Caller) -> None:
    described = await ask(caller, "GET", "/openapi.json")
    assert (described.status, described.body) == (200, document(signed=False))
    assert (await ask(caller, "GET", "/crawls")).body == {"crawls": [], "next": None}


@pytest.mark.parametrize(
    ("headers", "body", "status", "detail"),
    [
        ({"Host": "crawls.example"}, b"", 421, "names of this machine alone"),
        ({"Origin": "http://crawls.example"}, b"", 403, "no pages of other sites"),
        ({"Sec-Fetch-Site": "cross-site"}, b"", 403, "no pages of other sites"),
        ({"Sec-Fetch-Site": "same-site"}, b"", 403, "no pages of other sites"),
        ({"Authorization": ""}, b"", 401, "serve.token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, b"", 401, "serve.token"),
        ({}, bytes(BODY_BYTES_MAX + 1), 413, "larger than"),
        ({}, b"{", 415, "application/json"),
    ],
)
async def test_refusal_of_store_api_is_documented_problem(
    headers: dict[str, str], body: bytes, status: int, detail: str, caller: Caller
) -> None:
    refused = await ask(caller, "POST", "/crawls", headers=headers, data=BytesIO(body))
    assert refused.status == status
    assert detail in refused.body["detail"]


async def test_store_api_without_token_still_checks_host_names(ports: StorePorts) -> None:
    async with TestClient(TestServer(http_api(ports, api_fence((), None)))) as client:
        reply = await client.get("/crawls")
        assert (reply.status, reply.headers["Cross-Origin-Resource-Policy"]) == (200, "same-origin")
        assert (await client.get("/crawls", headers={"Sec-Fetch-Site": "none"})).status == 200
        refused = await client.get("/crawls", headers={"Sec-Fetch-Site": "cross-site"})
        assert refused.status == 403
        assert refused.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_kept_token_is_private_and_replaced_if_unsafe(tmp_path: Path) -> None:
    token = read_or_create_token(tmp_path)
    path = tmp_path / TOKEN_FILE
    assert (read_or_create_token(tmp_path), path.stat().st_mode & 0o777) == (token, 0o600)
    path.chmod(0o644)
    assert (read_or_create_token(tmp_path) != token, path.stat().st_mode & 0o777) == (True, 0o600)
    path.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("planted")
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)
    assert read_or_create_token(tmp_path) != "planted"
    assert elsewhere.read_text() == "planted"
