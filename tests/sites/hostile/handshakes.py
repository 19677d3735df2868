"""Case 50: valid and invalid TLS."""

from __future__ import annotations

from typing import Any

from tests.integration.fetcher.authority import Leaf
from tests.sites.hostile.model import Place, Row
from tests.sites.steps import Act, Step

HERE = ("127.0.0.1",)
GOOD = Leaf(addresses=HERE)
BAD = {
    "expired": Leaf(addresses=HERE, days=(-20, -10)),
    "not-yet-valid": Leaf(addresses=HERE, days=(10, 20)),
    "self-signed": Leaf(addresses=HERE, issuer="itself"),
    "untrusted": Leaf(addresses=HERE, issuer="unknown"),
    "no-intermediate": Leaf(addresses=HERE, issuer="intermediate", chain=False),
    "wrong-host": Leaf(addresses=("127.0.0.9",)),
    "name-only": Leaf(names=("good.test",)),
    "common-name": Leaf(names=(), common_name="127.0.0.1"),
    "sha1": Leaf(addresses=HERE, sha1=True),
    "rsa-1024": Leaf(addresses=HERE, rsa_bits=1024),
}
PLAIN = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


def _row(name: str, serves: str, end: str) -> Row:
    return Row(50, "/", serves, None, end, place=f"tls-{name}", asks=int(end == "fetched: ok"))


ROWS = (
    _row("good", "a certificate as it should be", "fetched: ok"),
    _row("chain", "one with its intermediate", "fetched: ok"),
    *(_row(name, f"a certificate that is bad: {name}", "failed: tls") for name in BAD),
    _row("old", "TLS 1.1 at most", "failed: tls_handshake"),
    _row("hang-up", "a handshake that is hung up on", "failed: tls_handshake"),
    _row("plain", "plain HTTP where TLS is expected", "failed: tls"),
    _row("stall", "a handshake that is never answered", "failed: timeout"),
    _row("on-plain", "TLS where plain HTTP is expected", "failed: tls"),
)


def _place(name: str, **given: Any) -> Place:
    return Place(name=f"tls-{name}", crawl="bold", start=False, seed=False, **given)


def _greeting(name: str, *steps: Step, scheme: str = "https") -> Place:
    return _place(name, greet=steps, scheme=scheme)


PLACES = (
    _place("good", tls=GOOD),
    _place("chain", tls=Leaf(addresses=HERE, issuer="intermediate")),
    *(_place(name, tls=leaf) for name, leaf in BAD.items()),
    _place("old", tls=GOOD, tls_version_max="TLSv1_1"),
    _greeting("hang-up", 0.05, Act.CLOSE),
    _greeting("plain", 0.05, PLAIN, Act.CLOSE),
    _greeting("stall", Act.HANG),
    _greeting("on-plain", 0.05, b"\x15\x03\x01\x00\x02\x02\x16", Act.CLOSE, scheme="http"),
)
