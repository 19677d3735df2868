"""References become canonical URLs or an error with its reason."""

from __future__ import annotations

import time

import pytest

from orbweaver.model.url import (
    HOST_CHARS_MAX,
    REFERENCE_CHARS_MAX,
    URL_CHARS_MAX,
    canonicalize,
    host_of,
    hostname_of,
    is_tracking,
    redacted,
    url_hash,
)

BASE = "https://example.com/a/b?c=d"

CANONICAL = [
    # Absolute URLs.
    ("https://example.com/", None, "https://example.com/"),
    ("HTTP://EXAMPLE.com:80", None, "http://example.com/"),
    ("https://example.com:443/x", None, "https://example.com/x"),
    ("https://example.com:80/x", None, "https://example.com:80/x"),
    ("https://example.com:8443", None, "https://example.com:8443/"),
    ("  \t\n\x00https://example.com/x \x1f\r", None, "https://example.com/x"),
    ("https://exa\tmp\nle.com/\rx", None, "https://example.com/x"),
    ("https:\\\\example.com\\x", None, "https://example.com/x"),
    ("https:example.com/x", None, "https://example.com/x"),
    ("https://example.com/a/../b/./c/%2e%2E/d", None, "https://example.com/b/d"),
    ("https://example.com/a%2fb%c3%a9", None, "https://example.com/a%2fb%c3%a9"),
    ("https://example.com/é?ü=ß#ä", None, "https://example.com/%C3%A9?%C3%BC=%C3%9F"),
    ('https://example.com/a b"<>`{}', None, "https://example.com/a%20b%22%3C%3E%60%7B%7D"),
    ("https://example.com/x?b=2&a=1&b=1", None, "https://example.com/x?b=2&a=1&b=1"),
    ("https://bücher.example/", None, "https://xn--bcher-kva.example/"),
    ("https://BÜCHER.example/", None, "https://xn--bcher-kva.example/"),
    ("http://0x7f.1/", None, "http://127.0.0.1/"),
    ("http://2130706433/x", None, "http://127.0.0.1/x"),
    ("http://[::FFFF:1.2.3.4]:8080/", None, "http://[::ffff:102:304]:8080/"),
    ("http://example.com./", None, "http://example.com./"),
    # Fragments.
    ("https://example.com/x#y", None, "https://example.com/x"),
    ("https://example.com/x?#y", None, "https://example.com/x?"),
    ("https://example.com#y?z", None, "https://example.com/"),
    ("https://example.com/x #y", None, "https://example.com/x%20"),
    ("https://example.com/x \n#y", None, "https://example.com/x%20"),
    # User names and passwords.
    ("https://user@example.com/", None, "https://example.com/"),
    ("https://user:pass@example.com:8443/x@y", None, "https://example.com:8443/x@y"),
    ("https://a@b@example.com/", None, "https://example.com/"),
    ("https://example.com/@user", None, "https://example.com/@user"),
    ("x", "https://user:pass@example.com/", "https://example.com/x"),
    # Relative references.
    ("", BASE, "https://example.com/a/b?c=d"),
    ("#top", BASE, "https://example.com/a/b?c=d"),
    ("?e", BASE, "https://example.com/a/b?e"),
    ("x", BASE, "https://example.com/a/x"),
    ("x/", BASE, "https://example.com/a/x/"),
    ("x.y", BASE, "https://example.com/a/x.y"),
    (".x", BASE, "https://example.com/a/.x"),
    ("..", BASE, "https://example.com/"),
    ("../../../x", BASE, "https://example.com/x"),
    ("/x", BASE, "https://example.com/x"),
    ("/x:y", BASE, "https://example.com/x:y"),
    ("x/y:z", BASE, "https://example.com/a/x/y:z"),
    ("/.well-known/x", BASE, "https://example.com/.well-known/x"),
    ("//other.example/x", BASE, "https://other.example/x"),
    ("///other.example/x", BASE, "https://other.example/x"),
    ("/\\other.example/x", BASE, "https://other.example/x"),
    ("https:x", BASE, "https://example.com/a/x"),
    ("http:x", BASE, "http://x/"),
    ("http://other.example/x", BASE, "http://other.example/x"),
    ("http://xn--a/x", BASE, "http://xn--a/x"),
    ("x", "HTTPS://EXAMPLE.COM/a/../b/c#d", "https://example.com/b/x"),
    ("/x", "http://example.com:80", "http://example.com/x"),
    ("x", "https://example.com?/y/", "https://example.com/x"),
    # Half of a surrogate pair.
    ("https://example.com/\ud800x?\udfff", None, "https://example.com/%EF%BF%BDx?%EF%BF%BD"),
    ("https://example.com/\ud83d\ude00", None, "https://example.com/%F0%9F%98%80"),
]  # fmt: skip

