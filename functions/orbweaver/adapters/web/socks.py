"""Handshake with a SOCKS5 proxy on a connected socket.

Sources: RFC 1928, and RFC 1929 for user and password.
"""

from __future__ import annotations

import asyncio
import socket
from base64 import b64decode
from ipaddress import IPv4Address, ip_address

import aiohttp

VERSION, CONNECT = 5, 1
NO_AUTHENTICATION, PASSWORD, NO_METHOD = 0, 2, 255
IPV4, NAME, IPV6 = 1, 3, 4
NAME_BYTES_MAX = 255
_LENGTHS = {IPV4: 4, IPV6: 16}
_REPLIES = {
    1: "a general failure",
    2: "a rule of the proxy forbids it",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "kind of address not supported",
}


class SocksError(OSError):
    """The proxy does not speak SOCKS5, or rejects the user and password."""


class SocksRejectedError(SocksError):
    """The proxy rejects the user and password."""


class SocksReplyError(aiohttp.ClientError):
    """The proxy did not connect to the target."""


async def connect_through(
    sock: socket.socket, host: str, port: int, authorization: str | None
) -> None:
    """Let the proxy behind `sock` connect to a host: a name, or an address without brackets.

    `authorization` has user and password in the form of a Proxy-Authorization header. Raises
    SocksError and SocksReplyError.
    """
    loop = asyncio.get_running_loop()
    methods = [NO_AUTHENTICATION, *([PASSWORD] if authorization else [])]
    await loop.sock_sendall(sock, bytes([VERSION, len(methods), *methods]))
    version, method = await _read(sock, 2)
    if version != VERSION:
        raise SocksError(None, "the proxy does not speak SOCKS5: check its scheme and port")
    if method == PASSWORD and authorization:
        user, _, password = b64decode(authorization.removeprefix("Basic ")).partition(b":")
        sized = (bytes([len(part)]) + part for part in (user, password))
        await loop.sock_sendall(sock, b"\1" + b"".join(sized))
        if (await _read(sock, 2))[1] != 0:
            raise SocksRejectedError(None, "the proxy rejected the user or password")
    elif method != NO_AUTHENTICATION:
        fix = "does not accept them" if authorization else "none is given"
        raise SocksRejectedError(None, f"the proxy needs a user and password, and {fix}")
    await loop.sock_sendall(
        sock, bytes([VERSION, CONNECT, 0]) + _address(host) + port.to_bytes(2, "big")
    )
    _, reply, _, kind = await _read(sock, 4)
    if reply != 0:
        why = _REPLIES.get(reply, f"reply {reply}")
        raise SocksReplyError(f"the proxy did not connect to the host: {why}")
    size = (await _read(sock, 1))[0] if kind == NAME else _LENGTHS.get(kind, 0)
    await _read(sock, size + 2)


def _address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("ascii")
        if len(name) > NAME_BYTES_MAX:
            raise SocksReplyError("a name above 255 bytes") from None
        return bytes([NAME, len(name)]) + name
    return bytes([IPV4 if isinstance(address, IPv4Address) else IPV6]) + address.packed


async def _read(sock: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes, so that no byte of the target is consumed."""
    loop, read = asyncio.get_running_loop(), b""
    while len(read) < size:
        chunk = await loop.sock_recv(sock, size - len(read))
        if not chunk:
            raise SocksError(None, "the proxy closed the connection within the SOCKS handshake")
        read += chunk
    return read
