"""A generated site: any number of pages of one size with 50 links each, always the same.

Pages look like a manual's: a menu, a trail, running text with markup, tables, listings, and a list
of further reading. The text is one of a few articles of the right size. Title, description and
links differ per page. All pages can be reached from the first: page n links to 4n+1 to 4n+4. A
generator seeded with n chooses the other links, mostly to early pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from random import Random

LINKS = 50
MENU = 8
CHILDREN = 4
ARTICLES = 16
SECTIONS = 40
SYLLABLES = "al an ar bo ce da de el en er fo ga ha in ka la le li ma me na ne no on or pa ra re"
SYLLABLES_MORE = "ri ro sa se si so ta te ti to tra u ve vi wa"
PARTS = ("p", "p", "p", "p", "section", "list", "table", "code", "note")
_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%b</title>
<meta name="description" content="%b">
<link rel="stylesheet" href="/static/site.css"><script src="/static/site.js" defer></script>
</head><body class="page">
"""
_FOOT = """<footer class="foot"><p>Made up, from a seed.</p></footer>
<script>window.page={"loaded":true,"sections":[1,2,3]};</script>
</body></html>
"""


def path_of(number: int) -> str:
    """Return the path of a page. The first page is the site's root."""
    return "/" if number == 0 else f"/section-{number % SECTIONS}/{_slug(number)}-{number}.html"


def pages(count: int, size_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield path and HTML of all pages, each of about `size_bytes`."""
    articles = [_article(size_bytes, LINKS, Random(seed)) for seed in range(ARTICLES)]
    for number in range(count):
        yield path_of(number), _page(number, count, articles)


def links_of(number: int, count: int) -> list[int]:
    """Return the numbers of the pages that a page links to: 50 others, or all of a smaller site."""
    found = dict.fromkeys(range(min(MENU, count)))
    first = CHILDREN * number + 1
    found |= dict.fromkeys(range(first, min(first + CHILDREN, count)))
    random = Random(number)
    wanted = min(LINKS, count - 1)
    found.pop(number, None)
    while len(found) < wanted:
        # The square of a random fraction makes links to early pages more likely.
        other = int(count * random.random() ** 2)
        if other != number:
            found[other] = None
    return list(found)


def _page(number: int, count: int, articles: Sequence[bytes]) -> bytes:
    links = [_link(other) for other in links_of(number, count)]
    links += [b""] * (LINKS - len(links))
    title = f"{_title(number)} - the made-up manual".encode()
    about = f"What there is to know of {_title(number).lower()}, page {number} of {count}.".encode()
    slots = (title, about, *links[:MENU], title, *links[MENU:])
    return articles[number % len(articles)] % slots


@cache
def _link(number: int) -> bytes:
    target = path_of(number)
    # Real sites write their links in several ways.
    if number % 7 == 0:
        target += "#details"
    return f'<a class="ref" href="{target}">{escape(_title(number))}</a>'.encode()


@cache
def _title(number: int) -> str:
    random = Random(f"title {number}")
    return " ".join(_words(random, 3)).capitalize()


@cache
def _slug(number: int) -> str:
    return "-".join(_words(Random(f"slug {number}"), 2))


def _article(size_bytes: int, links: int, random: Random) -> bytes:
    """Write an article with gaps for links, as a template for `%`."""
    inner = links - MENU
    menu = "".join("<li>%b</li>" for _ in range(MENU))
    top = f'{_HEAD}<nav class="menu"><ul>{menu}</ul></nav><main><h1>%b</h1>\n'
    # The size of links, title and description is estimated.
    room = size_bytes - len(top) - len(_FOOT) - 85 * links
    parts: list[str] = []
    while room > 0:
        part = _part(random.choice(PARTS), random)
        parts.append(part)
        room -= len(part)
    # A third of the gaps is spread over the text. The others form a list of further reading.
    scattered = inner // 3
    for place in sorted(random.sample(range(len(parts)), min(scattered, len(parts))), reverse=True):
        parts.insert(place, "<p>See also %b for more of it.</p>\n")
    left = inner - min(scattered, len(parts) - min(scattered, len(parts)))
    further = "".join("<li>%b</li>\n" for _ in range(left))
    text = f'{top}{"".join(parts)}<ul class="further">{further}</ul></main>{_FOOT}'
    return text.encode()


def _part(kind: str, random: Random) -> str:
    """Write a paragraph, list, table, listing, note or heading, without per cent signs."""
    match kind:
        case "list":
            rows = (f"<li>{_sentence(random)}</li>" for _ in range(random.randint(3, 7)))
            return f'<ul class="plain">{"".join(rows)}</ul>\n'
        case "table":
            rows = (
                "<tr>" + "".join(f"<td>{word}</td>" for word in _words(random, 4)) + "</tr>"
                for _ in range(random.randint(3, 8))
            )
            return f'<table class="docutils"><tbody>{"".join(rows)}</tbody></table>\n'
        case "code":
            lines = (
                f'<span class="k">{word}</span> <span class="o">=</span> {random.randint(0, 99)}'
                for word in _words(random, random.randint(4, 12))
            )
            return f'<div class="highlight"><pre>{chr(10).join(lines)}</pre></div>\n'
        case "note":
            return f'<div class="note"><p><strong>Note</strong> {_sentence(random)}</p></div>\n'
        case "section":
            number, word = random.randint(1, 999), _words(random, 1)[0]
            return f'<h2 id="section-{number}">{word.capitalize()}</h2>\n'
        case _:
            sentences = " ".join(_sentence(random) for _ in range(random.randint(3, 6)))
            return f"<p>{sentences}</p>\n"


def _sentence(random: Random) -> str:
    words = _words(random, random.randint(7, 16))
    marked = random.randrange(len(words))
    tag = random.choice(("em", "code", "strong", "span"))
    words[marked] = f"<{tag}>{words[marked]}</{tag}>"
    return " ".join(words).capitalize() + "."


def _words(random: Random, count: int) -> list[str]:
    vocabulary = _vocabulary()
    return [random.choice(vocabulary) for _ in range(count)]


@cache
def _vocabulary() -> tuple[str, ...]:
    random, syllables = Random(0), f"{SYLLABLES} {SYLLABLES_MORE}".split()
    return tuple("".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(4_000))
