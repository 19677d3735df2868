"""Crawls behind a login: one login for all workers, lost sessions, and no secret outside of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from dataclasses import asdict, replace
from typing import Any

import pytest

from orbweaver.frontier.messages import child_id
from orbweaver.model.auth import OriginAuth, PageCheck
from orbweaver.model.crawl import Crawl
from orbweaver.worker.session_state import (
    ERRORS_MAX,
    LOGINS_MAX,
    TRIES_MAX,
    SessionState,
    from_text,
    to_text,
)
from orbweaver.worker.sessions import COOKIES_ENDED
from tests.unit.stage import CRAWL, SITE, Stage, noting, outcomes, pack_of
from tests.unit.worker.login_site import (
    FORM,
    LOGGED_IN,
    LOGIN,
    PASSWORD,
    PROVIDER,
    LoginSite,
    OpenIdSite,
)

PAGES = 40
# A site that hides its pages: without a session, they do not exist.
HIDING = replace(
    LOGGED_IN, auth=(OriginAuth(origin=SITE, login=replace(LOGIN, lost=PageCheck(status=404))),)
)


def staged(*, pages: int = PAGES, lasts: int = 1_000, password: str = PASSWORD) -> Stage:
    stage = Stage()
    stage.web = LoginSite(stage.clock, pages=pages, lasts=lasts)
    stage.world.secrets["secret:pass"] = password
    stage.restart()
    return stage


def site_of(stage: Stage) -> LoginSite:
    assert isinstance(stage.web, LoginSite)
    return stage.web


async def crawled(stage: Stage, crawl: Crawl = LOGGED_IN, *, restarts: bool = False) -> None:
    assert await stage.deliver(stage.begin(crawl, f"{SITE}/p/0")) == []
    for _ in range(PAGES if restarts else 1):
        if restarts:
            stage.restart()
        await stage.drain()


@pytest.mark.parametrize("how", ["redirect", "inplace", "401", "404", "refresh"])
@pytest.mark.parametrize("lasts", [1_000, 7, 3])
async def test_expiring_session_loses_no_page(how: str, lasts: int) -> None:
    stage = staged(lasts=lasts)
    site = site_of(stage)
    site.how = how
    await crawled(stage, HIDING if how == "404" else LOGGED_IN)
    assert outcomes(stage.world) == {f"{SITE}/p/{number}": "fetched.ok" for number in range(PAGES)}
    assert sorted(set(site.served)) == sorted({"/home", *(f"/p/{one}" for one in range(PAGES))})
    counts = stage.counts(LOGGED_IN)
    assert counts["logins"] == len(site.logins)
    assert (counts.get("session_lost", 0) > 0) == (lasts < PAGES)
    assert counts["refused.logout"] > 0
    assert "/logout" not in {one.rpartition("/")[2] for one in stage.web.urls}
    bodies = b"".join(gzip.decompress(body) for body in bodies_of(stage))
    assert b"secret page 0" in bodies
    assert b"#login" not in bodies
    assert b'id="login"' not in bodies


def bodies_of(stage: Stage) -> list[bytes]:
    return [body for name, body in stage.world.files.items() if "bodies" in name]


@pytest.mark.parametrize("how", ["redirect", "provider"])
async def test_login_at_openid_provider_loses_no_page(how: str) -> None:
    stage = staged()
    site = stage.web = OpenIdSite(stage.clock, lasts=7)
    site.how = how
    stage.restart()
    login = replace(LOGIN, origins=(PROVIDER,))
    await crawled(stage, replace(LOGGED_IN, auth=(OriginAuth(origin=SITE, login=login),)))
    assert outcomes(stage.world) == {f"{SITE}/p/{number}": "fetched.ok" for number in range(PAGES)}
    assert stage.counts(LOGGED_IN)["logins"] == len(site.logins) > 1


async def test_missing_page_of_valid_session_keeps_its_status() -> None:
    stage = staged()
    site = site_of(stage)
    site.how, site.denied = "404", {"/p/1"}
    await crawled(stage, HIDING)
    (record,) = (one for one in stage.world.pages.values() if one.url == f"{SITE}/p/1")
    assert (record.reason, record.status) == ("http_client_error", 404)
    assert len(site.logins) == 1


@pytest.mark.parametrize(
    ("delay_ms", "ends"), [(4_000, {"fetched.ok"}), (30_000, {"failed.login"})]
)
async def test_login_longer_than_visit_is_not_started_forever(
    delay_ms: int, ends: set[str]
) -> None:
    """A visit of a crawl with a budget lasts seconds. Invocations of this stage last a minute."""
    stage = staged(pages=3)
    crawl = replace(LOGGED_IN, delay_ms=delay_ms, nanodollars_max=10**9)
    await crawled(stage, crawl)
    assert set(outcomes(stage.world).values()) == ends
    assert len(site_of(stage).logins) <= ERRORS_MAX
    assert stage.counts(crawl).get("logins", 0) == ("fetched.ok" in ends)


async def test_cookies_of_lost_session_do_not_replace_new_one() -> None:
    stage = staged(lasts=5)
    site_of(stage).resets = True
    await crawled(stage)
    assert set(outcomes(stage.world).values()) == {"fetched.ok"}


async def test_workers_share_one_login() -> None:
    stage = staged()
    stage.world.crawls[LOGGED_IN.id] = LOGGED_IN
    stage.count(LOGGED_IN, claimed=2)
    await crawled_by_two(stage)
    assert len(site_of(stage).logins) == 1
    assert outcomes(stage.world)[f"{SITE}/p/38"] == "fetched.ok"
    assert outcomes(stage.world)[f"{SITE}/p/39"] == "fetched.ok"


async def crawled_by_two(stage: Stage) -> None:
    other = Stage(world=stage.world, clock=stage.clock)
    other.web = stage.web
    other.restart()
    packs = (
        pack_of(f"{SITE}/p/{38 + one}", crawl=LOGGED_IN.id, pack=child_id("r", one))
        for one in range(2)
    )
    await asyncio.gather(
        *(one.deliver(pack) for one, pack in zip((stage, other), packs, strict=True))
    )
    await stage.drain()


async def test_check_of_lost_session_uses_cookies_of_other_workers() -> None:
    stage = staged()
    stage.count(LOGGED_IN, claimed=3)
    other = Stage(world=stage.world, clock=stage.clock)
    other.web, site = stage.web, site_of(stage)
    other.restart()
    stage.world.crawls[LOGGED_IN.id] = LOGGED_IN
    packs = [
        pack_of(f"{SITE}/p/{37 + one}", crawl=LOGGED_IN.id, pack=child_id("r", one))
        for one in range(3)
    ]
    await other.deliver(packs[0])
    site.valid.clear()
    await stage.deliver(packs[1])
    await stage.drain()
    assert len(site.logins) == 2
    key, text = next(one for one in stage.world.cookies.items() if "://" in one[0][1])
    stage.world.cookies[key] = to_text(from_text(text).lost())
    await other.deliver(packs[2])
    assert len(site.logins) == 2


async def test_wrong_password_is_tried_twice_and_fails_the_urls() -> None:
    stage = staged(password="wrong-pass")
    await crawled(stage)
    assert len(site_of(stage).logins) == TRIES_MAX
    assert outcomes(stage.world) == {f"{SITE}/p/0": "failed.login"}
    (record,) = stage.world.pages.values()
    assert record.error == f"the check failed: {SITE}/login asks for the login again"
    counts = stage.counts(LOGGED_IN)
    assert ("logins" in counts, counts["logins_failed"]) == (False, TRIES_MAX)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"form": "#other"}, "form = '#other' matches nothing on the page: give its selector"),
        ({"form": "title"}, "form = 'title' is not in a form on the page: give its selector"),
        ({"inputs": (("user", "me"),)}, "the form has no field 'user': it has csrf, go, password"),
        ({"inputs": (("password", "typed"),)}, "'password' is a password: give a reference"),
        ({"url": f"{SITE}/none"}, "redirects to https://example.com/login: give this URL"),
        ({"check": PageCheck(selector="#no")}, "nothing on the page matches '#no'"),
        ({"check": PageCheck(text="no text")}, "the page does not contain the text 'no text'"),
        ({"check": PageCheck(status=201)}, "the page has status 200, not 201"),
        ({"check": PageCheck(cookie="no")}, "there is no cookie 'no'"),
    ],
)
async def test_failed_login_has_its_step_in_the_error(change: dict[str, Any], error: str) -> None:
    stage = staged()
    login = replace(LOGIN, **change)
    await crawled(stage, replace(LOGGED_IN, auth=(OriginAuth(origin=SITE, login=login),)))
    (record,) = stage.world.pages.values()
    assert (record.outcome, record.reason) == ("failed", "login")
    assert error in (record.error or "")


async def test_url_asking_for_login_fails_after_four_attempts() -> None:
    """A page that the account may not read does not cause one login after another."""
    stage = staged()
    site = site_of(stage)
    site.denied = {"/p/1"}
    await crawled(stage)
    found = dict(outcomes(stage.world))
    assert found.pop(f"{SITE}/p/1") == "failed.login"
    assert set(found.values()) == {"fetched.ok"}
    assert len(site.logins) == 1
    assert stage.counts(LOGGED_IN)["session_lost"] == 4


async def test_no_secret_is_stored_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = staged(lasts=5)
    await crawled(stage)
    stored = json.dumps([asdict(record) for record in stage.world.pages.values()], default=str)
    stored += json.dumps(asdict(LOGGED_IN), default=str) + caplog.text
    stored += str([record.__dict__ for record in caplog.records])
    stored += b"".join(gzip.decompress(body) for body in bodies_of(stage)).decode()
    states = [text for (_, site), text in stage.world.cookies.items() if "://" in site]
    assert states
    for secret in (PASSWORD, "sid-", "token-"):
        assert secret not in stored + "".join(states)
    assert "session.lost" in caplog.text


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        ({"basic": ("me", "secret:pass")}, "Authorization", "Basic bWU6czNjcjN0LXBhc3M="),
        ({"bearer": "secret:pass"}, "Authorization", f"Bearer {PASSWORD}"),
        ({"headers": (("X-Key", "secret:pass"),)}, "X-Key", PASSWORD),
    ],
)
async def test_secret_header_goes_only_to_its_origin(
    auth: dict[str, object], name: str, value: str
) -> None:
    stage = Stage()
    stage.world.secrets["secret:pass"] = PASSWORD
    crawl = replace(CRAWL, auth=(OriginAuth(origin=SITE, **auth),), seeds=(f"{SITE}/a",))  # type: ignore[arg-type]
    urls = (f"{SITE}/a", "http://example.com/a", "https://sub.example.com/a")
    await stage.crawl(crawl, *urls)
    sent = {one.url: dict(one.headers).get(name) for one in stage.web.requests}
    assert sent == {urls[0]: value, urls[1]: None, urls[2]: None}


@pytest.mark.parametrize(
    ("secret", "error"),
    [(None, "there is no secret 'secret:pass'"), ("a\nb", "has line ends or is not ASCII")],
)
async def test_unusable_secret_fails_the_urls(secret: str | None, error: str) -> None:
    stage = Stage()
    if secret is not None:
        stage.world.secrets["secret:pass"] = secret
    crawl = replace(CRAWL, auth=(OriginAuth(origin=SITE, bearer="secret:pass"),))
    await stage.crawl(crawl, f"{SITE}/a", "https://other.example/a")
    assert outcomes(stage.world)[f"{SITE}/a"] == "failed.login"
    assert stage.web.urls == ["https://other.example/a"]
    errors = [record.error or "" for record in stage.world.pages.values()]
    assert any(error in one for one in errors)


async def test_cookies_of_a_file_are_sent_to_their_host_only() -> None:
    stage = staged()
    site_of(stage).valid["from-file"] = 1_000
    rows = [
        ("example.com", "TRUE", "sid", "from-file"),
        (".example.com", "TRUE", "wide", "from-file"),
        ("other.example", "FALSE", "no", "from-file"),
    ]
    lines = [f"{host}\t{below}\t/\tFALSE\t0\t{name}\t{value}" for host, below, name, value in rows]
    stage.world.secrets["secret:jar"] = "\n".join(["# Netscape HTTP Cookie File", *lines])
    auth = (OriginAuth(origin=SITE, cookies="secret:jar"),)
    await stage.deliver(
        stage.begin(replace(LOGGED_IN, auth=auth), f"{SITE}/p/0", "https://sub.example.com/a")
    )
    await stage.drain()
    sent = {one.url: dict(one.headers).get("Cookie") for one in stage.web.requests}
    assert sent[f"{SITE}/p/0"] == "sid=from-file; wide=from-file"
    assert sent["https://sub.example.com/a"] is None
    assert stage.counts(LOGGED_IN)["cookies.imported"] == 2


@pytest.mark.parametrize("how", ["redirect", "inplace", "401", "refresh"])
@pytest.mark.parametrize("lasts", [0, 7, 1_000])
async def test_ended_session_of_cookies_fails_urls_as_login(how: str, lasts: int) -> None:
    stage = staged()
    site = site_of(stage)
    site.how, site.valid["from-file"] = how, lasts
    stage.world.secrets["secret:jar"] = "example.com\tFALSE\t/\tFALSE\t0\tsid\tfrom-file"
    crawl = replace(LOGGED_IN, auth=(OriginAuth(origin=SITE, cookies="secret:jar"),))
    await crawled(stage, crawl)
    found = dict(outcomes(stage.world))
    # Pages link to the login page. Its form is no sign of an ended session.
    assert found.pop(f"{SITE}/login", "") == ("fetched.ok" if lasts else "")
    failed = [url for url, ending in found.items() if ending == "failed.login"]
    assert len(found) - len(failed) == min(lasts, PAGES)
    assert bool(failed) == (lasts < PAGES)
    counts = stage.counts(crawl)
    assert (counts["logins"], counts.get("session_lost", 0)) == (1, len(failed))
    errors = {one.error for one in stage.world.pages.values() if one.reason == "login"}
    assert errors == ({COOKIES_ENDED} if failed else set())


async def test_login_leads_to_no_other_origin() -> None:
    stage = staged()
    site_of(stage).form = FORM.replace('action="/login"', 'action="https://evil.example/login"')
    await crawled(stage)
    (record,) = stage.world.pages.values()
    assert "the login leads to another origin, https://evil.example" in (record.error or "")
    assert not [url for url in stage.web.urls if "evil" in url]


async def test_crawl_without_login_makes_no_further_call() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    await stage.deliver(stage.begin(CRAWL, f"{SITE}/a"))
    assert not [one for one in effects if "session" in one or "cookies" in one or "secret" in one]


def test_state_of_session_changes() -> None:
    state = SessionState().leased("me", 1_000)
    assert from_text(None) == SessionState()
    assert state.logged_in("/home").epoch == 1
    assert replace(state, epoch=LOGINS_MAX).logged_in("/home").stage == "failed"
    once = state.rejected("no", 1_000)
    assert (once.stage, once.tries, once.holder) == ("new", 1, "")
    assert once.rejected("no", 1_000).stage == "failed"
    assert [state.unreachable("x", 0).until_ms, state.unreachable("x", 0).errors] == [10_000, 1]
    assert replace(state, errors=3).unreachable("x", 0).stage == "failed"
