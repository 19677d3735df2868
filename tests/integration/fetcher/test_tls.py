"""TLS faults: verification is never off, and each fault has its reason (case 50)."""

from __future__ import annotations

import asyncio
import csv
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.corpora import corpus
from tests.integration.fetcher.authority import Leaf, authority, server_context
from tests.integration.fetcher.origin import SOON_S, answer, fetching, request, serving
from tests.sites.steps import Act, Step

PAGE = b"<title>A page</title>"
SETTINGS_FRAME = b"\0\0\0\x04\0\0\0\0\0"


GOOD = Leaf()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A certificate, context settings, the answer, and the expected result."""

    leaf: Leaf = GOOD
    host: str = "good.test"
    versions: tuple[str, str] | None = None
    ciphers: str | None = None
    alpn: str | None = None
    asks_for_certificate: bool = False
    steps: tuple[Step, ...] = (answer(PAGE),)
    reason: Reason | None = None  # None: the page is fetched.


SERVED: dict[str, Case] = {
    "valid-chain-test-ca": Case(),
    "expired": Case(leaf=Leaf(days=(-20, -10)), reason=Reason.TLS),
    "not-yet-valid": Case(leaf=Leaf(days=(10, 20)), reason=Reason.TLS),
    "self-signed": Case(leaf=Leaf(issuer="itself"), reason=Reason.TLS),
    "untrusted-root": Case(leaf=Leaf(issuer="unknown"), reason=Reason.TLS),
    "wrong-host": Case(leaf=Leaf(names=("other.test",)), reason=Reason.TLS),
    "wildcard-one-label": Case(leaf=Leaf(names=("*.test.example",)), host="a.test.example"),
    "wildcard-two-labels": Case(
        leaf=Leaf(names=("*.test.example",)), host="a.b.test.example", reason=Reason.TLS
    ),
    "no-san-cn-only": Case(leaf=Leaf(names=(), common_name="good.test"), reason=Reason.TLS),
    "ip-san-missing": Case(host="127.0.0.1", reason=Reason.TLS),
    "ip-san": Case(leaf=Leaf(addresses=("127.0.0.1",)), host="127.0.0.1"),
    "complete-chain": Case(leaf=Leaf(issuer="intermediate")),
    "incomplete-chain": Case(leaf=Leaf(issuer="intermediate", chain=False), reason=Reason.TLS),
    "10000-sans": Case(
        leaf=Leaf(names=(*(f"h{number}.test" for number in range(10_000)), "good.test")),
        reason=Reason.TLS,  # OpenSSL accepts 100 KB of certificates.
    ),
    "sha1-signature": Case(leaf=Leaf(sha1=True), reason=Reason.TLS),
    "rsa-1024": Case(leaf=Leaf(rsa_bits=1024), reason=Reason.TLS),
    # These Python servers close without an alert; see `test_server_alert_is_reported`.
    "tls1.0-only": Case(versions=("TLSv1", "TLSv1"), reason=Reason.TLS_HANDSHAKE),
    "tls1.1-only": Case(versions=("TLSv1_1", "TLSv1_1"), reason=Reason.TLS_HANDSHAKE),
    "tls1.2-only": Case(versions=("TLSv1_2", "TLSv1_2")),
    "tls1.3-only": Case(versions=("TLSv1_3", "TLSv1_3")),
    "null-cipher": Case(
        versions=("TLSv1_2", "TLSv1_2"), ciphers="eNULL:@SECLEVEL=0", reason=Reason.TLS_HANDSHAKE
    ),
    "client-cert-required-tls1.2": Case(
        versions=("TLSv1_2", "TLSv1_2"), asks_for_certificate=True, reason=Reason.TLS_HANDSHAKE
    ),
    "truncated-no-close-notify": Case(steps=(answer(PAGE), 0.02, Act.ABORT)),
    "truncated-short-body": Case(
        steps=(answer(PAGE)[:-1], 0.02, Act.ABORT), reason=Reason.DISCONNECTED
    ),
    "alpn-h2-only": Case(alpn="h2", steps=(SETTINGS_FRAME, Act.CLOSE), reason=Reason.PROTOCOL),
    "idn-host": Case(leaf=Leaf(names=("xn--bcher-kva.test",)), host="xn--bcher-kva.test"),
    "redirect-https-to-http": Case(steps=(answer(b"", "Location: http://x/", status="302 F"),)),
}
# Cases with their own test, in this file or another one.
OTHERS = {
    "client-cert-required",
    "handshake-stall",
    "handshake-drip",
    "plain-http-on-443",
    "tls-on-80",
    "sni-missing-default-cert",
    "hsts-header",
}


@pytest.fixture(autouse=True)
def _trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fetcher's own context trust the test authority, as OpenSSL is configured."""
    store = tmp_path / "trusted.pem"
    store.write_bytes(authority("trusted").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(store))


