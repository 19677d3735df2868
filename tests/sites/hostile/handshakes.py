"""Case 50: valid and invalid TLS."""

from __future__ import annotations

from tests.integration.fetcher.authority import Leaf
from tests.sites.hostile.model import Place, Row
from tests.sites.steps import Act

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


def _row(name: str, serves: str, reason: str, outcome: str = "failed") -> Row:
    return Row(
        case=50,
        path="/",
        serves=serves,
        place=f"tls-{name}",
        outcome=outcome,
        reason=reason,
        asks=0 if outcome == "failed" else 1,
    )


ROWS = (
    _row("good", "a certificate as it should be", "ok", "fetched"),
    _row("chain", "one with its intermediate", "ok", "fetched"),
    *(_row(name, f"a certificate that is bad: {name}", "tls") for name in BAD),
    _row("old", "TLS 1.1 at most", "tls_handshake"),
    _row("hang-up", "a handshake that is hung up on", "tls_handshake"),
    _row("plain", "plain HTTP where TLS is expected", "tls"),
    _row("stall", "a handshake that is never answered", "timeout"),
    Row(
        case=50,
        path="/",
        serves="TLS where plain HTTP is expected",
        place="tls-on-plain",
        outcome="failed",
        reason="protocol",
        asks=0,
    ),
)


def _place(name: str, leaf: Leaf, version_max: str | None = None) -> Place:
    return Place(
        name=f"tls-{name}",
        crawl="bold",
        tls=leaf,
        tls_version_max=version_max,
        start=False,
        seed=False,
    )


def _greeting(name: str, *steps: bytes | float | Act, scheme: str = "https") -> Place:
    return Place(
        name=f"tls-{name}", crawl="bold", greet=steps, scheme=scheme, start=False, seed=False
    )


PLACES = (
    _place("good", GOOD),
    _place("chain", Leaf(addresses=HERE, issuer="intermediate")),
    *(_place(name, leaf) for name, leaf in BAD.items()),
    _place("old", GOOD, "TLSv1_1"),
    _greeting("hang-up", 0.05, Act.CLOSE),
    _greeting("plain", 0.05, PLAIN, Act.CLOSE),
    _greeting("stall", Act.HANG),
    _greeting("on-plain", 0.05, b"\x15\x03\x01\x00\x02\x02\x16", Act.CLOSE, scheme="http"),
)
