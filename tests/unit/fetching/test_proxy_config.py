"""Proxies from environment variables, and the rules of NO_PROXY."""

from __future__ import annotations

import pytest

from orbweaver.fetching.proxy_config import ProxyConfig, config_in, ignored_in, is_exempt
from orbweaver.fetching.proxy_pool import PoolError

A, B = "http://a.test:1", "socks5h://me:word@b.test:2"


@pytest.mark.parametrize(
    ("environment", "http", "https"),
    [
        ({}, "", ""),
        ({"http_proxy": A}, A, ""),
        ({"HTTP_PROXY": A}, "", ""),
        ({"HTTPS_PROXY": A}, "", A),
        ({"https_proxy": A, "HTTPS_PROXY": B}, "", A),
        ({"ALL_PROXY": B}, B, B),
        ({"all_proxy": B, "http_proxy": A}, A, B),
        ({"http_proxy": "a.test:1"}, A, ""),
        ({"http_proxy": "", "ALL_PROXY": A}, A, A),
    ],
)
def test_variable_names_proxy_of_scheme(environment: dict[str, str], http: str, https: str) -> None:
    config = config_in(environment)
    assert (config.http, config.https) == (http, https)
    assert bool(config) is bool(http or https)
    assert "word" not in repr(config)


@pytest.mark.parametrize("value", ["socks4://me:word@h", "http://me:word@h:99999", "me:word@h:x"])
def test_invalid_variable_is_named_without_its_value(value: str) -> None:
    with pytest.raises(PoolError, match="https_proxy") as raised:
        config_in({"https_proxy": value})
    assert "word" not in str(raised.value)


def test_upper_case_http_proxy_without_effect_is_reported() -> None:
    assert ignored_in({"HTTP_PROXY": A})
    assert not ignored_in({"HTTP_PROXY": A, "ALL_PROXY": A})
    assert not ignored_in({"HTTPS_PROXY": A})


@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "exempt"),
    [
        ("", "a.test", 443, False),
        ("", "localhost", 80, True),
        ("", "x.localhost", 80, True),
        ("", "127.0.0.9", 80, True),
        ("", "::1", 80, True),
        ("*", "a.test", 443, True),
        ("a.test", "a.test", 443, True),
        ("a.test", "A.TEST.", 443, True),
        ("a.test", "b.a.test", 443, True),
        ("a.test", "ba.test", 443, False),
        (".a.test", "a.test", 443, True),
        ("*.a.test", "b.a.test", 443, True),
        ("b.test, a.test", "a.test", 443, True),
        ("b.test a.test", "a.test", 443, True),
        ("a.test:8443", "a.test", 8443, True),
        ("a.test:8443", "a.test", 443, False),
        ("93.184.216.34", "93.184.216.34", 80, True),
        ("93.184.216.34:81", "93.184.216.34", 80, False),
        ("93.184.0.0/16", "93.184.216.34", 80, True),
        ("93.185.0.0/16", "93.184.216.34", 80, False),
        ("2001:db8::/32", "2001:db8::1", 80, True),
        ("[2001:db8::1]", "2001:db8::1", 80, True),
        ("[2001:db8::1]:80", "2001:db8::1", 80, True),
        ("[2001:db8::1]:81", "2001:db8::1", 80, False),
        ("184.216.34", "93.184.216.34", 80, False),
        (" , .", "a.test", 443, False),
    ],
)
def test_no_proxy(no_proxy: str, host: str, port: int, exempt: bool) -> None:
    assert is_exempt(no_proxy, host, port) is exempt


def test_listed_proxies_ignore_no_proxy_and_loopback() -> None:
    assert ProxyConfig(urls=(A,), no_proxy="*").is_proxied("http://127.0.0.1:8000/")
    assert not ProxyConfig(http=A).is_proxied("http://127.0.0.1:8000/")
    assert not ProxyConfig(http=A).is_proxied("https://a.test/")
    assert ProxyConfig(http=A).is_proxied("http://a.test/")
