"""Controls and line numbers of common web software are omitted, and similar text is kept."""

from __future__ import annotations

import pytest

from orbweaver.parsing.main_text import MainText, main_text, without_controls
from tests.costs import within

CODE = MainText(text="def f(x):\n    return x", markdown="```\ndef f(x):\n    return x\n```")
MEDIAWIKI = """
<div id="content" class="mw-body" role="main"><h1 id="firstHeading">Frobs</h1>
<div id="siteSub" class="noprint">From Frobwiki</div>
<a class="mw-jump-link" href="#mw-head">Jump to navigation</a>
<a class="mw-jump-link" href="#searchInput">Jump to search</a>
<p>A frob is a thing.</p>
<h2><span class="mw-headline" id="Use">Use</span><span class="mw-editsection">
<span class="mw-editsection-bracket">[</span><a href="/index.php?action=edit&amp;section=1">edit</a>
<span class="mw-editsection-bracket">]</span></span></h2><p>It frobs.</p>
<div class="printfooter">Retrieved from "<a href="/wiki/Frobs">/wiki/Frobs</a>"</div></div>
<div id="mw-navigation"><h2>Navigation menu</h2><div id="mw-head"><nav>Log in</nav></div></div>
"""
WORDPRESS = """
<a class="skip-link screen-reader-text" href="#content">Skip to content</a>
<div id="content"><p>A post.</p><h2>One comment</h2><ol><li><article><p>Good.</p>
<div class="reply"><a rel="nofollow" href="/?replytocom=1#respond">Reply</a></div></article></li>
</ol><div id="respond" class="comment-respond"><h3>Leave a comment</h3><form>x</form></div></div>
"""
CGIT = """<table summary='blob content' class='blob'>
<tr><td class='linenumbers'><pre><a id='n1' href='#n1'>1</a>
<a id='n2' href='#n2'>2</a>
</pre></td>
<td class='lines'><pre><code>def f(x):
    return x
</code></pre></td></tr></table>"""
PYGMENTS = """<div class="highlight"><table class="highlighttable"><tr><td class="linenos">
<div class="linenodiv"><pre><span class="normal">1</span>
<span class="normal">2</span></pre></div></td><td class="code"><div><pre>def f(x):
    return x</pre></div></td></tr></table></div>"""
INLINE = """<div class="highlight"><pre><span class="linenos">1</span>def f(x):
<span class="linenos">2</span>    return x</pre></div>"""
HGWEB = """<pre><a href="#l1" id="l1">     1</a> def f(x):
<a href="#l2" id="l2">     2</a>     return x</pre>"""
GITWEB = """<div class="page_body">
<div class="pre"><a id="l1" href="#l1" class="linenr">   1</a> import os</div>
<div class="pre"><a id="l2" href="#l2" class="linenr">   2</a> print(os)</div></div>"""
TRAC = """<table class="code"><thead><tr><th class="lineno">Line</th><th class="content"> </th></tr>
</thead><tbody><tr><th id="L1"><a href="#L1">1</a></th><td>import os</td></tr>
<tr><th id="L2"><a href="#L2">2</a></th><td>print(os)</td></tr></tbody></table>"""


@pytest.mark.parametrize("html", [CGIT, PYGMENTS, INLINE, HGWEB])
def test_code_with_line_numbers_keeps_only_code(html: str) -> None:
    found = main_text(html.encode())
    assert (found.text, found.markdown) == (CODE.text, CODE.markdown)


@pytest.mark.parametrize("html", [GITWEB, TRAC])
def test_code_lines_in_own_elements_lose_line_numbers(html: str) -> None:
    assert [line for line in main_text(html.encode()).text.split("\n") if line] == [
        "import os",
        "print(os)",
    ]


def test_wiki_page_keeps_only_article() -> None:
    found = main_text(MEDIAWIKI.encode())
    assert found.text == "Frobs\n\nA frob is a thing.\n\nUse\n\nIt frobs."
    assert found.markdown == "# Frobs\n\nA frob is a thing.\n\n## Use\n\nIt frobs."


def test_comments_are_kept_without_reply_controls() -> None:
    assert main_text(WORDPRESS.encode()).text == "A post.\n\nOne comment\n\n1. Good."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ul><li><a href=x>Reply</a></li><li>b</li></ul>", "- b"),
        ("<p><a href='#c'><span>Skip directly to content</span></a></p><p>b", "b"),
        ("<p>Press <a href=x>Reply</a> to answer.</p>", "Press Reply to answer."),
        ("<p><a href=/x>Skip to main content</a> of it</p>", "Skip to main content of it"),
        ("<p><a href=#c>Jump to conclusions</p>", "Jump to conclusions"),
        ("<p>A note<sup><a href=#fn1>1</a></sup></p>", "A note[1]"),
        ("<p><a href=#page2>2</a> <a href=#l3>2</a> <a href=/l2>2</a></p>", "2 2 2"),
        ("<table><tr><td>2001<br>2002</td><td>x</td></tr></table>", "2001\n2002\tx"),
        ("<table><tr><td><pre>7\n9</pre></td><td><pre>x</pre></td></tr></table>", "7\n9\tx"),
        ("<table><tr><td>1</td><td>x</td></tr><tr><td>2</td><td>y</td></tr></table>", "1\tx\n2\ty"),
    ],
)
def test_text_resembling_controls_is_kept(html: str, text: str) -> None:
    assert main_text(html.encode()).text == text


def test_code_within_layout_table_keeps_outer_table() -> None:
    html = f"<table><tr><td>menu</td><td>{CGIT}</td><td>right</td></tr></table><p>end</p>"
    assert without_controls(html.encode()).count(b"<table") == 2
    assert main_text(html.encode()).text.endswith("\tright\n\nend")


@pytest.mark.parametrize(
    "piece",
    [
        b"<a href=#l1>1</a>",
        b"> " * 10,
        b">skip to ",
        b"<a x>Reply</a> ",
        b"<table><tr><td><pre>1",
        b"<table><tr><td><pre>1</pre></td><td>",
        b"<table><tr><td>" + b"1 " * 1_000,
        b"<a " + b"href=# " * 80 + b">Skip to x</a>",
    ],
)
def test_removing_controls_is_fast_for_hostile_page(piece: bytes) -> None:
    assert within(1, lambda: without_controls(piece * (2**20 // len(piece))))
