"""A forum with the URLs of a popular one: 400 threads with ten posts per page, on 8 boards.

It is as hostile as real forums. Each post has a URL that shows its thread. Threads and boards can
be sorted and printed. Every post has links to quote, edit and report it, which lead to a log-in.
There are member pages, searches, a calendar, and session ids in URLs. Forms and the log-in answer
200, and no page has `noindex` or a canonical URL. An article is a page of a thread in its default
order. A post's URL and the print view show it too.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import TYPE_CHECKING

from bench.yields import texts
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.own import Page, Visit, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.yields.place import Place

BOARDS, THREADS, MEMBERS = 8, 400, 150
POSTS_A_PAGE, THREADS_A_PAGE, MEMBERS_A_PAGE = 10, 25, 25
DAYS = (0, 1, 7, 30, 365)
TOPIC, BOARD, MEMBER = "/viewtopic.php", "/viewforum.php", "/memberlist.php"
MENU = ("/", "/search.php", "/memberlist.php", "/calendar.php", "/faq.php", "/ucp.php")
MONTHS = 12 * 9_999


@cache
def lengths() -> tuple[int, ...]:
    """Return the number of posts of each thread: most have few, some many."""
    random = Random("threads")
    return tuple(1 + int(40 * random.random() ** 3) for _ in range(THREADS))


@cache
def firsts() -> tuple[int, ...]:
    """Return the number of each thread's first post, counted over all threads."""
    found = [1]
    for length in lengths():
        found.append(found[-1] + length)
    return tuple(found)


def prepare(place: Place) -> Truth:
    """Return the pages of all threads. A post is an alias of its page."""
    posts = {
        f"p{firsts()[thread] + at}": _key(thread, at - at % POSTS_A_PAGE)
        for thread, length in enumerate(lengths())
        for at in range(length)
    }
    return Truth(articles=frozenset(posts.values()), aliases=posts)


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the thread's page or of the post that a target shows."""
    path, query = query_of(target)
    if path != TOPIC or query.keys() & {"sk", "st", "sd"} or query.get("view", "print") != "print":
        return ()
    if "p" in query:
        return (f"p{query['p']}",)
    start, thread = query.get("start", "0"), query.get("t", "")
    if not (start.isdigit() and thread.isdigit()):
        return ()
    return (_key(int(thread), int(start) - int(start) % POSTS_A_PAGE),)


def page(visit: Visit) -> Page:
    views: dict[str, Callable[[Visit], Page]] = {
        "/": _boards,
        "/index.php": _boards,
        BOARD: _board,
        TOPIC: _thread,
        MEMBER: _members,
        "/posting.php": _log_in,
        "/report.php": _log_in,
        "/ucp.php": _log_in,
        "/calendar.php": _calendar,
        "/search.php": _search,
        "/faq.php": lambda _: Page("Questions", texts.paragraph(Random("faq"))),
    }
    return views.get(visit.path, _absent)(visit)


def _key(thread: int, start: int) -> str:
    return f"t{thread} from {start}"


def _absent(_visit: Visit) -> Page:
    return Page("Not found", "There is no such page.", status=404)


def _boards(visit: Visit) -> Page:
    boards = (visit.link(texts.title(60 + n), BOARD, f=n) for n in range(BOARDS))
    return Page("The forum", "<br>".join(boards))


def _log_in(visit: Visit) -> Page:
    lost = visit.link("forgot your password?", "/ucp.php", mode="sendpassword")
    return Page("Log in", f"<form method=post><input name=user></form>{lost}")


def _orders(visit: Visit, **where: object) -> str:
    ways = (
        visit.link(f"{key}{way}{days}", visit.path, **where, st=days, sk=key, sd=way)
        for days in DAYS
        for key in "ats"
        for way in "ad"
    )
    return " ".join(ways)


def _pages(visit: Visit, count: int, size: int, **where: object) -> str:
    starts = range(0, count, size)
    links = (
        visit.link(str(n + 1), visit.path, **where, start=at or None) for n, at in enumerate(starts)
    )
    return " ".join(links)


def _board(visit: Visit) -> Page:
    board = visit.number("f", 0, BOARDS)
    threads = [number for number in range(THREADS) if number % BOARDS == board]
    if board == BOARDS:
        return Page("Information", "The requested forum does not exist.", status=404)
    kept = {name: visit.query.get(name) for name in ("st", "sk", "sd")}
    if kept["sd"] == "d":
        threads.reverse()
    start = visit.number("start", 0, len(threads))
    rows = (
        f"<li>{visit.link(_title(number), TOPIC, f=board, t=number)} by "
        f"{_member(visit, number % MEMBERS)}, last: "
        f"{visit.link('>', TOPIC, f=board, p=firsts()[number + 1] - 1)}"
        for number in threads[start : start + THREADS_A_PAGE]
    )
    links = [_pages(visit, len(threads), THREADS_A_PAGE, f=board, **kept), _orders(visit, f=board)]
    links += [visit.link("new topic", "/posting.php", mode="post", f=board)]
    links += [visit.link("mark read", BOARD, f=board, mark="topics")]
    return Page(f"Board {texts.title(60 + board)}", f"<ul>{''.join(rows)}</ul>{' '.join(links)}")


