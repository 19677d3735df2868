"""Roundup, an issue tracker from PyPI: issues, and their messages on separate pages."""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING

from bench.yields import texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.place import ADDRESS, CALLER
from bench.yields.static import installed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.place import Place

ROUNDUP = ("roundup==2.6.0",)
ISSUES = 250
# Fills the tracker with Roundup's own functions, as its users' mails and forms would.
FILL = """
import json, sys
from roundup import instance
database = instance.open(sys.argv[1]).open("admin")
author = database.user.lookup("admin")
for title, priority, messages in json.load(sys.stdin):
    made = [database.msg.create(author=author, content=one) for one in messages]
    database.issue.create(title=title, priority=priority, status="1", messages=made)
database.commit()
made = [f"{kind}{one}" for kind in ("issue", "msg") for one in database.getclass(kind).list()]
print(json.dumps(made))
"""
SERVED = """
import sys
from roundup.cgi.wsgi_handler import RequestDispatcher
application = RequestDispatcher(sys.argv[3])
"""
ITEM = re.compile(r"/((?:issue|msg)[0-9]+)")


def prepare(place: Place) -> Truth:
    admin, home = _python().with_name("roundup-admin"), place.path("tracker")
    home.mkdir()
    settings = f"rdbms_backend=sqlite,mail_domain=example.org,tracker_web=http://{ADDRESS}/"
    place.run([admin, "-i", home, "install", "classic", "sqlite", settings], **CALLER)
    place.run([admin, "-i", home, "initialise", "owner"], **CALLER)
    script = place.write("fill.py", FILL)
    said = place.run([_python(), script, home], text=json.dumps(_issues()), **CALLER)
    place.hand_over()
    return Truth(articles=frozenset(json.loads(said.splitlines()[-1])))


def serve(place: Place, port: int) -> None:
    settings = place.path("tracker/config.ini")
    text = re.sub(r"(?m)^web = .*$", f"web = http://{ADDRESS}:{port}/", settings.read_text())
    settings.write_text(text)
    web.serve_wsgi(place, port, _python(), SERVED, place.path("tracker"))


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the issue or message that a target shows."""
    path, query = query_of(target)
    found = ITEM.fullmatch(path)
    return (found[1],) if found is not None and query.get("@template", "item") == "item" else ()


def _python() -> Path:
    return installed(ROUNDUP, "roundup")


def _issues() -> list[tuple[str, str, list[str]]]:
    random = Random("tracker")
    return [
        (
            texts.title(number),
            str(random.randint(1, 5)),
            [texts.paragraph(random) for _ in range(random.randint(1, 4))],
        )
        for number in range(ISSUES)
    ]


APPLICATION = Application(
    name="roundup",
    title="Roundup",
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
