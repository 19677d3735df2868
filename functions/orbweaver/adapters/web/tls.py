"""Certificate authorities for TLS, read once per container.

- The web and AWS share one context. It uses the system's authorities (OpenSSL's `SSL_CERT_FILE` and
  `SSL_CERT_DIR` can name others), or a library's if the system has none. It requires a match in the
  alternative names, TLS 1.2 or newer, and HTTP/1.1. Reading 140 authorities takes 30 ms of CPU.
- aiohttp reads them twice at import, for two contexts that Orbweaver never uses, because every
  connector gets its own. Importing it under `without_authorities` saves 60 ms; those two trust no
  authority.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

FILE = "SSL_CERT_FILE"


def context() -> ssl.SSLContext:
    """Return the shared context. It ignores common names, as browsers have done since 2017."""
    return _context(ssl.get_default_verify_paths())


@cache
def _context(_authorities: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    made = ssl.create_default_context()
    if not made.cert_store_stats()["x509_ca"]:
        made.load_verify_locations(_library_authorities())
    made.hostname_checks_common_name = False
    # CPython's own builds set this. Debian's leave it to OpenSSL, which offers TLS 1.0 and then
    # fails the handshake itself, with another message.
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    return made


def _library_authorities() -> str:
    """Return botocore's file of authorities, or certifi's without botocore."""
    try:
        from botocore.httpsession import where
    except ModuleNotFoundError:
        from certifi import where
    found: str = where()
    return found


@contextmanager
def without_authorities() -> Iterator[None]:
    """Hide the file of authorities from contexts made in the block."""
    file = os.environ.get(FILE)
    os.environ[FILE] = os.devnull
    try:
        yield
    finally:
        if file is None:
            del os.environ[FILE]
        else:
            os.environ[FILE] = file
