"""The hosted console over a deployed stack, behind a substitute gateway, in a browser."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from orbweaver.cli.local_machine import ThisMachine, connect
from orbweaver.cli.stack import settings_from
from orbweaver.console.hosted import hosted_console
from tests import browser, gateway
from tests.consoles import BEGUN, STATE, check_explained, check_run, goes_on_without_delay
from tests.sites import graph

if TYPE_CHECKING:
    from orbweaver.app.aws_ports import Ports
    from orbweaver.console.users import SignIn
    from tests.browser import Tab
    from tests.e2e.stand import Stand
    from tests.gateway import Answer, FrontDoor

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]

PAGES = 24
SITE = {
    f"/{number}": graph.page(
        f"Page {number}",
        [f"/{link}" for link in range(3 * number + 1, 3 * number + 4) if link < PAGES],
    )
    for number in range(PAGES)
}
USERS = {"alice": ["look"], "bob": ["look", "steer"], "carol": []}
LOOKS_MAX = 200
SESSION = "sessionStorage.getItem('orbweaver-console-session')"
BUTTONS = "[...document.querySelectorAll('main button, main a.button')].map((one) => one.innerText)"


def made_of(ports: Ports) -> Any:
    def made(sign_in: SignIn) -> Answer:
        console = hosted_console(ports)
        return replace(console, sign_in=sign_in).answer

    return made


async def sign_in(tab: Tab, name: str) -> None:
    await tab.see("Sign in")
    await tab.click("Sign in")
    await tab.until("location.pathname === '/oauth2/authorize'")
    await tab.click(name)


async def asked(tab: Tab, method: str, path: str, token: str | None = None) -> int:
    """Send a request from within the page that no button sends; return the status."""
    bearer = SESSION if token is None else json.dumps(token)
    script = (
        f"fetch('{path}', {{method: '{method}', headers: {{Authorization: 'Bearer ' + {bearer}}}}})"
    )
    return int(await tab.run(f"{script}.then((reply) => reply.status)"))


async def test_users_view_and_steer_by_group(stand: Stand) -> None:
    machine = ThisMachine()
    settings = settings_from(stand.outputs, machine, stand.environment)
    with graph.serve_in_background(SITE) as site, graph.serve_in_background(SITE) as other:
        first = f"{site.url}/0"

        def start(name: str, url: str, delay: str) -> str:
            words = ("start", url, "--name", name, "--delay", delay, "--json")
            return str(stand.orbweaver(*words).result["crawl"])

        # One long crawl, and a short one.
        looked_at = start("looked-at", f"{other.url}/0", "60s")
        async with (
            connect(settings, stand.environment) as ports,
            gateway.standing(USERS, made_of(ports)) as door,
            browser.opened() as tab,
        ):
            await tab.go(door.url)
            await tab.see("Sign in to see and steer crawls.")
            assert door.refused == []
            await _look(tab, door, looked_at)
            await tab.click("Sign out")
            await tab.see("Sign in to see and steer crawls.")
            assert await tab.run(SESSION) is None
            await sign_in(tab, "bob")
            crawl = await asyncio.to_thread(start, "hosted", first, "1s")
            await _steer(tab, crawl, lambda: stand.orbweaver("status", crawl, "--json").result)
            await tab.run(f"location.hash = '#/explain?url={quote(first, safe='')}&crawl={crawl}'")
            await check_explained(
                tab, stand.orbweaver("explain", first, "--crawl", crawl, "--json").result
            )
            await _screens(tab, crawl)
            await _cancel(tab, looked_at)
            assert tab.mistakes() == []
            await _strangers(tab, door, crawl)


async def _look(tab: Tab, door: FrontDoor, crawl: str) -> None:
    """A viewer sees all of a run and no button that changes anything."""
    await sign_in(tab, "alice")
    await tab.see("alice (read only) until")
    assert "code=" not in await tab.run("location.href")
    await tab.click("looked-at")
    await tab.see("Time left:")
    await tab.see("Found and done")
    assert await tab.run(BUTTONS) == ["Pages", "Requests", "Map", "Audit", "Show table"]
    assert "New crawl" not in await tab.run("document.querySelector('nav').innerText")
    for method, path in (("POST", f"/api/crawls/{crawl}/pause"), ("PATCH", f"/api/crawls/{crawl}")):
        assert await asked(tab, method, path) == 403
    assert "running" in await tab.run(STATE)
    await _forget_refusals(tab, 2)
    await tab.run("location.hash = '#/new'")
    await tab.see("can start crawls")
    # The page itself sends no request that is refused; the answer to its next one may be late.
    await tab.run("location.hash = '#/stack'")
    await tab.see("does not show them")
    assert "POST /console/definition" not in door.passed
    assert door.refused == []


async def _forget_refusals(tab: Tab, number: int) -> None:
    """Refused requests are not page errors; the browser logs them late."""
    for _ in range(LOOKS_MAX):
        if len(tab.mistakes()) >= number:
            break
        await asyncio.sleep(browser.LOOK_S)
    tab.events.clear()


async def _steer(tab: Tab, crawl: str, status: Any) -> None:
    """An operator pauses, edits and resumes until the run has ended."""
    await tab.see("bob (can steer) until")
    await tab.run(f"location.hash = '#/run/{crawl}'")
    await tab.until(BEGUN)
    await tab.click("Pause")
    await tab.until(f"{STATE}?.includes('paused')")
    assert (await asyncio.to_thread(status))["state"] == "paused"
    await check_run(tab, status)
    await goes_on_without_delay(tab)
    await check_run(tab, status)


async def _cancel(tab: Tab, crawl: str) -> None:
    await tab.run(f"location.hash = '#/run/{crawl}'")
    await tab.click("Cancel…")
    await tab.click("Cancel the run")
    await tab.until(f"/finished|stopping/.test({STATE})")


async def _screens(tab: Tab, crawl: str) -> None:
    """Every other screen works, or names the users who can access its data."""
    for screen, text in (
        (f"data/{crawl}", f"{PAGES} rows"),
        (f"report/{crawl}", "Kinds of URL"),
        ("host", "Hosts"),
        ("letters", "Refresh"),
        ("stack", "does not show them"),
        ("new", "To preview the first page, use a console on your own machine."),
        (f"map/{crawl}", "Section"),
        (f"audit/{crawl}", f"orbweaver audit {crawl} --target aws"),
        (f"changes?before={crawl}&after={crawl}", "the content is the same"),
        *(
            (screen, "The hosted console does not show this.")
            for screen in ("schedules", "query", f"rules/{crawl}")
        ),
    ):
        await tab.run(f"location.hash = '#/{screen}'")
        await tab.see(text)


async def _strangers(tab: Tab, door: FrontDoor, crawl: str) -> None:
    """Forged, foreign and expired tokens, and users without a group, get no access."""
    path = f"/api/crawls/{crawl}"
    good = door.claims("bob")
    tokens = {
        "signed by another key": gateway.signed(good, gateway.new_key()),
        "not signed": gateway.signed(good, door.key, algorithm="none"),
        "of another pool": gateway.signed(good | {"iss": "https://other.example/pool"}, door.key),
        "for another application": gateway.signed(good | {"client_id": "other"}, door.key),
        "expired": gateway.signed(good | {"exp": 1}, door.key),
        "no token": "x",
        "an identity token": gateway.signed(
            {**good, "token_use": "id", "aud": gateway.CLIENT}, door.key
        ),
    }
    for what, token in tokens.items():
        assert await asked(tab, "GET", path, token) == 401, what
    nobody = gateway.signed(door.claims("carol"), door.key)
    assert await asked(tab, "GET", path, nobody) == 403
    # An open page reports its expired session and links to the sign-in.
    door.token_s = 4
    await tab.click("Sign out")
    await tab.see("Sign in to see and steer crawls.")
    await tab.run(f"location.hash = '#/run/{crawl}'")
    await sign_in(tab, "bob")
    await tab.see("bob (can steer) until")
    assert await tab.run("location.hash") == f"#/run/{crawl}"
    await tab.see("Your sign-in has ended")
    door.token_s = gateway.HOUR_S
    await sign_in(tab, "alice")
    await tab.see("alice (read only) until")
    # A sign-in code from elsewhere signs no user in.
    await tab.go(f"{door.url}/?code=stolen&state=guessed")
    await tab.see("This sign-in was started in another tab.")