TRACKED = [
    ("?utm_source=x", ""),
    ("?utm_source", ""),
    ("?utm_whatever=x&utm_=y", ""),
    ("?UTM_Source=x&gclid=1", ""),
    ("?a=1&utm_source=x&b=2", "?a=1&b=2"),
    ("?utm_source=x&a=1", "?a=1"),
    ("?a=1&fbclid=x", "?a=1"),
    ("?a=1&&gclid=x&", "?a=1&&"),
    ("?gclid=x&", ""),
    ("?a=%20+%zz&b='é'&msclkid=1", "?a=%20+%zz&b=%27%C3%A9%27"),
    # Only whole parameters whose names match.
    ("?xutm_source=x", "?xutm_source=x"),
    ("?gclidx=1", "?gclidx=1"),
    ("?x=utm_source", "?x=utm_source"),
    ("?x=utm_source=1", "?x=utm_source=1"),
    ("?%75tm_source=x", "?%75tm_source=x"),
    ("?a;utm_source=x", "?a;utm_source=x"),
    # Session ids, unless their names have another meaning (case 71).
    ("?PHPSESSID=1&sid=2&ASPSESSIONIDABC=3", "?sid=2"),
    (";jsessionid=1A.node?a=1", "?a=1"),
    (";a=1;JSESSIONID=2;b=3/y;jsessionid=4", ";a=1;b=3/y"),
    (";jsessionid", ";jsessionid"),
    ("/y;jsessionid=1?z=;jsessionid=1", "/y?z=;jsessionid=1"),
    ("/y/..;jsessionid=1", "/"),
    ("/y/%2e%2e;jsessionid=1/z", "/z"),
    ("?", "?"),
    ("?&", "?&"),
]

REFUSED = [
    ("", None, "not an absolute URL"),
    ("x", None, "not an absolute URL"),
    ("//example.com/", None, "not an absolute URL"),
    ("mailto:a@example.com", None, "not an http or https URL"),
    ("javascript:void(0)", BASE, "not an http or https URL"),
    ("data:text/html,x", BASE, "not an http or https URL"),
    ("ftp://example.com/", BASE, "not an http or https URL"),
    ("file:///etc/passwd", BASE, "not an http or https URL"),
    ("ws://example.com/", BASE, "not an http or https URL"),
    ("http://", BASE, "not a valid URL"),
    ("http://[::1/", BASE, "not a valid URL"),
    ("http://a b/", BASE, "not a valid URL"),
    ("http://a%00b/", BASE, "not a valid URL"),
    ("http://1.2.3.4.5/", BASE, "not a valid URL"),
    ("http://example.com:65536/", BASE, "not a valid URL"),
    ("http://\ud800/", BASE, "not a valid URL"),
    ("x", "nonsense", "not a valid URL"),
    ("../x", "mailto:a@example.com", "not a valid URL"),
    ("/x", "mailto:a@example.com", "not an http or https URL"),
    ("/x", "ftp://example.com/", "not an http or https URL"),
    ("x", "https://example.com/\ud800", "not a valid URL"),
]


@pytest.mark.parametrize(("reference", "base", "url"), CANONICAL)
def test_canonicalize_returns_canonical_url(reference: str, base: str | None, url: str) -> None:
    assert canonicalize(reference, base) == url


@pytest.mark.parametrize(("query", "left"), TRACKED)
def test_canonicalize_removes_tracking_parameters(query: str, left: str) -> None:
    assert canonicalize(f"https://example.com/x{query}") == f"https://example.com/x{left}"


