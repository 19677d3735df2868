"""Cookies: which are stored, and which are sent with a request (RFC 6265bis)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.fetching.cookies import (
    COOKIES_MAX,
    JAR_CHARS_MAX,
    LIFE_MS_MAX,
    Jar,
    apply_set_cookie,
    differs,
    from_text,
    header_of,
    jar_of,
    join_cookies,
    moment_of,
    to_text,
)
from orbweaver.model.url import is_suffix
from tests.corpora import corpus

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
URL = "https://shop.example.com/a/b?c"
SECRET = "s3cr3t"


def jar(*lines: str | bytes, url: str = URL) -> Jar:
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    return apply_set_cookie((), raw, url, NOW_MS)[0]


def sent(line: str | bytes, to: str, *, url: str = URL, later_ms: int = 0) -> str | None:
    """Return the Cookie header of a request after an answer has set one cookie."""
    return header_of(jar(line, url=url), to, NOW_MS + later_ms)


@pytest.mark.parametrize(
    ("line", "to", "header"),
    [
        # RFC 6265bis, 5.6: names, values and surrounding space.
        ("a=b", URL, "a=b"),
        (" a = b c ; Path=/", URL, "a=b c"),
        ("a=b=c", URL, "a=b=c"),
        ("a=", URL, "a="),
        ("=b", URL, "b"),
        ("b", URL, "b"),
        ('a="b"', URL, 'a="b"'),
        ("a=bücher", URL, "a=bücher"),
        ("", URL, None),
        ("=", URL, None),
        (";Path=/", URL, None),
        ("a=b\x01", URL, None),
        ("a=b\tc", URL, "a=b\tc"),
        (b"a=\xff", URL, None),
        ("a=" + "b" * 4_095, URL, "a=" + "b" * 4_095),
        ("a=" + "b" * 4_096, URL, None),
        # 5.7.3: domains; without a Domain attribute, only the host.
        ("a=b", "https://example.com/a/", None),
        ("a=b", "https://x.shop.example.com/a/", None),
        ("a=b; Domain=example.com", "https://example.com/a/", "a=b"),
        ("a=b; domain=.Example.COM", "https://other.example.com/a/", "a=b"),
        ("a=b; Domain=shop.example.com", "https://x.shop.example.com/a/", "a=b"),
        ("a=b; Domain=", "https://x.shop.example.com/a/", None),
        ("a=b; Domain=other.example.com", URL, None),
        ("a=b; Domain=ample.com", URL, None),
        ("a=b; Domain=example.org", "https://example.org/a/", None),
        ("a=b; Domain=com", URL, None),
        ("a=b; Domain=x.shop.example.com", URL, None),
        ("a=b; Domain=example.com; Domain=com", URL, None),
        # 5.1.4: paths.
        ("a=b", "https://shop.example.com/a", "a=b"),
        ("a=b", "https://shop.example.com/a/x/y", "a=b"),
        ("a=b", "https://shop.example.com/ab", None),
        ("a=b", "https://shop.example.com/", None),
        ("a=b; Path=/a/", "https://shop.example.com/a/", "a=b"),
        ("a=b; Path=/a/", "https://shop.example.com/a", None),
        ("a=b; Path=/", "https://shop.example.com/", "a=b"),
        ("a=b; Path=x", "https://shop.example.com/a", "a=b"),
        ("a=b; Path=/" + "x" * 1_100, "https://shop.example.com/a", "a=b"),
        # Secure, and ports, which are ignored.
        ("a=b", "http://shop.example.com/a", "a=b"),
        ("a=b", "https://shop.example.com:8443/a", "a=b"),
        ("a=b; Secure", "http://shop.example.com/a", None),
        ("a=b; secure=no", URL, "a=b"),
        ("a=b; HttpOnly; SameSite=Strict; Partitioned; Nonsense=1", URL, "a=b"),
        # 4.1.3: prefixes.
        ("__Secure-a=b; Secure", URL, "__Secure-a=b"),
        ("__Secure-a=b", URL, None),
        ("__secure-a=b", URL, None),
        ("__Host-a=b; Secure; Path=/", URL, "__Host-a=b"),
        ("__Host-a=b; Secure", URL, None),
        ("__Host-a=b; Secure; Path=/; Domain=example.com", URL, None),
        ("__HOST-a=b; Path=/", URL, None),
        ("=__Host-a=b; Secure; Path=/", URL, None),
        # Expiry.
        ("a=b; Max-Age=10", URL, "a=b"),
        ("a=b; Max-Age=0", URL, None),
        ("a=b; Max-Age=-5", URL, None),
        ("a=b; Max-Age=x", URL, "a=b"),
        ("a=b; Expires=Sat, 21 Nov 2026 09:00:01 GMT", URL, "a=b"),
        ("a=b; Expires=Sat, 21 Nov 2026 09:00:00 GMT", URL, None),
        ("a=b; Expires=Sat, 21 Nov 2020 09:00:00 GMT; Max-Age=9", URL, "a=b"),
        ("a=b; Expires=soon", URL, "a=b"),
    ],
)
def test_cookie_is_sent_to_hosts_and_paths_of_its_attributes(
    line: str | bytes, to: str, header: str | None
) -> None:
    assert sent(line, to) == header


@pytest.mark.parametrize(
    ("url", "line", "kept"),
    [
        ("http://example.com/", "a=b; Secure", False),
        ("http://127.0.0.1:8081/", "a=b; Domain=127.0.0.1", True),
        ("http://127.0.0.1:8081/", "a=b; Domain=0.0.1", False),
        ("http://[::1]/", "a=b", True),
        ("http://localhost/", "a=b; Domain=localhost", True),
        ("https://me.github.io/", "a=b; Domain=github.io", False),
        ("https://github.io/", "a=b; Domain=github.io", True),
        ("https://s3.amazonaws.com/", "a=b; Domain=amazonaws.com", False),
        ("https://xn--bcher-kva.example/", "a=b; Domain=Bücher.example", True),
        ("https://example.com/", "a=b; Domain=exa mple.com", False),
    ],
)
def test_host_sets_cookie_only_for_own_domain(url: str, line: str, *, kept: bool) -> None:
    found = jar(line, url=url)
    assert bool(found) is kept
    if kept:
        assert header_of(found, url, NOW_MS) == "a=b"


def test_cookie_of_public_suffix_is_host_only() -> None:
    """RFC 6265bis, 5.7.3, step 9."""
    found = jar("a=b; Domain=github.io", url="https://github.io/")
    assert header_of(found, "https://me.github.io/", NOW_MS) is None


def test_cookie_is_not_sent_to_public_suffix_below_domain() -> None:
    found = jar("a=b; Domain=amazonaws.com", url="https://www.amazonaws.com/")
    assert header_of(found, "https://docs.amazonaws.com/", NOW_MS) == "a=b"
    assert header_of(found, "https://bucket.s3.amazonaws.com/", NOW_MS) is None


def test_cookies_are_ordered_by_path_then_age() -> None:
    found = jar("a=1; Path=/", "b=2; Path=/a", "c=3; Path=/", "a=4; Path=/a")
    assert header_of(found, URL, NOW_MS) == "b=2; a=4; a=1; c=3"
    found, refused = apply_set_cookie(
        found, [b"a=5; Path=/", b"c=; Max-Age=0; Path=/"], URL, NOW_MS
    )
    assert header_of(found, URL, NOW_MS) == "b=2; a=4; a=5"
    assert refused == 0


def test_http_answer_cannot_overlay_secure_cookie() -> None:
    """RFC 6265bis, 5.7.3, step 12."""
    secure = jar("sid=x; Secure; Path=/a", "other=y; Secure; Path=/login")
    plain = "http://shop.example.com/a/"
    found, refused = apply_set_cookie(
        secure, [b"sid=evil; Path=/a/b", b"sid=evil; Domain=example.com; Path=/a"], plain, NOW_MS
    )
    assert (found, refused) == (secure, 2)
    found, refused = apply_set_cookie(secure, [b"other=mine; Path=/", b"new=1"], plain, NOW_MS)
    assert refused == 0
    assert header_of(found, URL, NOW_MS) == "sid=x; new=1; other=mine"


def test_cookie_expires_after_400_days_at_most() -> None:
    assert sent("a=b; Max-Age=10", URL, later_ms=9_999) == "a=b"
    assert sent("a=b; Max-Age=10", URL, later_ms=10_000) is None
    assert sent("a=b; Max-Age=999999999999999", URL, later_ms=LIFE_MS_MAX - 1) == "a=b"
    assert sent("a=b; Max-Age=999999999999999", URL, later_ms=LIFE_MS_MAX) is None
    assert sent("a=b; Expires=Sat, 21 Nov 2099 09:00:00 GMT", URL, later_ms=LIFE_MS_MAX) is None


def test_jar_is_bounded_and_counts_refused_cookies() -> None:
    lines = [b"n%d=%s" % (number, b"v" * 10) for number in range(60)]
    found, refused = apply_set_cookie((), lines, URL, NOW_MS)
    assert len(found) == COOKIES_MAX
    assert refused == 10
    long = [b"n%d=%s" % (number, b"v" * 4_000) for number in range(30)]
    found, refused = apply_set_cookie((), long, URL, NOW_MS)
    assert sum(len(one.value) for one in found) <= JAR_CHARS_MAX
    assert len(found) + refused == 30
    assert found[-1].name == "n29"
    assert apply_set_cookie((), [b"", b"a=b; Domain=com"], URL, NOW_MS) == ((), 2)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun Nov  6 08:49:37 1994", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("1 january 69 1:2:3", datetime(2069, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", datetime(1970, 1, 1, tzinfo=UTC)),
        ("Thu, 31 Feb 2026 00:00:00 GMT", None),
        ("Thu, 01 Jan 1600 00:00:00 GMT", None),
        ("Thu, 01 Jan 2026 25:00:00 GMT", None),
        ("Thu, 01 Jan 2026", None),
        ("never", None),
        ("", None),
    ],
)
def test_cookie_dates_are_parsed_like_browsers(text: str, moment: datetime | None) -> None:
    """RFC 6265, 5.1.1."""
    assert moment_of(text) == (None if moment is None else round(moment.timestamp() * 1000))


def test_user_cookie_replaces_cookie_of_jar() -> None:
    assert join_cookies("sid=mine; x=1", "sid=theirs; y=2") == "sid=mine; x=1; y=2"
    assert join_cookies("sid=mine", "sid=theirs") == "sid=mine"


def test_jar_is_stored_only_after_relevant_change() -> None:
    """A later expiry is stored once it has moved by a tenth of the remaining time."""
    before = jar("a=b; Max-Age=1000")
    for seconds, expected in ((1_000, False), (1_090, False), (1_200, True), (500, True)):
        assert differs(jar(f"a=b; Max-Age={seconds}"), before, NOW_MS) is expected
    for line in ("a=c; Max-Age=1000", "a=b; Max-Age=1000; Secure", "a=b"):
        assert differs(jar(line), before, NOW_MS)
    assert not differs(before, before, NOW_MS)
    assert differs((), before, NOW_MS)


def test_jar_round_trips_and_repr_hides_values() -> None:
    found = jar(f"sid={SECRET}; Secure; Domain=example.com; Max-Age=5", "b=ü; Path=/x", "c")
    assert from_text(to_text(found)) == found
    assert SECRET not in repr(found)


# --- properties ---------------------------------------------------------------------------------

SUFFIXES = ["com", "co.uk", "github.io", "kawasaki.jp", "city.kawasaki.jp", "s3.amazonaws.com"]
LABELS = st.sampled_from(["a", "b", "www", "shop", "xn--bcher-kva"])


def names() -> list[str]:
    """Return suffixes and names of the test vectors, which contain wildcards and exceptions."""
    lines = corpus("psl", "tests.txt").read_text().splitlines()
    words = {word for line in lines if not line.startswith("//") for word in line.split()[:2]}
    found = {word.lower().strip(".") for word in words if word.isascii() and word != "null"}
    return sorted({*SUFFIXES, *found})


HOSTS = st.builds(
    lambda labels, suffix: ".".join([*labels, suffix]),
    st.lists(LABELS, max_size=3),
    st.deferred(lambda: st.sampled_from(names())),
)


@given(setter=HOSTS, asker=HOSTS, domain=st.none() | HOSTS, suffix=st.booleans())
def test_host_never_gets_cookie_of_other_site(
    setter: str, asker: str, domain: str | None, *, suffix: bool
) -> None:
    if suffix:
        domain = setter.partition(".")[2] or domain
    line = b"sid=1" if domain is None else b"sid=1; Domain=%s" % domain.encode()
    found, _ = apply_set_cookie((), [line], f"https://{setter}/", NOW_MS)
    if header_of(found, f"https://{asker}/", NOW_MS) is None or asker == setter:
        return
    assert domain is not None
    assert setter.endswith(f".{domain}") or setter == domain
    assert asker.endswith(f".{domain}") or asker == domain
    assert jar_of(f"https://{asker}/") == jar_of(f"https://{setter}/")
    assert not is_suffix(domain)


@given(st.binary(max_size=200), st.sampled_from([URL, "http://127.0.0.1/", "https://github.io/x"]))
def test_any_bytes_are_stored_or_refused(line: bytes, url: str) -> None:
    found, refused = apply_set_cookie((), [line], url, NOW_MS)
    assert len(found) + refused <= 1
    header = header_of(found, url, NOW_MS)
    assert header is None or not any(char < " " and char != "\t" for char in header)
    assert from_text(to_text(found)) == found
