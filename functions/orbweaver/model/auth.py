"""Define how a crawl logs in at an origin, with references to secrets instead of secrets.

A reference names the place of a secret: `env:NAME` (variable), `file:PATH`, `secret:NAME` (Secrets
Manager, or a file of the store), `ssm:NAME` (SSM parameter). Stored crawls contain references only.
`model/auth_checks.py` validates them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from ada_url import URLSearchParams

from orbweaver.model.http_exchange import Headers
from orbweaver.model.url import host_of
from orbweaver.model.url_patterns import matches
from orbweaver.model.value import value_class

ENV, FILE, SECRET, SSM = "env:", "file:", "secret:", "ssm:"
PLACES = (ENV, FILE, SECRET, SSM)
# Places that a stack can read, and that a request over HTTP can name. Otherwise a caller of the API
# could send any file of the machine to a site.
REMOTE_PLACES = (SECRET, SSM)
# Matches links that end a session. It needs no letter before and after the word.
LOGOUT = (
    r"(?i)(?:^|[^a-z]|%3a)(?:user)?"
    r"(?:log[_-]?out|log[_-]?off|sign[_-]?out|sign[_-]?off|abmelden|ausloggen|deconnexion)"
    r"(?:$|[^a-z])"
)
# Matches URLs of login pages. A user who imports cookies does not name the login page.
LOGIN_URL = (
    r"(?i)^https?://[^/]+/(?:[^?]*[^a-z?])?"
    r"(?:log[_-]?in|log[_-]?on|sign[_-]?in|sessions?/new|sso|authorize|anmelden|einloggen|connexion)"
    r"(?:$|[^a-z])|[^a-z]userlogin(?:$|[^a-z])"
)
# Matches a password field. The form around it is the login form.
FORM = 'input[type="password"]'
# Parameters with the page to which a login returns, so that they differ each time.
_RETURN = re.compile(r"(?i)next|return|redir|continue|dest|from|back|url|service|goto|state")
KINDS = ("basic", "bearer", "headers", "cookies", "login")


@value_class
class PageCheck:
    """Conditions on a response. Conditions that are None do not count.

    `url` is the URL to request for the check, or a pattern of a redirect's target. `without` is a
    selector that matches nothing.
    """

    url: str | None = None
    status: int | None = None
    selector: str | None = None
    text: str | None = None
    cookie: str | None = None
    without: str | None = None


@value_class
class Login:
    """A login form: its page, values of its fields (`inputs`), and the proof of a login.

    `form` is a selector of the form or of an element in it. `lost` detects a page that asks for
    another login. `logout` is a pattern of links that end the session. `origins` names the origins
    of an identity provider, to which `url` redirects.
    """

    url: str
    form: str = FORM
    inputs: Headers = ()
    check: PageCheck = PageCheck()
    lost: PageCheck | None = None
    logout: str = LOGOUT
    origins: tuple[str, ...] = ()

    @property
    def lost_page(self) -> PageCheck:
        return self.lost or PageCheck(selector=self.form)

    def is_page(self, url: str) -> bool:
        """Return True if `url` is the login page, perhaps with further parameters."""
        path, _, query = self.url.partition("?")
        other, _, given = url.partition("?")
        named = {pair for pair in _parameters(query) if not _RETURN.search(pair[0])}
        return path == other and named <= _parameters(given)

    def is_target(self, url: str) -> bool:
        """Return True if a redirect to `url` shows that the session has ended."""
        if host_of(url) in self.origins:
            return True
        if self.lost is not None and self.lost.url is not None:
            return matches((self.lost.url,), url)
        return self.is_page(url)


def _parameters(query: str) -> frozenset[tuple[str, str]]:
    return frozenset(URLSearchParams(query).items())


@value_class
class OriginAuth:
    """How a crawl logs in at one origin. It has exactly one of the other fields.

    `basic` is a user name and the reference of the password. `headers` has references as values.
    """

    origin: str
    basic: tuple[str, str] | None = None
    bearer: str | None = None
    headers: Headers = ()
    cookies: str | None = None
    login: Login | None = None

    @property
    def kind(self) -> str:
        return next((name for name in KINDS if getattr(self, name)), "")

    @property
    def references(self) -> tuple[str, ...]:
        """The references to the secrets of this login, without literal texts."""
        values = [*(self.basic or ()), self.bearer, self.cookies]
        values += [value for _, value in self.headers]
        values += [value for _, value in self.login.inputs] if self.login else []
        return tuple(dict.fromkeys(value for value in values if value and is_reference(value)))

    @property
    def has_session(self) -> bool:
        return self.login is not None or self.cookies is not None

    @property
    def asked(self) -> Login | None:
        """The login that responses of a lost session ask for."""
        return _ASKED_WITH_COOKIES if self.cookies is not None else self.login


_ASKED_WITH_COOKIES = Login(url="", lost=PageCheck(selector=FORM, url=LOGIN_URL))


def is_reference(value: str) -> bool:
    return value.startswith(PLACES)


def auth_for(auth: tuple[OriginAuth, ...], url: str) -> OriginAuth | None:
    """Return the login of a URL's origin. Other origins never get its headers."""
    return next((one for one in auth if url.startswith(f"{one.origin}/")), None)


