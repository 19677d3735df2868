"""Static files: a manual made by Sphinx, and a blog made by Pelican."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

from bench.yields import texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.packages import file
from bench.yields.place import PYTHONS, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.place import Place

MANUAL = "usr/share/doc/python3.[0-9]*/html"
POSTS, A_PAGE = 300, 10
PELICAN = ("pelican[markdown]==4.12.0",)
SETTINGS = f"""\
AUTHOR, SITENAME, SITEURL, PATH, TIMEZONE = "Editor", "The blog", "", "content", "UTC"
DEFAULT_PAGINATION = {A_PAGE}
ARTICLE_URL = ARTICLE_SAVE_AS = "posts/{{slug}}.html"
YEAR_ARCHIVE_SAVE_AS = "archive/{{date:%Y}}/index.html"
MONTH_ARCHIVE_SAVE_AS = "archive/{{date:%Y}}/{{date:%m}}/index.html"
FEED_ALL_ATOM, CATEGORY_FEED_ATOM = "feeds/all.atom.xml", "feeds/{{slug}}.atom.xml"
"""


def prepare_sphinx(place: Place) -> Truth:
    folder = file(MANUAL)
    names = [f"/{path.relative_to(folder)}" for path in folder.rglob("*.html")]
    return Truth(articles=frozenset(names), aliases={"/": "/index.html"})


def serve_sphinx(place: Place, port: int) -> None:
    web.serve(place, port, _site(file(MANUAL)))


def prepare_pelican(place: Place) -> Truth:
    python = installed(PELICAN, "pelican")
    random, now = Random("blog"), dt.datetime.now(dt.UTC)
    for number in range(POSTS):
        tags = ", ".join(f"tag {tag}" for tag in random.sample("abcdefghijklmnopqrst", 3))
        moment = now - dt.timedelta(hours=30 * number)
        head = {
            "Title": texts.title(number),
            "Date": f"{moment:%Y-%m-%d %H:%M}",
            "Slug": f"post-{number}",
            "Category": f"category {number % 5}",
            "Tags": tags,
            "Authors": f"Author {random.randrange(6)}",
        }
        lines = "".join(f"{name}: {value}\n" for name, value in head.items())
        text = "\n\n".join(texts.paragraph(random) for _ in range(5))
        place.write(f"content/{number}.md", f"{lines}\n{text}\n")
    settings = place.write("settings.py", SETTINGS)
    command = [str(python.with_name("pelican")), "-q", "-s", str(settings)]
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"pelican failed: {done.stderr[-400:]}")
    place.hand_over()
    posts = place.path("output/posts").glob("*.html")
    return Truth(articles=frozenset(f"/posts/{post.name}" for post in posts))


def serve_pelican(place: Place, port: int) -> None:
    web.serve(place, port, _site(place.path("output")))


def keys_of(target: str) -> Iterable[str]:
    return (query_of(target)[0],)


def _site(folder: Path) -> str:
    return f'DocumentRoot "{folder}"\nDirectoryIndex index.html'


def installed(requirements: tuple[str, ...], name: str) -> Path:
    """Install PyPI packages into their own virtual environment. Return its interpreter."""
    folder = PYTHONS / name
    python = folder / "bin" / "python"
    stamp = folder / ".installed"
    if not stamp.is_file():
        for words in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", *requirements],
        ):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Unavailable(f"PyPI cannot give {requirements}: {done.stderr[-300:]}")
        stamp.touch()
    return python


SPHINX = Application(
    name="sphinx",
    title="Sphinx",
    packages=("python3-doc",),
    prepare=prepare_sphinx,
    serve=serve_sphinx,
    keys_of=keys_of,
)
PELICAN_BLOG = Application(
    name="pelican",
    title="Pelican",
    prepare=prepare_pelican,
    serve=serve_pelican,
    keys_of=keys_of,
)
