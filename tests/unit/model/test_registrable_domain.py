"""Sites: which hosts belong together."""

from __future__ import annotations

import subprocess
import sys

import pytest

from orbweaver.model.url import canonicalize, hostname_of, is_suffix, same_site, site_of
from tests.corpora import corpus


def test_site_of_passes_test_cases_of_public_suffix_list() -> None:
    lines = [line.split() for line in corpus("psl", "tests.txt").read_text().splitlines()]
    # A host is never empty and never starts with a dot, so "null" and ".com" do not apply.
    cases = [pair for pair in lines if len(pair) == 2 and pair[0][0] not in "./n"]
    assert len(cases) >= 70
    wrong = {}
    for host, expected in cases:
        name = hostname_of(canonicalize(f"https://{host}/"))
        # A public suffix is its own site.
        site = name if expected == "null" else hostname_of(canonicalize(f"https://{expected}/"))
        if site_of(name) != site:
            wrong[host] = site_of(name)
    assert wrong == {}


@pytest.mark.parametrize("hostname", ["com", "co.uk", "github.io", "localhost"])
def test_is_suffix_accepts_trailing_dot(hostname: str) -> None:
    assert is_suffix(hostname)
    assert is_suffix(f"{hostname}.")
    assert not is_suffix(f"example.{hostname}.") or hostname == "localhost"
    assert not is_suffix("127.0.0.1")


@pytest.mark.parametrize(
    ("hostname", "site"),
    [
        ("example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.example.com.", "example.com"),
        ("xn--bcher-kva.example.xn--55qx5d.cn", "example.xn--55qx5d.cn"),
        ("a.github.io", "a.github.io"),
        ("b.a.github.io", "a.github.io"),
        ("github.io", "github.io"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("a.unlisted-suffix", "a.unlisted-suffix"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ],
)
def test_site_of_returns_registrable_domain(hostname: str, site: str) -> None:
    assert site_of(hostname) == site


@pytest.mark.parametrize(
    ("url", "other", "same"),
    [
        ("https://a.example.com/", "http://example.com:8443/x", True),
        ("https://example.com/", "https://example.com.evil.example/", False),
        ("https://a.github.io/", "https://b.github.io/", False),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8001/", True),
        ("http://127.0.0.1/", "http://127.0.0.2/", False),
        ("http://[::1]/", "http://[::2]/", False),
    ],
)
def test_same_site_ignores_scheme_and_port(url: str, other: str, *, same: bool) -> None:
    assert same_site(url, other) is same
    assert same_site(other, url) is same


def test_worker_import_does_not_load_suffix_list() -> None:
    code = "import sys, orbweaver.worker.batch; sys.exit('publicsuffixlist' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
