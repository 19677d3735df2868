"""A site behind a login, as a fetcher: sessions that expire, and a form with a CSRF token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from orbweaver.model.auth import Login, OriginAuth, PageCheck
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Request, Response
from tests.memory import ManualClock
from tests.unit.stage import CRAWL, SITE, SmallWeb, answer, html

PROVIDER = "https://sso.example.net"
PASSWORD, USER = "s3cr3t-pass", "crawler"
LOGIN = Login(
    url=f"{SITE}/login",
    form="#login",
    inputs=(("username", USER), ("password", "secret:pass")),
    check=PageCheck(selector="a.out"),
)
AUTH = (OriginAuth(origin=SITE, login=LOGIN),)
LOGGED_IN = replace(CRAWL, auth=AUTH, cookies=True, bodies=Bodies.HTML, links=True)
FORM = (
    '<form id="login" method="post" action="/login"><input name="username">'
    '<input type="password" name="password"><input type="hidden" name="csrf" value="{token}">'
    '<button name="go" value="1">Log in</button></form>'
)


class LoginSite(SmallWeb):
    """Pages `/p/N` that link to two more each. A session is valid for `lasts` pages.

    Without a session, the site redirects to the form, shows it in place, or answers 401 or 404.
    """

    def __init__(self, clock: ManualClock, *, pages: int = 40, lasts: int = 1_000) -> None:
        super().__init__(clock)
        self.pages, self.lasts = pages, lasts
        self.how = "redirect"
        self.valid: dict[str, int] = {}
        self.logins: list[Mapping[str, list[str]]] = []
        self.form, self.tokens = FORM, 0
        # Pages that the account may not read.
        self.denied: set[str] = set()
        self.served: list[str] = []
        # A stale session gets a new anonymous one with each response, as PHP does.
        self.resets = False

    async def fetch(self, request: Request) -> Response:
        await super().fetch(request)
        path = urlsplit(request.url).path
        cookies = dict(
            pair.partition("=")[::2] for pair in dict(request.headers).get("Cookie", "").split("; ")
        )
        if path == "/robots.txt":
            return answer(404)
        if path == "/login":
            return self._login(request, cookies)
        sid = cookies.get("sid", "")
        if self.valid.get(sid, 0) <= 0 or path in self.denied:
            return self._anonymous(path)
        self.valid[sid] -= 1
        if path == "/logout":
            self.valid.clear()
            return html()
        self.served.append(path)
        return self._page(path)

    def _page(self, path: str) -> Response:
        number = int(path.rpartition("/")[2] or 0) if path.startswith("/p/") else 0
        onward = [f"/p/{one}" for one in (2 * number + 1, 2 * number + 2) if one < self.pages]
        page = html(*onward, "/logout", "/login", title=f"secret page {number}")
        return replace(page, body=(page.body or b"") + b'<a class="out" href="/logout">out</a>')

    def _anonymous(self, path: str) -> Response:
        if self.how.isdigit():
            return answer(int(self.how))
        if self.how == "refresh":
            return html(refresh=f"0; url=/login?next={path}")
        if self.how == "inplace":
            return self._with_cookies(html(), self._form())
        found = answer(302, location=f"/login?next={path}")
        return _setting(found, "sid=anonymous; Path=/") if self.resets else found

    def _form(self) -> str:
        self.tokens += 1
        return self.form.format(token=f"token-{self.tokens}")

    def _with_cookies(self, page: Response, form: str) -> Response:
        token = form.partition('name="csrf" value="')[2].partition('"')[0]
        page = replace(page, body=(page.body or b"") + form.encode())
        return _setting(page, f"csrf={token}; Path=/")

    def _login(self, request: Request, cookies: Mapping[str, str]) -> Response:
        if request.body is None:
            return self._with_cookies(html(), self._form())
        fields = parse_qs(request.body.decode())
        self.logins.append(fields)
        right = fields["username"] == [USER] and fields["password"] == [PASSWORD]
        if not right or fields["csrf"] != [cookies.get("csrf")] or fields["go"] != ["1"]:
            return self._with_cookies(html(title="wrong"), self._form())
        sid = f"sid-{len(self.logins)}"
        self.valid[sid] = self.lasts
        return _setting(answer(302, location="/home"), f"sid={sid}; Path=/; HttpOnly")


class OpenIdSite(LoginSite):
    """A site whose login page redirects to a provider, which returns with a code and the state."""

    def __init__(self, clock: ManualClock, *, lasts: int) -> None:
        super().__init__(clock, lasts=lasts)
        self.form = FORM.replace(' action="/login"', "")

    async def fetch(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        fields = parse_qs(parts.query)
        if request.url.startswith(f"{SITE}/login"):
            return answer(302, location=f"{PROVIDER}/login?state=a-state")
        if request.url.startswith(f"{SITE}/callback"):
            assert fields == {"state": ["a-state"], "code": ["a-code"]}
            return _setting(answer(302, location="/home"), f"sid=sid-{len(self.logins)}; Path=/")
        found = await super().fetch(request)
        if request.url.startswith(PROVIDER) and found.status == 302:
            location = f"{SITE}/callback?state={fields['state'][0]}&code=a-code"
            return replace(found, headers={**found.headers, "location": location})
        return found

    def _anonymous(self, path: str) -> Response:
        if self.how == "provider":
            return answer(302, location=f"{PROVIDER}/login?state=other")
        return super()._anonymous(path)


def _setting(response: Response, line: str) -> Response:
    headers = {**response.headers, "set-cookie": line}
    return replace(response, headers=headers, cookies=(line.encode(),))
