"""Identity of requests: headers, user agents and proxies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.messages import Pack, SeedsMessage
from orbweaver.model.crawl_settings import HostAccess, Referer, Scope
from orbweaver.model.http_exchange import Failure, Trust
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from tests.unit.stage import CRAWL, SITE, Stage, answer, html, outcomes, urls_of

OTHER = "https://other.example"
NOBODY = Failure(reason=Reason.PROXY, detail="no proxy can be used at the moment", later_s=30)
MINE = replace(
    CRAWL, seeds=(f"{SITE}/",), headers=(("Cookie", "sid=s3cret"), ("Accept-Language", "de"))
)


async def test_secret_headers_go_to_origin_of_seed_only() -> None:
    """Redirects, robots.txt and pages of other origins get no secret header (case 43)."""
    stage = Stage()
    crawl = replace(MINE, obey_robots=True)
    stage.web.put(f"{SITE}/robots.txt", answer(302, location=f"{OTHER}/robots.txt"))
    stage.web.put(f"{SITE}/a", html())
    stage.web.put(f"{OTHER}/b", html())
    await stage.deliver(stage.begin(crawl, f"{SITE}/a", f"{OTHER}/b"))
    seen = {(request.url, dict(request.headers).get("Cookie")) for request in stage.web.requests}
    assert seen == {
        (f"{SITE}/robots.txt", "sid=s3cret"),
        (f"{OTHER}/robots.txt", None),
        (f"{SITE}/a", "sid=s3cret"),
        (f"{OTHER}/b", None),
    }
    assert {dict(one.headers)["Accept-Language"] for one in stage.web.requests} == {"de"}


async def test_host_headers_go_to_their_host_only() -> None:
    stage = Stage()
    own = ((SITE, (("X-Key", "s3cret"),)), (OTHER, (("X-Other", "else"),)))
    crawl = replace(CRAWL, seeds=(f"{SITE}/",), host_headers=own, obey_robots=True, scope=Scope.ANY)
    stage.web.put(f"{SITE}/robots.txt", answer(302, location=f"{OTHER}/robots.txt"))
    stage.web.put(f"{SITE}/a", answer(302, location=f"{OTHER}/b"))
    stage.web.put(f"{OTHER}/b", html("https://third.example/c"))
    stage.web.put("https://third.example/c", html())
    await stage.crawl(crawl, f"{SITE}/a")
    seen = {request.url: dict(request.headers) for request in stage.web.requests}
    assert seen[f"{SITE}/robots.txt"] == seen[f"{SITE}/a"] == {"X-Key": "s3cret"}
    assert seen[f"{OTHER}/robots.txt"] == seen[f"{OTHER}/b"] == {"X-Other": "else"}
    assert seen["https://third.example/c"] == {}
    assert "s3cret" not in repr(stage.web.requests) + repr(stage.world.sent)


async def test_robots_rules_apply_to_chosen_agent() -> None:
    rules = b"User-agent: one\nDisallow: /\nCrawl-delay: 1\n\nUser-agent: two\nAllow: /\n"
    crawl = replace(CRAWL, obey_robots=True, user_agents=("one/1", "two/1"))
    stage = Stage()
    sites = [f"https://h{number}.test" for number in range(12)]
    for site in sites:
        stage.web.put(f"{site}/robots.txt", answer(200, rules))
        stage.web.put(f"{site}/x", html())
    await stage.deliver(stage.begin(crawl, *(f"{site}/x" for site in sites)))
    agents = {request.url.rpartition("/")[0]: request.user_agent for request in stage.web.requests}
    assert set(agents.values()) == {"one/1", "two/1"}
    ends = outcomes(stage.world)
    for site in sites:
        end = "skipped.robots" if agents[site] == "one/1" else "fetched.ok"
        assert ends[f"{site}/x"] == end


async def test_compatible_agent_obeys_rules_for_its_name() -> None:
    agent = "Mozilla/5.0 (compatible; mine/1; +https://example.org)"
    stage = Stage(settings=Settings.of(user_agent=agent))
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: mine\nDisallow: /x\n"))
    await stage.deliver(stage.begin(replace(CRAWL, obey_robots=True), f"{SITE}/x"))
    assert outcomes(stage.world) == {f"{SITE}/x": "skipped.robots"}
    assert stage.web.requests[0].user_agent == agent


@pytest.mark.parametrize("proxied", [True, False])
async def test_crawl_setting_decides_use_of_proxies(proxied: bool) -> None:
    stage = Stage().serve({"/x": html()})
    await stage.deliver(stage.begin(replace(CRAWL, obey_robots=True, proxied=proxied), f"{SITE}/x"))
    assert [request.direct for request in stage.web.requests] == [not proxied] * 2


async def test_client_certificate_goes_to_origin_of_seed_only() -> None:
    """Robots.txt gets the TLS settings of its host, too."""
    stage = Stage()
    crawl = replace(
        CRAWL,
        seeds=(f"{SITE}/",),
        scope=Scope.ANY,
        obey_robots=True,
        ca_bundle="/ca.pem",
        client_cert="/me.pem",
        insecure_hosts=("other.example",),
    )
    stage.web.put(f"{SITE}/robots.txt", answer(302, location=f"{OTHER}/robots.txt"))
    stage.web.put(f"{SITE}/a", html(f"{OTHER}/b"))
    stage.web.put(f"{OTHER}/b", html())
    await stage.crawl(crawl, f"{SITE}/a")
    ours = Trust(ca_bundle="/ca.pem", client_cert="/me.pem")
    other = Trust(ca_bundle="/ca.pem", insecure=True)
    trusts = {request.url: request.trust for request in stage.web.requests}
    assert trusts[f"{SITE}/robots.txt"] == trusts[f"{SITE}/a"] == ours
    assert trusts[f"{OTHER}/robots.txt"] == trusts[f"{OTHER}/b"] == other


async def test_limits_and_referer_of_host_reach_its_requests() -> None:
    stage = Stage()
    own = HostAccess(origin=OTHER, timeout_ms=30_000, retries=0, referer=Referer.PAGE)
    crawl = replace(CRAWL, scope=Scope.ANY, obey_robots=True, timeout_ms=5_000, host_access=(own,))
    stage.web.put(f"{SITE}/a", html(f"{OTHER}/b"))
    for host in (SITE, OTHER):
        stage.web.put(f"{host}/robots.txt", answer(404))
    stage.web.put(f"{OTHER}/b", Failure(reason=Reason.TIMEOUT, detail="late"))
    await stage.crawl(crawl, f"{SITE}/a")
    sent = {
        one.url: (one.total_s, one.idle_s, dict(one.headers).get("Referer"))
        for one in stage.web.requests
    }
    assert sent[f"{SITE}/a"] == (5.0, 5.0, None)
    assert sent[f"{OTHER}/robots.txt"] == (30.0, 30.0, None)
    assert sent[f"{OTHER}/b"] == (30.0, 30.0, f"{SITE}/")
    assert [one.url for one in stage.web.requests].count(f"{OTHER}/b") == 1


async def test_record_has_proxy_of_response_and_failure() -> None:
    stage = Stage()
    failure = Failure(reason=Reason.TLS, detail="expired", proxy="q.test:2")
    stage.web.put(f"{SITE}/a", replace(html(), proxy="p.test:1"))
    stage.web.put(f"{SITE}/b", failure)
    stage.web.put(f"{SITE}/c", html())
    await stage.deliver(stage.begin(CRAWL, f"{SITE}/a", f"{SITE}/b", f"{SITE}/c"))
    records = {record.url.rpartition("/")[2]: record.proxy for record in stage.world.pages.values()}
    assert records == {"a": "p.test:1", "b": "q.test:2", "c": None}


@pytest.mark.parametrize("obey_robots", [True, False])
async def test_urls_return_without_proxy(obey_robots: bool) -> None:
    """No attempt is counted and no host state is stored (case 83)."""
    stage = Stage()
    pack: Pack | SeedsMessage = stage.begin(replace(CRAWL, obey_robots=obey_robots), f"{SITE}/x")
    for url in (f"{SITE}/robots.txt", f"{SITE}/x"):
        stage.web.put(url, NOBODY)
    for _ in range(9):
        assert await stage.deliver(pack) == []
        (mail,) = stage.world.sent
        assert 30 <= mail.delay_s <= 31
        (pack,) = stage.sent()
        assert urls_of([pack]) == {f"{SITE}/x"}
    assert outcomes(stage.world) == {}
    assert (await stage.hosts.read_host(SITE)).robots is None
    stage.web.put(f"{SITE}/robots.txt", answer(404))
    stage.web.put(f"{SITE}/x", html())
    await stage.deliver(pack)
    assert outcomes(stage.world) == {f"{SITE}/x": "fetched.ok"}


async def test_unreachable_proxy_target_is_retried_then_fails() -> None:
    """The target itself may be at fault, so it fails after four attempts."""
    stage = Stage()
    failure = Failure(reason=Reason.PROXY, detail="the proxy answered 502 to CONNECT")
    stage.web.put(f"{SITE}/x", failure)
    await stage.crawl(CRAWL, f"{SITE}/x")
    assert len(stage.web.urls) == 4
    assert outcomes(stage.world) == {f"{SITE}/x": "failed.proxy"}
