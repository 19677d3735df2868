"""cgit and gitweb with this project's own repository, at its 83rd commit: 922 files.

- An article is a file at any revision, or a commit. A file is found by a page or answer that shows
  it completely (`tree`, `plain`; `blob`, `blob_plain`), a commit by its own page. A difference, a
  patch, a log, and a commit limited to one path do not count.
- gitweb marks its pages `index, nofollow`, so no crawler gets beyond the first page. Here the
  program is changed to `index, follow`.
"""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

from bench.measure import free_port
from bench.serving import ADDRESS, PROJECT, Unavailable
from bench.yields.application import Application, file, serve
from bench.yields.judging import Truth, query_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bench.serving import Place

# Otherwise git refuses a repository of another user.
TRUSTED = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
WORKERS = 4
COMMITS = 83
NAME = "web.git"
CGITRC = """\
css=/cgit-css/cgit.css
logo=/cgit-css/cgit.png
virtual-root=/
robots=index, follow
enable-index-links=1
enable-log-filecount=1
enable-log-linecount=1
snapshots=tar.gz
repo.url={name}
repo.path={path}
repo.desc=A crawler
"""
GITWEB_CONFIG = """\
$projectroot = "{folder}"; $git_temp = "{folder}";
$feature{{'snapshot'}}{{'default'}} = ['tgz'];
@stylesheets = ("/static/gitweb.css"); $javascript = "/static/gitweb.js";
$logo = "/static/git-logo.png"; $favicon = "/static/git-favicon.png";
@diff_opts = ();
"""


def prepare(place: Place) -> Truth:
    """Copy the repository at one commit. Its files and commits are the articles."""
    git = ["git", "-C", str(PROJECT)]
    listed = _said([*git, "rev-list", "--reverse", "--first-parent", "HEAD"]).split()
    if len(listed) < COMMITS:
        raise Unavailable(f"the repository has {len(listed)} commits here: clone it in full")
    repository = place.path(NAME)
    _said(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(repository)])
    _said([*git, "push", "--quiet", str(repository), f"{listed[COMMITS - 1]}:refs/heads/main"])
    bare = ["git", "-C", str(repository)]
    _said([*bare, "gc", "--quiet"])
    (repository / "description").write_text("A crawler\n")
    files = _said([*bare, "ls-tree", "-r", "-z", "--name-only", "main"]).split("\0")
    commits = _said([*bare, "rev-list", "main"]).split()
    place.hand_over()
    articles = [f"file {name}" for name in files if name]
    return Truth(articles=frozenset([*articles, *(f"commit {commit}" for commit in commits)]))


def serve_cgit(place: Place, port: int) -> None:
    settings = place.write("cgitrc", CGITRC.format(name=NAME, path=place.path(NAME)))
    program, files = file("usr/lib/cgit/cgit.cgi"), file("usr/share/cgit")
    site = (
        f'SetEnv CGIT_CONFIG "{settings}"\nAlias /cgit-css "{files}"\n'
        f'Alias /robots.txt "{files}/robots.txt"\nAlias /favicon.ico "{files}/favicon.ico"\n'
        f'ScriptAlias / "{program}/"\n<Directory "{program.parent}">\nOptions ExecCGI\n</Directory>'
    )
    serve(place, port, _environment(site))


def serve_gitweb(place: Place, port: int) -> None:
    """Serve the repository with gitweb, at the root, without `nofollow`."""
    text = file("usr/share/gitweb/gitweb.cgi").read_text()
    program = place.write("gitweb.cgi", text.replace("index, nofollow", "index, follow"))
    program.chmod(0o755)
    settings = place.write("gitweb.conf", GITWEB_CONFIG.format(folder=place.folder))
    folders = ("usr/share/perl5/CGI.pm", "usr/lib/*/perl5/*/HTML")
    modules = os.pathsep.join(str(file(folder).parent) for folder in folders)
    behind = free_port()
    with socket.create_server((ADDRESS, behind)) as listening:
        place.start(
            [program, "--fcgi", f"--nproc={WORKERS}"],
            port=behind,
            environment={"PERL5LIB": modules},
            stdin=listening,
        )
    site = (
        f'SetEnv GITWEB_CONFIG "{settings}"\nDocumentRoot "{file("usr/share/gitweb")}"\n'
        f'ProxyPassMatch "^/$" "fcgi://{ADDRESS}:{behind}/" enablereuse=off'
    )
    serve(place, port, _environment(site))


def cgit_keys(target: str) -> Iterable[str]:
    """Return the key of the file or commit that a page of cgit shows completely."""
    path, query = query_of(target)
    view, _, name = path.removeprefix(f"/{NAME}/").partition("/")
    if view in ("tree", "plain") and name:
        return (f"file {name.rstrip('/')}",)
    return (f"commit {query['id']}",) if view == "commit" and not name and "id" in query else ()


def gitweb_keys(target: str) -> Iterable[str]:
    """Return the key of the file or commit that a page of gitweb shows completely."""
    _, query = query_of(target)
    action = query.get("a")
    if action in ("blob", "blob_plain") and "f" in query:
        return (f"file {query['f']}",)
    return (f"commit {query['h']}",) if action == "commit" and "h" in query else ()


def _environment(site: str) -> str:
    """Allow git to use a repository that another user owns."""
    lines = "".join(f'SetEnv {name} "{value}"\n' for name, value in TRUSTED.items())
    return lines + site


def _said(words: Sequence[str | Path]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


CGIT = Application("cgit", "cgit", prepare, serve_cgit, cgit_keys, packages=("cgit",))
GITWEB = Application(
    "gitweb",
    "gitweb",
    prepare,
    serve_gitweb,
    gitweb_keys,
    packages=("git", "gitweb", "libcgi-fast-perl", "libfcgi-procmanager-perl"),
)
