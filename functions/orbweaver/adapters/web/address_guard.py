"""Refuse connections to addresses that a crawl must not reach, such as private networks.

The resolver checks all addresses of a name. The socket factory checks the address that it connects
to. A pooled connection is checked again before its next request (`pooled_request`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from orbweaver.model.address_policy import NONE_NAMED, PUBLIC_ONLY, Address, Allowed, Named, verdict
from orbweaver.model.named_origins import non_public_names, parse_names
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from aiohttp.connector import AddrInfoType


_WEB = 443  # a port that is always allowed
DIALLED_MAX = 4  # a name with a hundred addresses must not cost a hundred connections
V4 = 4
NAMES_FILE = Path("/etc/hosts")
NAMES_CHARS_MAX = 1_000_000


class AddressRefusedError(OSError):
    """An address is not allowed. It is an OSError, because aiohttp's connector re-raises them."""

    def __init__(self, why: str) -> None:
        super().__init__(why)  # no errno, because no system call failed
        self.why = why


@value_class
class Permit:
    """Decides which addresses one request is allowed to connect to."""

    allowed: Allowed = PUBLIC_ONLY
    named: Named | None = NONE_NAMED  # private addresses that seeds name, None: all `allowed`
    any_port: bool = False  # for proxies: their operator chose the port

    def refusal(self, address: str, port: int) -> str | None:
        """Return why an address and port are refused, or None."""
        return verdict(address, _WEB if self.any_port else port, self.allowed, self.named)


_DEFAULT = Permit()
# Permit of the current task's request. Requests share DNS answers, but not permits.
_permit: ContextVar[Permit] = ContextVar("permit", default=_DEFAULT)


class Permits:
    """Decides for a fetcher which addresses each of its requests is allowed to connect to."""

    def __init__(self, allowed: Allowed, *, any_port: bool = False) -> None:
        self._any_port = any_port
        self._allowed = allowed
        self.widest = Permit(allowed=allowed, named=None, any_port=any_port)
        self._of = lru_cache(maxsize=64)(self._make)

    def permit_for(self, origins: frozenset[str]) -> Permit:
        """Return the permit of a request. `origins` are the origins of its crawl's seeds."""
        if self._any_port or not self._allowed.networks:
            return self.widest  # the same for all requests
        return self._of(origins)

    def grant(self, origins: frozenset[str]) -> Permit:
        """Apply a request's permit to all connections that the current task opens from now on.

        `origins` are the origins of the seeds of the request's crawl.
        """
        permit = self.permit_for(origins)
        _permit.set(permit)
        return permit

    def _make(self, origins: frozenset[str]) -> Permit:
        return Permit(allowed=self._allowed, named=non_public_names(origins, names_here()))


@cache
def names_here() -> dict[str, tuple[Address, ...]]:
    try:
        with NAMES_FILE.open(encoding="utf-8", errors="replace") as file:
            return parse_names(file.read(NAMES_CHARS_MAX))
    except OSError:
        return {}


class GuardedResolver(AbstractResolver):
    """Resolves host names, and refuses a host if `widest` refuses any of its addresses.

    A lookup takes at most `resolve_s` seconds.
    """

    def __init__(self, inner: AbstractResolver, widest: Permit, resolve_s: float) -> None:
        self._inner = inner
        self._widest = widest
        self._resolve_s = resolve_s

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a host. Raises AddressRefusedError if it is refused, and OSError on failure."""
        own = self._hosts_file_entries(host, port, family)
        try:
            async with asyncio.timeout(self._resolve_s):
                found = await self._inner.resolve(host, port, family)
        except TimeoutError as error:
            raise OSError(None, f"no DNS answer within {self._resolve_s:g} s") from error
        except UnicodeError as error:  # a label is empty or longer than 63 bytes
            raise OSError(None, "not a name that DNS can hold") from error
        # A mix of allowed and refused addresses is an attack or a mistake.
        for one in found:
            why = self._widest.refusal(one["host"], port)
            if why is not None:
                raise AddressRefusedError(why)
        # Resolvers return one family only, and the server may listen on the other.
        known = {one["host"] for one in found}
        return [*found, *(one for one in own if one["host"] not in known)]

    def _hosts_file_entries(
        self, host: str, port: int, family: socket.AddressFamily
    ) -> list[ResolveResult]:
        book = names_here().get(host.lower(), ())
        families = [socket.AF_INET if one.version == V4 else socket.AF_INET6 for one in book]
        return [
            ResolveResult(
                hostname=host,
                host=str(one),
                port=port,
                family=of,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for one, of in zip(book, families, strict=True)
            if family in (of, socket.AF_UNSPEC) and self._widest.refusal(str(one), port) is None
        ]

    async def close(self) -> None:
        await self._inner.close()


def dialled_of(found: Sequence[ResolveResult]) -> list[ResolveResult]:
    """Choose up to `DIALLED_MAX` allowed addresses to connect to.

    Raises AddressRefusedError if none is left.
    """
    permit = _permit.get()
    whys = [permit.refusal(one["host"], one["port"]) for one in found]
    if found and None not in whys:
        raise AddressRefusedError(next(filter(None, whys)))
    found = [one for one, why in zip(found, whys, strict=True) if why is None]
    kept: list[ResolveResult] = []
    # Both families are included, in the resolver's order.
    for is_v6 in (True, False):
        kept += [one for one in found if (":" in one["host"]) is is_v6][: DIALLED_MAX // 2]
    kept += [one for one in found if one not in kept][: DIALLED_MAX - len(kept)]
    return [one for one in found if one in kept]


# aiohttp calls the resolver only for names, but the socket factory for every connection.
def guarded_socket(addr_info: AddrInfoType) -> socket.socket:
    """Make a socket for an address. Raises AddressRefusedError if it is refused."""
    family, kind, protocol, _, (host, port, *_) = addr_info
    why = _permit.get().refusal(host, port)
    if why is not None:
        raise AddressRefusedError(why)
    return socket.socket(family, kind, protocol)


def check_peer(transport: asyncio.BaseTransport | None, permit: Permit) -> None:
    """Raise AddressRefusedError if an open connection leads to a refused address."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    if peer is None:
        return  # closed: sending will fail
    why = permit.refusal(str(peer[0]), int(peer[1]))
    if why is not None:
        raise AddressRefusedError(why)
