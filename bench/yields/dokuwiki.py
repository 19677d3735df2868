"""DokuWiki: 300 pages in three namespaces, and its four initial pages.

Files are dated back, because pages younger than five days are marked noindex and nofollow.
"""

from __future__ import annotations

import os
import shutil
import time
from random import Random
from typing import TYPE_CHECKING

from bench.yields import packages, texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.packages import file
from bench.yields.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.yields.place import Place

PAGES, SPACES = 300, ("guide", "notes", "team")
AGE_S = 60 * 86_400
SETTINGS = """<?php
$conf['title'] = 'The wiki'; $conf['savedir'] = '{folder}/data'; $conf['useacl'] = 0;
$conf['license'] = 'cc-by-sa'; $conf['updatecheck'] = 0; $conf['basedir'] = '/';
"""


def prepare(place: Place) -> Truth:
    shutil.copytree(file("usr/share/dokuwiki"), place.path("code"), symlinks=True)
    shutil.copytree(
        file("etc/dokuwiki"), place.path("conf"), symlinks=True, ignore_dangling_symlinks=True
    )
    shutil.copytree(file("var/lib/dokuwiki/data"), place.path("data"))
    for path in (place.path("code/inc/preload.php"), *place.path("code/vendor").rglob("*.php")):
        text = path.read_text(encoding="latin-1").replace("'/usr/share/", f"'{ROOT}/usr/share/")
        text = text.replace("/etc/dokuwiki/", f"{place.path('conf')}/")
        path.write_text(text, encoding="latin-1")
    place.write("conf/local.php", SETTINGS.replace("{folder}", str(place.folder)))
    first = "\n".join(f"  * [[{_id(number)}]]" for number in range(0, PAGES, 15))
    place.write("data/pages/start.txt", f"====== The wiki ======\n{first}\n")
    for number in range(1, PAGES):
        place.write(f"data/pages/{_id(number).replace(':', '/')}.txt", _page(number))
    pages = list(place.path("data/pages").rglob("*.txt"))
    moment = time.time() - AGE_S
    for path in pages:
        os.utime(path, (moment, moment))
    place.hand_over()
    names = (path.relative_to(place.path("data/pages")).with_suffix("") for path in pages)
    return Truth(articles=frozenset(str(name).replace("/", ":") for name in names))


def serve(place: Place, port: int) -> None:
    web.serve(place, port, f'DocumentRoot "{place.path("code")}"\n{web.serve_php(place)}')


def keys_of(target: str) -> Iterable[str]:
    """Return the id of the page that a target shows in its current version."""
    path, query = query_of(target)
    if query.get("do", "show") != "show" or query.keys() & {"rev", "at"}:
        return ()
    script, _, name = path.removeprefix("/").partition("/")
    if script not in ("", "doku.php"):
        return ()
    return (query.get("id", name or "start").strip(":").lower().replace("/", ":"),)


def _id(number: int) -> str:
    """Return a page's id. The first page is the start page."""
    return f"{SPACES[number % 3]}:page{number}" if number else "start"


def _page(number: int) -> str:
    random = Random(f"page {number}")
    parts = [f"====== {texts.title(number)} ======"]
    for section in range(random.randint(2, 4)):
        link = _id((number + random.randint(1, 20)) % PAGES)
        parts.append(f"===== {texts.title(4_000 + number * 5 + section)} =====")
        parts.append(f"{texts.paragraph(random)} See [[{link}]].")
    parts.append(f"[[{_id((number + 1) % PAGES)}|Next]]")
    return "\n\n".join(parts) + "\n"


APPLICATION = Application(
    name="dokuwiki",
    title="DokuWiki",
    packages=(*packages.PHP, "dokuwiki"),
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
