"""Steps of a raw server on a connection: send bytes, wait, or break off.

A generator creates its bytes on demand, so that an endless body costs no memory; the server waits
for slow readers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable
from enum import Enum

READ_BYTES = 65_536
LINGER_NOT = struct.pack("ii", 1, 0)  # Closing sends a reset.


class Act(Enum):
    """Action of a server besides sending."""

    CLOSE = "close"
    RESET = "reset"
    ABORT = "abort"  # Closed below TLS, without close_notify.
    HANG = "hang"  # Until the client leaves.


Step = bytes | float | Act  # A float is a pause in seconds.


async def play(
    steps: Iterable[Step], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Play the steps; return False once the connection is over, which the caller then closes."""
    for step in steps:
        match step:
            case bytes():
                writer.write(step)
                await writer.drain()
            case float():
                await asyncio.sleep(step)
            case Act.HANG:
                while await reader.read(READ_BYTES):
                    pass
                return False
            case Act.RESET:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                return False
            case Act.ABORT:
                writer.transport.abort()
                return False
            case Act.CLOSE:
                return False
    return True
