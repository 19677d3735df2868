"""Main text of pages: which parts are kept, and how they are written."""

from __future__ import annotations

import time
from dataclasses import fields

import pytest

from orbweaver.parsing import main_text as main_text_module
from orbweaver.parsing.html_scan import TREE_BYTES_MAX, TREE_TAGS_MAX, is_small
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
# Page layouts of several kinds of sites around the same content.
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
def test_main_text_omits_navigation_banners_and_footers(page: str) -> None:
    found = main_text(page.format(INNER).encode())
    assert "AROUND" not in found.text + found.markdown
    assert (found.text, found.markdown) == (TEXT, MARKDOWN)
    assert all(name.startswith("omitted_") for name, _ in found.cut)


def test_main_text_keeps_page_of_navigation_only() -> None:
    assert main_text(b"<nav><p>Contents</nav>").text == "Contents"
    assert main_text(b"<body class=cookies-on><p>Contents</p></body>").markdown == "Contents"


def test_main_text_ignores_main_element_if_page_has_two() -> None:
    assert main_text(b"<main>a</main><p>b</p><main>c</main>").text == "a\n\nb\n\nc"


def test_main_text_of_unclosed_main_ends_with_page() -> None:
    assert main_text(b"<p>a</p><main><p>b").text == "b"


@pytest.mark.parametrize(("html", "text"), [(b"", ""), (b"<p></p>", ""), (b"a\0b\x01", "ab")])
def test_main_text_of_small_pages(html: bytes, text: str) -> None:
    assert main_text(html) == MainText(text=text, markdown=text)


def test_main_text_keeps_any_script() -> None:
    html = "<article><h1>見出し</h1><p>本文です。</p></article>".encode()
    assert main_text(html) == MainText(
        text="見出し\n\n本文です。", markdown="# 見出し\n\n本文です。"
    )


def test_main_text_truncates_long_page_and_counts_rest() -> None:
    html = b"<p>" + b"word " * (HTML_BYTES_MAX // 2)
    found = main_text(html)
    assert 0 < len(found.text) <= CHARS_MAX
    assert len(found.markdown) <= CHARS_MAX
    assert dict(found.cut)["text"] == len(html) - HTML_BYTES_MAX


def test_main_text_keeps_manual_page_of_900_kb() -> None:
    section = "<h2>Part {}</h2><p>" + "word " * 40 + "</p><pre>code {}</pre>"
    html = "<main>" + "".join(section.format(n, n) for n in range(3_500)) + "<p>the end</main>"
    assert 800_000 < len(html) < CONVERTED_BYTES_MAX
    found = main_text(html.encode())
    assert found.cut == ()
    assert found.markdown.count("\n## Part ") == 3_499
    assert found.markdown.endswith("```\ncode 3499\n```\n\nthe end")
    assert found.text.endswith("code 3499\n\nthe end")


def test_main_text_keeps_words_of_larger_page_without_layout() -> None:
    html = b"<h2>First</h2>" + b"<p>some words of it</p>" * 60_000 + b"<h2>Last</h2>"
    found = main_text(html)
    assert found.markdown.startswith("## First\n\nsome words of it\n\nsome")
    assert found.markdown.endswith("of it some words of it Last")
    assert len(found.text.split()) == 2 + 4 * 60_000
    ((part, number),) = found.cut
    assert (part, number) == ("layout", len(found.text) - found.text.rindex("\n") - 1)


def test_main_text_limits_tags_and_counts_rest() -> None:
    found = main_text(b"<i>x" * (WORDS_TAGS_MAX + 50))
    assert found.text == "x" * WORDS_TAGS_MAX
    assert dict(found.cut) == {"text": 50 * 4, "layout": WORDS_TAGS_MAX}


def test_main_text_keeps_deeply_nested_text() -> None:
    """The library omits elements that are more than 200 levels deep; their words are kept."""
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
def test_code_fence_names_language_of_element(html: str, fence: str) -> None:
    source = html.format("<span></span><span>a</span>\n  b")
    found = main_text(source.encode())
    assert f"```{fence}\na\n  b\n```" in found.markdown
    assert "a\n  b" in found.text


def test_markdown_links_are_absolute_if_base_is_known() -> None:
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


def test_definition_lists_mark_definitions_with_colon() -> None:
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


def test_main_text_uses_plain_words_if_library_fails(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_main_text_of_expanding_markup_uses_plain_words(html: bytes) -> None:
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
def test_main_text_of_page_read_in_place_takes_bounded_time(piece: bytes) -> None:
    """The kernel limits the child that reads larger pages (tests/unit/adapters)."""
    tags = piece.count(b"<")
    pieces = TREE_BYTES_MAX // len(piece)
    most = min(pieces, TREE_TAGS_MAX // tags) if tags else pieces
    html = next(html for number in range(most, 0, -1) if is_small(html := piece * number))
    start = time.process_time()
    main_text(html)
    assert time.process_time() - start < 1


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
def test_main_text_omits_parts_for_any_attribute_quoting(attribute: str) -> None:
    around = f"<div {attribute}>AROUND</div>"
    page = f'<body><p title="x = \'y">a = "b {around}<p>The text.</p>{around}'.encode()
    found = main_text(page)
    assert found.text == found.markdown == 'a = "b\n\nThe text.'
    assert sum(number for _, number in found.cut) == 2 * len("AROUND")


def test_selectors_omit_names_missing_from_page() -> None:
    """Each needless selector would make the library look at every element."""
    page = b'<head><p class="shared" id=rad>A banner to search.<p class="x linenos">nav, header'
    assert selectors(page)[-1] == ".linenos"
    assert len(selectors(page)) == len(selectors(b"")) + 1


def test_conversion_options_use_enumerations_of_library() -> None:
    """For a plain string, the library would try seven spellings per name and page."""
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
