"""Charset of a page: where it is found, and how the page is decoded with it."""

from __future__ import annotations

import codecs

import pytest
from webencodings.labels import LABELS

from orbweaver.parsing.charset import PRESCAN_BYTES, decode, encode_query, from_header, prescan

LATE = b" " * (PRESCAN_BYTES - 20)

EVIDENCE = [
    # A byte order mark wins over the header, the header over the page, and the page over its
    # bytes.
    (codecs.BOM_UTF8 + b'<meta charset="koi8-r">\xc3\xa9', "text/html; charset=koi8-r", "utf-8"),
    (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "text/html; charset=utf-8", "utf-16le"),
    (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), None, "utf-16be"),
    (b'<meta charset="utf-8">\xe9', "text/html; charset=windows-1251", "windows-1251"),
    (b"<meta charset=koi8-r>\xc3\xa9", "text/html", "koi8-r"),
    (b"<meta charset=koi8-r>", "text/html; charset=loom", "koi8-r"),
    (b"<meta charset=loom>\xc3\xa9", None, "utf-8"),
    (b"<meta charset=loom>\xe9", None, "windows-1252"),
    (b"plain", None, "utf-8"),
    (b"", "", "utf-8"),
    # Labels of the Encoding Standard.
    (b"\xe9", "text/html;charset=ISO-8859-1", "windows-1252"),
    (b"\xe9", "text/html;charset=us-ascii", "windows-1252"),
    (b"", "text/html;charset=UTF8", "utf-8"),
    (b"", "text/html;charset=sjis", "shift_jis"),
    (b"", "text/html;charset=gb2312", "gbk"),
    (b"", "text/html;charset=iso-2022-kr", "replacement"),
    (b"<meta charset=utf-16>", None, "utf-8"),
    (b"<meta charset=x-user-defined>", None, "windows-1252"),
    # The declaration in the page.
    (b'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; CHARSET=koi8-u">', None, "koi8-u"),
    (b"<meta content=\"a;charset='koi8-u'\" http-equiv=content-type>", None, "koi8-u"),
    (b"<meta content='a;charset = \"koi8-u\"' http-equiv=content-type>", None, "koi8-u"),
    (b"<meta http-equiv=content-type content=charset=koi8-u>", None, "koi8-u"),
    (b"<meta content='text/html; charset=koi8-u'>", None, "utf-8"),
    (b"<meta http-equiv=refresh content='charset=koi8-u'>", None, "utf-8"),
    (b"<meta http-equiv=content-type content='charset=\"koi8-u'>", None, "utf-8"),
    (b"<meta http-equiv=content-type content='charset'>", None, "utf-8"),
    (b"<meta charset=koi8-r charset=koi8-u content='charset=utf-8'>", None, "koi8-r"),
    (b"<meta charset=loom><meta charset=koi8-r>", None, "koi8-r"),
    (b"<meta/charset/=/koi8-r><meta charset = koi8-u >", None, "koi8-u"),
    (b"<meta =charset charset=koi8-r>", None, "koi8-r"),
    (b"<meta charset= ><meta charset=koi8-r>", None, "koi8-r"),
    (b"<metacharset=koi8-r>", None, "utf-8"),
    (b"<!-- <meta charset=koi8-r> --><p title='<meta charset=koi8-u>'>", None, "utf-8"),
    (b"<!--><meta charset=koi8-r>", None, "koi8-r"),
    (b"<!-- <meta charset=koi8-r>", None, "utf-8"),
    (b"<!doctype x><?x?></><3 <b a='>' c></b x='>'><meta charset=koi8-r>", None, "koi8-r"),
    (b"<!x <meta charset=koi8-r", None, "utf-8"),
    (b"<meta charset=koi8-r", None, "utf-8"),
    (b"<meta charset='koi8-r", None, "utf-8"),
    (LATE + b"<meta charset=koi8-r>", None, "utf-8"),
    (LATE[100:] + b"<meta charset=koi8-r>", None, "koi8-r"),
    (b"<?xml version='1.0' encoding = \"koi8-r\"?><html>", None, "koi8-r"),
    (b"<?xml version='1.0' encoding='utf-16'?><html>", None, "utf-8"),
    (b"<?xml version='1.0' encoding='koi8-r\"?><html>", None, "utf-8"),
    ("Grüße aus Köln".encode() + b"\xff", None, "utf-8"),
    ("Grüße aus Köln".encode() + b"\xff\xcf", None, "windows-1252"),
    ("“Grüße” aus Köln".encode("cp1252"), None, "windows-1252"),
    (b"<?xml encoding='koi8-r'?><meta charset=koi8-u>", None, "koi8-u"),
]


