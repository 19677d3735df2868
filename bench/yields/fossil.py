"""Fossil with the same commits and files as cgit and gitweb, and a wiki and tickets.

One of its restrictions for robots is lifted: readers without a log-in see hyperlinks. Clients whose
user agent is not a browser's still get a captcha instead of annotated files and lists by age. An
article is a file at any revision, a check-in, a current wiki page, or a ticket.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
import sqlite3
from random import Random
from typing import TYPE_CHECKING

from bench.yields import texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.packages import file
from bench.yields.place import ADDRESS, CALLER, free_port
from bench.yields.repositories import NAME, TRUSTED
from bench.yields.repositories import prepare as cloned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bench.yields.place import Place

PROJECT_NAME = "A crawler"  # the wiki page of this name is the home page
PAGES, TICKETS, AUTHORS = 50, 100, 6
REPOSITORY = "web.fossil"
# Fossil's background tasks, such as sending mail, would outlive the server.
SETTINGS = {"project-name": PROJECT_NAME, "backoffice-disable": "1"}
# Capabilities of readers without a log-in (Fossil's user `nobody`): the defaults, and `h` to see
# hyperlinks.
READERS_MAY = "gjorz" + "h"
DIGITS = 10  # length of a digest in Fossil's pages
NEWEST = ("tip", "trunk", "main")
SEVERITIES = ("Critical", "Severe", "Important", "Minor", "Cosmetic")
TYPES = ("Code_Defect", "Build_Problem", "Documentation", "Feature_Request", "Incident")
STATES = ("Verified", "Review", "Deferred", "Fixed", "Tested", "Closed")
HOME = ("home", "index")
BY_NAME = {"wiki": "wiki", "file": "file"}
BY_DIGEST = {
    **dict.fromkeys(("info", "ci", "vinfo", "winfo"), ("content", "check-in", "page", "ticket")),
    **dict.fromkeys(("artifact", "raw"), ("content", "page")),
    "tktview": ("ticket",),
}
DIGEST = re.compile(rf"[0-9a-f]{{{DIGITS},64}}")


def prepare(place: Place) -> Truth:
    """Import the git repository, and add wiki pages and tickets as artifacts in Fossil's format."""
    files = frozenset(key for key in cloned(place).articles if key.startswith("file "))
    fossil, artifacts = file("usr/bin/fossil"), place.path("artifacts")
    artifacts.mkdir()
    export = f'git --git-dir={NAME} fast-export --all | "{fossil}" import --git import.fossil'
    owner = {**CALLER, "environment": {**TRUSTED, "USER": "owner"}}
    place.run(["sh", "-c", export], **owner)
    place.run([fossil, "deconstruct", "-R", "import.fossil", artifacts], **owner)
    now, aliases = dt.datetime.now(dt.UTC), dict[str, str]()
    titles = (PROJECT_NAME, *map(texts.title, range(PAGES - 1)))
    for title in titles:
        digest = ""
        for text in _versions(title, titles, now):
            digest = hashlib.sha3_256(text.encode()).hexdigest()
            place.write(f"artifacts/wiki/{digest}", text)
        aliases[f"page {digest[:DIGITS]}"] = f"wiki {title}"
    for number in range(TICKETS):
        for step, text in enumerate(_changes(number, now)):
            place.write(f"artifacts/tickets/{number}-{step}", text)
    place.run([fossil, "reconstruct", REPOSITORY, artifacts], **owner)
    for name, value in SETTINGS.items():
        statement = f"REPLACE INTO config(name, value, mtime) VALUES('{name}', '{value}', 0)"
        place.run([fossil, "sql", "-R", REPOSITORY, statement], **owner)
    place.run([fossil, "user", "capabilities", "nobody", READERS_MAY, "-R", REPOSITORY], **owner)
    place.hand_over()
    return _truth(place.path(REPOSITORY), files, aliases)


