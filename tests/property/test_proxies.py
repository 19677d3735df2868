"""Choice of proxies: stable, few moves, none in quarantine, never stuck."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.fetching.proxy_pool import (
    QUARANTINE_MAX_MS,
    Pool,
    PoolError,
    Proxy,
    Wait,
    parse_pool,
)

NOW_MS = 1_795_251_600_000
PROXIES = st.lists(
    st.integers(0, 50).map(lambda number: Proxy(url=f"http://p{number}.test:3128")),
    min_size=1,
    max_size=12,
    unique=True,
).map(tuple)
HOSTS = st.integers(0, 1_000).map(lambda number: f"h{number}.test")
# Event, proxy, host, time passed, and duration of the request.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["worked", "broken", "unreached"]),
        st.integers(0, 11),
        HOSTS,
        st.integers(-1_000, 100_000),
        st.integers(0, 20_000),
    ),
    max_size=40,
)


def lived(pool: Pool, steps: list[tuple[str, int, str, int, int]]) -> tuple[Pool, int]:
    """Return the pool after these events, and its time."""
    now_ms = NOW_MS
    for what, which, host, passed_ms, took_ms in steps:
        now_ms += passed_ms
        proxy = pool.proxies[which % len(pool.proxies)]
        match what:
            case "worked":
                pool = pool.note_success(proxy, host, now_ms - took_ms)
            case "broken":
                pool = pool.broken(proxy, now_ms - took_ms, now_ms)
            case _:
                pool = pool.note_unreached(proxy, host, now_ms - took_ms, now_ms)
    return pool, now_ms


@given(PROXIES, HOSTS, st.integers(0, 11))
def test_removed_proxy_moves_only_its_own_hosts(
    proxies: tuple[Proxy, ...], host: str, which: int
) -> None:
    pool = Pool(proxies=proxies)
    chosen = pool.pick(host, NOW_MS)
    gone = proxies[which % len(proxies)]
    left = tuple(proxy for proxy in proxies if proxy != gone)
    resting = pool.broken(gone, NOW_MS, NOW_MS).pick(host, NOW_MS)
    if chosen == gone:
        assert resting != gone
    else:
        assert resting == Pool(proxies=left).pick(host, NOW_MS) == chosen
    assert Pool(proxies=tuple(reversed(proxies))).pick(host, NOW_MS) == chosen


@given(PROXIES, STEPS, HOSTS)
def test_proxy_in_quarantine_is_not_chosen(
    proxies: tuple[Proxy, ...], steps: list[tuple[str, int, str, int, int]], host: str
) -> None:
    pool, now_ms = lived(Pool(proxies=proxies), steps)
    chosen = pool.pick(host, now_ms)
    assert chosen == pool.pick(host, now_ms)
    if isinstance(chosen, Wait):
        assert 0 < chosen.until_ms - now_ms <= QUARANTINE_MAX_MS
        assert isinstance(pool.pick(host, chosen.until_ms), Proxy)
    else:
        assert pool.build(chosen).usable(now_ms)
    assert isinstance(pool.pick(host, now_ms + QUARANTINE_MAX_MS), Proxy)


@given(PROXIES, STEPS)
def test_answer_resets_strikes_of_proxy(
    proxies: tuple[Proxy, ...], steps: list[tuple[str, int, str, int, int]]
) -> None:
    pool, now_ms = lived(Pool(proxies=proxies), steps)
    later_ms = now_ms + QUARANTINE_MAX_MS
    for proxy in proxies:
        assert pool.note_success(proxy, "h", later_ms).build(proxy).strikes == 0


@given(st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("latin-1"))))
def test_any_text_is_proxy_list_or_pool_error(text: str) -> None:
    for whole in (text, f'["{text}"]', f'["http://{text}@h.test:1"]', f'["http://h.test:{text}"]'):
        try:
            assert all(proxy.url.startswith(("http", "socks5")) for proxy in parse_pool(whole))
        except PoolError as error:
            assert len(str(error)) < 100  # noqa: PT017 - either way is right
