"""The choice of a proxy for a host, and the format of a proxy list."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from orbweaver.fetching.proxy_pool import (
    AVOIDED_HOSTS_MAX,
    AVOIDED_MS,
    PROXIES_MAX,
    QUARANTINE_MAX_MS,
    QUARANTINE_MIN_MS,
    REJECTIONS_MAX,
    Pool,
    PoolError,
    Proxy,
    Wait,
    parse_lines,
    parse_pool,
)

NOW_MS = 1_795_251_600_000
A, B, C = (Proxy(url=f"http://{name}.test:3128") for name in "abc")
POOL = Pool(proxies=(A, B, C))
HOST = "example.com"


def basic(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("entry", "url", "authorization"),
    [
        ("http://p.test:3128", "http://p.test:3128", None),
        ("http://p.test", "http://p.test:80", None),
        ("HTTPS://P.Test/", "https://p.test:443", None),
        ("http://me:word@p.test:1", "http://p.test:1", basic("me:word")),
        ("http://me%40x:a%3Ab%2Fc@p.test:1", "http://p.test:1", basic("me@x:a:b/c")),
        ("http://me@p.test:1", "http://p.test:1", basic("me:")),
        ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080", None),
        ("http://0x7f.1:8080", "http://127.0.0.1:8080", None),
        ("http://me:a@b@p.test:1", "http://p.test:1", basic("me:a@b")),
        ("socks5h://me:a%3Ab@P.test", "socks5h://p.test:1080", basic("me:a:b")),
        ("socks5://[::1]:9", "socks5://[::1]:9", None),
    ],
)
def test_entry_is_split_into_url_and_credentials(
    entry: str, url: str, authorization: str | None
) -> None:
    (proxy,) = parse_pool(json.dumps([entry]))
    assert (proxy.url, proxy.authorization) == (url, authorization)
    assert proxy.name == url.partition("://")[2]
    assert "Basic" not in repr(proxy)
    assert "me" not in repr(proxy)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON list"),
        ("http://me:word@p.test:1", "JSON list"),
        ("{}", "JSON list"),
        ("[]", "JSON list"),
        ("null", "JSON list"),
        ("[" * 100_000, "JSON list"),
        (json.dumps(["http://p.test"] * (PROXIES_MAX + 1)), "1 to 1,000"),
        ('["http://p.test", 7]', "entry 2"),
        ('["http://p.test", "me:word@p.test:1"]', "entry 2"),
        ('["socks4://me:word@p.test:1"]', "entry 1"),
        ('["ftp://me:word@p.test:1"]', "another scheme"),
        ('["p.test:1"]', "no scheme: write http://HOST:PORT"),
        ('["http://me:wo#word@p.test:1"]', "%23"),
        ('["http://p.test:0"]', "no port"),
        ('["http://p.test:http"]', "no port"),
        (json.dumps(["socks5h://me:" + "word" * 64 + "@p.test"]), "255 bytes"),
        ('["http://me:word@p.test:99999"]', "entry 1"),
        ('["http://me:word@"]', "entry 1"),
        ('["http://me:word@p.test:1/path"]', "behind its port"),
        ('["http://me:word@p.test:1?word"]', "behind its port"),
        ('["http://me%3Ame:word@p.test:1"]', "colon"),
    ],
)
def test_invalid_list_is_rejected_without_secret(text: str, said: str) -> None:
    with pytest.raises(PoolError, match=said) as raised:
        parse_pool(text)
    assert "word" not in str(raised.value).replace("password", "")
    assert raised.value.__context__ is None


def test_lines_of_file_are_proxies() -> None:
    text = "# ours\n\n http://me:word@p.test:1 \r\nsocks5h://q.test\n"
    assert [one.name for one in parse_lines(text)] == ["p.test:1", "q.test:1080"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1 to 1,000 proxy URLs, one a line"),
        ("# nothing", "one a line"),
        ("http://p.test:1\n\nme:word@q.test:2", "line 3 has no scheme"),
        ('["http://me:word@p.test:1"]', "line 1"),
    ],
)
def test_invalid_line_is_named_without_secret(text: str, said: str) -> None:
    with pytest.raises(PoolError, match=said) as raised:
        parse_lines(text)
    assert "word" not in str(raised.value)


def test_proxy_listed_twice_counts_once() -> None:
    entries = ["http://a:1@p.test:1", "http://a:1@p.test:1", "http://a:2@p.test:1"]
    assert len(parse_pool(json.dumps(entries))) == 2


def test_new_password_moves_no_host() -> None:
    before, after = (
        Pool(proxies=parse_pool(json.dumps([f"http://u{n}:{word}@p.test:1" for n in range(9)])))
        for word in ("old", "new")
    )
    for number in range(50):
        ones = [pool.pick(f"h{number}.test", NOW_MS) for pool in (before, after)]
        assert all(isinstance(one, Proxy) for one in ones)
        assert len({one.user for one in ones if isinstance(one, Proxy)}) == 1


def test_broken_proxy_rests_longer_every_time() -> None:
    """10 s, doubled up to 10 minutes; one answer resets it."""
    pool, now_ms, rests = Pool(proxies=(A,)), NOW_MS, []
    for _ in range(9):
        pool = pool.broken(A, now_ms, now_ms)
        resting = pool.pick(HOST, now_ms)
        assert isinstance(resting, Wait)
        rests.append(resting.until_ms - now_ms)
        now_ms = resting.until_ms
        assert pool.pick(HOST, now_ms) == A
    assert rests[:3] == [QUARANTINE_MIN_MS, 2 * QUARANTINE_MIN_MS, 4 * QUARANTINE_MIN_MS]
    assert rests[-1] == QUARANTINE_MAX_MS
    assert pool.note_success(A, HOST, now_ms) == Pool(proxies=(A,))


def test_wait_after_rejections_in_a_row_is_rejected() -> None:
    """Only if all proxies reject their password, and until one of them answers."""
    pool, now_ms, waits = Pool(proxies=(A, B)), NOW_MS, list[bool]()
    for _ in range(REJECTIONS_MAX):
        pool = pool.broken(A, now_ms, now_ms, rejected=True)
        pool = pool.broken(B, now_ms, now_ms, rejected=True)
        wait = pool.pick(HOST, now_ms)
        assert isinstance(wait, Wait)
        waits.append(wait.rejected)
        now_ms = wait.until_ms
    assert waits == [False] * (REJECTIONS_MAX - 1) + [True]
    unreachable = pool.broken(A, now_ms, now_ms, rejected=True).broken(B, now_ms, now_ms)
    answered = pool.note_success(A, HOST, now_ms).broken(A, now_ms, now_ms, rejected=True)
    for other in (unreachable, answered.broken(B, now_ms, now_ms, rejected=True)):
        found = other.pick(HOST, now_ms)
        assert isinstance(found, Wait)
        assert not found.rejected


def test_failures_of_concurrent_requests_count_once() -> None:
    pool = POOL
    for late_ms in range(64):
        pool = pool.broken(A, NOW_MS - 5, NOW_MS + late_ms)
        pool = pool.note_unreached(A, f"h{late_ms}", NOW_MS - 5, NOW_MS + late_ms)
        pool = pool.note_success(A, HOST, NOW_MS - 5)
    assert pool.build(A).strikes == 1
    assert pool.build(A).until_ms == NOW_MS + QUARANTINE_MIN_MS


def test_quarantine_set_in_future_is_ignored() -> None:
    """A quarantine in the future means that the clock was wrong when it began."""
    pool = Pool(proxies=(A,)).broken(A, NOW_MS + 10**9, NOW_MS + 10**9)
    assert pool.pick(HOST, NOW_MS) == A


def test_all_proxies_broken_returns_wait_until_first_is_free() -> None:
    pool = POOL.broken(B, NOW_MS, NOW_MS)
    pool = pool.broken(A, NOW_MS + 1, NOW_MS + 1).broken(C, NOW_MS + 2, NOW_MS + 2)
    assert pool.pick(HOST, NOW_MS + 3) == Wait(until_ms=NOW_MS + QUARANTINE_MIN_MS)
    assert pool.pick(HOST, NOW_MS + QUARANTINE_MIN_MS) == B


def test_unreached_host_uses_other_proxy_for_a_minute() -> None:
    """If no proxy reaches the host, the first that failed is used again."""
    first = POOL.pick(HOST, NOW_MS)
    assert isinstance(first, Proxy)
    pool, tried = POOL, [first]
    for step in range(1, 3):
        pool = pool.note_unreached(tried[-1], HOST, NOW_MS + step, NOW_MS + step)
        chosen = pool.pick(HOST, NOW_MS + step)
        assert isinstance(chosen, Proxy)
        tried.append(chosen)
    assert set(tried) == {A, B, C}
    pool = pool.note_unreached(tried[-1], HOST, NOW_MS + 3, NOW_MS + 3)
    assert pool.pick(HOST, NOW_MS + 3) == first
    assert pool.pick(HOST, NOW_MS + 3 + AVOIDED_MS) == first
    other = next(f"{n}.test" for n in range(99) if POOL.pick(f"{n}.test", NOW_MS) == first)
    assert pool.pick(other, NOW_MS + 3) == first


def test_three_unreached_hosts_in_row_break_proxy() -> None:
    pool = POOL
    for step in range(9):
        pool = pool.note_unreached(A, HOST, NOW_MS + step, NOW_MS + step)
    pool = pool.note_unreached(A, "two.test", NOW_MS + 9, NOW_MS + 9)
    assert pool.build(A).strikes == 0
    between = pool.note_success(A, "well.test", NOW_MS + 10).note_unreached(
        A, "three.test", NOW_MS, NOW_MS
    )
    assert between.build(A).strikes == 0
    assert pool.note_unreached(A, "three.test", NOW_MS + 10, NOW_MS + 10).build(A).strikes == 1


def test_avoided_hosts_are_bounded() -> None:
    pool = Pool(proxies=(A,))
    for number in range(AVOIDED_HOSTS_MAX + 50):
        pool = pool.note_success(A, "x", NOW_MS).note_unreached(A, f"h{number}", NOW_MS, NOW_MS)
    assert len(pool.build(A).avoided) == AVOIDED_HOSTS_MAX
    later_ms = NOW_MS + AVOIDED_MS
    assert set(pool.note_unreached(A, "new", later_ms, later_ms).build(A).avoided) == {"new"}


def test_reloaded_list_keeps_health_of_known_proxies() -> None:
    pool = POOL.broken(A, NOW_MS, NOW_MS).broken(B, NOW_MS, NOW_MS).replaced((B, C))
    assert set(pool.health) == {B}
    assert pool.broken(A, NOW_MS, NOW_MS) == pool
    assert pool.note_unreached(A, HOST, NOW_MS, NOW_MS) == pool
    assert pool.pick(HOST, NOW_MS) == C
