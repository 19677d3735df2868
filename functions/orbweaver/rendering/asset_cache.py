"""Cache scripts and styles that several pages use, by URL.

Bodies are kept in Base64, the form of the browser's protocol, because encoding costs 3 ms per
megabyte.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field

from orbweaver.model.http_exchange import Headers
from orbweaver.model.value import value_class

BYTES_MAX = 64 * 1024 * 1024
# After this time a file is requested again, because the site may have changed it.
AGE_MS_MAX = 10 * 60 * 1000
_ENTRY_BYTES = 1_000
# A file larger than this fraction of the cache (one fourth) is not kept.
_SHARE = 4
_OK = 200


@value_class
class Asset:
    """A cached file. `body` is in Base64, `bytes` is the size of the decoded body."""

    status: int
    headers: Headers
    body: str = field(repr=False)
    bytes: int
    at_ms: int


class AssetCache:
    """Cached files with a limit on their total size. The least recently used are evicted first."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._assets: OrderedDict[tuple[str, str], Asset] = OrderedDict()
        self.bytes = 0

    def find(self, url: str, origin: str, now_ms: int) -> Asset | None:
        """Return the cached file of a URL, unless it is too old.

        `origin` is the request's `Origin` header: responses to different origins are cached
        separately.
        """
        asset = self._assets.get((url, origin))
        if asset is None or now_ms - asset.at_ms > AGE_MS_MAX:
            return None
        self._assets.move_to_end((url, origin))
        return asset

    def keep(self, url: str, origin: str, asset: Asset) -> None:
        """Cache a response, unless its server forbids caching, it failed, or it is too large."""
        size = _size_of(asset)
        if asset.status != _OK or _SHARE * size > self._bytes_max or _is_private(asset):
            return
        self._remove((url, origin))
        self._assets[url, origin] = asset
        self.bytes += size
        while self.bytes > self._bytes_max:
            self._remove(next(iter(self._assets)))

    def _remove(self, key: tuple[str, str]) -> None:
        asset = self._assets.pop(key, None)
        if asset is not None:
            self.bytes -= _size_of(asset)


def _size_of(asset: Asset) -> int:
    return len(asset.body) + _ENTRY_BYTES


def _is_private(asset: Asset) -> bool:
    control = [value for name, value in asset.headers if name.lower() == "cache-control"]
    return "no-store" in ",".join(control).lower()
