"""Test certificate authority that also issues invalid certificates."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

NOW = dt.datetime.now(dt.UTC)
SHA256_WITH_RSA = bytes.fromhex("2a864886f70d01010b")
SHA1_WITH_RSA = bytes.fromhex("2a864886f70d010105")
Issuer = Literal["trusted", "unknown", "intermediate", "itself"]
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
AUTHORITY = (
    x509.BasicConstraints(ca=True, path_length=None),
    x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """Contents of a server certificate."""

    names: tuple[str, ...] = ("good.test",)
    addresses: tuple[str, ...] = ()
    common_name: str = "leaf"
    days: tuple[int, int] = (-1, 1)
    issuer: Issuer = "trusted"
    chain: bool = True
    rsa_bits: int | None = None
    sha1: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """Certificate and key."""

    certificate: x509.Certificate
    key: PrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


@cache
def authority(which: Issuer) -> Identity:
    """Return one of the test authorities; the client's store contains only `trusted`."""
    above = authority("trusted") if which == "intermediate" else None
    key = rsa.generate_private_key(65_537, 2_048)
    return _issue(f"{which} authority", key, above, days=(-30, 30), extensions=AUTHORITY)


def server_context(leaf: Leaf, folder: Path) -> ssl.SSLContext:
    """Build a server context with this certificate and without security checks."""
    issuer = None if leaf.issuer == "itself" else authority(leaf.issuer)
    key = (
        rsa.generate_private_key(65_537, leaf.rsa_bits)
        if leaf.rsa_bits
        else ec.generate_private_key(ec.SECP256R1())
    )
    names = [x509.DNSName(name) for name in leaf.names]
    addresses = [x509.IPAddress(ip_address(address)) for address in leaf.addresses]
    extensions = [x509.SubjectAlternativeName([*names, *addresses])] if names or addresses else []
    identity = _issue(leaf.common_name, key, issuer, days=leaf.days, extensions=extensions)
    if leaf.sha1:
        identity = _signed_with_sha1(identity, authority("trusted"))
    above = [authority("intermediate")] if leaf.issuer == "intermediate" and leaf.chain else []
    chain = folder / "chain.pem"
    chain.write_bytes(b"".join(one.pem for one in (identity, *above)))
    (folder / "key.pem").write_bytes(identity.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(chain, folder / "key.pem")
    return context


def _issue(
    name: str,
    key: PrivateKey,
    issuer: Identity | None,
    *,
    days: tuple[int, int],
    extensions: Iterable[x509.ExtensionType],
) -> Identity:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = issuer.key if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + dt.timedelta(days=days[0]))
        .not_valid_after(NOW + dt.timedelta(days=days[1]))
    )
    for extension in (
        *extensions,
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
    ):
        critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, critical=critical)
    return Identity(builder.sign(signer, hashes.SHA256()), key)


def _signed_with_sha1(identity: Identity, issuer: Identity) -> Identity:
    assert isinstance(issuer.key, rsa.RSAPrivateKey)
    whole = identity.certificate.public_bytes(serialization.Encoding.DER)
    signed = identity.certificate.tbs_certificate_bytes
    weak = signed.replace(SHA256_WITH_RSA, SHA1_WITH_RSA)
    signature = issuer.key.sign(weak, padding.PKCS1v15(), hashes.SHA1())  # noqa: S303 - the case
    head, tail = whole.split(signed)
    tail = tail.replace(SHA256_WITH_RSA, SHA1_WITH_RSA)[: -len(signature)] + signature
    return Identity(x509.load_der_x509_certificate(head + weak + tail), identity.key)
