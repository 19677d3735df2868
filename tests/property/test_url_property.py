"""Canonical URLs of any reference."""

from __future__ import annotations

import contextlib
from functools import partial

from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from orbweaver.model.url import URL_CHARS_MAX, canonicalize, host_of, hostname_of, resolver

# Pieces of URLs, so that half of the texts are almost URLs; and any text.
WORDS = r"""
    http https : / // /// \ . .. ./ ../ /. /.. %2e %2E %zz % ? # & = ; @ ! * ' ( ) , + ~ | ^ a b x
    A Z é ß 中 a.b example.com 1 0x7f 127.1 256 99999 xn-- xn--a - _ [ ] [::1] :80 :443 :8080
    user:pass@ utm_source=x gclid=1 &fbclid= ftp javascript mailto http:// https:// http://a/
"""
SPACES = ["", " ", "\t", "\n", "\x00", "\x1f", "\x7f", "\xa0", "\ud800", "\udfff"]
PIECES = st.sampled_from([*WORDS.split(), *SPACES])
SPELLED = st.lists(PIECES, max_size=10).map("".join)
REFERENCES = SPELLED | st.text() | st.text(st.characters(categories=["Cs", "Cc", "Zs", "Po"]))
PAGES = """
    http://a/ https://a.b:8443/c/d?e/f#g http://u:p@a/b//c ftp://a/b mailto:a b http://a//b///c
    http://127.0.0.1:65535/a/b/c/d http://a:80/b/ https://1.2.3.256/b http://a/.b/c/../d/e
"""
NONE = frozenset[str]()
BASES = st.none() | st.sampled_from(PAGES.split())


@given(REFERENCES, BASES | SPELLED)
@example("/.", "http://a/b")
@example("a/..", "http://a/b/c")
def test_canonical_url_is_canonical(reference: str, base: str | None) -> None:
    with contextlib.suppress(ValueError):
        url = canonicalize(reference, base)
        assert url.isascii()
        assert url.isprintable()
        assert len(url) <= URL_CHARS_MAX
        assert url.startswith(("http://", "https://"))
        assert "#" not in url
        assert "@" not in host_of(url)
        assert url.startswith(host_of(url) + "/")
        assert hostname_of(url) in host_of(url)
        assert canonicalize(url) == url
        assert canonicalize(url, url) == url


@given(REFERENCES, BASES)
@example("x.-y/0:8/..;a", "http://a/b")
@example("https://0.a-/x?%zz", None)
@example("../a//b", "http://a/b/c")
@example("../../a", "http://a/b//c")
@example("..//a", "http://a/b/c")
@example("https://10.0.0.010:1/", None)
@example("http://1.2.3.4:443/", None)
@example("http://1.2.3.4:0/", None)
@example("http://1.2:65536/", None)
def test_fast_path_agrees_with_parser(reference: str, base: str | None) -> None:
    expected = None
    scalar = reference.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    with contextlib.suppress(ValueError):
        parsed = URL(scalar) if base is None else URL(scalar, base)
        if parsed.protocol in {"http:", "https:"}:
            parsed.username = parsed.password = ""
            expected = parsed.href.partition("#")[0]
    for shorten in (partial(canonicalize, base=base, tracking=NONE), resolver(base, tracking=NONE)):
        try:
            url = shorten(reference)
        except ValueError:
            assert expected is None
        else:
            assert url == expected
