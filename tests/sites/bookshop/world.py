"""Pages in many charsets.

Each links, in its own bytes, to a page whose path needs the right charset; a wrong one leads to a
404. Evidence counts in the WHATWG HTML Standard's order: byte order mark, header, `meta`. Labels
follow the WHATWG Encoding Standard, so `iso-8859-1` is windows-1252.
"""

# ruff: noqa: RUF001  # a shop writes real quotes and dashes, and they are part of the data
from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Iterator
from urllib.parse import quote

from tests.sites.bookshop.markup import Writer, listing, plain
from tests.sites.bookshop.model import Page


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """Bytes of a page: Python codec, header charset, meta, and byte order mark."""

    name: str
    codec: str
    header: str | None
    meta: str
    title: str
    word: str
    bom: bytes = b""


META_TYPE = '<meta http-equiv="Content-Type" content="text/html; charset={}">'
SCRIPTS = (
    Script("windows-1252", "cp1252", "windows-1252", "", "Crème brûlée – l’œuvre", "été"),
    Script("latin1-label", "cp1252", "ISO-8859-1", "", "“Œdipe” … 20 €", "œuvre"),
    Script("iso-8859-2", "iso8859-2", "iso-8859-2", "", "Zażółć gęślą jaźń", "żółw"),
    Script("shift_jis", "cp932", None, '<meta charset="shift_jis">', "本屋へようこそ ①", "図書館"),
    Script("euc-kr", "cp949", None, META_TYPE.format("euc-kr"), "어서 오세요, 책방", "책"),
    Script("gb18030", "gb18030", None, "<META CHARSET=gb2312>", "欢迎光临书店", "书店"),
    Script("iso-2022-jp", "iso2022_jp", "iso-2022-jp", "", "機織りの本屋", "機織り"),
    Script("utf-16-le", "utf-16-le", None, "", "Βιβλιοπωλείο", "βιβλίο", codecs.BOM_UTF16_LE),
    # The byte order mark overrides the header.
    Script("bom-wins", "utf-16-be", "utf-8", "", "Könyvesbolt – őű", "könyv", codecs.BOM_UTF16_BE),
    # The header overrides the page's own charset.
    Script(
        "header-wins", "cp1251", "windows-1251", '<meta charset="utf-8">', "Книжная лавка", "книга"
    ),
    # An unknown label is ignored.
    Script(
        "unknown-label", "utf-8", "x-loom", '<meta charset="utf-8">', "Ağaçkakan kitabı", "ağaç"
    ),
    Script("utf-8-bom", "utf-8", None, "", "Könnyű, ľahké, łatwe", "łatwe", codecs.BOM_UTF8),
)


def make() -> Iterator[Page]:
    page = Writer("/world/")
    links = [page.relative(f"/world/{script.name}/", script.title) for script in SCRIPTS]
    yield page.page("World | Bookshop", f"<h1>Books in other alphabets</h1>{listing(links)}")
    for script in SCRIPTS:
        yield _page(script)
        yield plain(quote(f"/world/words/{script.word}/"), script.word)


def _page(script: Script) -> Page:
    page = Writer(f"/world/{script.name}/")
    raw = f"/world/words/{script.word}/"
    link = page.link(quote(raw), script.word, href=raw)
    # A plain document, because some charsets lack characters of the shop's frame.
    html = f"""<!DOCTYPE html><html><head>{script.meta}<title>{script.title}</title></head>
<body><h1>{script.title}</h1><p>{link}</p><p><a href="../">World</a></p></body></html>"""
    page.note("/world/")
    charset = f"; charset={script.header}" if script.header else ""
    return Page(
        path=page.path,
        title=script.title,
        body=script.bom + html.encode(script.codec),
        links=tuple(page.links),
        headers=(("Content-Type", f"text/html{charset}"),),
    )
