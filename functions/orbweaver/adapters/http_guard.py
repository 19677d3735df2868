"""The choke point: no socket is made for an address that `core.address` refuses.

aiohttp asks the resolver for names only, never for literals, and the socket factory always, with
the address that is dialled. So both ask for the verdict:

- the resolver refuses a host if *any* of its addresses is refused: a mixed answer is an attack or
  a mistake, and which of its addresses is dialled would be chance;
- the socket factory judges the very address that is dialled, literals and rebound names included.

Proxies are on ports of all kinds, and their operator chose them: with `any_port` only addresses
are judged.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from orbweaver.core.address import verdict

if TYPE_CHECKING:
    from aiohttp.connector import AddrInfoType

    from orbweaver.core.address import Network


_WEB = 443  # a port that is never in the way


class AddressRefusedError(OSError):
    """An address that must not be dialled; an OSError, for the connector lets those through."""

    def __init__(self, why: str) -> None:
        super().__init__(why)  # no errno: it never came to a system call
        self.why = why


class GuardedResolver(AbstractResolver):
    """A resolver that refuses hosts with a refused address, within `resolve_s` seconds."""

    def __init__(
        self,
        inner: AbstractResolver,
        allowed: tuple[Network, ...],
        resolve_s: float,
        *,
        any_port: bool = False,
    ) -> None:
        self._inner = inner
        self._allowed = allowed
        self._resolve_s = resolve_s
        self._any_port = any_port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a host; OSError if it cannot be, AddressRefusedError if it must not be."""
        try:
            async with asyncio.timeout(self._resolve_s):
                found = await self._inner.resolve(host, port, family)
        except TimeoutError as error:
            raise OSError(None, f"no DNS answer within {self._resolve_s:g} s") from error
        except UnicodeError as error:  # a label that is empty, or longer than 63 bytes
            raise OSError(None, "not a name that DNS can hold") from error
        for one in found:
            why = verdict(one["host"], _WEB if self._any_port else port, self._allowed)
            if why is not None:
                raise AddressRefusedError(why)
        return found

    async def close(self) -> None:
        """Close the resolver inside."""
        await self._inner.close()


class GuardedSockets:
    """Makes sockets for addresses that may be dialled."""

    def __init__(self, allowed: tuple[Network, ...], *, any_port: bool = False) -> None:
        self._allowed = allowed
        self._any_port = any_port

    def __call__(self, addr_info: AddrInfoType) -> socket.socket:
        """Make a socket for an address; AddressRefusedError if it must not be dialled."""
        family, kind, protocol, _, (host, port, *_) = addr_info
        why = verdict(host, _WEB if self._any_port else port, self._allowed)
        if why is not None:
            raise AddressRefusedError(why)
        return socket.socket(family, kind, protocol)
