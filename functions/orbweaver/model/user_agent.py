"""Build the identity of a request: its user agent and extra headers.

A header may be a secret unless it is in `OPEN_HEADERS`. A secret goes only to the origins of the
crawl's seeds. Errors name headers and never show their values. Sources: RFC 9110 section 5 (names
and values) and 7.6.1 (hop by hop), RFC 9309 section 2.2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import lru_cache
from hashlib import blake2b

from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import SYSTEM_TRUST, Headers, HostHeaders, Trust
from orbweaver.model.url import canonicalize, host_of, hostname_of, redacted, resolved
from orbweaver.model.value import value_class

AGENTS_MAX = 100
AGENT_CHARS_MAX = 500
HEADERS_MAX = 20
HEADERS_CHARS_MAX = 8_192
HOSTS_MAX = 50
HOST_CHARS_MAX = 60  # of a host in messages
HOST_HEADERS_CHARS_MAX = 65_536

# Headers that cannot be secrets, so that all hosts may see them. In lower case.
OPEN_HEADERS = frozenset(
    {"accept-language", "cache-control", "dnt", "from", "pragma", "priority", "referer"}
    | {"save-data", "sec-gpc", "upgrade-insecure-requests"}
)
# These and the headers that the crawler sets are archived with their values.
_PUBLIC_HEADERS = OPEN_HEADERS | {"host", "user-agent", "accept", "accept-encoding"}
_PUBLIC_HEADERS |= {"if-none-match", "if-modified-since"}
REDACTED = "redacted"
_FRAMING = "it frames or routes the message: leave it out"
_OURS = "the crawler sets it itself: leave it out"
# Refused headers with the fix: they frame or route the request, or the crawler sets them. `-` at
# the end of a name matches any ending.
_REFUSED = {
    **dict.fromkeys(("connection", "keep-alive", "te", "trailer", "upgrade", "via"), _FRAMING),
    **dict.fromkeys(("transfer-encoding", "host", "expect", "http2-settings"), _FRAMING),
    **dict.fromkeys(("content-", "proxy-", "forwarded", "max-forwards"), _FRAMING),
    **dict.fromkeys(("accept", "accept-encoding", "accept-charset", "range"), _OURS),
    **dict.fromkeys(("if-match", "if-none-match", "if-modified-since", "if-range"), _OURS),
    "if-unmodified-since": _OURS,
    "user-agent": "give it as the user agent (--user-agent)",
    "set-cookie": "a request's header is called Cookie",
    "cookie2": "a request's header is called Cookie",
}
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# Excludes values that could begin another header.
_VALUE = re.compile(r"[!-~](?:[ !-~]*[!-~])?")
_COMPATIBLE = re.compile(r"Mozilla/[0-9.]+ \(compatible; *([^/;)\s]+)")


class IdentityError(ValueError):
    """A user agent or header is invalid. The message has the reason and the fix, not the value."""


@value_class
class Identity:
    """User agent, headers and TLS for one host. `token` is the agent's name in robots.txt."""

    agent: str
    token: str
    headers: Headers = field(default=(), repr=False)
    trust: Trust = SYSTEM_TRUST


def identity_of(crawl: Crawl, host: str, default_agent: str) -> Identity:
    """Return the identity of a crawl for a host (an origin, as of `host_of`).

    If the crawl has several user agents, each host name gets one of them for the whole crawl.
    """
    agent = crawl.user_agent or default_agent
    if crawl.user_agents:
        name = hostname_of(host)
        agent = min(crawl.user_agents, key=lambda agent: _rank(agent, name))
    headers, certificate = crawl.headers, crawl.client_cert
    is_seed = not (headers or certificate) or host in _secret_origins(crawl.anchors or crawl.seeds)
    if not is_seed:
        headers = tuple(pair for pair in headers if pair[0].lower() in OPEN_HEADERS)
    own = next((own for origin, own in crawl.host_headers if origin == host), ())
    return _identity(
        agent,
        joined(headers, own) if own else headers,
        crawl.ca_bundle,
        certificate if is_seed else None,
        bool(crawl.insecure_hosts) and hostname_of(host) in crawl.insecure_hosts,
    )


def joined(headers: Headers, own: Headers) -> Headers:
    """Return `headers` and a host's `own` headers, which replace headers of the same name."""
    names = {_normalized_name(name) for name, _ in own}
    return (*(pair for pair in headers if _normalized_name(pair[0]) not in names), *own)


def origins_of(hosts: HostHeaders, seeds: tuple[str, ...]) -> HostHeaders:
    """Return headers by origin, from headers by host.

    Raises IdentityError for an invalid or duplicate host. `seeds` decide between http and https.
    """
    found: dict[str, Headers] = {}
    for text, headers in hosts:
        origin = origin_of(text, seeds)
        if origin in found:
            raise IdentityError(f"{origin} is given twice: put its headers in one table")
        found[origin] = headers
    return tuple(found.items())


def origin_of(text: str, seeds: tuple[str, ...]) -> str:
    """Return the origin of a host in a definition. Raises IdentityError.

    A host without a scheme means its https origin. It means its http origin if only that is the
    origin of a seed.
    """
    url = resolved(text if "://" in text else f"https://{text}/") or ""
    origin = host_of(url)
    if not url or url != f"{origin}/" or "@" in text:
        fix = "give a host like example.org, or an origin like https://example.org:8443"
        raise IdentityError(f"{redacted(text, HOST_CHARS_MAX)!a} is no host: {fix}")
    if "://" in text:
        return origin
    plain = host_of(canonicalize(f"http://{text}/"))
    begun = {host_of(seed) for seed in seeds}
    return plain if plain in begun and origin not in begun else origin


