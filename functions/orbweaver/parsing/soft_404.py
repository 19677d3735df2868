"""Detect "not found" pages with status 200.

Such a page has a "not found" title in one of many languages, and little text. An article about such
pages has more text. The result is a guess, so nothing is omitted: the page counts as fetched with
the reason `soft_404`, and its links are followed.
"""

from __future__ import annotations

import re

from orbweaver.parsing.html_scan import text_of
from orbweaver.parsing.page import Page

TEXT_CHARS_MAX = 3_000
# A larger page is never such a page.
HTML_BYTES_MAX = 1024 * 1024
LOOK_BYTES = 65_536
_WORDS = r"""
    ^\W*404\W*$ | \b(?:error|http)\W*404\b
    | \b404\b\W*(?:error | [-\u2013\u2014|:].*(?:not|page|error) | .*\bnot\ found)
    | \b404\W+(?:page|file|seite|page\ introuvable|p[aá]gina)
    | (?:page|file|site)\ (?:(?:was|is|could)\ )?(?:not|can(?:no|['\u2019])t)\ (?:be\ )?found
    | page\ (?:doesn['\u2019]t|does\ not)\ exist | \bnot\ found\s*$ | ^\s*not\ found\b
    | seite\ (?:wurde\ )?nicht\ gefunden | nicht\ gefunden\s*$
    | page\ (?:non\ trouv[ée]e|introuvable|inexistante)
    | p[aá]gina\ (?:no\ encontrada|n[aã]o\ encontrada|non\ trovata|no\ existe|inexistente)
    | pagina\ (?:is\ )?niet\ gevonden | sidan\ (?:kunde\ inte\ hittas|hittades\ inte|finns\ inte)
    | siden\ (?:blev\ |ble\ )?ikke\ fun[dn]et | sivua\ ei\ l[öo]y
    | nie\ znaleziono\ strony | strona\ nie\ (?:istnieje|została\ znaleziona)
    | str[aá]nka\ (?:nebyla\ )?nenalezena | страница\ не\ найдена | сторінку\ не\ знайдено
    | sayfa\ bulunamad[\u0131i] | không\ tìm\ thấy\ trang
    | 页面(?:不存在|未找到|找不到) | 找不到(?:页面|頁面|网页|網頁) | 頁面不存在
    | ページが?(?:見つかりません|存在しません) | 페이지를\ 찾을\ 수\ 없습니다
"""
_TITLE = re.compile(_WORDS, re.VERBOSE | re.IGNORECASE)
# Each title that matches contains one of these. Testing them first takes a tenth of the time. They
# contain no letter with other case variants (i, k, s).
_HINTS_TEXT = """
    404 found page ex gefunden encontrada trovata gevonden dan funnet fundet vua znalez trona
    nenalezena найдена знайдено bulunamad trang 页 頁 ペ 페이지
"""
_HINTS = tuple(_HINTS_TEXT.split())


def is_missing(page: Page) -> bool:
    return page.title is not None and _says_so(page.title) and _is_short(page.html)


def _is_short(html: bytes) -> bool:
    # Check the beginning of a large page first, because most pages have enough text there.
    if len(text_of(html[:LOOK_BYTES])) > TEXT_CHARS_MAX:
        return False
    return len(html) <= LOOK_BYTES or (
        len(html) <= HTML_BYTES_MAX and len(text_of(html)) <= TEXT_CHARS_MAX
    )


def _says_so(title: str) -> bool:
    plain = title.casefold()
    return any(map(plain.__contains__, _HINTS)) and _TITLE.search(title) is not None
