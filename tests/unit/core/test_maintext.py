"""The main text of pages: what is kept, what is left out, and how it is written."""

from __future__ import annotations

import time

import pytest

from orbweaver.core import maintext
from orbweaver.core.maintext import CHARS_MAX, HTML_BYTES_MAX, MainText, main_text

NAV = '<ul><li><a href="/">Home AROUND</a></li><li><a href="/shop">Shop AROUND</a></li></ul>'
INNER = """
<h1>Great frobs</h1>
<p>Run <code>frob --all</code>, read <a href="/manual">the manual</a>: <strong>all</strong>.</p>
<h2>Steps</h2>
<pre><code class="language-python">def frob(x):
    return x + 1
</code></pre>
<ul><li>first<ul><li>inner</li></ul></li></ul>
<ol><li>one</li><li>two</li></ol>
<table><tr><th>Name</th><th>Price</th></tr><tr><td>Pear</td><td>2.30 &amp; more</td></tr></table>
<blockquote><p>Remember.</p></blockquote>
"""
MARKDOWN = """\
# Great frobs

Run `frob --all`, read [the manual](/manual): **all**.

## Steps

```python
def frob(x):
    return x + 1
```

- first
  - inner

1. one
2. two

| Name | Price |
| --- | --- |
| Pear | 2.30 & more |

> Remember."""
TEXT = """\
Great frobs

Run frob --all, read the manual: all.

Steps

def frob(x):
    return x + 1

- first
- inner

1. one
2. two

Name\tPrice
Pear\t2.30 & more

Remember."""
# A page around what is meant, each as another kind of site has it.
PAGES = [
    "<main>{}</main>",
    f"<header>{NAV} AROUND</header><main>{{}}</main><footer>AROUND</footer>",
    f"<nav>{NAV}</nav><article>{{}}</article><aside>AROUND</aside>",
    f'<div role="navigation">{NAV}</div><div role=main>{{}}</div><div class="sidebar">AROUND</div>',
    f'<div id="header">{NAV}</div><div>{{}}</div><div class="related-posts">AROUND</div>',
    '<div class="cookie-banner">AROUND</div>{}<div id="footer" class="footer">AROUND</div>',
    "<script>AROUND</script><style>AROUND</style>{}<form>AROUND <button>AROUND</button></form>",
    '<!doctype html><title>AROUND</title>{}<div class="newsletter-box">AROUND</div>',
    '<div class="social-links">AROUND</div><div class="share">AROUND</div>{}',
]


@pytest.mark.parametrize("page", PAGES)
def test_what_is_around_a_text_is_left_out(page: str) -> None:
    """Navigation, banners and footers go, and all of the text stays."""
    found = main_text(page.format(INNER).encode())
    assert "AROUND" not in found.text + found.markdown
    assert found == MainText(text=TEXT, markdown=MARKDOWN)


def test_where_nothing_would_be_left_all_stays() -> None:
    """A page that is all navigation has a text as well."""
    assert main_text(b"<nav><p>Contents</nav>").text == "Contents"
    assert main_text(b"<body class=cookies-on><p>Contents</p></body>").markdown == "Contents"


def test_two_mains_are_none() -> None:
    """What a page has twice does not tell what it is about."""
    assert main_text(b"<main>a</main><p>b</p><main>c</main>").text == "a\n\nb\n\nc"


def test_a_main_that_does_not_end() -> None:
    """The end of a page ends it."""
    assert main_text(b"<p>a</p><main><p>b").text == "b"


@pytest.mark.parametrize(("html", "text"), [(b"", ""), (b"<p></p>", ""), (b"a\0b\x01", "ab")])
def test_small_pages(html: bytes, text: str) -> None:
    """Nothing is nothing; what is no character is left out."""
    assert main_text(html) == MainText(text=text, markdown=text)


def test_any_script_is_a_text() -> None:
    """Words in other scripts are kept as they are."""
    html = "<article><h1>見出し</h1><p>本文です。</p></article>".encode()
    assert main_text(html) == MainText(
        text="見出し\n\n本文です。", markdown="# 見出し\n\n本文です。"
    )


def test_long_pages_are_cut() -> None:
    """What is read of a page is bounded, and what comes of it."""
    html = b"<p>" + b"word " * (HTML_BYTES_MAX // 2)
    found = main_text(html)
    assert 0 < len(found.text) <= CHARS_MAX
    assert len(found.markdown) <= CHARS_MAX


def test_what_the_library_refuses_has_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failure is no failure of the page."""
    monkeypatch.setattr(maintext, "_converted", lambda *_, **__: None)
    assert main_text(b"<main><p>a</p><p>b</p></main>") == MainText(text="a b", markdown="a b")


MEALS = [
    b"<blockquote>" * 21 + b"<p>x",
    b"<ul><li>" * 21 + b"x",
    b"<table><td>x" * 21,
    b"<table>" + b"<tr>" * 250 + b"<td>x" * 1_000,
    b"<table>" + b'<tr><td colspan="1000">x' * 250,
    b"<p>x" * 60_001,
    b"<p>x&amp;" * 20_001,
]


@pytest.mark.parametrize(
    "html", MEALS, ids=["quotes", "lists", "nested", "cells", "spans", "tags", "refs"]
)
def test_what_would_be_made_much_of_has_its_words(html: bytes) -> None:
    """Shapes that grow when they are written have their words alone."""
    found = main_text(html)
    assert found.text == found.markdown
    assert "x" in found.text
    assert "\n" not in found.text


HOSTILE = [
    *(b"<div>", b"<b>", b"<ul><li>", b"<blockquote>", b"<table><tr><td>", b"<p>word ", b"<"),
    *(b"&", b"& a", b"&amp;", b"<br>", b"<!doctype", b"<p class='a' ", b"<a href=x>", b"<td>x"),
    *(b"<li>x", b"<h1>x", b"<dt>x<dd>y", b"<code>`</code>", b"<pre>", b"<script>", b"<!--", b"*"),
    *(b"<p><b><i>x</p>", b"<select><option>", b"<svg>", b"<nav>", b"<table>x", b"</p>"),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: piece.decode())
def test_time_is_bounded(piece: bytes) -> None:
    """Half a megabyte of anything is read within seconds, on a slow machine."""
    html = b"<p>" + piece * (HTML_BYTES_MAX // len(piece))
    start = time.process_time()
    main_text(html)
    assert time.process_time() - start < 5
