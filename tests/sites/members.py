"""A site for members: a form with a CSRF token, and sessions that end after some pages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from tests.sites.graph import HTML
from tests.sites.server import AccessLog, Answer, Asked

USER, PASSWORD = "crawler", "s3cr3t-pass-word"
FORM = (
    '<form id="login" method="post"><input name="user"><input type="password" name="pass">'
    '<input type="hidden" name="token" value="{token}"><button>Log in</button></form>'
)


class Members:
    """Pages `/p/N`, each with links to three others and to `/logout`.

    A session is valid for `lasts` pages. After that, the site gives out a new anonymous session
    with each response, as PHP does. After `closes_at` different pages, the site ends all sessions
    once.
    """

    url = ""

    def __init__(self, *, pages: int = 90, lasts: int = 25, closes_at: int = 0) -> None:
        self.log = AccessLog()
        self.pages, self.lasts, self.closes_at = pages, lasts, closes_at
        self._numbers = itertools.count(1)
        self.reset()

    def reset(self) -> None:
        self.sessions: dict[str, int] = {}
        self.logins = self.refused = self.logouts = 0
        self.served: set[int] = set()

    def documents(self) -> Mapping[str, Callable[[], object]]:
        return {}

    def answer(self, asked: Asked) -> Answer:
        path = urlsplit(asked.target).path
        pairs = asked.headers.get("Cookie", "").split("; ")
        cookies = dict(pair.partition("=")[::2] for pair in pairs)
        if path == "/login":
            return self._login(asked, cookies)
        if self.sessions.get(cookies.get("sid", ""), 0) <= 0:
            lines = (("Location", f"/login?next={path}"), self._cookie("sid", "anonymous"))
            return Answer(status=302, headers=lines)
        if path == "/logout":
            self.logouts += 1
            self.sessions.clear()
            return Answer(headers=HTML)
        self.sessions[cookies["sid"]] -= 1
        number = int(path.removeprefix("/p/") or 0) if path.startswith("/p/") else 0
        self.served.add(number)
        if len(self.served) == self.closes_at:
            self.closes_at = 0
            self.sessions.clear()
        links = [f"/p/{one}" for one in range(3 * number + 1, 3 * number + 4) if one < self.pages]
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in (*links, "/login", "/logout"))
        body = f"<title>Members' page {number}</title><p>For members, number {number}.{anchors}"
        return Answer(headers=HTML, body=body.encode())

    def _login(self, asked: Asked, cookies: Mapping[str, str]) -> Answer:
        if asked.method == "POST":
            fields = {name: value[0] for name, value in parse_qs(asked.body.decode()).items()}
            right = (fields.get("user"), fields.get("pass")) == (USER, PASSWORD)
            if right and fields.get("token") == cookies.get("token"):
                self.logins += 1
                sid = f"sid-of-member-{next(self._numbers)}"
                self.sessions[sid] = self.lasts
                return Answer(status=302, headers=(("Location", "/"), self._cookie("sid", sid)))
            self.refused += 1
        token = f"token-of-form-{next(self._numbers)}"
        body = f"<title>Log in</title>{FORM.format(token=token)}"
        return Answer(headers=(*HTML, self._cookie("token", token)), body=body.encode())

    def _cookie(self, name: str, value: str) -> tuple[str, str]:
        return ("Set-Cookie", f"{name}={value}; Path=/; HttpOnly")
