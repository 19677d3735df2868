"""Cases 69 to 73 and 75 to 77: endless places, which a crawl must leave by itself.

All of them are functions of the requested URL, without state or end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, permutations
from urllib.parse import parse_qsl

from tests.sites.hostile.model import Asked, Crawl, Place, Script, Trap, answer, markup
from tests.sites.steps import Step

# Settings of a crawl of the site, and their results.
DEPTH_MAX = 25
BOLD_DEPTH_MAX = 6
FOLDER_URLS_MAX = 110
QUERY_URLS_MAX = 25
CONTAINERS_MAX = 4  # Each container counts separately.
SLOW_S = 0.2
PARAMETERS = tuple("abcdefg")


def _seeded(*parts: object) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:32]


def _html(body: str) -> bytes:
    return answer(body.encode(), "Content-Type: text/html; charset=utf-8")


def _leading(links_of: Callable[[str], Sequence[str]], delay_s: float = 0.0) -> Script:
    """Answer every URL with a new page that links to these."""

    def say(asked: Asked) -> Iterable[Step]:
        if delay_s:
            yield delay_s
        text = f"Only here: {_seeded('text', asked.target)}"
        yield _html(markup(asked.target, links_of(asked.target), text=text))

    return say


def _month(target: str) -> Sequence[str]:
    month = int(dict(parse_qsl(target.partition("?")[2])).get("month", "0"))
    return [f"/calendar?month={month + step}" for step in (1, 2, 3, -1, -2, -3)]


def _deeper(target: str) -> Sequence[str]:
    return ["a/", "b/"]


def _path(target: str) -> Sequence[str]:
    return [f"{len(target.split('/')) * 7:x}z/"]  # The name changes with each page.


def _sessions(target: str) -> Sequence[str]:
    sids = (_seeded(target, number) for number in range(3))
    return [f"/{sid}/cart" for sid in sids] + [
        f"/shop?page={number}&sid={_seeded(target, 'query', number)}" for number in range(3)
    ]


def _shuffled(target: str) -> Sequence[str]:
    start = int(_seeded(target)[:4], 16) % 4_000
    orders = islice(permutations(PARAMETERS), start, start + 10)
    return ["/list?" + "&".join(f"{name}={ord(name)}" for name in order) for order in orders]


def _lost(target: str) -> Sequence[str]:
    return [f"/{_seeded(target, number)}.html" for number in range(5)]


def _soft_404(asked: Asked) -> Iterable[Step]:
    text = f"The page {asked.target} was not found. Reference {_seeded('text', asked.target)}."
    yield _html(markup("404 Not Found", _lost(asked.target), text=text))


def _words(target: str) -> Sequence[str]:
    return [f"/{_seeded(target, number)[:6]}/{_seeded(number, target)[:6]}" for number in (1, 2)]


def _same(asked: Asked) -> Iterable[Step]:
    yield _html(markup("The same", [f"{name}/" for name in "abc"]))


def _growing(target: str) -> Sequence[str]:
    return [f"/{'g' * (len(target) - 1 + step)}" for step in range(1, 4)]


FOLDERS = FOLDER_URLS_MAX * CONTAINERS_MAX
QUERIES = QUERY_URLS_MAX * CONTAINERS_MAX


def _trap(name: str, other: Script, trap: Trap, crawl: Crawl = "polite") -> Place:
    seed = crawl == "polite"
    return Place(name=name, crawl=crawl, other=other, start=False, seed=seed, trap=trap)


PLACES = (
    _trap("calendar", _leading(_month),
          Trap(69, "a calendar without end", QUERY_URLS_MAX, QUERIES + 2, ("pattern",))),
    _trap("growth", _leading(_deeper),
          Trap(70, "links to a/ and b/ from everywhere", 10, 40, ("repetition",))),
    _trap("path", _leading(_path),
          Trap(70, "a path that is longer on every page", 20, 21, ("path_depth",))),
    _trap("sessions", _leading(_sessions),
          Trap(71, "a new session id in every link, in path and query",
               QUERY_URLS_MAX, FOLDERS * 2 + QUERIES, ("pattern",))),
    _trap("shuffled", _leading(_shuffled),
          Trap(72, "the same parameters in every order", QUERY_URLS_MAX, QUERIES + 2,
               ("pattern",))),
    _trap("lost", _soft_404,
          Trap(73, "pages that are not found, with status 200 and a text of their own",
               5, FOLDERS + 2, ("pattern", "repeated", "depth"))),
    _trap("tarpit", _leading(_words, SLOW_S),
          Trap(75, "slow pages that lead to two more of them", 20, 2 ** (BOLD_DEPTH_MAX - 1),
               ("depth",)), crawl="bold"),
    # Paths through three folders, each at most twice.
    _trap("same", _same,
          Trap(76, "the same page at every URL, one folder deeper with every link", 2, 271,
               ("repeated", "repetition"))),
    _trap("growing", _leading(_growing),
          Trap(77, "links that grow by a character", DEPTH_MAX, DEPTH_MAX * 3 + 1,
               ("depth", "pattern"))),
)  # fmt: skip
