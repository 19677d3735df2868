"""Outlines of large pages, and the text of pages."""

from __future__ import annotations

import time

import pytest

from orbweaver.parsing.html_scan import (
    FORMATTING_MAX,
    HEAD_BYTES,
    TREE_BYTES_MAX,
    TREE_TAGS_MAX,
    is_small,
    outline,
    text_of,
)


def test_is_small_checks_bytes_and_tags() -> None:
    assert is_small(b"x" * TREE_BYTES_MAX)
    assert not is_small(b"x" * (TREE_BYTES_MAX + 1))
    assert is_small(b"<p>" * TREE_TAGS_MAX)
    assert not is_small(b"<p>" * (TREE_TAGS_MAX + 1))


def test_is_small_open_formatting_elements_count() -> None:
    """Each paragraph of the tree repeats them."""
    bold = "".join(f"<b x={place}>" for place in range(FORMATTING_MAX + 1)).encode()
    assert not is_small(bold + b"<p>y" * 800)
    assert is_small(bold[: bold.rindex(b"<")] + b"<p>y" * 800)
    assert is_small(b"<b x=1>y</b>" * (FORMATTING_MAX + 1) + b"<p>y</p>" * 300)


OUTLINES = [
    (b"", b""),
    (b"text", b""),
    (b"<p>x<a href=/1>y</a><AREA HREF='/2'>", b"<a href=/1><AREA HREF='/2'>"),
    (b"<base href=/><link rel=x><meta name=y>", b"<base href=/><link rel=x><meta name=y>"),
    (b"<!doctype html><html lang=en><HTML a=b><a b>", b"<html lang=en><a b>"),
    (b"<title>A &amp; <b>B</title ><a>", b"<title>A &amp; <b>B</title><a>"),
    (b"<Title>x<a href=/1></TITLE\n><title>y", b"<Title>x<a href=/1></TITLE><title>y>"),
    # Tags of other kinds.
    (b"<abbr><area-x><basefont><metal><links><header><titles><templates>", b""),
    (b"<p title='<a href=/1>'><p title=\"<a href=/2>\">", b""),
    (b"<p title = '<a>'><p x='\"<a>'y=\"'<a>\">", b""),
    (b"</a href='<a>'></p><!-- <a> --><!a <a>><?a <a>></3 <a>></>", b""),
    (b"<!--><a b=1><!---><a b=2><!-- --!><a b=3>", b"<a b=1><a b=2><a b=3>"),
    (b"<!-- - -- -> <a b=1> -- >--><a b=2>", b"<a b=2>"),
    (b"<3 <a b=1> < a <", b"<a b=1>"),
    (b"<<<a b=1><<", b"<a b=1>"),
    (b"<script><a></scripty><a></script ><a b=1>", b"<a b=1>"),
    (b"<SCRIPT src='>'><a></Script/><a b=1><style><a></style>", b"<a b=1>"),
    (b"<textarea><a></textarea><xmp><a></xmp><iframe><a></iframe>", b""),
    (b"<noembed><a></noembed><noframes><a></noframes><noscript><a b=1>", b"<a b=1>"),
    (b"<plaintext><a b=1>", b""),
    (b"<style><a b=1>", b""),
    (b"<template><a></template>", b"<template><a></template>"),
    # Frames count only in a frameset that is markup.
    (b"<frameset><a b=1><FRAME\nSRC=/1><frame></frameset>", b"<a b=1><a href=/1>"),
    (b"<!--<frameset>--><script><frameset ></script><frames><frame src=/x>", b"<frame src=/x>"),
    # The tag ends where the HTML tokenizer ends it.
    (b'<a x=">" y=\'>\' z=a"b>c', b'<a x=">" y=\'>\' z=a"b>'),
    (b"<a x=y='>z", b"<a x=y='>"),
    (b"<a x = \n'>' >z", b"<a x = \n'>' >"),
    (b"<a/href=/x/>y", b"<a/href=/x/>"),
    # Unfinished tags do not count, and hide the rest of the page.
    (b"<a href=/1><a href=/2", b"<a href=/1>"),
    (b"<a href='/1> <a href=/2>", b""),
    (b"<p title='> <a href=/2>", b""),
    (b"<!-- <a href=/2>", b""),
    (b"</", b""),
]  # fmt: skip


@pytest.mark.parametrize(("html", "kept"), OUTLINES)
def test_outline_keeps_relevant_tags_unchanged(html: bytes, kept: bytes) -> None:
    assert outline(html) == kept


def test_outline_limits_attributes_per_tag() -> None:
    wide = b"<a" + b" " * 5_000 + b"href='/" + b"x" * 5_000 + b"'" + b" y" * 500 + b">"
    assert outline(wide).startswith(wide[:10_020])
    assert len(outline(wide)) < 10_300
    many = b"<a " + b" ".join(b"a%d=%d" % (i, i) for i in range(100)) + b" href=/x>"
    assert outline(many) == b"<a " + b" ".join(b"a%d=%d" % (i, i) for i in range(32)) + b" a32>"
    assert outline(b"<html " + b"x" * HEAD_BYTES + b"><a b=1>") == b"<a b=1>"


TEXTS = [
    ("", ""),
    ("  a\n\tb  ", "a b"),
    ("<title>no</title><p>One</p><p>two<br>three", "One two three"),
    ("<b>b</b>old<!-- no -->er <a href='>'>link</a>s", "bolder links"),
    ("x<script>no</script>y<style>no</style>z<textarea>no</textarea>", "x y z"),
    ("&lt;p&gt; &amp;amp; &eacute;&#233;&#xe9; &nbsp;x &loom; &", "<p> &amp; ééé x &loom; &"),
    ("1 < 2 > 3 <3 </ x>y", "1 < 2 > 3 <3 y"),
    ("a\0b\u2003c\xa0d", "ab c d"),
    ("&#99999999999; &#" + "9" * 10_000 + "; &#x" + "f" * 5_000 + "&#0;", "� � ��"),
    ("<td>a</td><td>b</td><li>c<li>d", "a b c d"),
    ("x<p title='", "x"),
    ("x<!-- y", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("html", "text"), TEXTS)
def test_text_of_returns_visible_text(html: str, text: str) -> None:
    assert text_of(html.encode()) == text


def test_text_of_invalid_utf8_does_not_raise() -> None:
    assert text_of(b"\xffx") == "\ufffdx"


HOSTILE = [
    b"<div>" * 200_000,
    b"<" * 1_000_000,
    b"<x " * 300_000,
    b"<a " * 300_000,
    b"<a x='" * 200_000,
    b"<a x=" + b'"' * 1_000_000,
    b"<a " + b"= " * 500_000,
    b"<!-" + b"-" * 1_000_000,
    b"<!--" + b"-!" * 500_000,
    b"<!--" * 250_000,
    b"</" * 500_000,
    b"<title>" * 150_000,
    b"<script></scrip" * 70_000,
    b"<textarea>" + b"</textare" * 100_000,
    b"<html " * 150_000,
    b"&" * 1_000_000,
    b"&#" + b"9" * 1_000_000,
    b" " * 1_000_000,
]


@pytest.mark.parametrize("html", HOSTILE, ids=lambda html: repr(html[:16]))
def test_megabyte_of_any_markup_is_scanned_in_linear_time(html: bytes) -> None:
    before = time.process_time()
    outline(html)
    text_of(html)
    assert time.process_time() - before < 10
