"""TLS faults: verification is never off, and each fault has its reason (case 50)."""

from __future__ import annotations

import asyncio
import csv
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.http import HttpFetcher, Limits
from orbweaver.core.exchange import Failure, Response
from orbweaver.core.outcome import Reason
from tests.integration.fetcher.authority import Leaf, authority, server_context
from tests.integration.fetcher.origin import (
    Act,
    Step,
    answer,
    fetching,
    request,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

CASES = Path(__file__).parents[3] / "../shared/corpora/tls/cases.tsv"
PAGE = b"<title>A page</title>"
SETTINGS_FRAME = b"\0\0\0\x04\0\0\0\0\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A certificate, what the server does with its context, what it says, and what comes of it."""

    leaf: Leaf = Leaf()
    host: str = "good.test"
    versions: tuple[str, str] | None = None
    ciphers: str | None = None
    alpn: str | None = None
    asks_for_certificate: bool = False
    steps: tuple[Step, ...] = (answer(PAGE),)
    reason: Reason | None = None  # None: fetched


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
        reason=Reason.TLS,  # OpenSSL takes 100 KB of certificates
    ),
    "sha1-signature": Case(leaf=Leaf(sha1=True), reason=Reason.TLS),
    "rsa-1024": Case(leaf=Leaf(rsa_bits=1024), reason=Reason.TLS),
    "tls1.0-only": Case(versions=("TLSv1", "TLSv1"), reason=Reason.TLS),
    "tls1.1-only": Case(versions=("TLSv1_1", "TLSv1_1"), reason=Reason.TLS),
    "tls1.2-only": Case(versions=("TLSv1_2", "TLSv1_2")),
    "tls1.3-only": Case(versions=("TLSv1_3", "TLSv1_3")),
    "null-cipher": Case(
        versions=("TLSv1_2", "TLSv1_2"), ciphers="eNULL:@SECLEVEL=0", reason=Reason.TLS
    ),
    "client-cert-required-tls1.2": Case(
        versions=("TLSv1_2", "TLSv1_2"), asks_for_certificate=True, reason=Reason.TLS
    ),
    "truncated-no-close-notify": Case(steps=(answer(PAGE), 0.02, Act.ABORT)),
    "truncated-short-body": Case(
        steps=(answer(PAGE)[:-1], 0.02, Act.ABORT), reason=Reason.DISCONNECTED
    ),
    "alpn-h2-only": Case(alpn="h2", steps=(SETTINGS_FRAME, Act.CLOSE), reason=Reason.PROTOCOL),
    "idn-host": Case(leaf=Leaf(names=("xn--bcher-kva.test",)), host="xn--bcher-kva.test"),
    "redirect-https-to-http": Case(steps=(answer(b"", "Location: http://x/", status="302 F"),)),
}
# Those that have a test of their own below.
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
    """Have the fetcher's own context trust the one authority, as OpenSSL is told to."""
    store = tmp_path / "trusted.pem"
    store.write_bytes(authority("trusted").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(store))