def login_of_page(auth: tuple[OriginAuth, ...], url: str, body: bytes) -> Login | None:
    """Return the login that a page may ask for again, or None if that is impossible."""
    found = auth_for(auth, url)
    login = None if found is None else found.asked
    if found is None or login is None:
        return None
    # The default condition needs a password field, and most pages have none.
    is_default = found.login is None or login.lost is None
    if is_default and b"password" not in body.lower():
        return None
    return login


def keeps_cookies(auth: tuple[OriginAuth, ...]) -> bool:
    return any(one.has_session for one in auth)


def leaves_session(auth: tuple[OriginAuth, ...], url: str) -> bool:
    """Return True if a URL is the login page or a logout link of a session."""
    # A logout link of the identity provider ends the session, too.
    origin = host_of(url) if auth else ""
    found = next((one for one in auth if origin in origins_for_login(one)), None)
    if found is None or not found.has_session:
        return False
    if found.login is None:
        return matches((LOGOUT,), url)
    return found.login.is_page(url) or matches((found.login.logout,), url)


def login_prefix(stack: str, place: str = SECRET) -> str:
    """Return the beginning of all names at a place that a stack's workers can read for logins."""
    # SSM requires a slash at the beginning of a name with slashes. A secret's name has none.
    return f"{'/' if place == SSM else ''}{stack}/logins/"


def problem_at_place(auth: tuple[OriginAuth, ...], stack: str | None) -> str | None:
    """Return why a stack, or without a name this machine, cannot read a secret of the logins.

    None: it can.
    """
    for reference in (reference for one in auth for reference in one.references):
        place, _, name = reference.partition(":")
        if stack is None:
            if reference.startswith(SSM):
                fix = "give env:NAME, file:PATH or secret:NAME, or name a stack by --target"
                return f"{place}: is read by a stack on AWS only: {fix}"
            continue
        if not _is_remote(reference):
            fix = f"put it into Secrets Manager, and give {SECRET}{login_prefix(stack)}NAME"
            return f"{place}: is on this machine, where a stack on AWS cannot read it: {fix}"
        prefix = login_prefix(stack, f"{place}:")
        if not name.startswith(prefix) or name == prefix:
            fix = f"store it below {prefix}, and give {place}:{prefix}NAME"
            return f"the stack cannot read {reference!a}: {fix}"
    return None


def names_place_over_http(auth: tuple[OriginAuth, ...]) -> str | None:
    """Return the place of a reference that a request over HTTP must not name, or None."""
    references = (reference for one in auth for reference in one.references)
    return next((f"{one.partition(':')[0]}:" for one in references if not _is_remote(one)), None)


def _is_remote(reference: str) -> bool:
    return reference.startswith(REMOTE_PLACES)


def absolute(auth: tuple[OriginAuth, ...], folder: str) -> tuple[OriginAuth, ...]:
    """Return logins whose `file:` references have absolute paths. `folder` ends with a slash."""
    return tuple(_absolute(one, folder) for one in auth)


def _absolute(one: OriginAuth, folder: str) -> OriginAuth:
    def placed(value: str) -> str:
        path = value.removeprefix(FILE)
        if not value.startswith(FILE) or path.startswith("/"):
            return value
        return f"{FILE}{folder}{path}"

    login = one.login
    if login is not None:
        login = replace(login, inputs=tuple((name, placed(own)) for name, own in login.inputs))
    return replace(
        one,
        basic=None if one.basic is None else (placed(one.basic[0]), placed(one.basic[1])),
        bearer=None if one.bearer is None else placed(one.bearer),
        headers=tuple((name, placed(value)) for name, value in one.headers),
        cookies=None if one.cookies is None else placed(one.cookies),
        login=login,
    )


@lru_cache(maxsize=64)
def origins_for_login(one: OriginAuth) -> frozenset[str]:
    """Return the origins to which a login may send requests: its own, its page's and `origins`."""
    login = one.login
    return frozenset({one.origin, host_of(login.url), *login.origins} if login else {one.origin})