@lru_cache(maxsize=256)
def _identity(
    agent: str, headers: Headers, bundle: str | None, certificate: str | None, insecure: bool
) -> Identity:
    trust = Trust(ca_bundle=bundle, client_cert=certificate, insecure=insecure)
    return Identity(agent=agent, token=token_of(agent), headers=headers, trust=trust)


@lru_cache(maxsize=256)
def token_of(agent: str) -> str:
    """Return the product token of a user agent, which selects the rules in robots.txt.

    For `Mozilla/5.0 (compatible; name/1.0)` it is `name`, because sites use this name for the
    crawler.
    """
    compatible = _COMPATIBLE.match(agent)
    return compatible[1] if compatible else agent


def check_agents(agents: tuple[str, ...]) -> None:
    if len(agents) > AGENTS_MAX:
        raise IdentityError(f"{len(agents)} user agents are too many: give up to {AGENTS_MAX}")
    for agent in agents:
        if not _VALUE.fullmatch(agent) or not _NAME.match(agent) or len(agent) > AGENT_CHARS_MAX:
            shown = ascii(agent[:60])
            raise IdentityError(
                f"{shown} is not a user agent: give up to {AGENT_CHARS_MAX} printable ASCII"
                " characters, like name/1.0 (+https://example.com/bot)"
            )


def problems_of_headers(headers: Headers) -> Iterator[str]:
    if len(headers) > HEADERS_MAX:
        yield f"{len(headers)} headers are too many: give up to {HEADERS_MAX}"
        return
    size = sum(len(name) + len(value) for name, value in headers)
    if size > HEADERS_CHARS_MAX:
        yield f"{size:,} characters are too many: give up to {HEADERS_CHARS_MAX:,}"
        return
    seen: set[str] = set()
    for name, value in headers:
        # Some servers read an underscore as a hyphen.
        plain = _normalized_name(name)
        if not _NAME.fullmatch(name):
            # An invalid name may be a secret value that was typed in its place, so it is not shown.
            yield "a header's name is letters, digits and hyphens: give Name: value"
        elif (fix := _refusal(plain)) is not None:
            yield f"the header {name} cannot be given: {fix}"
        elif plain in seen:
            yield f"the header {name} is given twice: join the values in one"
        elif not _VALUE.fullmatch(value):
            yield (
                f"the value of the header {name} does not fit: give printable ASCII without line"
                " ends, and no space around it"
            )
        seen.add(plain)


def is_value(text: str) -> bool:
    """Return True if a text can be the value of a header."""
    return _VALUE.fullmatch(text) is not None


def problems_of_host_headers(hosts: HostHeaders) -> Iterator[tuple[str, str]]:
    """Yield each problem: its path below the key of the hosts, and a message with the fix."""
    if len(hosts) > HOSTS_MAX:
        yield "", f"{len(hosts)} hosts are too many: give up to {HOSTS_MAX}"
        return
    size = sum(len(name) + len(value) for _, own in hosts for name, value in own)
    if size > HOST_HEADERS_CHARS_MAX:
        most = f"{HOST_HEADERS_CHARS_MAX:,}"
        yield "", f"{size:,} characters of headers are too many: give up to {most}"
    yield from problems_of_hosts((host for host, _ in hosts), "put its headers in one table")
    for host, own in hosts:
        for text in problems_of_headers(own):
            yield f"{path_of_host(host)}.headers", text


def problems_of_hosts(hosts: Iterable[str], fix: str) -> Iterator[tuple[str, str]]:
    """Yield the path and a message for each host that is invalid or has the origin of another.

    `fix` is for an origin that is given twice.
    """
    origins: set[str] = set()
    for host in hosts:
        try:
            origin = origin_of(host, ())
        except IdentityError as error:
            yield path_of_host(host), str(error)
            continue
        if origin in origins:
            yield path_of_host(host), f"{origin} is given twice: {fix}"
        origins.add(origin)


def path_of_host(host: str) -> str:
    """Return the path of a host's table below the key of the hosts."""
    return f".{redacted(host, HOST_CHARS_MAX)!a}"


def _normalized_name(name: str) -> str:
    return name.lower().replace("_", "-")


def stored_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return request headers for storage: possible secrets redacted, no proxy headers."""
    return tuple(
        (name, value if name.lower() in _PUBLIC_HEADERS else REDACTED)
        for name, value in headers
        if not name.lower().startswith("proxy-")
    )


def _refusal(name: str) -> str | None:
    exact = _REFUSED.get(name)
    family = _REFUSED.get(name.partition("-")[0] + "-")
    return exact or family


@lru_cache(maxsize=16)
def _secret_origins(seeds: tuple[str, ...]) -> frozenset[str]:
    """Return the origins to which secrets may be sent: the origins of the seeds.

    If a host name has an https seed, its http origin gets no secret. So a redirect from https to
    http drops the secret.
    """
    origins = {host_of(seed) for seed in seeds}
    safe = {hostname_of(origin) for origin in origins if origin.startswith("https:")}
    return frozenset(
        origin
        for origin in origins
        if origin.startswith("https:") or hostname_of(origin) not in safe
    )


def _rank(agent: str, name: str) -> bytes:
    return blake2b(f"{agent} {name}".encode(), digest_size=8).digest()
