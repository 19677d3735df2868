"""Check whether a server can be reached, and whether it speaks TLS.

A check connects to the server, with TLS for https, and closes the connection. It sends no HTTP
request, so the politeness delay does not apply.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.helpers import is_ip_address
from yarl import URL

from orbweaver.adapters.web.address_guard import (
    AddressRefusedError,
    GuardedResolver,
    Permits,
    dialled_of,
    guarded_socket,
)
from orbweaver.adapters.web.errors import unresolved_reason, words_of
from orbweaver.adapters.web.tls import context_for
from orbweaver.model.address_policy import Allowed
from orbweaver.model.http_exchange import SYSTEM_TRUST, Failure, Trust, one_line
from orbweaver.model.outcome import Reason
from orbweaver.model.url import host_of

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

RESOLVE_S, CONNECT_S = 5.0, 8.0
TLS_S = 3.0


async def trouble_at(
    url: str,
    allowed: Allowed,
    *,
    resolver: Callable[[], AbstractResolver] = aiohttp.DefaultResolver,
    connect_s: float = CONNECT_S,
    trust: Trust = SYSTEM_TRUST,
) -> Failure | None:
    """Return why a canonical URL cannot be reached, or None if it can."""
    permits = Permits(allowed)
    permits.grant(frozenset({host_of(url)}))
    origin = URL(url, encoded=True)
    guard = GuardedResolver(resolver(), permits.widest, RESOLVE_S)
    try:
        found = await _resolve(guard, origin)
    except AddressRefusedError as error:
        return Failure(reason=Reason.ADDRESS, detail=one_line(error.why))
    except OSError as error:
        reason, detail = unresolved_reason(error), f"the name {origin.raw_host} is not known"
        if reason is not Reason.DNS_UNKNOWN:
            why = one_line(words_of(error))
            detail = f"the name {origin.raw_host} cannot be looked up: {why}"
        return Failure(reason=reason, detail=detail)
    finally:
        await guard.close()
    return await _dial(origin, found, connect_s, trust)


async def speaks_tls(url: URL, peer: tuple[str, int]) -> bool:
    """Return True if the server at an address and port answers a TLS handshake.

    The permit of the current task must allow the address.
    """
    host, port = peer
    one = ResolveResult(hostname=host, host=host, port=port, family=_family(host), proto=0, flags=0)
    try:
        async with asyncio.timeout(TLS_S):
            await _connect(url.with_scheme("https"), one, SYSTEM_TRUST)
    except ssl.SSLCertVerificationError:
        return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:  # includes TimeoutError
        return False
    return True


async def _resolve(guard: GuardedResolver, origin: URL) -> list[ResolveResult]:
    host, port = origin.raw_host or "", origin.port or 0
    if not is_ip_address(host):
        return dialled_of(await guard.resolve(host, port))
    literal = ResolveResult(
        hostname=host, host=host, port=port, family=_family(host), proto=0, flags=0
    )
    return dialled_of([literal])


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


async def _dial(
    origin: URL, found: list[ResolveResult], connect_s: float, trust: Trust
) -> Failure | None:
    """Try the addresses in order. If all fail, return the most informative error."""
    errors: list[tuple[int, Failure]] = []
    for one in found:
        try:
            async with asyncio.timeout(connect_s / len(found)):
                await _connect(origin, one, trust)
        except TimeoutError:
            late = f"not connected within {connect_s:g} s"
            errors.append((1, Failure(reason=Reason.TIMEOUT, detail=late)))
        except OSError as error:
            # A certificate error is the most informative one, a refused connection the least.
            detail = one_line(words_of(error)) or "the connection was closed"
            if isinstance(error, ssl.SSLError):
                errors.append((0, Failure(reason=Reason.TLS, detail=detail)))
            else:
                rank = 2 if isinstance(error, ConnectionRefusedError) else 1
                errors.append((rank, Failure(reason=Reason.CONNECT, detail=detail)))
        else:
            return None
    if not errors:
        return Failure(reason=Reason.DNS_UNKNOWN, detail="the name has no address")
    return min(errors, key=lambda one: one[0])[1]


async def _connect(origin: URL, one: ResolveResult, trust: Trust) -> None:
    tls = context_for(trust) if origin.scheme == "https" else None
    address = (one["host"], one["port"])
    with guarded_socket((_family(one["host"]), socket.SOCK_STREAM, 0, "", address)) as dialled:
        dialled.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(dialled, address)
        if tls is None:
            return
        name = origin.raw_host
        _, writer = await asyncio.open_connection(sock=dialled, ssl=tls, server_hostname=name)
        writer.close()
        with suppress(OSError, asyncio.IncompleteReadError):
            await writer.wait_closed()
