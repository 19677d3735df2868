"""Main texts of any page."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.parsing.main_text import CHARS_MAX, main_text

PIECES = r"""
<p> </p> <div> </div> <main> </main> <nav> </nav> <h1> </h1> <ul> <li> </ul> <ol> <table> <tr> <td>
<th> </table> <pre> </pre> <code> </code> <blockquote> </blockquote> <b> </b> <em> </a>
<a_href="/1">
<img_src=x_alt="y"> <br> <hr> <!--_x_--> <!doctype_html> <footer> <script> </script> <style>
</style> <dl> <dt> <dd> <svg> </svg> <math> <select> <option> <form> <input> <td_colspan=9>
word _ text & &amp; &lt; &#0; &#x110000; * _ ` # | [ ] \ é 漢字 \0 \x01 \n \t
"""
WORDS = [
    word.replace("_", " ").replace(r"\0", "\0").replace(r"\x01", "\1").replace(r"\n", "\n")
    for word in PIECES.split()
]
MARKUP = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
TAG = re.compile(r"</?(?:p|div|main|nav|h1|ul|li|table|tr|td|blockquote|footer|hr)\b[^>]*>")


@given(st.binary() | MARKUP.map(str.encode))
def test_any_bytes_have_bounded_main_text(html: bytes) -> None:
    found = main_text(html)
    assert main_text(html) == found
    for text in (found.text, found.markdown):
        assert len(text) <= CHARS_MAX
        assert text == text.strip("\n ")
        assert "\n\n\n" not in text
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
        text.encode()


@given(MARKUP.filter(lambda html: "<style" not in html and "<script" not in html))
def test_main_text_has_no_tags(html: str) -> None:
    assert TAG.search(main_text(html.encode()).text) is None


@given(st.lists(st.text("abcé漢 "), min_size=1, max_size=5))
def test_main_text_of_main_text_is_same(paragraphs: list[str]) -> None:
    html = "".join(f"<p>{words}</p>" for words in paragraphs)
    once = main_text(html.encode()).text
    again = main_text("".join(f"<p>{words}</p>" for words in once.split("\n\n")).encode()).text
    assert again == once
