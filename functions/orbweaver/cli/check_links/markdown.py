"""Render a Markdown file as an HTML page with the anchors of its headings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import pairwise

from markdown_it import MarkdownIt

# `{#name}` behind a heading or in a paragraph: attribute lists of Python-Markdown and Pandoc.
_NAMED = re.compile(r"\{[^{}\n]*#([^\s{}]+)[^{}\n]*\}")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


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
