"""Detect pages that are empty until their scripts run (client rendering).

Markers make a page a candidate: mount points (elements that scripts fill), module scripts, and
states of frameworks. Pages that a server has rendered with the same frameworks have them, too. So
the amount of text decides. It is counted in bytes of UTF-8, outside of tags, scripts, styles,
titles and `noscript`. Measurements behind the limits:
docs/evidence/rendering.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

# A page with more links, more text, or more text in `noscript` needs no rendering.
LINKS_MAX = 10
TEXT_BYTES_MAX = 300
# Maximum amount of text of a page for which weak markers count, and after a mount point with text
# ("Loading").
BARE_BYTES_MAX = 60
# A page with more tags or bytes never needs rendering.
TAGS_MAX = 1_000
HTML_BYTES_MAX = 512 * 1024
# Number of tags scanned in the first step. Most pages with text exceed the limit of text within
# these.
_TAGS_FIRST = 100
# Scanned bytes at the beginning of a tag or a script.
_LOOK_BYTES = 500

_RAW = ("script", "style", "title", "noscript", "textarea", "iframe")
_CONTENT = "|".join(rf"{name}\b[^<]*+(?:<(?!/{name})[^<]*+)*+" for name in _RAW)
_INSIDE = r"""[^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+"""
_COMMENT = "!--(?:[^-]++|-(?!->))*+"
# An element of `_RAW` with its content, a comment, or any other tag. Letters that no name of `_RAW`
# begins with are tested first, which saves a quarter of the time.
_TAG = re.compile(
    rf"(<(?:[/a-hj-mo-ru-z]{_INSIDE}|{_COMMENT}|{_CONTENT}|[!a-z]{_INSIDE})>?+)".encode(),
    re.IGNORECASE,
)
_SCRIPT = re.compile(rb"<script(?=[\t\n\f\r />])[^>]{0,500}+>?+", re.IGNORECASE)
_NAME = re.compile(rb"</?[a-z][^\t\n\f\r />]{0,100}+", re.IGNORECASE)
_TYPE = re.compile(rb"""<[^>]*?\stype\s*=\s*["']?([^"'\s>]*)""", re.IGNORECASE)
_RUN = re.compile(rb"|module|text/(?:babel|jsx)|.*(?:java|ecma)script", re.IGNORECASE)
_MOUNT = re.compile(
    rb"""^<(?:redoc|[a-z][^\s/>]*-(?:root|app))[\s/>]
    |\s(?:data-)?(?:ng|ui)-view[\s/>=]
    |\sid\s*=\s*["']?(?:root|app|q-app|svelte|redoc|swagger-ui|__next|__nuxt|___gatsby|__docusaurus
    |react-?root|(?:app|root|redoc)-(?:root|mount|container))["'\s/>]""",
    re.IGNORECASE | re.VERBOSE,
)
_BAILOUT = b"BAILOUT_TO_CLIENT_SIDE_RENDERING"
_MARK = re.compile(
    rb"""__(?:NEXT_DATA|next_f|NUXT|INITIAL_STATE|PRELOADED_STATE|APOLLO_STATE|sveltekit_)
    |data-(?:reactroot|server-rendered|sveltekit)|\sng-(?:version|app)|/config/environment["']
    |^<[a-z]++-""",
    re.VERBOSE,
)
# Elements that make a page with little text useful. If a page has one, weak markers and mount
# points with text do not count, because a page with only "Loading" has no heading.
_VISIBLE_TAGS = frozenset(
    b"<audio <button <canvas <embed <form <iframe <input <object <select <textarea <video"
    b" <h1 <h2 <h3".split()
)


@dataclass(slots=True)
class _Marks:
    """Markers found in the tags of a page.

    `runs`: it has a script that a browser runs. `seen`: it has an element of `_VISIBLE_TAGS`.
    `weak` counts only on a page with little text. It means a `noscript` that mentions JavaScript,
    module scripts, states of frameworks, or custom elements.
    """

    runs: bool = False
    seen: bool = False
    weak: bool = False
    # `strong`: the page has an empty mount point, or Next.js leaves its rendering to the browser.
    # `before_mount`: number of text bytes before the first mount point.
    strong: bool = False
    before_mount: int | None = None


def needs_rendering(html: bytes, links: int) -> bool:
    """Return whether a page in UTF-8 is empty without its scripts.

    `links` is its number of links.
    """
    # A page with many links is not scanned. All others are scanned until their text exceeds the
    # limit. Scripts with an upper-case tag name are not found.
    if links > LINKS_MAX or len(html) > HTML_BYTES_MAX or b"<script" not in html:
        return False
    *parts, rest = _TAG.split(html, _TAGS_FIRST)
    if _text_bytes(parts) > TEXT_BYTES_MAX:
        return False
    # If a page has more tags than the limit, the last part contains all remaining tags.
    parts += _TAG.split(rest, TAGS_MAX - _TAGS_FIRST)
    bytes_all = _text_bytes(parts)
    if bytes_all > TEXT_BYTES_MAX or len(parts) > 2 * TAGS_MAX:
        return False
    marks = _marks_of(parts)
    if marks is None or not marks.runs:
        return False
    if marks.strong:
        return True
    mounted = marks.before_mount is not None
    filled = bytes_all - (marks.before_mount or 0)
    return (mounted or marks.weak) and filled <= BARE_BYTES_MAX and not marks.seen


def has_scripts(html: bytes) -> bool:
    """Whether a page has scripts that a browser runs. Searches the first `TAGS_MAX` script tags."""
    tags = islice(_SCRIPT.finditer(html), TAGS_MAX)
    return any(_RUN.fullmatch(_type_of(tag[0])) is not None for tag in tags)


def _type_of(script: bytes) -> bytes:
    said = _TYPE.match(script[:_LOOK_BYTES])
    return b"" if said is None else said[1].lower()


def _text_bytes(parts: list[bytes]) -> int:
    return sum([len(text.strip()) for text in parts[::2]])


def _marks_of(parts: list[bytes]) -> _Marks | None:
    marks = _Marks()
    text_bytes = 0
    at_mount = False
    for text, tag in zip(parts[::2], parts[1::2], strict=False):
        text_bytes += len(text.strip())
        at_mount = at_mount and not text.strip()
        named = _NAME.match(tag)
        if named is None:  # a comment or a doctype
            continue
        name = named[0].lower()
        marks.strong = marks.strong or (at_mount and name.startswith(b"</"))
        at_mount = False
        if name == b"<script":
            _add_script(marks, tag[:_LOOK_BYTES])
        elif name == b"<noscript":
            if _text_bytes(_TAG.split(tag[9:], TAGS_MAX)) > TEXT_BYTES_MAX:
                return None
            marks.weak = marks.weak or b"javascript" in tag.lower()
        elif name == b"<frameset":
            return None
        elif not name.startswith(b"</"):
            at_mount = _MOUNT.search(tag, 0, _LOOK_BYTES) is not None
            if at_mount and marks.before_mount is None:
                marks.before_mount = text_bytes
            marks.seen = marks.seen or name in _VISIBLE_TAGS
            marks.strong = marks.strong or _BAILOUT in tag
            marks.weak = marks.weak or _MARK.search(tag, 0, _LOOK_BYTES) is not None
    return marks


def _add_script(marks: _Marks, script: bytes) -> None:
    kind = _type_of(script)
    marks.runs = marks.runs or _RUN.fullmatch(kind) is not None
    marks.weak = marks.weak or kind == b"module" or _MARK.search(script) is not None