@pytest.mark.parametrize(("body", "content_type", "name"), EVIDENCE)
def test_decode_prefers_mark_then_header_then_page_then_bytes(
    body: bytes, content_type: str | None, name: str
) -> None:
    assert decode(body, content_type)[0] == name


@pytest.mark.parametrize(
    ("content_type", "name"),
    [
        ("text/html; charset=koi8-r", "koi8-r"),
        ("text/html;CHARSET = 'KOI8-R' ; x=y", "koi8-r"),
        ('text/html; x="y"; charset="koi8-r"', "koi8-r"),
        ("text/html; charset=koi8-r; charset=utf-8", "koi8-r"),
        ("text/html; charset=", None),
        ('text/html; charset=""', None),
        ("text/html; charset=é\x00", None),
        ("text/html", None),
    ],
)
def test_from_header_reads_charset_parameter(content_type: str, name: str | None) -> None:
    assert from_header(content_type) == name


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("été “œuvre” €", "cp1252", "iso-8859-1"),
        ("книга", "koi8-r", "koi8-r"),
        ("図書館 ①", "cp932", "shift_jis"),
        ("책 똠", "cp949", "euc-kr"),
        ("书店 㐀", "gb18030", "gb2312"),
        ("機織り", "iso2022_jp", "iso-2022-jp"),
        ("βιβλίο", "utf-16-be", "utf-16be"),
        ("\uf7ff", "latin-1", "x-user-defined"),
    ],
)
def test_decode_returns_page_in_utf8(text: str, codec: str, label: str) -> None:
    body = text.encode(codec) if codec != "latin-1" else b"\xff"
    assert decode(body, f"text/html; charset={label}")[1].decode() == text


def test_decode_removes_one_byte_order_mark() -> None:
    assert decode(codecs.BOM_UTF8 * 2 + b"x", None) == ("utf-8", codecs.BOM_UTF8 + b"x")
    assert decode(codecs.BOM_UTF16_LE + b"x\0", None) == ("utf-16le", b"x")


def test_decode_replaces_invalid_bytes_in_every_charset() -> None:
    assert decode(b"a\xc3\xff\xe4\xb8", "text/html; charset=utf-8")[1].decode() == "a���"
    assert decode(codecs.BOM_UTF16_LE + b"\x00\xd8x\0", None)[1].decode() == "�x"
    everything = bytes(range(256)) * 3 + b"\x1b$B\x1b(J\x80\x8e\x8f"
    for label in LABELS:
        name, html = decode(everything, f"text/html; charset={label}")
        assert name
        assert html.decode()


def test_encode_query_uses_charset_of_page() -> None:
    reference = "/é?é=œ&x=%zz é#"
    assert encode_query(reference, "windows-1252") == "/é?%E9=%9C&x=%zz %E9#"
    assert encode_query("?書=&x", "shift_jis") == "?%8F%91=&x"
    assert encode_query("?表", "shift_jis") == "?%95\\"
    assert encode_query("?ж", "windows-1252") == "?%26%231078%3B"
    assert encode_query("?书", "gbk") == "?%CA%E9"
    for unchanged in ("utf-8", "utf-16le", "replacement", "x-user-defined"):
        assert encode_query(reference, unchanged) == reference
    assert encode_query("/é", "koi8-r") == "/é"
    assert encode_query("/é?x", "koi8-r") == "/é?x"


def test_codec_differences_follow_encoding_standard() -> None:
    """In gb18030, 0xA3A0 is U+3000 and U+E5E5 has no bytes.

    Shift controls are errors in ISO-2022-JP.
    """
    for label in ("gb18030", "gbk"):
        assert decode(b"a\xa3\xa0b", f"text/html; charset={label}")[1].decode() == "a\u3000b"
        assert encode_query("?\ue5e5\u3000", label) == "?%26%2358853%3B%A1%A1"
        assert encode_query("?x#\ue5e5", label) == "?x#%26%2358853%3B"
    for control in "\x0e\x0f":
        html = decode(f"a{control}b".encode(), "text/html; charset=iso-2022-jp")[1]
        assert html.decode() == "a\ufffdb"
        assert encode_query(f"?{control}A", "iso-2022-jp") == "?%26%2365533%3BA"
        assert encode_query(f"?{control}書", "iso-2022-jp").startswith("?%26%2365533%3B%1B$B")
        assert encode_query(f"?{control}A", "shift_jis") == f"?{control}A"
    assert encode_query("?\x1b", "iso-2022-jp") == "?%26%2365533%3B"
    assert encode_query("/\x0e", "iso-2022-jp") == "/\x0e"


def test_prescan_skips_page_without_word_charset() -> None:
    assert prescan(b"<p>" * 5_000) is None
