"""The main text of pages: what is kept, what is left out, and how it is written."""

from __future__ import annotations

import time
from dataclasses import fields

import pytest

from orbweaver.parsing import main_text as main_text_module
from orbweaver.parsing.main_part import selectors
from orbweaver.parsing.main_text import (
    CHARS_MAX,
    CONVERTED_BYTES_MAX,
    HTML_BYTES_MAX,
    WORDS_TAGS_MAX,
    MainText,
    main_text,
)

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
    assert (found.text, found.markdown) == (TEXT, MARKDOWN)
    assert all(name.startswith("omitted_") for name, _ in found.cut)


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
    """What is read of a page is bounded, and what comes of it; that is counted."""
    html = b"<p>" + b"word " * (HTML_BYTES_MAX // 2)
    found = main_text(html)
    assert 0 < len(found.text) <= CHARS_MAX
    assert len(found.markdown) <= CHARS_MAX
    assert dict(found.cut)["text"] == len(html) - HTML_BYTES_MAX


def test_a_page_of_a_manual_is_whole() -> None:
    """A page of 900 KB has its last heading, its last code and its last word."""
    section = "<h2>Part {}</h2><p>" + "word " * 40 + "</p><pre>code {}</pre>"
    html = "<main>" + "".join(section.format(n, n) for n in range(3_500)) + "<p>the end</main>"
    assert 800_000 < len(html) < CONVERTED_BYTES_MAX
    found = main_text(html.encode())
    assert found.cut == ()
    assert found.markdown.count("\n## Part ") == 3_499
    assert found.markdown.endswith("```\ncode 3499\n```\n\nthe end")
    assert found.text.endswith("code 3499\n\nthe end")


def test_of_larger_pages_all_words_stay() -> None:
    """What stands behind the first half mebibyte has its words, and says so."""
    html = b"<h2>First</h2>" + b"<p>some words of it</p>" * 60_000 + b"<h2>Last</h2>"
    found = main_text(html)
    assert found.markdown.startswith("## First\n\nsome words of it\n\nsome")
    assert found.markdown.endswith("of it some words of it Last")
    assert len(found.text.split()) == 2 + 4 * 60_000
    ((part, number),) = found.cut
    assert (part, number) == ("layout", len(found.text) - found.text.rindex("\n") - 1)


def test_tags_beyond_the_bound_are_counted() -> None:
    """Of a page of tags as much is read as its words take, and the rest is counted in bytes."""
    found = main_text(b"<i>x" * (WORDS_TAGS_MAX + 50))
    assert found.text == "x" * WORDS_TAGS_MAX
    assert dict(found.cut) == {"text": 50 * 4, "layout": WORDS_TAGS_MAX}


def test_what_lies_deep_is_not_lost() -> None:
    """The library leaves out what lies more than 200 elements deep; its words stay."""
    found = main_text(b"<div>" * 220 + b"deep</div>" + b"</div>" * 219 + b"<p>after")
    assert (found.text, found.cut) == ("deep after", (("layout", 10),))


@pytest.mark.parametrize(
    ("html", "fence"),
    [
        ('<div class="highlight-python3 a"><div class="highlight"><pre>{}</pre>', "python3"),
        ('<div class="highlight highlight-source-shell"><pre>{}</pre></div>', "shell"),
        ('<div class="language-c++ highlighter-rouge"><div class="highlight"><pre>{}</pre>', "c++"),
        ('<pre><code class="language-rust">{}</code></pre>', "rust"),
        ('<pre class="language-js">{}</pre>', "js"),
        ('<div class="highlight-default notranslate"><pre>{}</pre></div>', ""),
        ('<div class="highlight"><pre>{}</pre></div>', ""),
        ('<div title="language-x y"><p>a</p></div><pre>{}</pre>', ""),
    ],
)  # fmt: skip
def test_fences_name_the_language(html: str, fence: str) -> None:
    """As `pre`, `code` or an element around them does; of what names none, none."""
    source = html.format("<span></span><span>a</span>\n  b")
    found = main_text(source.encode())
    assert f"```{fence}\na\n  b\n```" in found.markdown
    assert "a\n  b" in found.text


def test_links_are_absolute_where_the_base_is_known() -> None:
    """Links and images are of use out of their place; what is no path stays."""
    html = (
        b'<a href="../b?q#f">b</a> <a href="#g">g</a> <a href="mailto:a@b.cc">m</a>'
        b" <img src=i.png alt=i>"
    )
    said = main_text(html, "https://example.com/x/y/").markdown
    assert "[b](https://example.com/x/b?q#f)" in said
    assert "[g](https://example.com/x/y/#g)" in said
    assert "[m](mailto:a@b.cc)" in said
    assert "![i](https://example.com/x/y/i.png)" in said
    assert "[b](../b?q#f)" in main_text(html).markdown


def test_definition_lists_say_what_is_defined() -> None:
    """A definition begins with a colon, unless with more than a paragraph; the text has none."""
    html = (
        "<dl><dt><code>a</code></dt><dd><p>one</p><p>two</p></dd><dt>b</dt><dd class=x>plain</dd>"
        "<dt>c</dt><dd><pre>code</pre></dd><dt>d</dt><dd></dd></dl><p>: after\ufdd0</p>"
    )
    found = main_text(html.encode())
    assert found.markdown == (
        "`a`\n\n: one\n\ntwo\n\nb\n\n: plain\n\nc\n\n```\ncode\n```\n\nd\n\n: after"
    )
    quoted = main_text(b"<blockquote><dl><dt>a</dt><dd><p>one</p></dd></dl></blockquote>")
    assert quoted.markdown == "> a\n>\n> : one"
    assert found.text.startswith("a\n\none\n\ntwo\n\nb\n\nplain\n\nc\n\ncode\n\nd")


def test_what_the_library_refuses_has_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failure is no failure of the page."""
    monkeypatch.setattr(main_text_module, "_converted", lambda *_, **__: None)
    found = main_text(b"<main><p>a</p><p>b</p></main>")
    assert found == MainText(text="a b", markdown="a b", cut=(("layout", 3),))


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


@pytest.mark.parametrize(
    "attribute",
    [
        "class=ad",
        "class='x ad'",
        'CLASS = "x\ty\nad"',
        'id="navbar"',
        "id='cookie-notice'",
        'class="related-links x"',
        "role=search",
        'role="&#98;anner"',
        'title="a = b" class="share"',
    ],
)
def test_what_is_around_a_text_is_told_however_it_is_written(attribute: str) -> None:
    """The value of an attribute may stand in quotes of either kind, in none, or as references."""
    around = f"<div {attribute}>AROUND</div>"
    page = f'<body><p title="x = \'y">a = "b {around}<p>The text.</p>{around}'.encode()
    found = main_text(page)
    assert found.text == found.markdown == 'a = "b\n\nThe text.'
    assert sum(number for _, number in found.cut) == 2 * len("AROUND")


def test_the_library_is_not_asked_for_what_a_page_has_not() -> None:
    """Each of these selectors would have it look at every element."""
    page = b'<head><p class="shared" id=rad>A banner to search.<p class="x linenos">nav, header'
    assert selectors(page)[-1] == ".linenos"
    assert len(selectors(page)) == len(selectors(b"")) + 1


def test_choices_are_given_as_the_library_has_them() -> None:
    """It would try seven spellings of each name, for each page."""
    options = main_text_module._options(plain=False)
    given = {
        field.name for field in fields(options) if isinstance(getattr(options, field.name), str)
    }
    assert given == {
        "bullets",
        "strong_em_symbol",
        "code_language",
        "sub_symbol",
        "sup_symbol",
        "encoding",
    }
    assert options.preprocessing is not None
    assert not isinstance(options.preprocessing.preset, str)
