"""User agents, their robots.txt tokens, and request headers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Headers, HostHeaders
from orbweaver.model.url import host_of, hostname_of
from orbweaver.model.user_agent import (
    AGENTS_MAX,
    HEADERS_CHARS_MAX,
    HEADERS_MAX,
    HOSTS_MAX,
    IdentityError,
    check_agents,
    identity_of,
    problems_of_headers,
    stored_headers,
    token_of,
)

SITE = "https://example.com"
DEFAULT = "orbweaver/1 (+https://example.org/bot)"
SECRET: Headers = (
    ("Authorization", "Bearer s3cret"),
    ("Cookie", "sid=s3cret"),
    ("X-Any", "s3cret"),
)
OPEN: Headers = (("Accept-Language", "de"),)
CRAWL = Crawl(
    id="c", name="c", started_at_ms=0, seeds=(f"{SITE}/a", f"{SITE}/b"), headers=(*SECRET, *OPEN)
)


def test_crawl_without_agent_uses_agent_of_deployment() -> None:
    assert identity_of(CRAWL, SITE, DEFAULT).agent == DEFAULT
    assert identity_of(replace(CRAWL, user_agent="mine/1"), SITE, DEFAULT).agent == "mine/1"
    several = replace(CRAWL, user_agent="mine/1", user_agents=("other/1",))
    assert identity_of(several, SITE, DEFAULT).agent == "other/1"


def test_host_sees_one_agent_on_every_port() -> None:
    agents = tuple(f"bot{number}/1" for number in range(4))
    crawl = replace(CRAWL, user_agents=agents)
    seen = Counter(identity_of(crawl, f"https://h{n}.test", DEFAULT).agent for n in range(400))
    assert set(seen) == set(agents)
    assert min(seen.values()) > 50
    turned = replace(CRAWL, user_agents=tuple(reversed(agents)))
    for number in range(20):
        host = f"h{number}.test"
        ones = {
            identity_of(one, origin, DEFAULT).agent
            for one in (crawl, turned)
            for origin in (f"https://{host}", f"http://{host}", f"http://{host}:8080")
        }
        assert len(ones) == 1


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("mybot/1.0 (+https://example.com)", "mybot/1.0 (+https://example.com)"),
        ("Mozilla/5.0 (compatible; mybot/1.0; +https://example.com)", "mybot"),
        ("Mozilla/5.0 (compatible; mybot)", "mybot"),
        ("Mozilla/5.0 (X11; Linux x86_64) mybot/1", "Mozilla/5.0 (X11; Linux x86_64) mybot/1"),
    ],
)
def test_token_of_compatible_agent_is_product_name(agent: str, token: str) -> None:
    assert token_of(agent) == identity_of(replace(CRAWL, user_agent=agent), SITE, DEFAULT).token
    assert token_of(agent) == token


@pytest.mark.parametrize(
    ("seeds", "host", "secrets"),
    [
        ((f"{SITE}/a",), SITE, True),
        ((f"{SITE}/a",), "http://example.com", False),
        ((f"{SITE}/a",), "https://example.com:8443", False),
        ((f"{SITE}/a",), "https://www.example.com", False),
        ((f"{SITE}/a",), "https://example.com.evil.test", False),
        ((f"{SITE}/a",), "https://evil.test", False),
        (("http://example.com/a",), "http://example.com", True),
        (("http://example.com/a",), SITE, False),
        ((f"{SITE}/a", "http://example.com/a"), SITE, True),
        ((f"{SITE}/a", "http://example.com/a"), "http://example.com", False),
        ((f"{SITE}/a", "https://two.test/"), "https://two.test", True),
        ((), SITE, False),
    ],
)
def test_secret_headers_are_sent_only_to_seed_origins(
    seeds: tuple[str, ...], host: str, secrets: bool
) -> None:
    """Other origins, and http after https, get only headers without secrets (cases 43 and 44)."""
    headers = identity_of(replace(CRAWL, seeds=seeds), host, DEFAULT).headers
    assert headers == ((*SECRET, *OPEN) if secrets else OPEN)


def test_repr_hides_header_values() -> None:
    assert "s3cret" not in repr(CRAWL)
    assert "s3cret" not in repr(identity_of(CRAWL, SITE, DEFAULT))
    assert "s3cret" not in repr(CrawlSpec(seeds=(SITE,), headers=SECRET))
    stored = crawl_codec.from_fields(crawl_codec.to_fields(CRAWL))
    assert stored == CRAWL
    assert stored != replace(CRAWL, headers=OPEN)


@pytest.mark.parametrize(
    ("named", "seeds", "origin"),
    [
        ("example.org", (), "https://example.org"),
        ("Example.ORG:8443", (), "https://example.org:8443"),
        ("example.org", ("http://example.org/a",), "http://example.org"),
        ("example.org", ("http://example.org/a", "https://example.org/"), "https://example.org"),
        ("127.0.0.1:8081", ("http://127.0.0.1:8081/",), "http://127.0.0.1:8081"),
        ("http://example.org", ("https://example.org/",), "http://example.org"),
        ("b\u00fccher.example", (), "https://xn--bcher-kva.example"),
    ],
)
def test_host_header_applies_to_one_origin(named: str, seeds: tuple[str, ...], origin: str) -> None:
    plan = CrawlSpec(seeds=seeds or (SITE,), host_headers=((named, SECRET),))
    assert crawl_of(plan, 0).host_headers == ((origin, SECRET),)


HOSTS = ("a.example", "b.example", "sub.a.example", "a.example:8443")


@given(
    st.dictionaries(st.sampled_from(HOSTS), st.sampled_from(["X-Key", "Cookie", "x_key"])),
    st.booleans(),
)
def test_origin_never_gets_headers_of_other_origin(own: dict[str, str], shared: bool) -> None:
    hosts = tuple((host, ((name, f"of {host}"),)) for host, name in own.items())
    headers = (("X-Key", "shared"),) if shared else ()
    crawl = crawl_of(CrawlSpec(seeds=(SITE,), headers=headers, host_headers=hosts), 0)
    for host in (*HOSTS, "c.example"):
        for scheme in ("https", "http"):
            sent = identity_of(crawl, f"{scheme}://{host}", DEFAULT).headers
            expected = ((own[host], f"of {host}"),) if scheme == "https" and host in own else ()
            assert sent == expected
    at_home = identity_of(crawl, host_of(SITE), DEFAULT).headers
    assert at_home == headers


def test_header_of_host_replaces_header_of_crawl() -> None:
    plan = CrawlSpec(
        seeds=(SITE,),
        headers=(("X-Key", "all"), ("DNT", "1")),
        host_headers=((hostname_of(SITE), (("x_key", "own"),)),),
    )
    crawl = crawl_of(plan, 0)
    origin = crawl.host_headers[0][0]
    assert identity_of(crawl, origin, DEFAULT).headers == (("DNT", "1"), ("x_key", "own"))
    assert crawl_codec.from_fields(crawl_codec.to_fields(crawl)) == crawl
    assert "own" not in repr(crawl) + repr(plan)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ((("example.org/x", ()),), "is no host"),
        ((("https://example.org/?x", ()),), "is no host"),
        ((("ftp://example.org", ()),), "is no host"),
        ((("", ()),), "is no host"),
        ((("user:s3cret@example.org", ()),), "is no host"),
        ((("a.org", ()), ("https://a.org", ())), "twice"),
        ((("a.org", (("X", "s3cret\n"),)),), "printable ASCII"),
        (tuple((f"h{n}.org", ()) for n in range(HOSTS_MAX + 1)), "too many"),
        (tuple((f"h{n}.org", (("X", "s3cret" * 1_000),)) for n in range(20)), "too many"),
        ((("example.com", ()), ("http://example.com", ())), "twice"),
    ],
)
def test_invalid_host_headers_are_rejected_without_secret(hosts: HostHeaders, said: str) -> None:
    with pytest.raises(PlanError, match=said) as raised:
        crawl_of(CrawlSpec(seeds=("http://example.com/",), host_headers=hosts), 0)
    assert raised.value.field == "host_headers"
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("Connection", "close", "leave it out"),
        ("transfer-encoding", "chunked", "frames"),
        ("Content-Length", "5", "frames"),
        ("Content_Length", "5", "frames"),
        ("Content-Type", "x/y", "frames"),
        ("Proxy-Authorization", "s3cret", "frames"),
        ("PROXY-CONNECTION", "close", "frames"),
        ("TE", "trailers", "frames"),
        ("Upgrade", "h2c", "frames"),
        ("HTTP2-Settings", "s3cret", "frames"),
        ("Host", "s3cret", "frames"),
        ("Forwarded", "for=s3cret", "frames"),
        ("Expect", "100-continue", "frames"),
        ("User-Agent", "s3cret", "--user-agent"),
        ("Accept-Encoding", "br", "sets it itself"),
        ("Range", "bytes=0-1", "sets it itself"),
        ("If-None-Match", "s3cret", "sets it itself"),
        ("Set-Cookie", "a=s3cret", "Cookie"),
        ("", "s3cret", "Name: value"),
        ("X y", "s3cret", "Name: value"),
        ("X:", "s3cret", "Name: value"),
        ("X\r\nHost", "s3cret", "Name: value"),
        ("s3cret\n", "x", "Name: value"),
        ("Ünï", "s3cret", "Name: value"),
        ("X-A", "", "printable ASCII"),
        ("X-A", "s3cret\r\nHost: evil", "printable ASCII"),
        ("X-A", "s3cret\nX: y", "printable ASCII"),
        ("X-A", "s3cret\0", "printable ASCII"),
        ("X-A", "s3cret ", "printable ASCII"),
        ("X-A", "s3crét", "printable ASCII"),
        ("Cookie", "a=s3cret\r\nCookie: b", "printable ASCII"),
    ],
)
def test_invalid_header_is_rejected_without_secret(name: str, value: str, said: str) -> None:
    with pytest.raises(PlanError, match=said) as raised:
        crawl_of(CrawlSpec(seeds=(SITE,), headers=((name, value),)), 0)
    assert raised.value.field == "headers"
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((("Cookie", "a=1"), ("cookie", "b=2")), "twice"),
        ((("X-A", "1"), ("x_a", "2")), "twice"),
        (tuple((f"X-{n}", "1") for n in range(HEADERS_MAX + 1)), "up to 20"),
        ((("X-A", "x" * HEADERS_CHARS_MAX),), "up to 8,192"),
    ],
)
def test_headers_are_limited_in_number_and_size(headers: Headers, said: str) -> None:
    (problem,) = problems_of_headers(headers)
    assert said in problem


def test_problems_of_headers_lists_every_invalid_header() -> None:
    headers = (("Host", "a"), ("X-Fine", "1"), ("Content-Length", "3"), ("X-A", "s3cret\n"))
    problems = tuple(problems_of_headers(headers))
    assert [problem.split()[2].rstrip(":") for problem in problems[:2]] == [
        "Host",
        "Content-Length",
    ]
    assert "value of the header X-A" in problems[2]
    assert len(problems) == 3
    assert "s3cret" not in str(problems)


def test_valid_headers_and_agents_are_kept() -> None:
    plan = CrawlSpec(seeds=(SITE,), headers=(*SECRET, *OPEN), user_agents=("a/1",), proxied=False)
    crawl = crawl_of(plan, 0)
    assert (crawl.headers, crawl.user_agents, crawl.proxied) == (plan.headers, ("a/1",), False)


@pytest.mark.parametrize(
    "agents",
    [("",), (" a/1",), ("a/1\r\nX: y",), ("bot\tx",), ("böt/1",), ("(none)",), ("x" * 501,)],
)
def test_invalid_user_agent_is_rejected(agents: tuple[str, ...]) -> None:
    with pytest.raises(PlanError, match=r"name/1\.0") as raised:
        crawl_of(CrawlSpec(seeds=(SITE,), user_agents=agents), 0)
    assert raised.value.field == "user_agents"
    with pytest.raises(IdentityError, match="up to 100"):
        check_agents(("a/1",) * (AGENTS_MAX + 1))


def test_stored_request_headers_have_no_secrets() -> None:
    sent = (
        ("Host", "a.example"),
        ("User-Agent", "bot/1"),
        ("Accept-Language", "de"),
        ("If-None-Match", '"x"'),
        ("Cookie", "session=s3cret"),
        ("X-Api-Key", "s3cret"),
        ("Proxy-Authorization", "Basic s3cret"),
    )
    assert stored_headers(sent) == (*sent[:4], ("Cookie", "redacted"), ("X-Api-Key", "redacted"))
