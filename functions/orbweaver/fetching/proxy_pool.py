"""Select the proxy of a host, and avoid failing proxies for a time.

A host keeps its proxy while that proxy is healthy (rendezvous hashing over host names), so that the
host sees one address. Each container learns the proxies' health itself, because proxies treat
clients differently. Source: Thaler and Ravishankar, "Using name-based mappings to increase hit
rates" (1998).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from hashlib import blake2b

from ada_url import URL

from orbweaver.model.value import value_class

PROXIES_MAX = 1_000
# Shortest and longest quarantine of a proxy. Each further failure doubles it, a response resets it.
QUARANTINE_MIN_MS = 10_000
QUARANTINE_MAX_MS = 600_000
# If a proxy did not reach a host, the host uses other proxies for this time.
AVOIDED_MS = 60_000
AVOIDED_HOSTS_MAX = 1_000
UNREACHED_HOSTS_MAX = 3  # in a row, then the proxy counts as broken
# If a proxy has rejected its user and password this often in a row, within 150 s at least, no
# rotation of the password is expected any more.
REJECTIONS_MAX = 5

SOCKS = "socks5"  # scheme of proxies that connect to an address, and with an h also to a name
SOCKS_BYTES_MAX = 255  # of a user or password (RFC 1929)
PORT_MAX = 65_535
_PORTS = {"http:": "80", "https:": "443", "socks5:": "1080", "socks5h:": "1080"}
_BEHIND = re.compile(r"[/?#]")
_PORT = re.compile(r":([^:@\]]*)$")
_EXAMPLE = "http://USER:PASSWORD@HOST:PORT"
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class PoolError(ValueError):
    """A text is not a list of proxies.

    The message has the entry's number and the reason, no content.
    """


@value_class
class Proxy:
    """A proxy. `url` has no credentials, and `authorization` is its Proxy-Authorization header."""

    url: str
    user: str = field(default="", repr=False)
    authorization: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Host and port, for logs and records."""
        return self.url.partition("://")[2]

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith(SOCKS)


@value_class
class ProxyHealth:
    """Recent failures of a proxy. It is in quarantine until `until_ms`.

    `strikes` counts its quarantines since the last success. `unreached` are the hosts that it has
    not reached since then. `avoided` maps hosts to the time until which they use other proxies.
    `rejections` counts the last quarantines in a row because of the user and password.
    """

    strikes: int = 0
    rejections: int = 0
    until_ms: int = 0
    unreached: frozenset[str] = frozenset()
    avoided: Mapping[str, int] = field(default_factory=dict)

    def usable(self, now_ms: int) -> bool:
        """Whether the proxy is not in quarantine."""
        # A longer quarantine than QUARANTINE_MAX_MS comes from a wrong clock.
        return not 0 < self.until_ms - now_ms <= QUARANTINE_MAX_MS


@value_class
class Wait:
    """All proxies are in quarantine. The first quarantine ends at `until_ms`.

    `rejected`: all of them have rejected their user and password `REJECTIONS_MAX` times.
    """

    until_ms: int
    rejected: bool = False


_HEALTHY = ProxyHealth()


@value_class
class Pool:
    """Proxies, and the health of each proxy that has failed recently."""

    proxies: tuple[Proxy, ...]
    health: Mapping[Proxy, ProxyHealth] = field(default_factory=dict)

    def pick(self, host: str, now_ms: int) -> Proxy | Wait:
        """Return the proxy of a host, or the end of the first quarantine if no proxy is usable."""
        usable = [proxy for proxy in self.proxies if self.build(proxy).usable(now_ms)]
        if not usable:
            resting = [self.build(proxy) for proxy in self.proxies]
            return Wait(
                until_ms=min(health.until_ms for health in resting),
                rejected=all(health.rejections >= REJECTIONS_MAX for health in resting),
            )
        # If the host must avoid all proxies, use the one whose failure is the oldest.
        return min(
            usable,
            key=lambda proxy: (self._avoided_ms(proxy, host, now_ms), _rank(proxy, host)),
        )

    def build(self, proxy: Proxy) -> ProxyHealth:
        return self.health.get(proxy, _HEALTHY)

    def note_success(self, proxy: Proxy, host: str, began_ms: int) -> Pool:
        health = self.build(proxy)
        if health is _HEALTHY or began_ms < health.until_ms:
            return self
        avoided = {name: until for name, until in health.avoided.items() if name != host}
        return self._with(proxy, ProxyHealth(avoided=avoided) if avoided else _HEALTHY)

    def broken(self, proxy: Proxy, began_ms: int, now_ms: int, *, rejected: bool = False) -> Pool:
        """Quarantine a proxy that is unreachable, or has `rejected` its user and password.

        `began_ms` is when the failed request began.
        """
        health = self.build(proxy)
        # Requests that began before the quarantine do not double it.
        if proxy not in self.proxies or began_ms < health.until_ms:
            return self
        rest_ms = min(QUARANTINE_MAX_MS, QUARANTINE_MIN_MS << min(health.strikes, 16))
        return self._with(
            proxy,
            replace(
                health,
                strikes=health.strikes + 1,
                rejections=health.rejections + 1 if rejected else 0,
                until_ms=now_ms + rest_ms,
                unreached=frozenset(),
            ),
        )

    def note_unreached(self, proxy: Proxy, host: str, began_ms: int, now_ms: int) -> Pool:
        """Record that a proxy did not reach a host (502, refused CONNECT, timeout)."""
        health = self.build(proxy)
        if proxy not in self.proxies or began_ms < health.until_ms:
            return self
        avoided = {name: until for name, until in health.avoided.items() if until > now_ms}
        if len(avoided) >= AVOIDED_HOSTS_MAX:
            avoided.pop(next(iter(avoided)))
        avoided[host] = now_ms + AVOIDED_MS
        # The host itself might be down, so one failure does not quarantine the proxy.
        hosts = health.unreached | {host}
        noted = self._with(proxy, replace(health, unreached=hosts, avoided=avoided))
        return noted.broken(proxy, began_ms, now_ms) if len(hosts) >= UNREACHED_HOSTS_MAX else noted

    def replaced(self, proxies: tuple[Proxy, ...]) -> Pool:
        """Return a pool of `proxies`. Proxies that are in both pools keep their health."""
        if proxies == self.proxies:
            return self
        health = {proxy: self.health[proxy] for proxy in proxies if proxy in self.health}
        return Pool(proxies=proxies, health=health)

    def _avoided_ms(self, proxy: Proxy, host: str, now_ms: int) -> int:
        left_ms = self.build(proxy).avoided.get(host, 0) - now_ms
        return left_ms if 0 < left_ms <= AVOIDED_MS else 0

    def _with(self, proxy: Proxy, health: ProxyHealth) -> Pool:
        rest = {key: value for key, value in self.health.items() if key != proxy}
        return replace(self, health=rest if health is _HEALTHY else {**rest, proxy: health})


