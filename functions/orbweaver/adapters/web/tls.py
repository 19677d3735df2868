"""One TLS context for the web and AWS, made once per container.

It uses the system's certificate authorities (OpenSSL's `SSL_CERT_FILE` and `SSL_CERT_DIR` can name
others), or a library's if the system has none. Reading 140 authorities takes 30 ms of CPU.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

FILE = "SSL_CERT_FILE"


def context() -> ssl.SSLContext:
    """Return the shared context: TLS 1.2 or newer, HTTP/1.1.

    It ignores certificates' common names.
    """
    return _context(ssl.get_default_verify_paths())


@cache
def _context(_authorities: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    made = ssl.create_default_context()
    if not made.cert_store_stats()["x509_ca"]:
        made.load_verify_locations(_library_authorities())
    made.hostname_checks_common_name = False  # as browsers since 2017
    # CPython's builds set this. Debian's offer TLS 1.0, and the handshake then fails with another
    # message.
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    return made


def _library_authorities() -> str:
    try:
        from botocore.httpsession import where
    except ModuleNotFoundError:
        from certifi import where
    found: str = where()
    return found


# aiohttp makes two contexts at import, which Orbweaver never uses.
@contextmanager
def without_authorities() -> Iterator[None]:
    """Hide the certificate authorities from TLS contexts that the block creates, to save 60 ms."""
    file = os.environ.get(FILE)
    os.environ[FILE] = os.devnull
    try:
        yield
    finally:
        if file is None:
            del os.environ[FILE]
        else:
            os.environ[FILE] = file
