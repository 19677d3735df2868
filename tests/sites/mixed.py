"""A mixed site: most pages are sent with their text, others get it by a script.

Sections have items, `/{section}/{number}`. The catalogue knows some unique words of each item, and
a complete page contains them all. Kinds of sections:

- `static`: complete as sent; its script adds no text
- `shell`: an empty mount point, filled by the script; a reader sees that it is empty
- `frame`: a menu, a heading and the first part; the script adds the rest invisibly
- `redesigned`: static, until half of its items were requested; then another kind

Scripts request their text from `/data/…`. The front page links to all items, with sections mixed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.sites.server import AccessLog, Answer, Asked

STATIC, SHELL, FRAME = "static", "shell", "frame"
PARTS = 4
_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_SCRIPT = b"""
const more = document.querySelector('#root, #more');
if (more) {
  const data = await (await fetch('/data' + location.pathname)).json();
  document.title = data.title;
  for (const part of data.parts) {
    const text = document.createElement('p');
    text.textContent = part;
    more.append(text);
  }
}
"""
_WORDS = (
    "of the sea and its weather there is more to be said than fits on a page that nobody has "
    "read for years though it was printed often and well"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Items of one template; `then` is the variant after a redesign."""

    name: str
    items: int
    made: str = STATIC
    then: str = ""


def sections_of(pages: int, then: str = SHELL) -> tuple[Section, ...]:
    """Build sections with this many pages: 6 % shells and frames in 12, 8 % redesigned half-way."""
    few, redesigned = max(1, pages * 6 // 1200), pages * 8 // 100
    kinds = [SHELL] * 9 + [FRAME] * 3
    rest = pages - few * len(kinds) - redesigned
    static = [rest // 11 + (place < rest % 11) for place in range(11)]
    made = [(f"s{chr(ord('a') + place)}", few, one) for place, one in enumerate(kinds)]
    made += [(f"t{chr(ord('a') + place)}", items, STATIC) for place, items in enumerate(static)]
    return (
        *(Section(name=name, items=items, made=one) for name, items, one in made),
        Section(name="news", items=redesigned, then=then),
    )


@dataclass
class Mixed:
    """The site; `redesigned_at` counts requests for items of redesigned sections."""

    sections: tuple[Section, ...]
    seed: int = 1
    url: str = ""
    log: AccessLog = field(default_factory=AccessLog)
    # Requested items of redesigned sections: before, and after.
    asked_old: list[str] = field(default_factory=list)
    asked_new: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._made = {one.name: one for one in self.sections}
        self.paths = [f"/{one.name}/{item}" for one in self.sections for item in range(one.items)]
        Random(self.seed).shuffle(self.paths)

    def words_of(self, path: str) -> tuple[str, ...]:
        _, section, item = path.split("/")
        return tuple(f"{section}x{item}x{part}" for part in range(PARTS))

    def answer(self, asked: Asked) -> Answer:
        path = asked.target.partition("?")[0]
        if path == "/":
            links = "".join(f'<li><a href="{one}">{one[1:]}</a>' for one in self.paths)
            return _html(f"<title>Front</title><h1>Front</h1><ul>{links}</ul>")
        if path == "/site.js":
            return Answer(headers=(("Content-Type", "text/javascript"),), body=_SCRIPT)
        if path.startswith("/data/"):
            return self._data(path.removeprefix("/data"))
        section = self._made.get(path[1:].partition("/")[0])
        return Answer(status=404) if section is None else self._item(section, path)

    def reset(self) -> None:
        self.asked_old.clear()
        self.asked_new.clear()

    def documents(self) -> Mapping[str, Callable[[], object]]:
        """Return no documents: the server's owner has them."""
        return {}

    def is_new(self, path: str) -> bool:
        """True if an item was requested after its redesign."""
        return path in self.asked_new

    def _item(self, section: Section, path: str) -> Answer:
        made = section.made
        if section.then:
            old = path in self.asked_old or len(self.asked_old) < section.items // 2
            made = section.made if old else section.then
            asked = self.asked_old if old else self.asked_new
            asked += [] if path in asked else [path]
        parts = self._parts(path)
        script = '<script type="module" src="/site.js"></script>'
        if made == SHELL:
            return _html(f"<title>Site</title><div id=root></div>{script}")
        menu = "".join(f'<a href="/{one.name}/0">{one.name}</a> ' for one in self.sections)
        sent = parts if made == STATIC else parts[:1]
        text = "".join(f"<p>{part}</p>" for part in sent)
        rest = "<div id=more></div>" if made == FRAME else ""
        title = f"<title>{path[1:]}</title><nav>{menu}</nav><h1>{path[1:]}</h1>"
        return _html(f"{title}<main>{text}{rest}</main>{script}")

    def _data(self, path: str) -> Answer:
        section = self._made.get(path[1:].partition("/")[0])
        if section is None:
            return Answer(status=404)
        made = section.then if self.is_new(path) else section.made
        parts = self._parts(path)
        told = {"title": path[1:], "parts": parts if made == SHELL else parts[1:]}
        body = json.dumps(told).encode()
        return Answer(headers=(("Content-Type", "application/json"),), body=body)

    def _parts(self, path: str) -> list[str]:
        return [f"{word} {_WORDS} {word}" for word in self.words_of(path)]


def _html(body: str) -> Answer:
    return Answer(headers=_HTML, body=f"<!doctype html>{body}".encode())