def parse_pool(text: str) -> tuple[Proxy, ...]:
    """Parse a JSON list of `http://user:password@host:port`. Raises PoolError."""
    listed = _json(text)
    if not isinstance(listed, list) or not 1 <= len(listed) <= PROXIES_MAX:
        raise PoolError(f"it is not a JSON list of 1 to {PROXIES_MAX:,} proxy URLs")
    return _parse_all("entry", enumerate(listed, 1))


def parse_lines(text: str) -> tuple[Proxy, ...]:
    """Parse one proxy URL a line. Empty lines and lines with # are skipped. Raises PoolError."""
    lines = [(place, line.strip()) for place, line in enumerate(text.splitlines(), 1)]
    lines = [(place, line) for place, line in lines if line and not line.startswith("#")]
    if not 1 <= len(lines) <= PROXIES_MAX:
        raise PoolError(f"it does not list 1 to {PROXIES_MAX:,} proxy URLs, one a line")
    return _parse_all("line", lines)


def parse_proxy(entry: str) -> Proxy:
    """Parse a proxy's URL. Raises PoolError with a predicate: "has no scheme: …"."""
    proxy = _proxy(entry.strip())
    if isinstance(proxy, str):
        raise PoolError(proxy)
    return proxy


def _parse_all(what: str, entries: Iterable[tuple[int, object]]) -> tuple[Proxy, ...]:
    found: dict[Proxy, None] = {}
    for place, entry in entries:
        proxy = _proxy(entry) if isinstance(entry, str) else "is not a text"
        if isinstance(proxy, str):
            raise PoolError(f"{what} {place} {proxy}")
        found[proxy] = None
    return tuple(found)


def _json(text: str) -> object:
    # Return None instead of raising: a chained exception would contain the secret text.
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _proxy(entry: str) -> Proxy | str:  # noqa: PLR0911 - one for each mistake
    """Return a proxy, or a predicate that describes the mistake and contains no part of it."""
    if "://" not in entry:
        return "has no scheme: write http://HOST:PORT, or https, socks5 or socks5h"
    authority, *rest = _BEHIND.split(entry.partition("://")[2], maxsplit=1)
    if rest and "@" in rest[0]:
        return "has a / ? or # in its password: write %2F, %3F or %23"
    url = _url(entry)
    if url is None or not url.hostname:
        port = _PORT.search(authority)
        wrong = port is not None and not (port[1].isdecimal() and int(port[1][:6]) <= PORT_MAX)
        return f"has no port of 1 to {PORT_MAX}" if wrong else f"is not a URL like {_EXAMPLE}"
    if url.protocol not in _PORTS:
        return "has another scheme than http, https, socks5 and socks5h"
    if url.port == "0":
        return f"has no port of 1 to {PORT_MAX}"
    if url.pathname not in ("", "/") or url.search or url.hash:
        return f"has something behind its port: write it like {_EXAMPLE}"
    user, password = _unescaped(url.username), _unescaped(url.password)
    if b":" in user:
        return "has a colon in its user name, which Basic cannot carry"
    if url.protocol.startswith(SOCKS) and max(len(user), len(password)) > SOCKS_BYTES_MAX:
        return f"has a user or password above the {SOCKS_BYTES_MAX} bytes of SOCKS"
    authorization = None
    if user or password:
        authorization = "Basic " + b64encode(user + b":" + password).decode("ascii")
    return Proxy(
        url=f"{url.protocol}//{url.hostname.lower()}:{url.port or _PORTS[url.protocol]}",
        user=url.username,
        authorization=authorization,
    )


def _url(entry: str) -> URL | None:
    try:
        return URL(entry)
    except ValueError:
        return None


def _unescaped(text: str) -> bytes:
    return _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), text.encode())


def _rank(proxy: Proxy, host: str) -> bytes:
    # Without the password, so that hosts keep their proxies when the password changes.
    return blake2b(f"{proxy.url} {proxy.user} {host}".encode(), digest_size=8).digest()
