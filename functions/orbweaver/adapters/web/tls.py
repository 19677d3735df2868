"""Whom to believe over TLS: certificate authorities, read once a container.

Rules
- The web and AWS share one context: the system's authorities (OpenSSL's `SSL_CERT_FILE` and
  `SSL_CERT_DIR` may name others), a library's where the system has none; a name must be among the
  alternative names; TLS 1.2 or newer; HTTP/1.1. Reading 140 authorities is 30 ms of CPU, each time.
- aiohttp reads them twice while it is imported, for two contexts that are never used here: every
  connector is given its own. Imported `without_authorities`, it takes 60 ms less, and those two
  trust no authority.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

FILE = "SSL_CERT_FILE"


def context() -> ssl.SSLContext:
    """Hand out the usual context, stricter by one: no browser looks at common names since 2017."""
    return _context(ssl.get_default_verify_paths())


@cache
def _context(_authorities: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    made = ssl.create_default_context()
    if not made.cert_store_stats()["x509_ca"]:
        made.load_verify_locations(_of_a_library())
    made.hostname_checks_common_name = False
    # CPython's own builds ask for this; Debian's leave it to OpenSSL, which offers TLS 1.0 and then
    # ends the handshake itself, in words of its own.
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    return made


def _of_a_library() -> str:
    """Find the file of authorities that botocore has, or an installation without botocore."""
    try:
        from botocore.httpsession import where
    except ModuleNotFoundError:
        from certifi import where
    found: str = where()
    return found


@contextmanager
def without_authorities() -> Iterator[None]:
    """Have OpenSSL find no file of authorities, for contexts that are made within."""
    file = os.environ.get(FILE)
    os.environ[FILE] = os.devnull
    try:
        yield
    finally:
        if file is None:
            del os.environ[FILE]
        else:
            os.environ[FILE] = file