def context_of(case: Case, folder: Path) -> ssl.SSLContext:
    context = server_context(case.leaf, folder)
    if case.versions:
        context.minimum_version = ssl.TLSVersion[case.versions[0]]
        context.maximum_version = ssl.TLSVersion[case.versions[1]]
    if case.ciphers:
        context.set_ciphers(case.ciphers)
    if case.alpn:
        context.set_alpn_protocols([case.alpn])
    if case.asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority("trusted").pem.decode())
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
@pytest.mark.parametrize("name", SERVED)
async def test_certificates_and_handshakes(name: str, tmp_path: Path) -> None:
    case = SERVED[name]
    book = {case.host: ["127.0.0.1"]}
    started = time.monotonic()
    async with (
        serving(case.steps, tls=context_of(case, tmp_path)) as origin,
        fetching(book=book) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", case.host)))
    assert time.monotonic() - started < SOON_S
    if case.reason is None:
        assert isinstance(result, Response), result
        assert result.body in {PAGE, None}
    else:
        assert isinstance(result, Failure), result
        assert result.reason is case.reason, result
        assert result.detail.isprintable()


@pytest.mark.parametrize("addresses", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
async def test_certificate_error_outranks_refused_connection_of_other_address(
    addresses: tuple[str, ...], tmp_path: Path
) -> None:
    context = context_of(SERVED["expired"], tmp_path)
    async with (
        serving([answer(PAGE)], tls=context) as origin,
        fetching(book={"good.test": addresses}) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", "good.test")))
    assert isinstance(result, Failure)
    assert result.reason is Reason.TLS
    assert "certificate has expired" in result.detail


def test_every_case_of_corpus_is_tested() -> None:
    with corpus("tls", "cases.tsv").open(newline="") as rows:
        names = {row["case"] for row in csv.DictReader(rows, delimiter="\t")}
    assert names
    assert names <= SERVED.keys() | OTHERS


async def test_server_name_is_sent(tmp_path: Path) -> None:
    (tmp_path / "right").mkdir()
    right = server_context(Leaf(), tmp_path / "right")
    default = server_context(Leaf(names=("default.test",)), tmp_path)

    def choose(sock: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name == "good.test":
            sock.context = right

    default.sni_callback = choose
    async with (
        serving([answer(PAGE)], tls=default) as origin,
        fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", "good.test")))
    assert isinstance(result, Response)


async def test_dead_tls_connections_are_no_failure(tmp_path: Path) -> None:
    """The fetcher pools and drops them like plain connections (case 30)."""

    def say(asked: object) -> tuple[Step, ...]:
        return (answer(PAGE), 0.01, Act.CLOSE) if len(origin.asked) % 2 else (answer(PAGE),)

    async with (
        serving(say, tls=server_context(Leaf(), tmp_path)) as origin,
        fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
    ):
        for _ in range(5):
            result = await fetcher.fetch(request(origin.url("/", "good.test")))
            assert isinstance(result, Response), result
            await asyncio.sleep(0.02)
        assert len(origin.asked) == 5
        assert origin.connections == 3


@contextmanager
def saying_why(context: ssl.SSLContext) -> Iterator[str]:
    """Run a server that sends alerts, unlike asyncio's; yield its URL."""

    def run() -> None:
        sock, _ = listener.accept()
        tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        with tls, suppress(OSError):
            try:
                tls.do_handshake()
            finally:
                # Closed below TLS, because a close with unread bytes would reset the connection.
                tls.shutdown(socket.SHUT_WR)
                while tls.recv(65_536):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        yield f"https://good.test:{listener.getsockname()[1]}/"
        done.result(5)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case(asks_for_certificate=True), "CERTIFICATE_REQUIRED"),
        (SERVED["client-cert-required-tls1.2"], "HANDSHAKE_FAILURE"),
        (SERVED["tls1.0-only"], "PROTOCOL_VERSION"),
        (SERVED["tls1.1-only"], "PROTOCOL_VERSION"),
        (SERVED["null-cipher"], "HANDSHAKE_FAILURE"),
    ],
    ids=["client-cert-required", "tls1.2", "tls1.0-only", "tls1.1-only", "null-cipher"],
)
async def test_server_alert_is_reported(case: Case, said: str, tmp_path: Path) -> None:
    with saying_why(context_of(case, tmp_path)) as url:
        async with fetching(book={"good.test": ["127.0.0.1"]}) as fetcher:
            result = await fetcher.fetch(request(url))
    assert isinstance(result, Failure), result
    assert result.reason is Reason.TLS
    assert said in result.detail
