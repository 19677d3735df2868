"""Cache of assets that pages share."""

from __future__ import annotations

from orbweaver.model.http_exchange import Headers
from orbweaver.rendering.asset_cache import AGE_MS_MAX, Asset, AssetCache

URL = "https://shop.example/app.js"


def asset(size: int = 10, at_ms: int = 0, status: int = 200, headers: Headers = ()) -> Asset:
    return Asset(status=status, headers=headers, body="x" * size, bytes=size, at_ms=at_ms)


def test_asset_is_found_by_url_and_origin_until_too_old() -> None:
    cache = AssetCache()
    cache.keep(URL, "", asset())
    assert cache.find(URL, "", AGE_MS_MAX) is not None
    assert cache.find(URL, "", AGE_MS_MAX + 1) is None
    assert cache.find(URL, "https://other.example", 0) is None


def test_cache_size_is_bounded_with_least_recent_evicted() -> None:
    """An asset larger than a quarter of the cache is not stored."""
    cache = AssetCache(bytes_max=10_000)
    for place in range(20):
        cache.keep(f"{URL}?{place}", "", asset(500))
        cache.find(f"{URL}?0", "", 0)
        assert cache.bytes <= 10_000
    assert cache.find(f"{URL}?0", "", 0) is not None
    assert cache.find(f"{URL}?1", "", 0) is None
    cache.keep(URL, "", asset(2_000))
    assert cache.find(URL, "", 0) is None


def test_errors_and_no_store_answers_are_not_cached() -> None:
    cache = AssetCache()
    cache.keep(URL, "", asset(status=404))
    cache.keep(URL, "", asset(headers=(("cache-control", "private, No-Store"),)))
    cache.keep(URL, "", asset(headers=(("Cache-Control", "no-store"),)))
    assert cache.find(URL, "", 0) is None
    assert cache.bytes == 0


def test_replaced_asset_counts_once() -> None:
    cache = AssetCache()
    cache.keep(URL, "", asset(10, at_ms=1))
    once = cache.bytes
    cache.keep(URL, "", asset(10, at_ms=2))
    found = cache.find(URL, "", 2)
    assert cache.bytes == once
    assert found is not None
    assert found.at_ms == 2
