"""Parse the configured SSH host keys of one server.

Accepted, separated by lines or commas: fingerprints (`SHA256:…`), public keys (`ssh-ed25519 AAAA…`)
and lines of `known_hosts`. Names, addresses and comments are ignored.

asyncssh cannot read fingerprints and single keys. The machine that deploys has no asyncssh, and
its import takes 0.7 s of CPU.

Sources: RFC 4251 5 (strings), RFC 4253 6.6 (keys), sshd(8) "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

FINGERPRINT = re.compile(r"SHA256:([A-Za-z0-9+/]{43})=?")
KEY = re.compile(r"(?P<type>[a-z][a-z0-9@.-]*)\s+(?P<blob>AAAA[A-Za-z0-9+/]+={0,2})")
# `@revoked` and `@cert-authority` mean something else than "this is the server's key".
MARKER = re.compile(r"(?:^|,)\s*@[a-z]", re.MULTILINE)
LENGTH_BYTES = 4


class HostKeyError(ValueError):
    """The text contains no valid host key. The message shows the accepted forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKeys:
    """SHA-256 fingerprints of a server's keys, and the keys' types (`ssh-ed25519`).

    `types` is empty if the type of any key is unknown.
    """

    fingerprints: frozenset[str]
    # The types to request from the server, because it presents a key of one requested type.
    types: tuple[str, ...] = ()

    def include(self, fingerprint: str) -> bool:
        return fingerprint.rstrip("=") in self.fingerprints


def host_keys_of(text: str) -> HostKeys:
    """Parse host keys.

    Raises HostKeyError if the text has no key, or a marker such as `@revoked`.
    """
    fix = "give a line of `ssh-keyscan HOST`, or a fingerprint (SHA256:…)"
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    kept = "\n".join(lines)
    if MARKER.search(kept):
        raise HostKeyError(f"it has a marker (@…) in it: {fix}")
    found = {f"SHA256:{match[1]}" for match in FINGERPRINT.finditer(kept)}
    keys = [_key(match["type"], match["blob"]) for match in KEY.finditer(kept)]
    if not found and not keys:
        raise HostKeyError(f"it names no host key: {fix}")
    types = () if found else tuple(dict.fromkeys(kind for kind, _ in keys))
    return HostKeys(fingerprints=frozenset(found | {print_ for _, print_ in keys}), types=types)


def _key(kind: str, text: str) -> tuple[str, str]:
    try:
        blob = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise HostKeyError(f"a {kind} key in it is not whole") from error
    # The blob begins with the key's type, after its length.
    length = int.from_bytes(blob[:LENGTH_BYTES])
    if blob[LENGTH_BYTES : LENGTH_BYTES + length] != kind.encode():
        raise HostKeyError(f"a {kind} key in it is of another type, or not whole")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return kind, f"SHA256:{digest}"
