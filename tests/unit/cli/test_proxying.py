"""Options for proxies and TLS files: typing mistakes, and limits of a stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.cli.exit_codes import NETWORK
from orbweaver.fetching.proxy_config import ProxyConfig
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import authority
from tests.unit.cli.fakes import Stage

URL = "https://example.com/"
REFUSED = Failure(reason=Reason.PROXY, detail="connection refused")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "empty.txt").write_text("# none\n")
    (tmp_path / "bad.txt").write_text("http://p.test:1\nme:word@q.test:2\n")
    (tmp_path / "ca.pem").write_bytes(authority("trusted").pem)
    (tmp_path / "crawl.toml").write_text(
        f'seeds = ["{URL}"]\n[network]\nca_bundle = "none.pem"\ninsecure = ["a.test"]\n'
    )
    return Stage(folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--store s --proxy p.test:1", "--proxy: the URL has no scheme: write http://HOST:PORT"),
        ("--store s --proxy http://me:wo#word@p.test", "--proxy: the URL has a / ? or # in its"),
        ("--store s --proxy socks4://p.test:1", "another scheme than http, https, socks5"),
        ("--store s --proxy http://p.test:port", "--proxy: the URL has no port of 1 to 65535"),
        ("--store s --proxy", "--proxy: needs a value"),
        ("--store s --proxy-list none.txt", "none.txt cannot be read: No such file"),
        ("--store s --proxy-list empty.txt", "--proxy-list: empty.txt: it does not list 1 to"),
        ("--store s --proxy-list bad.txt", "--proxy-list: bad.txt: line 2 has no scheme"),
        ("--store s --proxy http://p.test --proxy-list bad.txt", "give one of them"),
        ("--store s --proxy http://p.test --proxies no", "--proxies no requests all pages"),
        ("--proxy http://me:word@p.test", "are for a store, and this is a stack"),
        ("--store s --ca-bundle none.pem", "--ca-bundle: "),
        ("--store s --ca-bundle empty.txt", "empty.txt: it has no certificate"),
        ("--store s --client-cert ca.pem", "--client-cert: "),
        ("--store s --client-cert ca.pem:none.key", "none.key: No such file"),
        ("--ca-bundle ca.pem", "network.ca_bundle: a stack cannot read a file of this machine"),
        ("--store s --insecure *", "--insecure: '*' is not a host name"),
        ("--store s --insecure https://a.test", "'https://a.test' is not a host name"),
        ("--store s --insecure a.test:443", "'a.test:443' is not a host name"),
    ],
)
def test_mistake_is_explained_without_secret(options: str, said: str, stage: Stage) -> None:
    assert said in stage.errors(f"crawl {URL} {options}")
    assert "word" not in stage.noted.replace("password", "")
    assert not (stage.folder / "s").exists()


def test_path_in_definition_is_relative_to_it(stage: Stage) -> None:
    (stage.folder / "deep").mkdir()
    (stage.folder / "crawl.toml").rename(stage.folder / "deep/crawl.toml")
    assert stage.run("check deep/crawl.toml") == 2
    assert f"network.ca_bundle: {stage.folder}/deep/none.pem: No such file" in stage.noted
    (stage.folder / "ca.pem").rename(stage.folder / "deep/none.pem")
    assert "to a.test WITHOUT verifying certificates" in stage.output("check deep/crawl.toml")
    stage.machine.up_already = True
    assert stage.run("schedule put --config deep/crawl.toml --target local") == 2
    assert "a stack cannot read a file of this machine" in stage.noted


def test_unusable_proxy_starts_nothing(stage: Stage) -> None:
    stage.unreached = {"p.test:1": REFUSED}
    assert stage.run(f"crawl {URL} --store s --proxy http://me:word@p.test:1") == NETWORK
    assert f"{URL} cannot be reached: proxy p.test:1: connection refused" in stage.noted
    stage.environment = {"https_proxy": "http://p.test:1"}
    assert stage.run(f"crawl {URL} --store s") == NETWORK
    assert "proxy p.test:1: connection refused" in stage.noted


def test_invalid_variable_is_named(stage: Stage) -> None:
    stage.environment = {"https_proxy": "socks4://me:word@p.test:1"}
    assert "https_proxy: its URL has another scheme" in stage.errors(f"crawl {URL} --store s")
    assert "word" not in stage.noted
    stage.environment = {"HTTP_PROXY": "http://p.test:1"}
    stage.unreached = {URL: REFUSED}
    assert stage.run(f"crawl {URL} --store s") == NETWORK
    assert "HTTP_PROXY has no effect, as in curl: set http_proxy" in stage.noted


@pytest.mark.parametrize(
    ("theirs", "refused"), [("", True), ("http://q.test:1", True), ("http://p.test:1", False)]
)
def test_store_has_processes_with_the_same_proxies(
    theirs: str, refused: bool, stage: Stage
) -> None:
    """They share all crawls, so a process with other proxies would request their pages."""
    (stage.folder / "s").mkdir()
    stage.unreached = {"p.test:1": REFUSED}
    mark = ProxyConfig(urls=(theirs,) if theirs else ()).mark
    with StoreProcesses(stage.folder / "s").taking_part(mark):
        code = stage.run(f"crawl {URL} --store s --proxy http://me:word@p.test:1")
    assert ("works on this store with other proxies: end it first" in stage.noted) is refused
    assert code == (3 if refused else NETWORK)
