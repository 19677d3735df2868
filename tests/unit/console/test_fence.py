"""Access checks of the console: every listed attack is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from yarl import URL

from orbweaver.app.wiring import api_of
from orbweaver.console.fence import fence_at, headers_of, headers_of_stored
from orbweaver.console.files import static_files
from orbweaver.console.server import ConsoleServer
from orbweaver.console.stored import GOOD_MS, TICKETS_MAX, Tickets
from orbweaver.model.crawl import State
from tests.unit.console.stage import BEARER, RUN, TOKEN

if TYPE_CHECKING:
    from tests.unit.console.stage import Stage

PAUSE = ("POST", f"/api/crawls/{RUN.id}/pause")
LIST = ("GET", "/api/crawls")
# Host names that another site can resolve to this address, and spellings that look like ours.
HOSTS = (
    *("evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "{port}"),
    *("127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}", "0.0.0.0:{port}"),
    *("127.0.0.2:{port}", "127.1:{port}", "[::]:{port}", "LOCALHOST:{port}.", "2130706433:{port}"),
)
ORIGINS = (
    *("http://evil.example", "https://127.0.0.1:{port}", "null", "http://localhost:{port}", ""),
    *("http://127.0.0.1", "http://127.0.0.1:{stored}", "http://127.0.0.1:{port}.evil.example"),
    *("file://", "http://evil.example#http://127.0.0.1:{port}"),
)
TOKENS = (
    *(None, "", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"bearer {TOKEN}", "Bearer null"),
    *(f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Bearer  {TOKEN}", f"Bearer {TOKEN.upper()}"),
    *(f"Bearer {TOKEN},Bearer x", "Bearer \xe9"),
)
SITES = ("cross-site", "same-site", "anything")
ATTEMPTS = (
    [({"Host": host, **BEARER}, 421) for host in HOSTS]
    + [({"Origin": origin, **BEARER}, 403) for origin in ORIGINS]
    + [({} if token is None else {"Authorization": token}, 401) for token in TOKENS]
    + [({"Sec-Fetch-Site": site, **BEARER}, 403) for site in SITES]
    # The token counts only in its header.
    + [({"Cookie": f"token={TOKEN}; orbweaver-console-token={TOKEN}"}, 401)]
)


def test_list_of_attempts_has_at_least_forty() -> None:
    assert len(ATTEMPTS) >= 40


@pytest.mark.parametrize(("headers", "status"), ATTEMPTS, ids=str)
async def test_attempt_is_refused_and_changes_nothing(
    stage: Stage, headers: dict[str, str], status: int
) -> None:
    await stage.begin()
    port = {"port": stage.url.port, "stored": stage.stored_port}
    sent = {name: value.format(**port) for name, value in headers.items()}
    for method, path in (PAUSE, LIST, ("GET", "/console/about"), ("POST", "/console/table")):
        reply = await stage.ask(method, path, sent)
        assert reply.status == status, path
        assert RUN.id not in await reply.text()
        assert "Access-Control-Allow-Origin" not in reply.headers
    crawl = await stage.ports.crawls.get(RUN.id)
    assert crawl is not None
    assert crawl.state is State.RUNNING


OPEN = ("/download/{ticket}", "/sign-in.json")


async def test_every_route_except_files_and_tickets_needs_token(stage: Stage) -> None:
    server = ConsoleServer(api_of(stage.ports), stage.actions, fence_at(1, TOKEN), 2)
    routes = {
        (route.method, route.resource.canonical.format(path="crawls", id=RUN.id))
        for route in server.app().router.routes()
        if route.resource is not None and route.resource.canonical not in {*static_files(), *OPEN}
    }
    assert len(routes) > 10
    for method, path in routes:
        assert (await stage.ask("GET" if method == "*" else method, path, {})).status == 401, path


@pytest.mark.parametrize(
    "path",
    [
        "/../fence.py",
        "/%2e%2e/fence.py",
        "/..%2ffence.py",
        "/vendor/../../fence.py",
        "/static/app.js",
        "/vendor/preact.LICENSE",
        "//etc/passwd",
        "/console",
        "/download/x",
        "/app.js/",
    ],
)
async def test_only_files_of_application_are_served(stage: Stage, path: str) -> None:
    assert (await stage.ask("GET", path, {})).status == 404


async def test_token_is_accepted_with_each_name_of_this_machine(stage: Stage) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        host = f"{name}:{stage.url.port}"
        for headers in ({}, {"Origin": f"http://{host}"}, {"Sec-Fetch-Site": "same-origin"}):
            assert (await stage.ask(*LIST, {**BEARER, **headers, "Host": host})).status == 200


async def test_every_answer_has_security_headers(stage: Stage) -> None:
    for path, headers in (
        ("/", {}),
        ("/app.js", {}),
        ("/api/crawls", BEARER),
        ("/api/crawls", {}),
        ("/nowhere", {}),
    ):
        reply = await stage.ask("GET", path, headers)
        policy = dict(
            part.strip().split(" ", 1)
            for part in reply.headers["Content-Security-Policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["frame-src"] == f"http://127.0.0.1:{stage.stored_port}"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_policy_has_no_ipv6_source() -> None:
    """A policy cannot name an IPv6 address, and browsers log an error for it."""
    policy = headers_of_stored(1)["Content-Security-Policy"]
    framing = policy.partition("frame-ancestors ")[2].split()
    assert framing == ["http://127.0.0.1:1", "http://localhost:1"]


def test_no_policy_allows_inline_scripts() -> None:
    console = headers_of(frames="http://127.0.0.1:2")["Content-Security-Policy"]
    stored = headers_of_stored(1)["Content-Security-Policy"]
    assert "unsafe" not in console
    assert stored.startswith("sandbox;")
    assert "allow-" not in stored
    assert "script" not in stored
    assert "'self'" not in stored


def test_token_is_not_in_repr_of_fence() -> None:
    """The representation may appear in a log."""
    assert TOKEN not in repr(fence_at(1, TOKEN))


# --- tickets ------------------------------------------------------------------------------------


async def test_ticket_works_once_and_for_a_minute(stage: Stage) -> None:
    await stage.begin("/")
    ticket = (await stage.post("/console/table", {"crawl": RUN.id}))["ticket"]
    assert (await stage.ask("GET", f"/download/{ticket}", {})).status == 200
    assert (await stage.ask("GET", f"/download/{ticket}", {})).status == 404
    late = (await stage.post("/console/table", {"crawl": RUN.id}))["ticket"]
    stage.clock.at_ms += GOOD_MS
    assert (await stage.ask("GET", f"/download/{late}", {})).status == 404
    other = (await stage.post("/console/table", {"crawl": RUN.id}))["ticket"]
    stored = URL(f"http://127.0.0.1:{stage.stored_port}/{other}")
    assert (await stage.client.get(stored)).status == 404  # a ticket for a file


def test_tickets_are_bounded_in_number_and_unique() -> None:
    tickets = Tickets(lambda: 0)
    given = [tickets.create(number) for number in range(TICKETS_MAX + 5)]
    assert len(set(given)) == len(given)
    assert min(map(len, given)) >= 43
    assert [tickets.redeem(one) for one in given[:5]] == [None] * 5
    assert tickets.redeem(given[5]) == 5
