"""Pages that say "not found" with status 200.

Known by a title that says so, in the languages that most pages are in, and by having little text:
an article about such pages has more. It is a guess, so nothing is lost by it: the page counts as
fetched and its links are followed; its reason says `soft_404`.
"""

from __future__ import annotations

import re

from orbweaver.parsing.html_scan import text_of
from orbweaver.parsing.page import Page

TEXT_CHARS_MAX = 3_000
# Beyond that, a page is no notice, whatever it holds.
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
# Of these, one at least is in whatever fits: looking for them first takes a tenth of the time. None
# has a letter that other letters are taken for where case is ignored (i, k, s).
_HINTS_TEXT = """
    404 found page ex gefunden encontrada trovata gevonden dan funnet fundet vua znalez trona
    nenalezena найдена знайдено bulunamad trang 页 頁 ペ 페이지
"""
_HINTS = tuple(_HINTS_TEXT.split())


def is_missing(page: Page) -> bool:
    """Whether a page says that there is none."""
    return page.title is not None and _says_so(page.title) and _is_short(page.html)


def _is_short(html: bytes) -> bool:
    """Whether a page has little text; of a large one the beginning is looked at first."""
    if len(text_of(html[:LOOK_BYTES])) > TEXT_CHARS_MAX:
        return False
    return len(html) <= LOOK_BYTES or (
        len(html) <= HTML_BYTES_MAX and len(text_of(html)) <= TEXT_CHARS_MAX
    )


def _says_so(title: str) -> bool:
    plain = title.casefold()
    return any(map(plain.__contains__, _HINTS)) and _TITLE.search(title) is not None