def _thread(visit: Visit) -> Page:
    thread, start = _shown(visit)
    if thread is None:
        return Page("Information", "The requested topic does not exist.", status=404)
    posts = list(range(lengths()[thread]))
    if visit.query.get("sd") == "d":
        posts.reverse()
    text = "".join(_post(visit, thread, at) for at in posts[start : start + POSTS_A_PAGE])
    if visit.query.get("view") == "print":
        return Page(_title(thread), text)
    board = thread % BOARDS
    where = {"f": board, "t": thread}
    links = [_pages(visit, len(posts), POSTS_A_PAGE, **where), _orders(visit, **where)]
    links += [visit.link(name, TOPIC, **where, view=name) for name in ("next", "previous", "print")]
    links += [visit.link("reply", "/posting.php", mode="reply", **where)]
    links += [visit.link("subscribe", TOPIC, **where, watch="topic")]
    links += [visit.link("the board", BOARD, f=board)]
    return Page(_title(thread), f"{text}{' '.join(links)}")


def _shown(visit: Visit) -> tuple[int | None, int]:
    """Return the requested thread, and the first post of the requested page."""
    if "p" in visit.query:
        post = visit.number("p", 0, firsts()[-1])
        for thread, length in enumerate(lengths()):
            at = post - firsts()[thread]
            if 0 <= at < length:
                return thread, at - at % POSTS_A_PAGE
        return None, 0
    thread = visit.number("t", THREADS, THREADS)
    step = {"next": BOARDS, "previous": -BOARDS}.get(visit.query.get("view", ""), 0)
    if not 0 <= thread + step < THREADS:
        return None, 0
    start = visit.number("start", 0, lengths()[thread] - 1)
    return thread + step, 0 if step else start - start % POSTS_A_PAGE


def _post(visit: Visit, thread: int, at: int) -> str:
    number = firsts()[thread] + at
    random = Random(f"post {number}")
    where = {"f": thread % BOARDS, "p": number}
    links = [visit.link("#", TOPIC, **where)]
    links += [
        visit.link(mode, "/posting.php", mode=mode, **where) for mode in ("quote", "edit", "delete")
    ]
    links += [visit.link("report", "/report.php", **where)]
    author = _member(visit, random.randrange(MEMBERS))
    return f"<div>{author} {' '.join(links)}<p>{texts.paragraph(random)}</p></div>"


def _members(visit: Visit) -> Page:
    if visit.query.get("mode") == "viewprofile":
        member = visit.number("u", 0, MEMBERS - 1)
        links = [visit.link("posts", "/search.php", author_id=member, sr="posts")]
        links += [visit.link("message", "/ucp.php", i="pm", mode="compose", u=member)]
        return Page(f"Profile of member {member}", " ".join(links))
    start = visit.number("start", 0, MEMBERS)
    shown = range(start, min(MEMBERS, start + MEMBERS_A_PAGE))
    names = " ".join(_member(visit, member) for member in shown)
    pages = _pages(visit, MEMBERS, MEMBERS_A_PAGE, sk=visit.query.get("sk"))
    letters = (visit.link(letter, MEMBER, first_char=letter) for letter in "abcdefghijklmnop")
    return Page("Members", f"{names} {pages} {_orders(visit)} {' '.join(letters)}")


def _member(visit: Visit, number: int) -> str:
    return visit.link(f"member {number}", MEMBER, mode="viewprofile", u=number)


def _calendar(visit: Visit) -> Page:
    month = visit.number("month", 2_020 * 12, MONTHS)
    links = [visit.link("before", "/calendar.php", month=max(0, month - 1))]
    links += [visit.link("after", "/calendar.php", month=month + 1)]
    links += [visit.link(str(day), "/calendar.php", month=month, day=day) for day in range(1, 29)]
    return Page(f"Calendar {month // 12}-{month % 12 + 1:02}", " ".join(links))


def _search(visit: Visit) -> Page:
    if "author_id" not in visit.query:
        recent = visit.link("active topics", "/search.php", search_id="active_topics")
        return Page("Search", f"<form><input name=keywords></form>{recent}")
    random = Random(visit.query["author_id"])
    found = (random.randrange(1, firsts()[-1]) for _ in range(8))
    return Page("Search", " ".join(visit.link("post", TOPIC, p=post) for post in found))


def _title(thread: int) -> str:
    return texts.title(2_000 + thread)


APPLICATION = Application(
    name="forum",
    title="Forum",
    prepare=prepare,
    serve=serving("forum"),
    keys_of=keys_of,
)
