"""The crawled sites: manuals from Debian packages, and generated sites.

A manual is served from its folder: `/dir/` is its `index.html`, and `/dir` redirects there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sites import generated
from tests.sites.static import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

DOC = Path("/usr/share/doc")
HTML = "text/html"
ROBOTS = b"User-agent: *\nDisallow: /nothing-is-here/\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The answer for a path."""

    path: str
    status: int = 200
    content_type: str = HTML
    location: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """A manual that a Debian package installs as HTML."""

    name: str
    title: str
    package: str
    folder: Path
    start: str = "/index.html"

    @property
    def absent(self) -> str:
        """Return why the manual cannot be crawled, or ""."""
        if (self.folder / self.start.lstrip("/")).is_file():
            return ""
        return f"{self.title} is not installed: apt-get install {self.package}"

    def entries(self, _pages: int) -> Iterator[Entry]:
        for file in (*sorted(self.folder.rglob("*")), self.folder):
            path = f"/{file.relative_to(self.folder)}" if file != self.folder else ""
            if file.is_file():
                kind = TYPES.guess_type(file.name)[0] or "application/octet-stream"
                yield Entry(path=path, content_type=kind, body=file.read_bytes())
                continue
            if (index := file / "index.html").is_file():
                yield Entry(path=f"{path}/", body=index.read_bytes())
            if path:
                yield Entry(path=path, status=301, location=f"{path}/", content_type="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A generated site with pages of one size."""

    name: str
    title: str
    size_bytes: int
    share: int
    start: str = "/"
    absent: str = ""

    def entries(self, pages: int) -> Iterator[Entry]:
        """Yield `pages` pages, or a share of them if they are large."""
        for path, body in generated.pages(self.count(pages), self.size_bytes):
            yield Entry(path=path, body=body)

    def count(self, pages: int) -> int:
        """Convert the requested number of pages to the site's number."""
        return max(1, pages // self.share)


Site = Manual | Generated
SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Manual(
            name="python",
            title="Python 3.11 manual",
            package="python3.11-doc",
            folder=DOC / "python3.11" / "html",
        ),
        Manual(
            name="postgresql",
            title="PostgreSQL 15 manual",
            package="postgresql-doc-15",
            folder=DOC / "postgresql-doc-15" / "html",
        ),
        Generated(name="generated-30", title="Made-up, 30 KB", size_bytes=30_000, share=1),
        Generated(name="generated-150", title="Made-up, 150 KB", size_bytes=150_000, share=3),
    )
}
TLS = "+tls"
FAMILIES = {
    "generated": ("generated-30", "generated-150"),
    "tls": (f"generated-30{TLS}", f"generated-150{TLS}"),
    "all": tuple(SITES),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A site, and whether it is served over TLS."""

    site: Site
    tls: bool

    @property
    def name(self) -> str:
        return self.site.name + TLS * self.tls

    @property
    def title(self) -> str:
        return self.site.title + ", HTTPS" * self.tls


def named(words: str) -> list[Place]:
    """Parse a comma-separated list of names. Raises KeyError for an unknown name."""
    names = [name for word in words.split(",") for name in FAMILIES.get(word, (word,))]
    return [
        Place(site=SITES[name.removesuffix(TLS)], tls=name.endswith(TLS))
        for name in dict.fromkeys(names)
    ]
