"""Read the links of HTML and Markdown files, and find their targets on disk.

Each file has a URL, so that links of files resolve like links of pages. Below `BASE`, a path
behind `HERE` is a path of this machine, and any other path begins at the root of the site.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt

from orbweaver.model.url import resolved
from orbweaver.model.value import value_class
from orbweaver.parsing.page import Page, parse

# `{#name}` behind a heading or in a paragraph: attribute lists of Python-Markdown and Pandoc.
_NAMED = re.compile(r"\{[^{}\n]*#([^\s{}]+)[^{}\n]*\}")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
BASE, HERE = "http://folder.invalid", "/@"
HTML, MARKDOWN = (".html", ".htm", ".xhtml"), (".md", ".markdown")
INDEXES = ("index.html", "index.htm", "index.md", "README.md")
_SKIPPED = frozenset({"node_modules", "__pycache__"})
# Places of references: attributes, destinations of links, definitions, and URLs in brackets.
_REFERENCES = re.compile(
    r"""(?:href|src|data|poster|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
    r"""|\]\(\s*<?([^\s)>]+)|^\s*\[[^\]]+\]:\s*<?([^\s>]+)|<(https?://[^\s>]+)>""",
    re.IGNORECASE | re.MULTILINE,
)


@value_class
class FilePage:
    """A file as a page: its URL, its text as written, and the parsed page."""

    name: str
    url: str
    text: str
    page: Page

    def lines(self) -> dict[str, int]:
        """Return the first line of each target URL with its fragment, and of each reference."""
        ends = [found.start() for found in re.finditer("\n", self.text)]
        places: dict[str, int] = {}
        for found in _REFERENCES.finditer(self.text):
            reference = unescape(next(filter(None, found.groups()), "")).strip()
            line = bisect(ends, found.start(found.lastindex or 0)) + 1
            places.setdefault(reference, line)
            words, mark, fragment = reference.partition("#")
            target = resolved(words, self.page.base) if words else self.url
            places.setdefault(f"{target}{mark}{fragment}", line)
        return places


@dataclass(frozen=True)
class Folder:
    """Files of a site. `base_url` is the URL at which the site is or will be published.

    Names of files are relative to the current folder `here`, if they are below it.
    """

    root: Path
    here: Path
    base_url: str | None = None
    only: Path | None = None
    _names: dict[Path, frozenset[str]] = field(default_factory=dict)

    def files(self) -> list[Path]:
        """Return the HTML and Markdown files, without hidden folders."""
        if self.only is not None:
            return [self.only] if self.only.suffix.lower() in HTML + MARKDOWN else []
        found = (path for path in self.root.rglob("*") if path.suffix.lower() in HTML + MARKDOWN)
        return sorted(path for path in found if path.is_file() and self._is_shown(path))

    def _is_shown(self, path: Path) -> bool:
        parts = path.relative_to(self.root).parts
        return not any(part[0] == "." or part in _SKIPPED for part in parts)

    def page(self, path: Path) -> FilePage:
        body, url = path.read_bytes(), self.url_of(path)
        text = body.decode("utf-8", "replace")
        if path.suffix.lower() in MARKDOWN:
            body = as_html(text).encode()
        page = parse(body, url, "text/html", rows=True, obey_nofollow=False)
        return FilePage(name=self.name_of(path), url=url, text=text, page=page)

    def name_of(self, path: Path) -> str:
        is_below = path.is_relative_to(self.here)
        return (path.relative_to(self.here) if is_below else path).as_posix()

    def shown(self, target: str) -> str:
        """Return a target for people: the path of a file, or a URL."""
        url, mark, fragment = target.partition("#")
        path = self.path_of(url)
        return target if path is None else f"{self.name_of(path)}{mark}{fragment}"

    def url_of(self, path: Path) -> str:
        if self._prefix is not None and path.is_relative_to(self.root):
            return f"{self._prefix}{quote(path.relative_to(self.root).as_posix())}"
        return f"{BASE}{HERE}{quote(path.as_posix())}"

    @cached_property
    def _prefix(self) -> str | None:
        return None if self.base_url is None else self.base_url.rstrip("/") + "/"

    def path_of(self, url: str) -> Path | None:
        """Return the path of a target. None: it is not a file of this site or machine."""
        url = url.partition("?")[0]
        if self._prefix is not None and f"{url}/".startswith(self._prefix):
            return self.root / unquote(url[len(self._prefix) :])
        if not url.startswith(f"{BASE}/"):
            return None
        path = url.removeprefix(BASE)
        if path.startswith(f"{HERE}/"):
            return Path(unquote(path.removeprefix(HERE)))
        return self.root / unquote(path.lstrip("/"))

    def find(self, path: Path, *, is_folder: bool) -> Path | str:
        """Return the file or folder that a server sends for a path, or why there is none.

        `is_folder`: the URL ends with a slash.
        """
        if not self._exists(path):
            page = path.with_name(f"{path.name}.html")
            if not is_folder and path.name and self._exists(page):
                return page
            near = [one for one in self._names_in(path.parent) if one.lower() == path.name.lower()]
            return f"no such file, but there is {near[0]}" if near else "no such file"
        if is_folder and not path.is_dir():
            return "it is a file, and the link ends with a slash"
        if not path.is_dir():
            return path
        index = next((path / one for one in INDEXES if (path / one).is_file()), None)
        if index is None and self._is_built:
            return f"a folder without {INDEXES[0]}"
        return index or path

    @cached_property
    def _is_built(self) -> bool:
        """Whether the folder is a site as a server sends it, and not its sources."""
        return (self.root / INDEXES[0]).is_file()

    def _exists(self, path: Path) -> bool:
        """Return whether a path exists in this spelling. Some file systems ignore case."""
        try:
            if not path.exists():
                return False
        except OSError:  # for example too long a name
            return False
        return path.name in ("", "..") or path.name in self._names_in(path.parent)

    def _names_in(self, folder: Path) -> frozenset[str]:
        if folder not in self._names:
            there = folder.iterdir() if folder.is_dir() else ()
            self._names[folder] = frozenset(path.name for path in there)
        return self._names[folder]


# --- Markdown files -------------------------------------------------------------------------------


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def as_html(text: str) -> str:
    """Return the page. It has the anchors that GitHub and Python-Markdown make for headings."""
    text = _FRONT_MATTER.sub("", text.replace("\r\n", "\n"))
    anchors = "".join(f'<a id="{escape(one)}"></a>' for one in _anchors(text))
    return f'<meta charset="utf-8">{_parser().render(text)}{anchors}'


def _anchors(text: str) -> Iterator[str]:
    yield from _NAMED.findall(text)
    used: Counter[str] = Counter()
    tokens = _parser().parse(text)
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        parts = [one.content for one in inline.children or () if one.type != "image"]
        heading = _NAMED.sub("", "".join(parts)).strip()
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        other = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        number = used[name]
        used[name] += 1
        yield from (f"{name}-{number}", f"{other}_{number}") if number else (name, other)