def serve(place: Place, port: int) -> None:
    own = free_port()
    words: list[str | Path] = [
        file("usr/bin/fossil"),
        "server",
        "--localhost",
        "--port",
        str(own),
        REPOSITORY,
    ]
    place.start(words, port=own)
    web.serve(place, port, f'ProxyPreserveHost On\nProxyPass "/" "http://{ADDRESS}:{own}/"')


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the file, check-in, wiki page or ticket that a page shows completely."""
    path, query = query_of(target)
    view, _, rest = path.removeprefix("/").partition("/")
    name = rest or query.get("name", "")
    if view in HOME:
        return (f"wiki {PROJECT_NAME}",)
    if view in BY_NAME:
        return (f"{BY_NAME[view]} {name}",)
    if view == "doc":
        return (f"file {rest.partition('/')[2]}",)
    if "filename" in query:
        return (f"file {query['filename']}",) if view in ("artifact", "raw") else ()
    return (f"{kind} {_short(name)}" for kind in BY_DIGEST.get(view, ()))


def _short(name: str) -> str:
    return name[:DIGITS] if DIGEST.fullmatch(name) else name


def _truth(repository: Path, files: frozenset[str], aliases: dict[str, str]) -> Truth:
    """Read the digests of check-ins, tickets and all revisions of files from the repository."""
    with contextlib.closing(sqlite3.connect(repository)) as database:
        contents = database.execute(
            "SELECT uuid, name FROM mlink JOIN blob ON rid = fid JOIN filename USING (fnid)"
        ).fetchall()
        commits = database.execute(
            "SELECT uuid FROM event JOIN blob ON rid = objid WHERE type = 'ci' ORDER BY mtime"
        ).fetchall()
        tickets = database.execute("SELECT tkt_uuid FROM ticket").fetchall()
    aliases |= {f"content {uuid[:DIGITS]}": f"file {name}" for uuid, name in contents}
    aliases |= {f"check-in {name}": f"check-in {commits[-1][0][:DIGITS]}" for name in NEWEST}
    articles = {*files, *(name for name in aliases.values() if not name.startswith("file "))}
    articles |= {f"check-in {uuid[:DIGITS]}" for (uuid,) in commits}
    articles |= {f"ticket {uuid[:DIGITS]}" for (uuid,) in tickets}
    return Truth(articles=frozenset(articles), aliases=aliases)


def _versions(title: str, linked: Sequence[str], now: dt.datetime) -> Iterator[str]:
    """Yield all versions of a wiki page. Each has one more paragraph."""
    random, text, before = Random(f"wiki {title}"), "", ""
    for moment in _moments(random, now, 5):
        text += f"<p>{texts.paragraph(random)} See [{random.choice(linked)}].</p>\n"
        cards = [f"D {moment}", f"L {_escaped(title)}", *([f"P {before}"] if before else [])]
        cards += [f"U {_author(random)}", f"W {len(text.encode())}\n{text}"]
        artifact = _signed(cards)
        before = hashlib.sha3_256(artifact.encode()).hexdigest()
        yield artifact


def _changes(number: int, now: dt.datetime) -> Iterator[str]:
    """Yield all changes of a ticket: first its fields, then one remark each."""
    random = Random(f"ticket {number}")
    fields = {"title": texts.title(2_000 + number), "foundin": f"{number // 60}.{number % 60}"}
    fields |= {"severity": random.choice(SEVERITIES), "type": random.choice(TYPES)}
    fields |= {"status": "Open"}
    for moment in _moments(random, now, 6):
        author = _author(random)
        fields |= {"icomment": texts.paragraph(random), "login": author, "mimetype": "text/plain"}
        cards = [f"D {moment}", *(f"J {name} {_escaped(fields[name])}" for name in sorted(fields))]
        cards += [f"K {_uuid(number)}", f"U {author}"]
        yield _signed(cards)
        fields = {"status": random.choice(STATES)}


def _moments(random: Random, now: dt.datetime, most: int) -> list[str]:
    return [
        f"{now - dt.timedelta(hours=hour):%Y-%m-%dT%H:%M:%S}"
        for hour in texts.hours_ago(random, most)
    ]


def _author(random: Random) -> str:
    return f"author{random.randrange(AUTHORS)}"


def _uuid(ticket: int) -> str:
    return hashlib.sha1(b"%d" % ticket, usedforsecurity=False).hexdigest()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(" ", "\\s").replace("\n", "\\n")


def _signed(cards: Sequence[str]) -> str:
    text = "".join(f"{card}\n" for card in cards)
    return f"{text}Z {hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}\n"


APPLICATION = Application(
    name="fossil",
    title="Fossil",
    packages=("fossil",),
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
