"""Certificate authorities for systems without their own."""

from __future__ import annotations

import ssl
import sys

import pytest

from orbweaver.adapters.web import tls


@pytest.mark.parametrize("absent", ["certifi", "botocore"])
def test_system_without_authorities_uses_package(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Lambda function uses botocore's certificates. Other installations use certifi's."""
    monkeypatch.setitem(sys.modules, absent, None)
    if absent == "botocore":
        monkeypatch.setitem(sys.modules, "botocore.httpsession", None)
    empty = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    monkeypatch.setattr(ssl, "create_default_context", lambda: empty)
    monkeypatch.setattr(
        ssl, "get_default_verify_paths", lambda: (absent,)
    )  # read again, not cached
    assert tls.context().cert_store_stats()["x509_ca"] > 50
