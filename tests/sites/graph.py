"""A small scripted site: answers by path, for one test.

A script is one answer, a sequence (in turn, the last one repeated) or a function of the request. A
path is looked up with its query first, then without; a path without a script gets 404.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager

from tests.sites.server import AccessLog, Answer, Asked, background, listening

Script = Answer | Sequence[Answer] | Callable[[Asked], Answer]

HTML = (("Content-Type", "text/html; charset=utf-8"),)
NOT_FOUND = Answer(status=404, headers=HTML, body=b"<!doctype html><title>Not found</title>")


class Graph:
    """A site of scripts; `scripts` can change while it is served."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self.url = ""
        self.log = AccessLog()
        self.scripts = dict(scripts)
        self._asked: dict[str, int] = {}

    def answer(self, asked: Asked) -> Answer:
        key = asked.target if asked.target in self.scripts else asked.target.partition("?")[0]
        script = self.scripts.get(key, NOT_FOUND)
        if isinstance(script, Answer):
            return script
        if callable(script):
            return script(asked)
        turn = self._asked.get(key, 0)
        self._asked[key] = turn + 1
        return script[min(turn, len(script) - 1)]

    def reset(self) -> None:
        self._asked.clear()

    def documents(self) -> Mapping[str, Callable[[], object]]:
        """Return no documents: the test holds the scripts."""
        return {}


def serve(scripts: Mapping[str, Script], port: int = 0) -> AbstractAsyncContextManager[Graph]:
    return listening(Graph(scripts), port)


def serve_in_background(
    scripts: Mapping[str, Script], port: int = 0
) -> AbstractContextManager[Graph]:
    return background(Graph(scripts), port)


def page(
    title: str,
    links: Sequence[str] = (),
    *,
    text: str = "",
    status: int = 200,
    headers: Sequence[tuple[str, str]] = HTML,
    delay_s: float = 0.0,
) -> Answer:
    items = "".join(f'<li><a href="{html.escape(r)}">{html.escape(r)}</a>' for r in links)
    name = html.escape(title)
    body = (
        f"<!doctype html><title>{name}</title><h1>{name}</h1><p>{html.escape(text)}<ul>{items}</ul>"
    )
    return Answer(status=status, headers=tuple(headers), body=body.encode(), delay_s=delay_s)


def redirect(location: str, status: int = 302) -> Answer:
    return Answer(status=status, headers=(("Location", location),))


def robots(text: str) -> Answer:
    return Answer(headers=(("Content-Type", "text/plain; charset=utf-8"),), body=text.encode())


def chain(length: int, prefix: str = "/chain/") -> dict[str, Answer]:
    """Return pages `/chain/0` to `/chain/LENGTH`, each with a link to the next one."""
    return {
        f"{prefix}{n}": page(f"Link {n}", [f"{prefix}{n + 1}"] if n < length else [])
        for n in range(length + 1)
    }


def redirects(length: int, prefix: str = "/hop/", status: int = 302) -> dict[str, Answer]:
    """Return redirects `/hop/0` to `/hop/LENGTH - 1`, each to the next, and a final page."""
    hops = {f"{prefix}{n}": redirect(f"{prefix}{n + 1}", status) for n in range(length)}
    return {**hops, f"{prefix}{length}": page("The end of the hops")}
