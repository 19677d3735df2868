"""Trac on SQLite: tickets, a wiki, and the same commits and files as cgit and gitweb.

Initial wiki pages are marked noindex and nofollow until they are edited, so the start page is
replaced here. An article is a ticket, a current wiki page, a file at any revision, or a complete
changeset.
"""

from __future__ import annotations

import datetime as dt
import json
from random import Random
from typing import TYPE_CHECKING, Any

from bench.yields import texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.place import CALLER
from bench.yields.repositories import NAME, TRUSTED
from bench.yields.repositories import prepare as cloned
from bench.yields.static import installed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.place import Place

TRAC = ("Trac==1.6",)
TICKETS, PAGES, AUTHORS = 300, 200, 8
START, SPACES = "WikiStart", ("", "Guide/", "Notes/")
DIGITS = 7  # length of a digest in Trac's pages
CHOICES = {
    "type": ("defect", "enhancement", "task"),
    "priority": ("blocker", "critical", "major", "minor", "trivial"),
    "component": ("component1", "component2"),
    "milestone": ("milestone1", "milestone2", "milestone3", "milestone4", ""),
    "version": ("1.0", "2.0", ""),
    "owner": tuple(f"author{number}" for number in range(AUTHORS)),
}
# Fills the project with Trac's own models, as its forms would.
FILL = """
import json, sys
from trac.env import open_environment
from trac.ticket.model import Ticket
from trac.util.datefmt import from_utimestamp
from trac.wiki.model import WikiPage
environment = open_environment(sys.argv[1])
tickets, pages = json.load(sys.stdin)
with environment.db_transaction as database:
    for changes in tickets:
        ticket = Ticket(environment)
        for fields, author, comment, at_us in changes:
            ticket.populate(fields)
            if ticket.exists:
                ticket.save_changes(author, comment, from_utimestamp(at_us))
            else:
                ticket.insert(from_utimestamp(at_us))
    for name, versions in pages:
        for text, author, comment, at_us in versions:
            page = WikiPage(environment, name)
            page.text = text
            page.save(author, comment, from_utimestamp(at_us))
    tickets = [number for number, in database("SELECT id FROM ticket")]
    print(json.dumps([tickets, database("SELECT name, MAX(version) FROM wiki GROUP BY name")]))
"""
# Like Trac's own server, which requires a name and a password at `/login`.
SERVED = f"""
import os, sys
os.environ.update({TRUSTED})
from trac.web.auth import BasicAuthentication
from trac.web.main import dispatch_request
from trac.web.standalone import AuthenticationMiddleware
def project(environment, respond):
    environment["trac.env_path"] = sys.argv[3]
    return dispatch_request(environment, respond)
users = {{"*": BasicAuthentication(os.path.join(sys.argv[3], "conf", "users"), "A crawler")}}
application = AuthenticationMiddleware(project, users, "project")
"""


def prepare(place: Place) -> Truth:
    repository = cloned(place).articles
    admin, home = _python().with_name("trac-admin"), place.path("project")
    now_us = round(dt.datetime.now(dt.UTC).timestamp() * 1e6)
    steps: tuple[tuple[str | Path, ...], ...] = (
        ("initenv", "A crawler", "sqlite:db/trac.db"),
        ("config", "set", "components", "tracopt.versioncontrol.git.*", "enabled"),
        ("repository", "add", "(default)", place.path(NAME), "git"),
    )
    for step in steps:
        place.run([admin, home, *step], environment=TRUSTED, **CALLER)
    place.write("project/conf/users", "")
    content = [_ticket(number, now_us) for number in range(TICKETS)]
    names = [_name(number) for number in range(PAGES)]
    pages = [(name, _versions(name, names, now_us)) for name in (START, *names)]
    script = place.write("fill.py", FILL)
    words = [_python(), script, home]
    said = place.run(words, text=json.dumps([content, pages]), environment=TRUSTED, **CALLER)
    place.hand_over()
    tickets, versions = json.loads(said.splitlines()[-1])
    articles = {key for key in repository if key.startswith("file ")}
    articles |= {_commit(key.removeprefix("commit ")) for key in repository - articles}
    articles |= {f"ticket {number}" for number in tickets}
    articles |= {f"wiki {name}" for name, _ in versions}
    newest = {f"wiki {name} at {version}": f"wiki {name}" for name, version in versions}
    return Truth(articles=frozenset(articles), aliases=newest)


def serve(place: Place, port: int) -> None:
    web.serve_wsgi(place, port, _python(), SERVED, place.path("project"))


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the ticket, wiki page, file or changeset that is shown completely."""
    path, query = query_of(target)
    view, _, name = path.strip("/").partition("/")
    action, form = query.get("action", "view"), query.get("format", "")
    if view == "browser":
        return (f"file {name}",)
    if view == "export":
        return (f"file {name.partition('/')[2]}",)
    if view == "changeset":
        cut = "/" in name or query.keys() & {"old", "old_path", "new", "new_path"} or form
        return () if cut else (_commit(name),)
    if action != "view" or form not in ("", "txt"):
        return ()
    if view in ("", "wiki"):
        version = f" at {query['version']}" if "version" in query else ""
        return (f"wiki {name or START}{version}",)
    return (f"ticket {name}",) if view == "ticket" and "version" not in query else ()


def _python() -> Path:
    return installed(TRAC, "trac")


def _commit(digest: str) -> str:
    return f"commit {digest[:DIGITS]}"


def _name(number: int) -> str:
    """Return the name of a wiki page: its words joined, partly below other names."""
    words = texts.title(number).split()
    return SPACES[number % 3] + "".join(word[:1].upper() + word[1:] for word in words)


def _ticket(number: int, now_us: int) -> list[Any]:
    """Return a ticket's initial values, and its changes: fields, author, comment, time."""
    random = Random(f"ticket {number}")
    made, *later = _moments(random, now_us, 6)
    fields = {name: random.choice(values) for name, values in CHOICES.items()}
    fields |= {"summary": texts.title(2_000 + number), "description": texts.paragraph(random)}
    fields |= {"status": "new", "reporter": _author(random), "keywords": texts.title(number % 20)}
    changes: list[Any] = [(fields, "", "", made)]
    for place, moment in enumerate(later):
        linked = f"{texts.paragraph(random)} See #{random.randint(1, TICKETS)}."
        closed = {"status": "closed", "resolution": "fixed"}
        then = closed if place and place + 1 == len(later) else {"status": "accepted"}
        changes.append((then, _author(random), linked, moment))
    return changes


def _versions(name: str, names: list[str], now_us: int) -> list[Any]:
    """Return all versions of a wiki page: text, author, comment, time. Each adds a section."""
    random, text, found = Random(f"wiki {name}"), f"= {name.rpartition('/')[2]} =", list[Any]()
    for moment in _moments(random, now_us, 4):
        links = " ".join(f"[wiki:{other}]" for other in random.sample(names, 2))
        text += f"\n\n== {texts.sentence(random)} ==\n{texts.paragraph(random)} See {links}."
        found.append((text, _author(random), texts.sentence(random), moment))
    return found


def _moments(random: Random, now_us: int, most: int) -> list[int]:
    return [now_us - round(hour * 3.6e9) for hour in texts.hours_ago(random, most)]


def _author(random: Random) -> str:
    return random.choice(CHOICES["owner"])


APPLICATION = Application(
    name="trac",
    title="Trac",
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
