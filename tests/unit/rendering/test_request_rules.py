"""Requests of a page that are sent or refused."""

from __future__ import annotations

import pytest

from orbweaver.rendering.paused_requests import (
    Handling,
    RequestOrigin,
    empty_answer,
    passed_on,
    preflight_answer,
    rule,
)
from orbweaver.rendering.task import RenderRules, RequestRefusal, ResourceRequest

PAGE = RequestOrigin(page_url="https://www.shop.example/list")
OWN, SISTER = "https://www.shop.example/x", "https://api.shop.example/x"
OTHER, TRACKER = "https://cdn.example.net/x", "https://www.google-analytics.com/x"


@pytest.mark.parametrize(
    ("url", "kind", "expected"),
    [
        *((OWN, kind, Handling.ASK) for kind in ("script", "stylesheet", "xhr", "document")),
        *((SISTER, kind, Handling.ASK) for kind in ("script", "xhr", "fetch", "document", "other")),
        *((OTHER, kind, Handling.ASK) for kind in ("script", "stylesheet")),
        *((OTHER, kind, RequestRefusal.THIRD_PARTY) for kind in ("xhr", "fetch", "document")),
        *((TRACKER, kind, RequestRefusal.TRACKER) for kind in ("script", "xhr", "document")),
        *((OWN, kind, Handling.EMPTY) for kind in ("image", "font", "media", "ping", "prefetch")),
        *((OTHER, kind, Handling.EMPTY) for kind in ("image", "eventsource", "cspviolationreport")),
        ("file:///etc/passwd", "xhr", RequestRefusal.SCHEME),
        ("ftp://www.shop.example/x", "script", RequestRefusal.SCHEME),
        ("chrome://version", "document", RequestRefusal.SCHEME),
        ("http://127.0.0.1/x", "xhr", RequestRefusal.THIRD_PARTY),
        ("http://[::1]:80/x", "xhr", RequestRefusal.THIRD_PARTY),
        ("http://www.shop.example:8080/x", "xhr", Handling.ASK),
    ],
)
def test_rule_follows_site_and_kind(url: str, kind: str, expected: object) -> None:
    assert rule(ResourceRequest(url=url, kind=kind), PAGE, RenderRules()) is expected


def test_crawl_rules_allow_more_kinds_and_sites() -> None:
    rules = RenderRules(load=frozenset({"image"}), third_party=frozenset({"example.net"}))
    for url, kind in ((OTHER, "xhr"), (OWN, "image"), (OTHER, "image"), (OTHER, "document")):
        assert rule(ResourceRequest(url=url, kind=kind), PAGE, rules) is Handling.ASK
    refused = rule(ResourceRequest(url=TRACKER, kind="image"), PAGE, rules)
    assert refused is RequestRefusal.TRACKER


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_changing_methods_are_refused(method: str) -> None:
    asked = ResourceRequest(url=OWN, kind="xhr", method=method)
    assert rule(asked, PAGE, RenderRules()) is RequestRefusal.METHOD
    wanted = (("Access-Control-Request-Method", method),)
    preflight = ResourceRequest(url=SISTER, kind="xhr", method="OPTIONS", headers=wanted)
    assert rule(preflight, PAGE, RenderRules()) is RequestRefusal.METHOD


def test_preflight_of_allowed_request_is_answered_locally() -> None:
    wanted = (("Access-Control-Request-Method", "GET"), ("Origin", "https://www.shop.example"))
    headers = (*wanted, ("Access-Control-Request-Headers", "x-a"))
    asked = ResourceRequest(url=SISTER, kind="xhr", method="OPTIONS", headers=headers)
    assert rule(asked, PAGE, RenderRules()) is Handling.ALLOW
    answer = dict(preflight_answer(asked))
    assert answer["Access-Control-Allow-Origin"] == "https://www.shop.example"
    assert answer["Access-Control-Allow-Headers"] == "x-a"
    other = ResourceRequest(url=OTHER, kind="xhr", method="OPTIONS", headers=headers)
    assert rule(other, PAGE, RenderRules()) is RequestRefusal.THIRD_PARTY


def test_origin_of_request_is_checked_first() -> None:
    leaving = RequestOrigin(page_url=OWN, leaves=True)
    form = ResourceRequest(url=OTHER, kind="document", method="POST")
    assert rule(form, leaving, RenderRules()) is Handling.STAY
    popup = RequestOrigin(page_url=OWN, popup=True)
    document = ResourceRequest(url=OWN, kind="document")
    assert rule(document, popup, RenderRules()) is RequestRefusal.POPUP
    worker = ResourceRequest(url=OWN, kind="script", headers=(("Service-Worker", "script"),))
    assert rule(worker, PAGE, RenderRules()) is RequestRefusal.SERVICE_WORKER


@pytest.mark.parametrize(
    ("kind", "accepted"), [("other", "image/avif,*/*"), ("xhr", "text/event-stream")]
)
def test_kinds_are_recognised_by_accept_header(kind: str, accepted: str) -> None:
    """The browser reports no resource type for icons and streams."""
    asked = ResourceRequest(url=OWN, kind=kind, headers=(("Accept", accepted),))
    assert rule(asked, PAGE, RenderRules()) is Handling.EMPTY


def test_empty_answers_satisfy_waiting_code() -> None:
    assert empty_answer("image")[2].startswith(b"GIF89a")
    assert empty_answer("eventsource")[0] == 204


def test_misleading_headers_are_not_passed_on() -> None:
    headers = (
        *(("Content-Type", "text/html"), ("Content-Encoding", "br"), ("Refresh", "0;url=/x")),
        *(("Link", "</a>; rel=preload"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d")),
        *(("X-Split", "a\r\nSet-Cookie: b"), ("X-Odd", "\udcff"), ("Content-Disposition", "x")),
    )
    names = [one["name"] for one in passed_on(headers)]
    assert names == ["Content-Type", "Set-Cookie", "Set-Cookie", "X-Odd"]
    assert passed_on((("X-Odd", "\udcff"),))[0]["value"] == "?"
