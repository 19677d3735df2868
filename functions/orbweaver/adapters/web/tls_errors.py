"""Describe TLS errors in words, with the fix."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Any

NAMES_SHOWN_MAX = 3
# Codes of OpenSSL (x509_vfy.h).
_NOT_YET_VALID, _EXPIRED, _SELF_SIGNED = 9, 10, 18
_UNKNOWN_AUTHORITY = frozenset({19, 20, 21})
_OTHER_NAME = frozenset({62, 64})
_CERTIFICATE = "--ca-bundle FILE trusts it, --insecure HOST verifies nothing"
_IGNORED = "--insecure HOST ignores this"
# Words for the ends of OpenSSL's reasons.
_REASONS = (
    ("CERTIFICATE_REQUIRED", "the server requires a client certificate: give --client-cert FILE"),
    ("PROTOCOL_VERSION", "the server offers only TLS versions before 1.2"),
    ("UNSUPPORTED_PROTOCOL", "the server offers only TLS versions before 1.2"),
    ("HANDSHAKE_FAILURE", "no common cipher, or the server requires a client certificate"),
    ("UNKNOWN_CA", "the server does not accept the client certificate"),
    ("BAD_CERTIFICATE", "the server does not accept the client certificate"),
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS at this port: try http://"),
)


def tls_words(error: ssl.SSLError) -> str:
    """Describe an error, or return an empty text for an unknown one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not in order: {_verification(error)}"
    reason = error.reason or ""
    words = next((words for end, words in _REASONS if reason.endswith(end)), "")
    return f"{words} ({reason})" if words else ""


def _verification(error: ssl.SSLCertVerificationError) -> str:
    certificates: list[dict[str, Any]] = getattr(error, "certificates", [])
    leaf, top = (certificates[0], certificates[-1]) if certificates else ({}, {})
    match error.verify_code:
        case code if code == _SELF_SIGNED:
            return f"it is self-signed: {_CERTIFICATE}"
        case code if code in _UNKNOWN_AUTHORITY:
            who = _common_name(top.get("issuer", ())) or "its issuer"
            return f"{who} is an unknown authority, or the chain is incomplete: {_CERTIFICATE}"
        case code if code == _EXPIRED and leaf:
            # An authority's certificate can have expired instead.
            ends = min(map(_ends_s, certificates))
            return f"it expired on {datetime.fromtimestamp(ends, UTC):%Y-%m-%d}: {_IGNORED}"
        case code if code == _NOT_YET_VALID and leaf:
            begins = datetime.fromtimestamp(ssl.cert_time_to_seconds(leaf["notBefore"]), UTC)
            return f"it is valid from {begins:%Y-%m-%d}: check the clock; {_IGNORED}"
        case code if code in _OTHER_NAME:
            names = [value for _, value in leaf.get("subjectAltName", ())]
            more = f" and {len(names) - NAMES_SHOWN_MAX:,} more" if names[NAMES_SHOWN_MAX:] else ""
            shown = f"{', '.join(names[:NAMES_SHOWN_MAX])}{more}" if names else "no name"
            return f"it is for other names ({shown}): {_IGNORED}"
    return error.verify_message


def _ends_s(certificate: dict[str, Any]) -> int:
    return ssl.cert_time_to_seconds(certificate["notAfter"])


def _common_name(name: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    parts = dict(part for parts in name for part in parts)
    return parts.get("commonName") or parts.get("organizationName") or ""