def test_canonicalize_uses_given_tracking_list() -> None:
    url = "https://example.com/?ref=1&utm_source=2&Session-ID=3"
    mine = frozenset({"REF", "session*"})
    assert canonicalize(url, tracking=mine) == "https://example.com/?utm_source=2"
    assert canonicalize(url, tracking=frozenset()) == url
    assert canonicalize(url, tracking=frozenset({"*"})) == "https://example.com/"
    session = "https://example.com/x;jsessionid=1"
    assert canonicalize(session, tracking=frozenset()) == session
    assert (is_tracking("UTM_x"), is_tracking("ref"), is_tracking("REF", mine)) == (1, 0, 1)


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("https://example.com/x", "https://example.com/x"),
        ("https://user:pass@example.com/x", "https://…@example.com/x"),
        ("HTTPS:\\\\user:pass@example.com", "HTTPS:\\\\…@example.com"),
        ("user:pass@example.com", "…@example.com"),
        ("http://user:pa/ss?w#o@rd@example.com", "http://…@example.com"),
        ("http://us\ner:pass@example.com", "http://…@example.com"),
        ("https://example.com/x?access_token=y#z", "https://example.com/x?…"),
        ("https://example.com/#access_token=y", "https://example.com/#…"),
        ("https://example.com/mail/me@example.org", "https://…@example.org"),
        ("x" * 300, "x" * 200),
        ("http://" + "x" * 300 + "@example.com", "http://…@example.com"),
    ],
)
def test_redacted_hides_credentials_emails_and_queries(reference: str, shown: str) -> None:
    """User names, passwords, emails and query values are omitted (case 82)."""
    assert redacted(reference) == shown


def test_redacted_takes_linear_time() -> None:
    """A megabyte of separators takes linear time. Quadratic time would be hours (case 66)."""
    before = time.process_time()
    for piece in ("@", "http://", "?", "a\n", "/\\"):
        redacted(piece * 500_000)
        redacted("https:" + piece * 500_000)
    assert time.process_time() - before < 20


@pytest.mark.parametrize(("reference", "base", "why"), REFUSED)
def test_canonicalize_rejects_other_references_with_reason(
    reference: str, base: str | None, why: str
) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        canonicalize(reference, base)


def test_length_limit_applies_to_canonical_url() -> None:
    stem = "https://example.com/"
    longest = stem + "x" * (URL_CHARS_MAX - len(stem))
    assert canonicalize(longest) == longest
    assert canonicalize(f"{longest}?utm_source=x#y") == longest
    for reference in (f"{longest}x", stem + "é" * 400, f"{longest}?"):
        with pytest.raises(ValueError, match=r"^the URL is longer than 2083 characters$"):
            canonicalize(reference)


def test_host_is_limited_to_253_characters() -> None:
    host = ".".join(["a" * 49] * 5) + ".com"
    assert len(host) == HOST_CHARS_MAX
    assert canonicalize(f"http://{host}:8080/") == f"http://{host}:8080/"
    for longer in (f"http://x{host}/", f"http://X{host}:8080/"):
        with pytest.raises(ValueError, match=r"^the host is longer than 253 characters$"):
            canonicalize(longer)


@pytest.mark.parametrize(
    "reference",
    [
        "x" * 1_000_000,
        "https://example.com/" + "x" * 1_000_000,
        "https://example.com/?" + "utm_a=1&" * 120_000,
        "https://example.com/" + "../" * 300_000,
        "http://" + "a." * 500_000,
        "http://" + "@" * 1_000_000 + "/",
        "http://" + "é" * 60_000,
        "http://[" + ":" * 60_000,
        "\x00" * 1_000_000,
        "\ud800" * 60_000,
    ],
    ids=lambda reference: repr(reference[:12]),
)
def test_huge_reference_is_refused_quickly(reference: str) -> None:
    before = time.process_time()
    with pytest.raises(ValueError, match=r"^(the reference is too long|not an absolute URL)$"):
        canonicalize(reference)
    assert time.process_time() - before < 20


def test_length_limit_ignores_surrounding_spaces_and_fragment() -> None:
    padding = " " * (2 * REFERENCE_CHARS_MAX)
    assert canonicalize(f"{padding}http://x/y{padding}") == "http://x/y"
    assert canonicalize(f"http://x/y#{padding}") == "http://x/y"


@pytest.mark.parametrize(
    ("url", "host", "name"),
    [
        ("https://example.com/x:y/@z?a=/", "https://example.com", "example.com"),
        ("http://example.com:8080/", "http://example.com:8080", "example.com"),
        ("http://a/", "http://a", "a"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]", "[2001:db8::1]"),
        ("http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080", "[2001:db8::1]"),
        ("https://example.com", "https://example.com", "example.com"),
    ],
)
def test_host_of_returns_origin(url: str, host: str, name: str) -> None:
    assert (host_of(url), hostname_of(url)) == (host, name)


def test_url_hash_is_stable() -> None:
    assert url_hash("https://example.com/") == "3259687d649f8e86106dd28ba70f1016"
    assert url_hash("https://example.com/x") != url_hash("https://example.com/")
