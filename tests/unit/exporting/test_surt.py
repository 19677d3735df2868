"""SURT keys of a WARC file's index."""

from __future__ import annotations

import pytest

from orbweaver.exporting.formats.warc import surt

ID = "0123456789abcdef0123456789ABCDEF"
# Keys by the canonicaliser of the Internet Archive.
KEYS = [
    ("http://www.example.com/", "com,example)/"),
    ("https://example.com/a?b=2&a=1", "com,example)/a?a=1&b=2"),
    ("http://example.com:8080/A/b", "com,example:8080)/a/b"),
    ("http://example.com:443/x", "com,example:443)/x"),
    ("https://example.com:80/x", "com,example:80)/x"),
    ("http://127.0.0.1/x", "1,0,0,127)/x"),
    ("http://[::1]:8080/x", "::1:8080)/x"),
    ("http://[2001:db8::1]/x", "2001:db8::1)/x"),
    ("http://www2.example.co.uk/Path/?q", "uk,co,example)/path?q"),
    ("http://www.com/", "com)/"),
    ("http://wwwfoo.com/", "com,wwwfoo)/"),
    ("http://www-1.foo.com/", "com,foo,www-1)/"),
    ("http://xn--bcher-kva.ch/", "ch,xn--bcher-kva)/"),
    ("http://localhost:1234/x", "localhost:1234)/x"),
    ("http://example.com/a/", "com,example)/a"),
    ("http://example.com/%7Efoo/%2f", "com,example)/~foo"),
    ("http://example.com/a//b", "com,example)/a/b"),
    ("http://example.com/a/%2e%2e/b", "com,example)/b"),
    ("http://example.com/%2525", "com,example)/%25"),
    ("http://example.com/a%23b", "com,example)/a%23b"),
    ("http://example.com/a?%C3%A9", "com,example)/a?%c3%a9"),
    ("http://example.com/?", "com,example)/"),
    ("http://example.com/?a=B&A=c&a", "com,example)/?a&a=b&a=c"),
    ("http://example.com/?a&&b", "com,example)/?&a&b"),
    (f"http://example.com/a?sid={ID}&x=1", "com,example)/a?x=1"),
    (f"http://example.com/a?x=1&sid={ID}", "com,example)/a?&x=1"),
    (f"http://example.com/a?PHPSESSID={ID}", "com,example)/a"),
    ("http://example.com/a?sid=short", "com,example)/a?sid=short"),
    ("http://example.com/a?CFID=1&CFTOKEN=2&b", "com,example)/a?b"),
    ("http://example.com/(S(abcdefghijklmnopqrstuvwx))/p.aspx", "com,example)/p.aspx"),
    ("http://example.com/(abcdefghijklmnopqrstuvwx)/p.aspx?a", "com,example)/p.aspx?a"),
]


@pytest.mark.parametrize(("url", "key"), KEYS)
def test_surt_equals_key_of_internet_archive(url: str, key: str) -> None:
    assert surt(url) == key