def context_of(case: Case, folder: Path) -> ssl.SSLContext:
    """Make the server's context of a case."""
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
    """What a browser would refuse is a TLS failure, and nothing of it is fetched."""
    case = SERVED[name]
    book = {case.host: ["127.0.0.1"]}
    started = time.monotonic()
    async with (
        serving(case.steps, tls=context_of(case, tmp_path)) as origin,
        fetching(book=book) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", case.host)))
    assert time.monotonic() - started < 2
    if case.reason is None:
        assert isinstance(result, Response), result
        assert result.body in {PAGE, None}
    else:
        assert isinstance(result, Failure), result
        assert result.reason is case.reason, result
        assert result.detail.isprintable()


def test_every_case_of_the_corpus_is_here() -> None:
    """The table above and the tests below have all of them."""
    if not CASES.exists():
        pytest.skip("the corpora of other projects are not beside this one")
    with CASES.open(newline="") as rows:
        names = {row["case"] for row in csv.DictReader(rows, delimiter="\t")}
    assert names
    assert names <= SERVED.keys() | OTHERS


async def test_name_is_sent_for_the_right_certificate(tmp_path: Path) -> None:
    """A server with many certificates is told the name (sni-missing-default-cert)."""
    (tmp_path / "right").mkdir()
    right = server_context(Leaf(), tmp_path / "right")
    default = server_context(Leaf(names=("default.test",)), tmp_path)

    def choose(sock: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name == "good.test":
            sock.context = right

    default.sni_callback = choose  # type: ignore[assignment] # asyncio's sockets are SSLObjects
    async with (
        serving([answer(PAGE)], tls=default) as origin,
        fetching(book={"good.test": ["127.0.0.1"]}) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", "good.test")))
    assert isinstance(result, Response)


async def test_dead_connections_under_tls_are_no_failure(tmp_path: Path) -> None:
    """TLS connections are pooled, and given up without a failure, like plain ones (case 30)."""

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
    """Run a server that sends alerts, which asyncio's do not; for one, gives its URL."""

    def run() -> None:
        sock, _ = listener.accept()
        tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        with tls, suppress(OSError):
            try:
                tls.do_handshake()
            finally:
                tls.shutdown(socket.SHUT_WR)  # below TLS; a close with unread bytes would reset
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
async def test_server_that_says_why(case: Case, said: str, tmp_path: Path) -> None:
    """An alert is told, during the handshake and, as TLS 1.3 has it, right after it."""
    with saying_why(context_of(case, tmp_path)) as url:
        async with fetching(book={"good.test": ["127.0.0.1"]}) as fetcher:
            result = await fetcher.fetch(request(url))
    assert isinstance(result, Failure), result
    assert result.reason is Reason.TLS
    assert said in result.detail


@asynccontextmanager
async def listening(
    meet: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Run a server below HTTP and TLS; gives its https URL."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await meet(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Take all that comes and say nothing."""
    while await reader.read(65_536):
        pass


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin a handshake, a byte at a time."""
    for byte in b"\x16\x03\x03\x0f\xff\x02" + bytes(1_000):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.01)


async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a handshake in plain HTTP."""
    await reader.read(65_536)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    ("meet", "limits", "total_s", "reason"),
    [
        pytest.param(stall, Limits(connect_s=0.1), 5.0, Reason.CONNECT, id="handshake-stall"),
        pytest.param(drip, Limits(connect_s=0.1), 5.0, Reason.CONNECT, id="handshake-drip"),
        pytest.param(drip, None, 0.1, Reason.TIMEOUT, id="handshake-drip-total"),
        pytest.param(plain, None, 5.0, Reason.TLS, id="plain-http-on-443"),
    ],
)
async def test_server_without_a_handshake(
    meet: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    limits: Limits | None,
    total_s: float,
    reason: Reason,
) -> None:
    """A handshake that does not come to its end costs the connect limit at most."""
    started = time.monotonic()
    async with listening(meet) as url, fetching(limits) as fetcher:
        result = await fetcher.fetch(request(url, total_s=total_s))
    assert isinstance(result, Failure)
    assert result.reason is reason, result
    assert time.monotonic() - started < 1


async def test_tls_on_a_plain_port() -> None:
    """A TLS alert is no answer to a plain request (tls-on-80)."""
    steps = (b"\x15\x03\x01\x00\x02\x02\x16", Act.CLOSE)
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Failure)
    assert result.reason is Reason.PROTOCOL


async def test_transport_security_of_a_plain_answer_changes_nothing() -> None:
    """HSTS over plain HTTP is ignored: the next request is as plain (hsts-header)."""
    page = answer(PAGE, "Strict-Transport-Security: max-age=31536000")
    async with serving([page]) as origin, fetching() as fetcher:
        for _ in range(2):
            assert isinstance(await fetcher.fetch(request(origin.url())), Response)


@pytest.mark.parametrize("field", ["check_hostname", "verify_mode"])
def test_context_that_does_not_verify_is_refused(field: str) -> None:
    """There is no way to switch the verification of certificates off."""
    context = ssl.create_default_context()
    context.check_hostname = False
    if field == "verify_mode":
        context.verify_mode = ssl.CERT_NONE
    with pytest.raises(ValueError, match="does not verify"):
        HttpFetcher(tls=context)
