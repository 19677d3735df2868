"""The words of a page, for comparison with other pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing.main_text import (
    BEGINNING_BYTES_MAX,
    PLAIN_BYTES_MAX,
    PLAIN_TAGS_MAX,
    plain_words,
)

BODY = "<h1>Great frobs</h1><p>Run <code>frob</code>, <b>all</b> &amp; more.</p><p>Twice.</p>"
AROUND = (
    "<nav>Home</nav><aside><a href=/o>Other</a></aside>"
    "<form>Search<select><option>One</select></form>"
    "<script>var x = 1;</script><style>p { color: red }</style><footer>About</footer>"
    '<div class="navigation"><ul><li>Shop</ul></div><p><a href="#main">Skip to content</a></p>'
)
WORDS = ["Great", "frobs", "Run", "frob,", "all", "&", "more.", "Twice."]
SAID = ("one", "two")
PARTS = st.sampled_from(
    [
        *("<nav>", "</nav>", "<form>", "</form>", "<p>", "<div>", "</div>", "<table>", "<td>"),
        *("<script>", "</script>", "<noscript>", "</noscript>", "<template>", "<select>", "<svg>"),
        *('<nav class="navigation" role=navigation>', '<div id="header" class="header menu">'),
        *("<b>", "</b>", "<a>", "</table>", "one ", "two ", "<!--", "-->", "<body>"),
    ]
)


@pytest.mark.parametrize("around", ["<main>{}</main>", "<body>{}</body>", "{}"])
def test_plain_words_are_words_of_main_text(around: str) -> None:
    assert plain_words(around.format(BODY + AROUND).encode()).split() == WORDS


def test_plain_words_of_page_without_main_text_are_its_controls() -> None:
    """Otherwise, all such pages would look equal."""
    assert (
        plain_words(b"<nav><a href=/>Home</a></nav><form><button>Search</button></form>")
        == "Home Search"
    )
    assert plain_words(b"") == ""
    assert plain_words(b"<frameset>") == ""


def test_plain_words_reads_bounded_beginning_of_page() -> None:
    long = b"word " * PLAIN_BYTES_MAX
    assert len(plain_words(b"<p>" + long)) < PLAIN_BYTES_MAX
    assert len(plain_words(b"<i>a</i>" * PLAIN_TAGS_MAX).split()) <= PLAIN_TAGS_MAX / 2 + 1
    assert plain_words(b"<p>" * PLAIN_TAGS_MAX + b"<p>behind").split() == []


def test_plain_words_finds_main_part_behind_long_menus() -> None:
    menu = b"<nav>" + b"<a href=x>Menu</a> " * 4_000 + b"</nav>"
    assert PLAIN_BYTES_MAX < len(menu) < BEGINNING_BYTES_MAX
    main = b"<main><p>" + b" ".join(word.encode() for word in WORDS) + b"</main>"
    assert plain_words(menu + main).split() == WORDS
    assert plain_words(menu * 4 + main).split() != WORDS


@given(st.lists(PARTS, max_size=80).map("".join))
def test_nested_omitted_elements_are_removed_once(html: str) -> None:
    page = html.encode()
    tree = LexborHTMLParser(page)
    order = {node.mem_id: at for at, node in enumerate(tree.root.traverse())} if tree.root else {}
    found = [order[node.mem_id] for node in tree.css("nav, form, .navigation, script, #header")]
    assert found == sorted(found)
    words = plain_words(page)
    assert set(words.replace("-->", " ").replace("<!--", " ").split()) <= set(SAID)
