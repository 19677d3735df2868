"""Apache's folder listings over the documentation of a few packages.

An article is a folder's listing without a query, or an HTML file. Listings link to themselves in
other sort orders, and most files are not HTML.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bench.yields import web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.packages import extract, fetched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.yields.place import Place

LARGE = (
    "git-doc",
    "libtiff-doc",
    "postfix-doc",
    "privoxy",
    "swig4.0-examples",
)
# Small enough for 500 requests: 272 folders, 198 HTML files, 794 other files.
SMALL = ("python-skimage-doc",)
SITE = """\
DocumentRoot "{files}"
DirectoryIndex disabled
IndexOptions FancyIndexing HTMLTable NameWidth=*
<Directory "{files}">
  Options Indexes
</Directory>
"""


def prepare_large(place: Place) -> Truth:
    """Make an index of which some hundred requests can find less than half."""
    return _prepare(place, LARGE)


def prepare_small(place: Place) -> Truth:
    """Make an index of which 500 requests can find all."""
    return _prepare(place, SMALL)


def serve(place: Place, port: int) -> None:
    web.serve(place, port, SITE.format(files=place.path("files")))


def keys_of(target: str) -> Iterable[str]:
    """Return the path of a file, or of a folder listed without a query."""
    path, query = query_of(target)
    return () if query and path.endswith("/") else (path,)


def _prepare(place: Place, documentation: Sequence[str]) -> Truth:
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


APPLICATION = Application(
    name="apache",
    title="Apache index",
    prepare=prepare_large,
    serve=serve,
    keys_of=keys_of,
)
APPLICATION_SMALL = Application(
    name="apache-small",
    title="Apache index, small",
    prepare=prepare_small,
    serve=serve,
    keys_of=keys_of,
)
