"""Declare where the proxies of a process come from: options, a secret, or environment variables.

Environment variables have the names and rules of curl (ENVIRONMENT in its manual). `http_proxy` is
read in lower case only, because a CGI server sets `HTTP_PROXY` from a request's header.
`HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are read in both cases, lower case first. NO_PROXY has two
rules of Go's `httpproxy`, too: loopback hosts are never proxied, and an entry can have a port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from hashlib import blake2b
from ipaddress import ip_address, ip_network

from orbweaver.fetching.proxy_pool import PoolError, Proxy, parse_proxy
from orbweaver.model.named_origins import LOCALHOST, port_of
from orbweaver.model.url import hostname_of
from orbweaver.model.value import value_class

IGNORED = "HTTP_PROXY"


@value_class
class ProxyConfig:
    """The source of the proxies: the first of `urls`, `file`, `secret` and the variables.

    `urls`, `http` and `https` can contain credentials. `http` and `https` are the proxies of the
    environment for URLs of these schemes.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)
    file: str = ""
    secret: str = ""
    http: str = field(default="", repr=False)
    https: str = field(default="", repr=False)
    no_proxy: str = ""
    # The user of this machine chose the proxies.
    is_local: bool = True

    def __bool__(self) -> bool:
        return bool(self.urls or self.file or self.secret or self.http or self.https)

    @property
    def is_listed(self) -> bool:
        """Whether one list has the proxies of all URLs."""
        return bool(self.urls or self.file or self.secret)

    @property
    def schemes(self) -> frozenset[str]:
        """The schemes of URLs that have proxies."""
        own = {"http": self.http, "https": self.https}
        return frozenset(own if self.is_listed else filter(own.get, own))

    @property
    def mark(self) -> str:
        """A digest of the proxies, without credentials. Empty if there are none."""
        urls = (*self.urls, *filter(None, (self.http, self.https)))
        parts = (*(parse_proxy(url).url for url in urls), self.file, self.secret, self.no_proxy)
        return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest() if self else ""

    def is_proxied(self, url: str) -> bool:
        """Whether requests of a canonical URL use a proxy, if their crawl permits it."""
        if self.is_listed:
            return True
        own = self.https if url.startswith("https:") else self.http
        name = hostname_of(url).strip("[]")
        return bool(own) and not is_exempt(self.no_proxy, name, port_of(url))


DIRECT = ProxyConfig()


def config_in(environment: Mapping[str, str]) -> ProxyConfig:
    """Return the proxies that environment variables name. Raises PoolError, which names one."""
    own = dict(_named(environment))
    http, https = (own.get(name) or own.get("ALL_PROXY", "") for name in ("http", "HTTPS_PROXY"))
    no_proxy = environment.get("no_proxy", environment.get("NO_PROXY", ""))
    return ProxyConfig(http=http, https=https, no_proxy=no_proxy)


def ignored_in(environment: Mapping[str, str]) -> bool:
    """Whether HTTP_PROXY is set in upper case only, which has no effect."""
    others = ("http_proxy", "ALL_PROXY", "all_proxy")
    return bool(environment.get(IGNORED)) and not any(map(environment.get, others))


def _named(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in ("http", "HTTPS_PROXY", "ALL_PROXY"):
        variables = ("http_proxy",) if name == "http" else (name.lower(), name)
        variable = next(filter(environment.get, variables), None)
        if variable is None:
            continue
        text = environment[variable].strip()
        text = text if "://" in text else f"http://{text}"  # as curl
        try:
            parse_proxy(text)
        except PoolError as error:
            raise PoolError(f"{variable}: its URL {error}") from None
        yield name, text


def proxy_of(text: str) -> tuple[Proxy, ...]:
    return (parse_proxy(text),) if text else ()


def is_exempt(no_proxy: str, host: str, port: int) -> bool:
    """Whether NO_PROXY exempts a host (a name, or an address without brackets) and its port."""
    host = host.lower().rstrip(".")
    address = None
    with suppress(ValueError):
        address = ip_address(host)
    if host == LOCALHOST or host.endswith(f".{LOCALHOST}") or (address and address.is_loopback):
        return True
    for entry in no_proxy.replace(",", " ").lower().split():
        if entry == "*":
            return True
        if address is not None:
            with suppress(ValueError):
                if address in ip_network(entry.strip("[]"), strict=False):
                    return True
        name, wanted = _split(entry)
        if wanted not in ("", str(port)):
            continue
        if address is not None:
            with suppress(ValueError):
                if address == ip_address(name.strip("[]")):
                    return True
        else:
            name = name.removeprefix("*").strip(".")
            if name and (host == name or host.endswith(f".{name}")):
                return True
    return False


def _split(entry: str) -> tuple[str, str]:
    """Return host and port of an entry. The port is empty if there is none."""
    name, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.endswith("]")):
        return name, port
    return entry, ""
