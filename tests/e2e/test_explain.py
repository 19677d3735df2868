"""Explanations of URLs, requested from the deployed stack."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.stand import STACK_IN_LONG
from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCRIPTS: dict[str, graph.Script] = {
    "/robots.txt": graph.robots("User-agent: *\nDisallow: /private"),
    "/": graph.page("Home", ["/a", "/moved", "/private/x", "/gone"]),
    "/a": graph.page("A", ["http://elsewhere.invalid/"]),
    "/moved": graph.redirect("/a"),
}


@STACK_IN_LONG
def test_urls_of_different_statuses_are_explained(anywhere: CommandStand) -> None:
    with graph.serve_in_background(SCRIPTS) as site:
        crawled = anywhere.crawl(f"{site.url}/", "--name", "explain", "--delay", "0")
        asked = len(site.log.paths())

        def explain(reference: str) -> dict[str, Any]:
            run = crawled.result["crawl"]
            return anywhere.orbweaver("explain", reference, "--crawl", run, "--json").result

        paths = (*SCRIPTS, "/private/x", "/gone")
        others = ("http://elsewhere.invalid/", f"{site.url}/never?utm_source=mail")
        with ThreadPoolExecutor(max_workers=4) as people:
            *bodies, left_out, unseen = people.map(
                explain, (*(site.url + path for path in paths), *others)
            )
        told = dict(zip(paths, bodies, strict=True))
        chosen = anywhere.orbweaver("explain", f"{site.url}/private/x").out
        assert len(site.log.paths()) == asked  # `explain` fetches nothing.

    words = {
        path: {one["about"]: one["words"] for one in body["statements"]}
        for path, body in told.items()
    }
    reasons = {path: body["record"] and body["record"]["reason"] for path, body in told.items()}
    assert reasons == {
        "/robots.txt": None,
        "/": "ok",
        "/a": "ok",
        "/moved": "redirect",
        "/private/x": "robots",
        "/gone": "http_client_error",
    }
    assert words["/"]["scope"] == "it is a seed"
    assert words["/a"]["linked by"] == f"{site.url}/"
    assert words["/a"]["claim"].endswith(" UTC")
    assert words["/moved"]["leads to"] == f"{site.url}/a"
    assert words["/private/x"]["robots"].startswith("line 2: Disallow: /private")
    assert words["/gone"]["status"] == "404"
    assert "a new run of explain" in words["/gone"]["again"]
    assert (left_out["fate"], left_out["refusal"]) == ("refused", "scope")
    assert (unseen["fate"], unseen["url"]) == ("unseen", f"{site.url}/never")
    assert chosen.startswith("skipped: robots (robots.txt forbids it)\n")
