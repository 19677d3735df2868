"""TLS contexts: one for the web and AWS, made once per container, and others for crawls.

They use the system's certificate authorities (OpenSSL's `SSL_CERT_FILE` and `SSL_CERT_DIR` can name
others), or a library's if the system has none. Reading 140 authorities takes 30 ms of CPU.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from weakref import WeakKeyDictionary

from orbweaver.model.http_exchange import SYSTEM_TRUST, Trust

FILE = "SSL_CERT_FILE"
_UNUSABLE = {
    "": "it has no certificate, or no private key, in PEM format",
    **dict.fromkeys(
        ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED"),
        "the private key belongs to another certificate",
    ),
}


class TrustError(ValueError):
    """A file of certificates cannot be used. The message names it, with the reason."""


class _Handshake(ssl.SSLObject):
    """Adds the server's certificate to an error of its verification."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError as error:
            # Public since Python 3.13, but not as parsed certificates.
            chain = self._sslobj.get_unverified_chain() or ()  # type: ignore[attr-defined]
            error.certificates = [one.get_info() for one in chain]  # type: ignore[attr-defined]
            raise


def context() -> ssl.SSLContext:
    """Return the shared context: TLS 1.2 or newer, HTTP/1.1.

    It ignores certificates' common names.
    """
    return _context(ssl.get_default_verify_paths())


def context_for(trust: Trust) -> ssl.SSLContext:
    """Return the context of a request. Raises TrustError if a file cannot be used."""
    if trust == SYSTEM_TRUST:
        return context()
    return _context_for(trust, ssl.get_default_verify_paths())


def verifying(made: ssl.SSLContext) -> ssl.SSLContext:
    """Return the context with the same authorities for a proxy: verified, no certificate."""
    return _verifying.get(made, made)


@cache
def _context(_authorities: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    return _make()


_verifying: WeakKeyDictionary[ssl.SSLContext, ssl.SSLContext] = WeakKeyDictionary()


@lru_cache(maxsize=16)
def _context_for(trust: Trust, _authorities: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    made = _make()
    if trust.ca_bundle is not None:
        with _reading(trust.ca_bundle):
            made.load_verify_locations(trust.ca_bundle)
    if trust.client_cert is not None:
        file, _, key = trust.client_cert.partition(":")
        with _reading(file if not key or Path(key).is_file() else key):
            # Without the callback, OpenSSL asks the terminal for the key's password.
            made.load_cert_chain(file, key or None, password=_no_password)
    if trust.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if trust.insecure or trust.client_cert is not None:
        _verifying[made] = context_for(Trust(ca_bundle=trust.ca_bundle))
    return made


@contextmanager
def _reading(file: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise TrustError(f"{file}: {_UNUSABLE.get(error.reason or '', _UNUSABLE[''])}") from None
    except OSError as error:
        raise TrustError(f"{file}: {error.strerror}") from None


def _no_password() -> str:
    raise TrustError("the key has a password: give a key without one, as for a server")


def _make() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.sslobject_class = _Handshake
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
