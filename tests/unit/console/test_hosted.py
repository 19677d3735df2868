"""The hosted console: public files, groups of users, and features that it lacks."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.api.routes import OPERATIONS
from orbweaver.console.files import static_files
from orbweaver.console.hosted import ELSEWHERE, NOT_HERE
from orbweaver.console.runs import MeteredReadings
from orbweaver.control.progress.reader import StatusReader
from orbweaver.model.crawl import State
from orbweaver.model.errors import Transient
from tests.unit.console.hosting import CLAIMS, CLIENT, LOOKING, PAGES, WAITING, event_of
from tests.unit.console.stage import RUN
from tests.unit.stage import SITE

if TYPE_CHECKING:
    from tests.unit.console.hosting import Hosting

LETTERS = "/console/dead-letters"
PULSE = f"/console/crawls/{RUN.id}"
OWN = ("about", "live", f"crawls/{RUN.id}", "stack", "definition", *ELSEWHERE, "nowhere")
ROUTES = [
    *((one.method, f"/api{one.path}".replace("{id}", RUN.id)) for one in OPERATIONS),
    *((method, f"/console/{path}") for path in OWN for method in ("GET", "POST")),
    *((method, "/api/crawls") for method in ("PUT", "DELETE", "OPTIONS", "HEAD")),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_route_except_files_needs_a_visitor(
    hosting: Hosting, method: str, path: str
) -> None:
    await hosting.begin("/")
    for claims in (None, {}, CLAIMS | {"exp": "1"}):
        status, told = await hosting.ask(method, path, claims=claims)
        assert status == 401
        assert RUN.id not in json.dumps(told)
    status, _ = await hosting.ask(method, path, claims=CLAIMS | {"cognito:groups": "[x]"})
    assert status == 403


@pytest.mark.parametrize(
    ("method", "path"), [route for route in ROUTES if route[0] not in ("GET", "HEAD")]
)
async def test_change_needs_group_steer(hosting: Hosting, method: str, path: str) -> None:
    await hosting.begin("/")
    status, told = await hosting.ask(method, path, claims=LOOKING, body={"seeds": [SITE]})
    assert status == 403
    assert "takes the group `steer`" in told["detail"]
    crawls = await hosting.console.runs.control.crawls()
    assert [(crawl.id, crawl.state) for crawl in crawls] == [(RUN.id, State.RUNNING)]


async def test_viewer_sees_numbers_of_status_command(hosting: Hosting) -> None:
    await hosting.begin("/", "/a")
    control, ports = hosting.console.runs.control, hosting.ports
    reader = StatusReader(control=control, hosts=ports.hosts, depths=ports.depths.read, billed=True)
    wanted = (await MeteredReadings(reader.read).read(RUN.id)).shown
    _, pulse = await hosting.ask("GET", PULSE, claims=LOOKING)
    assert (pulse["shown"], pulse["shown"]["queue"]["dead"]) == (wanted, WAITING.dead)
    query = {"id": [RUN.id]}
    _, live = await hosting.ask("GET", "/console/live", claims=LOOKING, query=query)
    assert live == {"billed": True, "crawls": {RUN.id: wanted}}
    _, listed = await hosting.ask("GET", "/api/overview", claims=LOOKING, query={"limit": 1})
    assert [row["progress"]["crawl"]["id"] for row in listed["crawls"]] == [RUN.id]
    _, stack = await hosting.ask("GET", "/console/stack", claims=LOOKING)
    assert (stack["queues"]["waiting"], stack["workers"], stack["alarms"]) == (3, None, None)
    _, about = await hosting.ask("GET", "/console/about", claims=LOOKING)
    assert (about["where"], about["user"]["name"]) == ("the stack Orbweaver", "alice")
    assert not about["user"]["steers"]


async def test_steering_visitor_pauses_edits_and_starts_crawls(hosting: Hosting) -> None:
    await hosting.begin("/")
    await hosting.ask("GET", PULSE, claims=CLAIMS)
    status, _ = await hosting.ask("POST", f"/api/crawls/{RUN.id}/pause", claims=CLAIMS)
    assert status == 200
    _, pulse = await hosting.ask("GET", PULSE, claims=CLAIMS)
    assert pulse["shown"]["state"] == "paused"
    change = {"limits": {"pages": 7}}
    await hosting.ask("PATCH", f"/api/crawls/{RUN.id}", claims=CLAIMS, body=change)
    _, pulse = await hosting.ask("GET", PULSE, claims=CLAIMS)
    assert pulse["settings"]["limits.pages"] == 7
    toml = {"toml": f'seeds = ["{SITE}/"]\n'}
    _, forms = await hosting.ask("POST", "/console/definition", claims=CLAIMS, body=toml)
    assert forms["document"] == {"seeds": [f"{SITE}/"]}
    status, told = await hosting.ask("POST", "/console/definition", claims=CLAIMS, body=[])
    assert (status, told["detail"]) == (400, "the body is no object")


async def test_base64_body_is_read_and_invalid_text_refused(hosting: Hosting) -> None:
    event = event_of("POST", "/console/definition", CLAIMS, body={})
    for body, status in ((base64.b64encode(b'{"toml": ""}').decode(), 200), ("?", 400)):
        reply = await hosting.console.answer(event | {"body": body, "isBase64Encoded": True})
        assert reply["statusCode"] == status


async def test_viewer_maps_site_and_compares_two_runs(hosting: Hosting) -> None:
    await hosting.begin("/", "/a", "/a/b")
    section = {"crawl": RUN.id, "at": SITE}
    status, shown = await hosting.ask("GET", "/console/sections", claims=LOOKING, query=section)
    assert (status, shown["urls"], shown["cut"]) == (200, 3, False)
    pair = {"before": RUN.id, "after": RUN.id}
    status, shown = await hosting.ask("GET", "/console/changes", claims=LOOKING, query=pair)
    assert (status, shown["counts"]["unchanged"]) == (200, 3)
    status, told = await hosting.ask(
        "GET", "/console/text-changes", claims=LOOKING, query=pair | {"url": f"{SITE}/a"}
    )
    assert (status, told["why"]) == (200, f"{RUN.id}: its body is not stored")
    for path, query in (("changes", {"before": RUN.id}), ("sections", section | {"x": "1"})):
        status, _ = await hosting.ask("GET", f"/console/{path}", claims=LOOKING, query=query)
        assert status == 400
    hosting.console.comparing().urls_max = -1
    for path, query in (("changes", pair), ("sections", section)):
        status, told = await hosting.ask("GET", f"/console/{path}", claims=LOOKING, query=query)
        assert (status, "reads more" in told["detail"]) == (400, True)


async def test_dead_letters_are_listed_without_bodies(hosting: Hosting) -> None:
    """Only the group `steer` may list dead letters, because a listing hides them for a while."""
    dead_letter = hosting.ports.queue.dead_letter
    await dead_letter(json.dumps({"url": f"{SITE}/1"}), "failed 5 times")
    await dead_letter("a secret that somebody sent", "it is no message")
    await dead_letter('{"x": "a secret"}', "it is no message")
    status, told = await hosting.ask("GET", LETTERS, claims=LOOKING)
    assert (status, "takes the group `steer`" in told["detail"]) == (403, True)
    for _ in range(2):  # the listing makes the letters visible again
        status, told = await hosting.ask("GET", LETTERS, claims=CLAIMS)
        assert (status, told["letters"], told["cut"]) == (200, 3, False)
    assert {group["cause"]: group["hosts"] for group in told["groups"]} == {
        "failed too often": [[SITE, 1]],
        "it is no message": [],
    }
    assert "secret" not in json.dumps(told)
    for deed in ("redrive", "purge"):
        status, _ = await hosting.ask("POST", f"{LETTERS}/{deed}", claims=CLAIMS, body={})
        assert status == 404
    status, told = await hosting.ask("GET", LETTERS, claims=CLAIMS)
    assert told["letters"] == 3


@pytest.mark.parametrize("path", ELSEWHERE)
async def test_missing_feature_is_named_with_alternative(hosting: Hosting, path: str) -> None:
    for method in ("GET", "POST"):
        status, told = await hosting.ask(method, f"/console/{path}", claims=CLAIMS)
        assert (status, told["detail"]) == (404, NOT_HERE)


async def test_only_files_of_application_are_public(hosting: Hosting) -> None:
    for path, (body, kind) in static_files().items():
        reply = await hosting.console.answer(event_of("GET", path))
        assert (reply["statusCode"], reply["body"]) == (200, body.decode())
        headers = reply["headers"]
        assert headers["Content-Type"] == kind
        policy = headers["Content-Security-Policy"]
        assert f"connect-src 'self' {PAGES};" in policy
        assert "default-src 'none'; script-src 'self';" in policy
        assert "frame-src 'none'; frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["Strict-Transport-Security"].startswith("max-age=")
        assert headers["Cache-Control"] == "public, max-age=300"
    for path in ("/../fence.py", "/vendor/preact.LICENSE", "//etc/passwd", "/app.js/", "/api"):
        status, _ = await hosting.ask("GET", path)
        assert status == 404
    status, _ = await hosting.ask("POST", "/app.js")
    assert status == 404


async def test_sign_in_configuration_is_public(hosting: Hosting) -> None:
    assert await hosting.ask("GET", "/sign-in.json") == (200, {"client": CLIENT, "pages": PAGES})
    reply = await hosting.console.answer(event_of("GET", "/sign-in.json"))
    assert reply["headers"]["Cache-Control"] == "no-store"


async def test_unreachable_service_is_503(hosting: Hosting) -> None:
    await hosting.begin("/")

    async def lost(_crawl: str) -> Any:
        raise Transient("no answer")

    hosting.console.runs.watching._look = lost
    reply = await hosting.console.answer(event_of("GET", PULSE, CLAIMS))
    assert reply["statusCode"] == 503
    assert reply["headers"]["Retry-After"]
    status, _ = await hosting.ask("GET", "/console/crawls/nothing", claims=CLAIMS)
    assert status == 503
