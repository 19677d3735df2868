"""The choke point: no socket is made for an address that `core.address` refuses.

aiohttp asks the resolver for names only, never for literals, and the socket factory always, with
the address that is dialled. What may be dialled depends on the request where addresses are not
public, and the answers of DNS are shared by requests. So three places ask for the verdict:

- the resolver refuses a host if *any* of its addresses would be refused whatever the request is: a
  mixed answer is an attack or a mistake, and which of its addresses is dialled would be chance;
- of what it finds, and of literals, each request dials what its own `Permit` says (a context
  variable: without one, the public web); and the socket factory judges the very address again;
- a pooled connection is judged by its peer before another request is sent on it, whose crawl may
  not be the one for which it was made (`http_connection`).

Of a name in this machine's own file all addresses count that may be dialled: resolvers give those
of one family only, and a server may listen on the other. Of many addresses of a name a few are
dialled, of both families: a name with a hundred of them is not to cost a hundred connections.
Proxies are on ports of all kinds, and their operator chose them: with `any_port` only addresses are
judged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from orbweaver.model.address_policy import NONE_NAMED, PUBLIC_ONLY, Address, Allowed, Named, verdict
from orbweaver.model.redacted_names import named_by, parse_names

if TYPE_CHECKING:
    from aiohttp.connector import AddrInfoType


_WEB = 443  # a port that is never in the way
DIALLED_MAX = 4
V4 = 4
NAMES_FILE = Path("/etc/hosts")
NAMES_CHARS_MAX = 1_000_000


class AddressRefusedError(OSError):
    """An address that must not be dialled; an OSError, for the connector lets those through."""

    def __init__(self, why: str) -> None:
        super().__init__(why)  # no errno: it never came to a system call
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What one request may dial; `named` None stands for all that any request may."""

    allowed: Allowed = PUBLIC_ONLY
    named: Named | None = NONE_NAMED
    any_port: bool = False

    def refusal(self, address: str, port: int) -> str | None:
        """Say why an address and port must not be dialled."""
        return verdict(address, _WEB if self.any_port else port, self.allowed, self.named)


_OF_NOBODY = Permit()
_permit: ContextVar[Permit] = ContextVar("permit", default=_OF_NOBODY)


class Permits:
    """Gives requests their permits, for one fetcher."""

    def __init__(self, allowed: Allowed, *, any_port: bool = False) -> None:
        self._any_port = any_port
        self._allowed = allowed
        self.widest = Permit(allowed=allowed, named=None, any_port=any_port)
        self._of = lru_cache(maxsize=64)(self._make)

    def of(self, origins: frozenset[str]) -> Permit:
        """Return the permit of a request whose crawl was begun with these origins."""
        if self._any_port or not self._allowed.networks:
            return self.widest  # nothing depends on who asks
        return self._of(origins)

    def grant(self, origins: frozenset[str]) -> Permit:
        """Have what this task dials from now on judged by the permit of its request."""
        permit = self.of(origins)
        _permit.set(permit)
        return permit

    def _make(self, origins: frozenset[str]) -> Permit:
        return Permit(allowed=self._allowed, named=named_by(origins, names_here()))


@cache
def names_here() -> dict[str, tuple[Address, ...]]:
    """Read this machine's file of names, once."""
    try:
        with NAMES_FILE.open(encoding="utf-8", errors="replace") as file:
            return parse_names(file.read(NAMES_CHARS_MAX))
    except OSError:
        return {}


class GuardedResolver(AbstractResolver):
    """A resolver that refuses hosts with a refused address, within `resolve_s` seconds."""

    def __init__(self, inner: AbstractResolver, widest: Permit, resolve_s: float) -> None:
        self._inner = inner
        self._widest = widest
        self._resolve_s = resolve_s

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a host; OSError if it cannot be, AddressRefusedError if it must not be."""
        own = self._own(host, port, family)
        try:
            async with asyncio.timeout(self._resolve_s):
                found = await self._inner.resolve(host, port, family)
        except TimeoutError as error:
            raise OSError(None, f"no DNS answer within {self._resolve_s:g} s") from error
        except UnicodeError as error:  # a label that is empty, or longer than 63 bytes
            raise OSError(None, "not a name that DNS can hold") from error
        for one in found:
            why = self._widest.refusal(one["host"], port)
            if why is not None:
                raise AddressRefusedError(why)
        known = {one["host"] for one in found}
        return [*found, *(one for one in own if one["host"] not in known)]

    def _own(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        """Return what this machine's file of names says of a host, as far as it may be dialled."""
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
        """Close the resolver inside."""
        await self._inner.close()


def dialled_of(found: Sequence[ResolveResult]) -> list[ResolveResult]:
    """Choose the addresses of a host that this task's request dials; AddressRefusedError if none.

    A few in their order, of both families where there are both.
    """
    permit = _permit.get()
    whys = [permit.refusal(one["host"], one["port"]) for one in found]
    if found and None not in whys:
        raise AddressRefusedError(next(filter(None, whys)))
    found = [one for one, why in zip(found, whys, strict=True) if why is None]
    kept: list[ResolveResult] = []
    for is_v6 in (True, False):
        kept += [one for one in found if (":" in one["host"]) is is_v6][: DIALLED_MAX // 2]
    kept += [one for one in found if one not in kept][: DIALLED_MAX - len(kept)]
    return [one for one in found if one in kept]


def guarded_socket(addr_info: AddrInfoType) -> socket.socket:
    """Make a socket for an address; AddressRefusedError if it must not be dialled."""
    family, kind, protocol, _, (host, port, *_) = addr_info
    why = _permit.get().refusal(host, port)
    if why is not None:
        raise AddressRefusedError(why)
    return socket.socket(family, kind, protocol)


def check_peer(transport: asyncio.BaseTransport | None, permit: Permit) -> None:
    """Refuse an open connection to where a request must not go; raises AddressRefusedError."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    if peer is None:
        return  # it is closed, which is found out by its user
    why = permit.refusal(str(peer[0]), int(peer[1]))
    if why is not None:
        raise AddressRefusedError(why)
