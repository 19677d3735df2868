"""Breadth-first walk of a site or a directory, which gives the expected result of a crawl.

It shares no code with the product: Python's own HTML parser finds the links, urllib joins them, and
the robots.txt matcher is a few lines of its own. It follows `a[href]`, `area[href]` and
`link[rel=next]` within the same origin, drops fragments and tracking parameters, and has no delays.
Depth is the number of links on the shortest path; redirects add none. Only HTML pages with status
200 give links. A 429 or 503 is requested once more, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

import aiohttp
from yarl import URL

from tests.sites.reader import links, normal
from tests.sites.server import Asked
from tests.sites.static import Static

USER_AGENT = "walk"
URLS_MAX = 200_000
REDIRECT_STATUSES = {301, 302, 303, 307, 308}
RETRY_STATUSES = {429, 503}
OK = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A source's answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Source(Protocol):
    """Source of pages."""

    async def get(self, url: str) -> Reply:
        pass


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a walk."""

    max_depth: int | None = None
    follow_nofollow: bool = False
    robots: bool = True


@dataclasses.dataclass(slots=True, kw_only=True)
class Walked:
    """The URLs found, each in one set (HTML with 200 is in `pages`), and their depths."""

    pages: set[str] = dataclasses.field(default_factory=set)
    redirected: set[str] = dataclasses.field(default_factory=set)
    failed: set[str] = dataclasses.field(default_factory=set)
    other: set[str] = dataclasses.field(default_factory=set)
    disallowed: set[str] = dataclasses.field(default_factory=set)
    external: set[str] = dataclasses.field(default_factory=set)
    depths: dict[str, int] = dataclasses.field(default_factory=dict)


async def walk(start_url: str, options: Options | None = None) -> Walked:
    async with _live() as source:
        return await _walk(source, start_url, options or Options())


async def walk_directory(
    root: Path, base_url: str = "http://directory.invalid/", options: Options | None = None
) -> Walked:
    """Walk a directory as if it were served at a URL."""
    source = _Directory(root, base_url)
    return await _walk(source, base_url, options or Options(robots=False))


async def _walk(source: Source, start_url: str, options: Options) -> Walked:
    walked = Walked()
    start = normal(start_url)
    origin = urlsplit(start)[:2]
    robots_url = urlunsplit((*origin, "/robots.txt", "", ""))
    rules = _rules(await source.get(robots_url)) if options.robots else []
    walked.depths[start] = 0
    todo = deque([start])
    done: set[str] = set()
    while todo:
        if len(walked.depths) > URLS_MAX:
            raise RuntimeError(f"more than {URLS_MAX} URLs: has the site an end?")
        url = todo.popleft()
        if url in done:
            continue
        done.add(url)
        depth = walked.depths[url]
        if urlsplit(url)[:2] != origin:
            walked.external.add(url)
            continue
        if _forbidden(rules, url):
            walked.disallowed.add(url)
            continue
        reply = await _get(source, url)
        if reply.status in REDIRECT_STATUSES:
            walked.redirected.add(url)
            target = normal(urljoin(url, reply.headers.get("location", "")))
            # Also skips a target in progress, whose earlier path is no longer than this one.
            if target not in done:
                walked.depths[target] = depth
                todo.appendleft(target)
            continue
        for link in _arrive(walked, url, reply, options):
            if link not in walked.depths and depth != options.max_depth:
                walked.depths[link] = depth + 1
                todo.append(link)
    return walked


async def _get(source: Source, url: str) -> Reply:
    reply = await source.get(url)
    return await source.get(url) if reply.status in RETRY_STATUSES else reply


def _arrive(walked: Walked, url: str, reply: Reply, options: Options) -> list[str]:
    """Record a URL's outcome, and return the links to follow from there."""
    if reply.status != OK:
        walked.failed.add(url)
        return []
    content_type = reply.headers.get("content-type", "").lower()
    if not content_type.startswith(("text/html", "application/xhtml+xml")):
        walked.other.add(url)
        return []
    walked.pages.add(url)
    return links(
        url,
        reply.body,
        content_type=reply.headers.get("content-type", ""),
        x_robots_tag=reply.headers.get("x-robots-tag", ""),
        follow_nofollow=options.follow_nofollow,
    )


def _rules(reply: Reply) -> list[tuple[str, bool]]:
    """Return the (pattern, allowed) rules for all agents of a robots.txt (RFC 9309, 2.2)."""
    if reply.status != OK:
        return []
    rules: list[tuple[str, bool]] = []
    applies = in_agents = False
    for line in reply.body.decode("utf-8", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        match name.lower():
            case "user-agent":
                applies = value == "*" or (in_agents and applies)
                in_agents = True
            case "allow" | "disallow" as word:
                in_agents = False
                if applies and value:
                    rules.append((value, word == "allow"))
    return rules


def _forbidden(rules: list[tuple[str, bool]], url: str) -> bool:
    """True if the longest matching rule forbids a URL; a tie allows (RFC 9309, 2.2.2)."""
    target = urlunsplit(("", "", *urlsplit(url)[2:4], ""))
    matching = [(len(p), allowed) for p, allowed in rules if _pattern(p).match(target)]
    return bool(matching) and not max(matching)[1]


def _pattern(rule: str) -> re.Pattern[str]:
    anchored = rule.endswith("$")
    text = ".*".join(re.escape(part) for part in rule.removesuffix("$").split("*"))
    return re.compile(text + ("$" if anchored else ""))


class _Live:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, url: str) -> Reply:
        async with self._session.get(URL(url, encoded=True), allow_redirects=False) as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Reply(status=answer.status, headers=headers, body=await answer.read())


@contextlib.asynccontextmanager
async def _live() -> AsyncIterator[_Live]:
    headers = {"User-Agent": USER_AGENT}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield _Live(session)


class _Directory:
    """A directory's files, answered like a plain file server."""

    def __init__(self, root: Path, base_url: str) -> None:
        self._site = Static(root)
        self._prefix = urlsplit(base_url).path.rstrip("/")

    async def get(self, url: str) -> Reply:
        path = urlsplit(url).path
        if not path.startswith(self._prefix + "/"):
            return Reply(status=404, headers={}, body=b"")
        target = path.removeprefix(self._prefix)
        asked = Asked(method="GET", target=target, host="", headers={})
        answer = await asyncio.to_thread(self._site.answer, asked)
        headers = {name.lower(): value for name, value in answer.headers}
        if "location" in headers:
            headers["location"] = self._prefix + headers["location"]
        return Reply(status=answer.status, headers=headers, body=answer.body)
