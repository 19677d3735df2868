"""Mercurial's hgweb with the same commits and files as cgit and gitweb.

Paths contain revisions. By default the pages are marked `index, nofollow`; this is changed here.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from bench.yields import web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.place import CALLER
from bench.yields.repositories import NAME, said
from bench.yields.repositories import prepare as cloned
from bench.yields.static import installed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.place import Place

MERCURIAL = ("mercurial==7.2.4",)
SERVED = """
import sys
from mercurial.hgweb import hgweb
pages = hgweb(sys.argv[3].encode(), name=b"web")
def application(environment, respond):
    said = pages(environment, respond)
    return [part.replace(b"index, nofollow", b"index, follow") for part in said]
"""
SHOWN = re.compile(r"/(file|annotate|raw-file|raw-annotate|rev|raw-rev)/([^/]+)(?:/(.*[^/]))?")


def prepare(place: Place) -> Truth:
    """Commit the git history to Mercurial, commit by commit."""
    cloned(place)
    bare, work = place.path(NAME), place.path("web")
    work.mkdir()
    hg: list[str | Path] = [installed(MERCURIAL, "mercurial").with_name("hg"), "--cwd", work]
    place.run([*hg, "init"], **CALLER)
    git: list[str | Path] = ["git", f"--git-dir={bare}", f"--work-tree={work}"]
    listed = said([*git, "log", "--reverse", "--first-parent", "--format=%H %at %an"])
    for line in listed.splitlines():
        commit, at, author = line.split(" ", 2)
        for one in work.iterdir():
            if one.name != ".hg":
                shutil.rmtree(one) if one.is_dir() else one.unlink()
        said([*git, "checkout", "--force", commit, "--", "."])
        message = said([*git, "log", "-1", "--format=%B", commit])
        words = ["commit", "--addremove", "--user", author, "--date", f"{at} 0", "-m", message]
        place.run([*hg, *words], **CALLER)
    nodes = place.run([*hg, "log", "--template", "{node}\n"], **CALLER).split()
    files = place.run([*hg, "manifest"], **CALLER).splitlines()
    place.hand_over()
    articles = [*(f"file {name}" for name in files), *(f"commit {node[:12]}" for node in nodes)]
    return Truth(articles=frozenset(articles))


def serve(place: Place, port: int) -> None:
    web.serve_wsgi(place, port, installed(MERCURIAL, "mercurial"), SERVED, place.path("web"))


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the file or commit that a page shows completely."""
    path, _ = query_of(target)
    found = SHOWN.fullmatch(path)
    if found is None:
        return ()
    view, node, name = found.groups()
    if view in ("rev", "raw-rev"):
        return () if name else (f"commit {node[:12]}",)
    return (f"file {name}",) if name else ()


APPLICATION = Application(
    name="hgweb",
    title="hgweb",
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
