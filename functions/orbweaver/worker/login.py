"""Log in at a site by its form, and check whether a login is still valid.

Each request takes a slot of its host, like a page. robots.txt does not apply, because a user named
the login page. Requests and redirects go only to the origins of the login. No message contains a
value of the form, a cookie or a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from orbweaver.extraction.work_budget import TooMuchError
from orbweaver.fetching.login_form import (
    FilledForm,
    LoginFormError,
    failed_check,
    filled_form,
    is_login_page,
    page_of,
)
from orbweaver.fetching.response_verdict import REDIRECT_MIN, REDIRECTS, REPEATING, SUCCESS_MIN
from orbweaver.model.auth import Login, OriginAuth, origins_for_login
from orbweaver.model.backoff import transient_status
from orbweaver.model.host_access import timeout_of
from orbweaver.model.http_exchange import Failure, Headers, Request, Response, location_of
from orbweaver.model.named_origins import NO_ORIGINS
from orbweaver.model.url import host_of, resolved
from orbweaver.model.user_agent import identity_of, joined
from orbweaver.model.value import positional_value_class, value_class
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES
from orbweaver.politeness.pacer import HostRequests, Pacer

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Clock, Fetcher
    from orbweaver.model.settings import Settings
    from orbweaver.politeness.ports import Hosts
    from orbweaver.worker.cookies import Cookies

REDIRECTS_MAX = 10
_TYPES = HTML_TYPES | {ANY_TYPE}


class LoginRejectedError(Exception):
    """The login failed, and a person must change something."""


class LoginUnreachableError(Exception):
    """The site did not answer, so that a later login can succeed."""


class LoginDeferredError(Exception):
    """There was no slot for a request until `return_at_ms`."""

    def __init__(self, return_at_ms: int) -> None:
        super().__init__("there was no slot")
        self.return_at_ms = return_at_ms


def _ignore(_text: str) -> None:
    return


@value_class
class LoginTask:
    """One login of a crawl, with a callback for its steps. Texts of steps contain no secrets."""

    crawl: Crawl
    auth: OriginAuth
    until_ms: int
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    named: frozenset[str] = NO_ORIGINS
    say: Callable[[str], None] = _ignore
    # URLs of the requests that were sent.
    sent: list[str] = field(default_factory=list, repr=False)

    @property
    def login(self) -> Login:
        assert self.auth.login is not None  # noqa: S101 - only such logins have a task
        return self.auth.login


@positional_value_class
class LoginAgent:
    """Sends the requests of logins, and stores the cookies of their responses."""

    fetcher: Fetcher
    hosts: Hosts
    cookies: Cookies
    clock: Clock
    settings: Settings

    async def log_in(self, task: LoginTask) -> str:
        """Log in, and return the URL at which the login ended.

        Raises LoginRejectedError, LoginUnreachableError or LoginDeferredError.
        """
        login, say = task.login, task.say
        answer, url = await self._follow(task, login.url)
        say(f"page fetched: {_shown(url)}, status {answer.status}")
        if not SUCCESS_MIN <= answer.status < REDIRECT_MIN:
            raise LoginRejectedError(f"the login page has status {answer.status}")
        away = not login.is_page(url) and host_of(url) not in login.origins
        if away and await self.unproven(task, url, (answer, url)) is None:
            say("the session is already valid")
            return url
        if away and (login.lost is None or login.lost.url is None):
            # Otherwise a redirect to the form would not show that the session is lost.
            fix = "give this URL as login.url, or a pattern for it as login.lost.url"
            raise LoginRejectedError(f"the login page redirects to {_shown(url)}: {fix}")
        try:
            filled = filled_form(page_of(answer, url), login, task.values)
        except LoginFormError as error:
            raise LoginRejectedError(f"{_shown(url)}: {error}") from error
        say(f"form found: it is sent to {_shown(filled.url)}")
        say(f"hidden fields: {', '.join(filled.hidden) or 'none'}")
        answer, url = await self._follow(task, filled.url, filled)
        say(f"form sent: {_shown(url)}, status {answer.status}")
        names = await self.cookies.names(task.crawl.id, f"{task.auth.origin}/")
        say(f"cookies: {', '.join(sorted(names)) or 'none'}")
        why = await self.unproven(task, url, (answer, url))
        if why is not None:
            raise LoginRejectedError(f"the check failed: {why}")
        say("check passed")
        return url

    async def unproven(
        self, task: LoginTask, landing: str, got: tuple[Response, str] | None = None
    ) -> str | None:
        """Return why the check of a login fails, or None if the login is valid.

        The check requests its own URL, or else `landing`. `got` is the response of `landing`, if
        it was just requested.
        """
        if got is None or task.login.check.url is not None:
            got = await self._follow(task, task.login.check.url or landing)
        return await self._unproven(task, *got)

    async def _unproven(self, task: LoginTask, answer: Response, url: str) -> str | None:
        login = task.login
        names = await self.cookies.names(task.crawl.id, f"{task.auth.origin}/")
        try:
            document = None if answer.body is None else page_of(answer, url)
            if document is not None and is_login_page(login.lost_page, document):
                return f"{_shown(url)} asks for the login again"
            return failed_check(login.check, answer.status, document, names)
        except (LoginFormError, TooMuchError) as error:
            return str(error)

    async def _follow(
        self, task: LoginTask, url: str, form: FilledForm | None = None
    ) -> tuple[Response, str]:
        """Request a URL and its redirects. Return the last response with its URL."""
        for _ in range(REDIRECTS_MAX + 1):
            answer = await self._ask(task, url, form)
            location = location_of(answer) if answer.status in REDIRECTS else None
            if location is None:
                return answer, url
            target = resolved(location, url, tracking=frozenset())
            if target is None:
                raise LoginRejectedError(f"{_shown(url)} redirects to an invalid URL")
            task.say(f"redirected: {_shown(url)}, status {answer.status}, to {_shown(target)}")
            if form is not None and answer.status in REPEATING:
                if host_of(target) != host_of(url):
                    raise LoginRejectedError("the form is redirected to another origin")
            else:
                form = None
            url = target
        raise LoginRejectedError(f"the login has more than {REDIRECTS_MAX} redirects")

    async def _ask(self, task: LoginTask, url: str, form: FilledForm | None) -> Response:
        if form is None:
            return await self.request(task, url)
        return await self.request(task, url, form.headers, form.body)

    async def request(
        self, task: LoginTask, url: str, own: Headers = (), body: bytes | None = None
    ) -> Response:
        """Request a URL of a login with its `own` headers, and store the cookies of the response.

        `body` makes it a POST. Raises the errors of `log_in`.
        """
        crawl, origin = task.crawl, host_of(url)
        if origin not in origins_for_login(task.auth):
            fix = "if you trust it with the password, add it to login.origins"
            raise LoginRejectedError(f"the login leads to another origin, {origin}: {fix}")
        requests = HostRequests(origin, self.hosts, self.clock)
        pacer = Pacer(requests, delay_ms=crawl.delay_ms, until_ms=task.until_ms)
        return_at_ms = await pacer.wait_for_slot(1)
        if return_at_ms is not None:
            raise LoginDeferredError(return_at_ms)
        task.sent.append(url)
        identity = identity_of(crawl, origin, self.settings.fetching.user_agent)
        headers = joined(identity.headers, own)
        total_s, idle_s = timeout_of(crawl, origin, self.settings.fetching.fetch_total_s)
        answer = await self.fetcher.fetch(
            Request(
                url=url,
                user_agent=identity.agent,
                headers=await self.cookies.headers(crawl.id, url, headers),
                direct=not crawl.proxied,
                accept=_TYPES,
                body=body,
                body_bytes_max=self.settings.fetching.body_bytes_max,
                total_s=total_s,
                idle_s=idle_s,
                named=task.named | origins_for_login(task.auth),
                sent=pacer.note_sent,
            )
        )
        await pacer.release(if_late=True)
        if isinstance(answer, Failure):
            if answer.later_s is not None:
                raise LoginDeferredError(self.clock.now_ms() + round(answer.later_s * 1000))
            raise LoginUnreachableError(f"{_shown(url)}: {answer.detail}")
        if transient_status(answer.status):
            raise LoginUnreachableError(f"{_shown(url)}: HTTP {answer.status}")
        if answer.cookies:
            await self.cookies.store(crawl.id, url, answer.cookies)
        return answer


def _shown(url: str) -> str:
    # A query can contain tokens of the login.
    return url.partition("?")[0]
