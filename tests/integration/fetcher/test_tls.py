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
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from orbweaver.adapters.web.tls import context_for, verifying
from orbweaver.model.http_exchange import Failure, Response, Trust
from orbweaver.model.outcome import Reason
from tests.corpora import corpus
from tests.integration.fetcher.authority import NOW, Leaf, authority, server_context
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
    assert "it expired on" in result.detail


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


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (Leaf(issuer="itself"), "it is self-signed: --ca-bundle FILE trusts it"),
        (Leaf(issuer="unknown"), "unknown authority is an unknown authority"),
        (Leaf(issuer="intermediate", chain=False), "intermediate authority is an unknown"),
        (Leaf(days=(-20, -10)), f"it expired on {NOW - timedelta(days=10):%Y-%m-%d}: --insecure"),
        (Leaf(days=(10, 20)), f"it is valid from {NOW + timedelta(days=10):%Y-%m-%d}"),
        (Leaf(names=("a.test", "b.test")), "it is for other names (a.test, b.test): --insecure"),
        (Leaf(names=tuple(f"{n}.test" for n in range(9))), "(0.test, 1.test, 2.test and 6 more)"),
        (Leaf(names=(), common_name="good.test"), "it is for other names (no name)"),
    ],
)
async def test_detail_names_fault_of_certificate_and_fix(
    leaf: Leaf, said: str, tmp_path: Path
) -> None:
    async with (
        serving([answer(PAGE)], tls=server_context(leaf, tmp_path)) as origin,
        fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
    ):
        asking = request(origin.url("/", "good.test"))
        failure = await fetcher.fetch(asking)
        insecure = await fetcher.fetch(replace(asking, trust=Trust(insecure=True)))
    assert isinstance(failure, Failure)
    assert failure.reason is Reason.TLS
    assert said in failure.detail
    assert isinstance(insecure, Response), insecure


async def test_server_without_tls_is_named() -> None:
    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    async with server, fetching() as fetcher:
        port = server.sockets[0].getsockname()[1]
        failure = await fetcher.fetch(request(f"https://127.0.0.1:{port}/"))
    assert isinstance(failure, Failure)
    assert "does not speak TLS at this port" in failure.detail


async def test_bundle_is_trusted_in_addition_and_for_its_request_only(tmp_path: Path) -> None:
    """A proxy gets the authorities, but is verified and never sees the client certificate."""
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(authority("unknown").pem)
    trust = Trust(ca_bundle=str(bundle))
    for issuer in ("unknown", "trusted"):
        context = server_context(Leaf(issuer=issuer), tmp_path)
        async with (
            serving([answer(PAGE)], tls=context) as origin,
            fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
        ):
            asking = request(origin.url("/", "good.test"))
            result = await fetcher.fetch(replace(asking, trust=trust))
            assert isinstance(result, Response), result
            assert isinstance(await fetcher.fetch(asking), Response) is (issuer == "trusted")
    strict = verifying(context_for(replace(trust, insecure=True)))
    assert strict is context_for(trust)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("joined", [False, True])
async def test_client_certificate_is_sent(joined: bool, tmp_path: Path) -> None:
    server_context(Leaf(names=("client.test",)), tmp_path)
    file, key = tmp_path / "me.pem", tmp_path / "me.key"
    file.write_bytes((tmp_path / "chain.pem").read_bytes())
    key.write_bytes((tmp_path / "key.pem").read_bytes())
    if joined:
        file.write_bytes(file.read_bytes() + key.read_bytes())
    context = context_of(Case(asks_for_certificate=True), tmp_path)
    trust = Trust(client_cert=str(file) if joined else f"{file}:{key}")
    async with (
        serving([answer(PAGE)], tls=context) as origin,
        fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
    ):
        result = await fetcher.fetch(replace(request(origin.url("/", "good.test")), trust=trust))
    assert isinstance(result, Response), result


@pytest.mark.parametrize(
    ("trust", "said"),
    [
        (Trust(ca_bundle="{}/none.pem"), "none.pem: No such file or directory"),
        (Trust(ca_bundle="{}/text.pem"), "text.pem: it has no certificate"),
        (Trust(client_cert="{}/chain.pem"), "chain.pem: it has no certificate, or no private key"),
        (Trust(client_cert="{}/chain.pem:{}/none.key"), "none.key: No such file or directory"),
        (Trust(client_cert="{}/chain.pem:{}/other.key"), "belongs to another certificate"),
        (Trust(client_cert="{}/chain.pem:{}/locked.key"), "the key has a password"),
    ],
)
async def test_unusable_file_is_named(trust: Trust, said: str, tmp_path: Path) -> None:
    server_context(Leaf(), tmp_path)
    (tmp_path / "text.pem").write_text("text")
    other = authority("unknown")
    (tmp_path / "other.key").write_bytes(other.key_pem)
    locked = other.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"word"),
    )
    (tmp_path / "locked.key").write_bytes(locked)
    named = {
        name: value.replace("{}", str(tmp_path))
        for name in ("ca_bundle", "client_cert")
        if (value := getattr(trust, name))
    }
    async with fetching() as fetcher:
        failure = await fetcher.fetch(
            replace(request("https://127.0.0.1:1/"), trust=replace(trust, **named))
        )
    assert isinstance(failure, Failure)
    assert failure.reason is Reason.TLS
    assert said in failure.detail
