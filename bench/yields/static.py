"""Static files: a manual made by Sphinx, and Apache's folder listings of documentation.

An article is an HTML file, or a folder's listing without a query. Listings link to themselves in
other sort orders, and most of their files are not HTML.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

from bench.yields.application import Application, extract, fetched, file, serve
from bench.yields.judging import Truth, query_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.serving import Place

MANUAL = "usr/share/doc/python3.[0-9]*/html"
# Packages of which some hundred requests can find less than half, and one of which 500 requests can
# find all: 272 folders, 198 HTML files, 794 other files.
LARGE = ("git-doc", "libtiff-doc", "postfix-doc", "privoxy", "swig4.0-examples")
SMALL = ("python-skimage-doc",)
SITE = """\
DocumentRoot "{files}"
DirectoryIndex disabled
IndexOptions FancyIndexing HTMLTable NameWidth=*
<Directory "{files}">
  Options Indexes
</Directory>
"""


def prepare_sphinx(place: Place) -> Truth:
    folder = file(MANUAL)
    names = [f"/{path.relative_to(folder)}" for path in folder.rglob("*.html")]
    return Truth(articles=frozenset(names), aliases={"/": "/index.html"})


def serve_sphinx(place: Place, port: int) -> None:
    serve(place, port, f'DocumentRoot "{file(MANUAL)}"\nDirectoryIndex index.html')


def prepare_index(documentation: Sequence[str], place: Place) -> Truth:
    """Unpack the packages' documentation. Its folders and HTML files are the articles."""
    files, unpacked = place.path("files"), place.path("unpacked")
    for archive in fetched(documentation, place.path("archives")):
        extract(archive, unpacked)
    shutil.move(unpacked / "usr" / "share" / "doc", files)
    shutil.rmtree(unpacked)
    for path in files.rglob("*"):
        if path.is_symlink():
            path.unlink()  # its target has its own URL
    folders = [f"/{path.relative_to(files)}/" for path in files.rglob("*") if path.is_dir()]
    pages = [f"/{path.relative_to(files)}" for path in files.rglob("*.html")]
    place.hand_over()
    return Truth(articles=frozenset(["/", *folders, *pages]))


def serve_index(place: Place, port: int) -> None:
    serve(place, port, SITE.format(files=place.path("files")))


def keys_of(target: str) -> Iterable[str]:
    """Return the path of a file, or of a folder listed without a query."""
    path, query = query_of(target)
    return () if query and path.endswith("/") else (path,)


SPHINX = Application(
    "sphinx", "Sphinx", prepare_sphinx, serve_sphinx, keys_of, packages=("python3-doc",)
)
INDEX = Application("apache", "Apache index", partial(prepare_index, LARGE), serve_index, keys_of)
INDEX_SMALL = Application(
    "apache-small", "Apache index, small", partial(prepare_index, SMALL), serve_index, keys_of
)
