"""Connect to an SFTP server by SSH, and map its errors to `Permanent` or `Transient`.

The host key is checked before the user name is sent. The secret's key is the only way to
authenticate: no agent, password or file of this machine. Sources: RFC 4253 8 (the host key comes
first), RFC 4252 (authentication), asyncssh 2.24.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

import asyncssh

from orbweaver.delivery.plan import HostKeys
from orbweaver.model.address_policy import Allowed, verdict
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.value import value_class

# Passed to the address check instead of the server's port, which the operator chose.
ANY_PORT = 443
RESOLVE_S, CONNECT_S, LOGIN_S, CLOSE_S = 10, 15, 30, 5
# A server that does not answer 3 keepalives is gone. TCP would wait for a quarter of an hour.
KEEPALIVE_S, KEEPALIVES_MAX = 15, 3
# RSA keys sign with SHA-2. The type in the key itself means SHA-1, which is not accepted.
RSA = ("rsa-sha2-512", "rsa-sha2-256")
SIGNED_BY = {"ssh-rsa": RSA}
NIST = tuple(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521))
ANY_TYPE = ("ssh-ed25519", *NIST, *RSA)


@value_class
class Server:
    """The server to connect to, and the user name."""

    host: str
    port: int
    user: str
    keys: HostKeys

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SftpIdentity:
    """A private key and its passphrase, hidden from repr() and errors."""

    key: str
    passphrase: str | None = None

    @classmethod
    def parse(cls, text: str) -> SftpIdentity:
        """Parse a secret: a private key's text, or JSON with `private_key` and `passphrase`."""
        if not text.lstrip().startswith("{"):
            return cls(key=text)
        try:
            raw = json.loads(text)
            key, passphrase = raw["private_key"], raw.get("passphrase")
        except (ValueError, KeyError) as error:
            raise Permanent(f"the secret is no private key: {type(error).__name__}") from None
        if not isinstance(key, str) or not isinstance(passphrase, str | None):
            raise Permanent("the secret's private_key and passphrase must be text")
        return cls(key=key, passphrase=passphrase)

    def loaded(self) -> asyncssh.SSHKey:
        """Decrypt the key. Raises Permanent if it cannot be read."""
        try:
            return asyncssh.import_private_key(self.key, self.passphrase)
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
            said = f"the secret's private key cannot be read: {type(error).__name__}"
            raise Permanent(said) from None


class _Client(asyncssh.SSHClient):
    """Checks the host key. `shown` is the server's key, for the error message."""

    def __init__(self, keys: HostKeys) -> None:
        self._keys = keys
        self.shown: str | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        del host, addr, port  # the socket is already connected to this server
        fingerprint = key.get_fingerprint("sha256")
        self.shown = f"{key.get_algorithm()} {fingerprint}"
        return self._keys.include(fingerprint)


@asynccontextmanager
async def connected(
    server: Server, identity: SftpIdentity, allowed: Allowed
) -> AsyncIterator[asyncssh.SFTPClient]:
    """Open an SFTP session for the duration of the block."""
    key = identity.loaded()
    client = _Client(server.keys)
    # Our own socket, so that the connection uses the address that was checked.
    sock = await _dial(server, allowed)
    try:
        with translated(f"connecting to {server}"):
            connection = await _open_connection(server, key, client, sock)
    # Refused keys are permanent, because a retry would look like an attack.
    except asyncssh.HostKeyNotVerifiable:
        sock.close()
        raise Permanent(
            f"{server} shows a host key that sftp_host_key does not have: {client.shown}."
            " If the server was given a new one, ask its operator, and deploy with it"
        ) from None
    except BaseException:
        sock.close()
        raise
    try:
        with translated(f"starting SFTP at {server}"):
            sftp = await connection.start_sftp_client()
        yield sftp
    finally:
        connection.close()
        with suppress(TimeoutError, OSError, asyncssh.Error):
            async with asyncio.timeout(CLOSE_S):
                await connection.wait_closed()


async def _open_connection(
    server: Server, key: asyncssh.SSHKey, client: _Client, sock: socket.socket
) -> asyncssh.SSHClientConnection:
    # Types of other keys follow, so that an error can name the server's key if none matches.
    written = [signed for kind in server.keys.types for signed in SIGNED_BY.get(kind, (kind,))]
    return await asyncssh.connect(
        sock=sock,
        config=None,
        client_factory=lambda: client,
        # Empty lists make the library call `validate_host_public_key` every time.
        known_hosts=([], [], []),
        username=server.user,
        client_keys=[key],
        agent_path=None,
        password=None,
        preferred_auth="publickey",
        gss_kex=False,
        gss_auth=False,
        compression_algs=None,
        server_host_key_algs=list(dict.fromkeys([*written, *ANY_TYPE])),
        login_timeout=LOGIN_S,
        keepalive_interval=KEEPALIVE_S,
        keepalive_count_max=KEEPALIVES_MAX,
    )


async def _dial(server: Server, allowed: Allowed) -> socket.socket:
    """Connect to the server. Raises Permanent if one of its addresses is not allowed."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Transient(f"{server.host} cannot be resolved: {type(error).__name__}") from error
    for *_, address in found:
        why = verdict(str(address[0]), ANY_PORT, allowed, None)
        if why is not None:
            raise Permanent(f"{server.host} must not be dialled: {why}")
    last: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.sock_connect(sock, address)
        except OSError as error:  # includes TimeoutError
            sock.close()
            last = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise Transient(f"{server} does not answer: {type(last).__name__}") from last


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise `Transient` or `Permanent` for errors of SSH and SFTP. `what` begins the message."""
    try:
        yield
    except (Permanent, Transient, asyncssh.HostKeyNotVerifiable):
        raise
    except asyncssh.PermissionDenied as error:
        raise Permanent(f"{what}: the server does not take the secret's key") from error
    except (asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported) as error:
        raise Permanent(f"{what}: {error.reason}") from error
    except (asyncssh.SFTPPermissionDenied, asyncssh.SFTPWriteProtect) as error:
        raise Permanent(f"{what}: permission denied") from error
    except (asyncssh.SFTPOpUnsupported, asyncssh.SFTPInvalidFilename) as error:
        raise Permanent(f"{what}: {error.reason}") from error
    except (asyncssh.SFTPNoSpaceOnFilesystem, asyncssh.SFTPQuotaExceeded) as error:
        raise Transient(f"{what}: the server's disk or a quota is full") from error
    except asyncssh.SFTPFailure as error:
        # SFTP 3 uses it for every failure without a code of its own.
        said = "the server failed and does not say why: its disk or a quota may be full"
        raise Transient(f"{what}: {said}") from error
    except asyncssh.Error as error:
        raise Transient(f"{what}: {type(error).__name__}: {error.reason}") from error
    except (OSError, EOFError) as error:
        raise Transient(f"{what}: {type(error).__name__}") from error
