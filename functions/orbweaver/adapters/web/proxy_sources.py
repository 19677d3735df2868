"""Lists of proxies, each from one source, and the choice of a list for a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from yarl import URL

from orbweaver.fetching.proxy_config import ProxyConfig, proxy_of
from orbweaver.fetching.proxy_pool import Proxy, parse_lines, parse_pool, parse_proxy
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.ports import Secrets

FRESH_MS = 120_000  # between two reads of a secret
FILE_FRESH_MS = 1_000
FILE_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxySource:
    """A list of proxies. It is read again after `fresh_ms`, because it can change.

    `name` is for logs. `read` raises PortError if the list cannot be read, and PoolError if it is
    invalid.
    """

    name: str
    fresh_ms: int = FRESH_MS
    read: Callable[[], Awaitable[tuple[Proxy, ...]]]


def secret_source(secrets: Secrets, name: str) -> ProxySource:
    """Return the list of a secret, in JSON."""

    async def read() -> tuple[Proxy, ...]:
        return parse_pool(await secrets.read(name))

    return ProxySource(name=name, read=read)


def file_source(path: Path) -> ProxySource:
    """Return the list of a file with one URL a line."""
    # The last list, with modification time, size and inode of the file, because a list of 1,000
    # proxies takes 60 ms to parse.
    last: tuple[object, tuple[Proxy, ...]] = (None, ())

    def read_if_changed() -> tuple[Proxy, ...]:
        nonlocal last
        state = None
        with suppress(OSError):
            stat = path.stat()
            state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if state is None or state != last[0]:
            last = (state, read_file(path))
        return last[1]

    async def read() -> tuple[Proxy, ...]:
        return await asyncio.to_thread(read_if_changed)

    return ProxySource(name=str(path), fresh_ms=FILE_FRESH_MS, read=read)


def fixed_source(name: str, proxies: tuple[Proxy, ...]) -> ProxySource:
    async def read() -> tuple[Proxy, ...]:
        return proxies

    return ProxySource(name=name, read=read)


def read_file(path: Path) -> tuple[Proxy, ...]:
    """Read a file of proxies. Raises PortError and PoolError."""
    try:
        with path.open(encoding="utf-8") as file:
            return parse_lines(file.read(FILE_BYTES_MAX))
    except UnicodeDecodeError:
        raise Permanent(f"{path} is not a text file") from None
    except OSError as error:
        # An editor may be replacing the file.
        raise Transient(f"{path} cannot be read: {error.strerror}") from None


SourceOf: TypeAlias = Callable[[URL], ProxySource | None]


def source_of(config: ProxyConfig, secrets: Secrets | None) -> SourceOf:
    """Return a function that maps a URL to the list of its proxies. None: it is requested directly.

    `secrets` is needed if the list is a secret.
    """
    if config.is_listed:
        source = _listed(config, secrets)
        return lambda _: source
    http = fixed_source("http_proxy", proxy_of(config.http))
    https = fixed_source("HTTPS_PROXY", proxy_of(config.https))
    # One list has one state of health.
    by_scheme = {"http": http, "https": http if config.http == config.https else https}
    return lambda url: by_scheme[url.scheme] if config.is_proxied(str(url)) else None


def _listed(config: ProxyConfig, secrets: Secrets | None) -> ProxySource:
    if config.urls:
        return fixed_source("--proxy", tuple(dict.fromkeys(map(parse_proxy, config.urls))))
    if config.file:
        return file_source(Path(config.file))
    if secrets is None:
        raise ValueError("a secret without a store of secrets")
    return secret_source(secrets, config.secret)
