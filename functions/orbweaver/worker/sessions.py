"""Keep the logins and cookies of crawls: log in before a host is visited, and when it is lost.

All workers of a crawl share one session per origin. Its state (`worker/session_state.py`) and its
cookies are in the hosts table. A response that asks for a login again is not recorded: the session
is marked as lost, and the URL is requested again after the next login.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.fetching import response_verdict as answers
from orbweaver.fetching.cookies_file import CookiesFileError, read_cookies
from orbweaver.fetching.login_form import UNAUTHORIZED, asks_for_login
from orbweaver.frontier.pack_result import PageResult, Returning
from orbweaver.model.auth import Login, OriginAuth, auth_for, origins_for_login
from orbweaver.model.errors import Permanent
from orbweaver.model.host_access import retries_of
from orbweaver.model.http_exchange import Headers, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target, next_attempt
from orbweaver.model.user_agent import is_value, joined
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import is_down
from orbweaver.politeness.robots_cache import Deferred
from orbweaver.worker.cookies import Cookies
from orbweaver.worker.host_visits import HostVisit, LoginRefused
from orbweaver.worker.session_state import SessionStage, SessionState, from_text, to_text
from orbweaver.worker.shutdown import to_its_end

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Fetcher
    from orbweaver.worker.page_outcome import Answered
    from orbweaver.worker.ports import WorkerPorts

_log = logging.getLogger(__name__)
SESSION_LOST = "session_lost"
COOKIES_ENDED = (
    "it asks for a login, so the imported cookies no longer log in: export fresh cookies, then the"
    " same command or `orbweaver retry` requests it again"
)
LOGINS, LOGINS_FAILED = "logins", "logins_failed"
# A secret is read again after this time, so that a new password needs no restart.
SECRET_MS = 120_000
# Waiting for another worker's login: delay between two reads, and the longest wait in place.
POLL_S, WAIT_S = 1.0, 20.0
DEFERRED_MS = 5_000


@value_class
class SentAs:
    """Headers of a request, and the number of the login that they belong to."""

    headers: Headers = field(repr=False)
    epoch: int = 0


@value_class
class _KnownSession:
    epoch: int
    since_ms: int


class SecretValues:
    """Reads secrets by their references, and caches them in memory for two minutes."""

    def __init__(self, ports: WorkerPorts) -> None:
        self._ports = ports
        self._read: dict[str, tuple[str, int]] = {}

    async def values(self, auth: OriginAuth) -> Mapping[str, str]:
        """Return the secret of each reference. Raises Permanent if one cannot be read."""
        now_ms = self._ports.clock.now_ms()
        for reference in auth.references:
            _, read_at_ms = self._read.get(reference, ("", -SECRET_MS))
            if not 0 <= now_ms - read_at_ms < SECRET_MS:
                self._read[reference] = (await self._ports.secrets.read(reference), now_ms)
        return {reference: self._read[reference][0] for reference in auth.references}


def login_headers(auth: OriginAuth, values: Mapping[str, str]) -> Headers:
    """Return the secret headers of a login. Raises Permanent for a value that no header can have.

    `values` has the secret of each reference.
    """
    if auth.basic is not None:
        user, password = (values.get(one, one) for one in auth.basic)
        if ":" in user:
            raise Permanent("the user name of basic contains a colon, which Basic cannot send")
        token = b64encode(f"{user}:{password}".encode()).decode("ascii")
        return (("Authorization", f"Basic {token}"),)
    headers = tuple((name, values[value]) for name, value in auth.headers)
    if auth.bearer is not None:
        headers = (("Authorization", f"Bearer {values[auth.bearer]}"),)
    for name, value in headers:
        if not is_value(value):
            raise Permanent(f"the secret for the header {name} has line ends or is not ASCII")
    return headers


class Sessions:
    """Logins and cookies of the crawls of this container."""

    def __init__(self, ports: WorkerPorts, fetcher: Fetcher) -> None:
        self._ports = ports
        self._fetcher = fetcher
        self._hosts, self._clock = ports.hosts, ports.clock
        self._cookies = Cookies(hosts=ports.hosts, clock=ports.clock)
        self._secrets = SecretValues(ports)
        # The login whose cookies this container sends, by crawl and origin, while it is valid.
        self._known: dict[tuple[str, str], _KnownSession] = {}
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._name = ""

    # --- requests ---------------------------------------------------------------------------

    async def outgoing(self, crawl: Crawl, url: str, headers: Headers) -> SentAs:
        """Return the headers of a request with the login and the cookies of its origin."""
        auth, epoch = auth_for(crawl.auth, url), 0
        if auth is not None:
            if auth.has_session:
                known = self._known.get((crawl.id, auth.origin))
                epoch = 0 if known is None else known.epoch
            else:
                own = login_headers(auth, await self._secrets.values(auth))
                headers = joined(headers, own)
        if crawl.cookies:
            headers = await self._cookies.headers(crawl.id, url, headers)
        return SentAs(headers=headers, epoch=epoch)

    async def store(self, crawl: Crawl, url: str, answer: Response, sent: SentAs) -> dict[str, int]:
        """Store the cookies of a response, and return counts.

        Cookies of an earlier session are dropped, because they would replace the new session.
        """
        if not (crawl.cookies and answer.cookies):
            return {}
        auth = auth_for(crawl.auth, url)
        if auth is not None and auth.has_session:
            state = from_text(await self._hosts.session(crawl.id, auth.origin))
            asks = auth.asked is not None and asks_for_login(auth.asked, url, answer)
            if state.stage is not SessionStage.VALID or state.epoch != sent.epoch or asks:
                return {}
        refused = await self._cookies.store(crawl.id, url, answer.cookies)
        return {"cookies.refused": refused} if refused else {}

    def is_usable(self, crawl: Crawl, url: str) -> bool:
        """Return False if the session of a URL's origin was lost since its visit began."""
        auth = auth_for(crawl.auth, url)
        return auth is None or not auth.has_session or (crawl.id, auth.origin) in self._known

    # --- login ------------------------------------------------------------------------------

    async def prepare(self, visit: HostVisit) -> Deferred | LoginRefused | None:
        """Log in at the host of a visit, and read its cookies.

        Without a login, return when to try again, or why the URLs of the host fail.
        """
        crawl = visit.context.crawl
        auth = auth_for(crawl.auth, f"{visit.host}/")
        refused = None if auth is None else await self._ready(visit, auth)
        if refused is None and crawl.cookies:
            await self._cookies.load(crawl.id, f"{visit.host}/")
        return refused

    async def _ready(self, visit: HostVisit, auth: OriginAuth) -> Deferred | LoginRefused | None:
        try:
            values = await self._secrets.values(auth)
            if not auth.has_session:
                login_headers(auth, values)
                return None
        except Permanent as error:
            self._count_failure(visit, auth, str(error))
            return LoginRefused(error=str(error))
        if is_down(await self._hosts.read_host(visit.host), self._clock.now_ms()):
            return None  # its URLs fail anyway
        key = (visit.context.crawl.id, auth.origin)
        async with self._locks.setdefault(key, asyncio.Lock()):
            return await self._established(visit, auth, values)

    async def _established(
        self, visit: HostVisit, auth: OriginAuth, values: Mapping[str, str]
    ) -> Deferred | LoginRefused | None:
        key, waited_s = (visit.context.crawl.id, auth.origin), 0.0
        while True:
            text, now_ms = await self._hosts.session(*key), self._clock.now_ms()
            state = from_text(text)
            if state.stage is SessionStage.VALID:
                known = self._known.get(key)
                if known is None or known.epoch != state.epoch:
                    self._known[key] = _KnownSession(epoch=state.epoch, since_ms=now_ms)
                return None
            if state.stage is SessionStage.FAILED:
                return LoginRefused(error=state.error or "the login failed")
            if state.until_ms > now_ms and state.holder != self._own_name:
                if waited_s >= WAIT_S or now_ms >= visit.context.until_ms or not state.holder:
                    return Deferred(return_at_ms=min(state.until_ms, now_ms + DEFERRED_MS))
                await self._clock.sleep(POLL_S)
                waited_s += POLL_S
                continue
            held = state.leased(self._own_name, now_ms)
            if await self._put(key, held, text):
                wait = await self._renewed(visit, auth, values, held)
                if wait is not None:
                    return wait

    async def _renewed(
        self, visit: HostVisit, auth: OriginAuth, values: Mapping[str, str], held: SessionState
    ) -> Deferred | None:
        """Log in as the holder of the lease, and store the new state. Return a delay, if any."""
        from orbweaver.worker.login import (
            LoginDeferredError,
            LoginRejectedError,
            LoginUnreachableError,
        )

        key, after = (visit.context.crawl.id, auth.origin), held.released()
        wait: Deferred | None = None
        try:
            after = await self._after_login(visit, auth, values, held)
            if after.epoch > held.epoch:
                visit.result.count({LOGINS: 1})
                _log.info("session.login", extra={**_told(visit, auth), "epoch": after.epoch})
        except LoginDeferredError as deferred:
            wait = Deferred(return_at_ms=deferred.return_at_ms)
        except (LoginRejectedError, CookiesFileError) as error:
            after = held.rejected(str(error), self._clock.now_ms())
            self._count_failure(visit, auth, str(error))
        except LoginUnreachableError as error:
            after = held.unreachable(str(error), self._clock.now_ms())
            self._count_failure(visit, auth, str(error))
        finally:
            # If the worker ends now, another one must not wait for the end of the lease.
            await to_its_end(self._finish(key, after, held))
        return wait

    def _count_failure(self, visit: HostVisit, auth: OriginAuth, error: str) -> None:
        visit.result.count({LOGINS_FAILED: 1})
        _log.warning("session.login_failed", extra={**_told(visit, auth), "error": error})

    async def _after_login(
        self, visit: HostVisit, auth: OriginAuth, values: Mapping[str, str], held: SessionState
    ) -> SessionState:
        crawl = visit.context.crawl
        if auth.login is None:
            text = values.get(auth.cookies or "", "")
            found = read_cookies(text, auth.origin, self._clock.now_ms())
            if not found.cookies:
                dropped = f"{found.expired} expired, {found.others} of other hosts"
                raise CookiesFileError(f"the file has no cookie for this host: {dropped}")
            await self._cookies.add(crawl.id, f"{auth.origin}/", found.cookies)
            counts = {"cookies.imported": len(found.cookies), "cookies.expired": found.expired}
            visit.result.count(counts)
            return held.logged_in(None)
        from orbweaver.worker.login import (
            LoginAgent,
            LoginDeferredError,
            LoginTask,
            LoginUnreachableError,
        )

        # Another worker may have stored newer cookies.
        for origin in origins_for_login(auth):
            await self._cookies.load(crawl.id, f"{origin}/")

        agent = LoginAgent(
            self._fetcher, self._hosts, self._cookies, self._clock, self._ports.settings
        )
        task = LoginTask(
            crawl=crawl,
            auth=auth,
            until_ms=min(held.until_ms, visit.context.login_until_ms),
            values=values,
            named=visit.context.named,
        )
        check = auth.login.check
        # A cookie alone does not show whether the site still accepts it.
        can_verify = check.url or check.selector or check.text
        lost = held.landing if held.stage is SessionStage.LOST and can_verify else None
        try:
            if lost is not None and await agent.unproven(task, lost) is None:
                return held.verified()
            return held.logged_in(await agent.log_in(task))
        except LoginDeferredError as deferred:
            if not task.sent:
                raise
            # A login cannot continue later. Otherwise its form would be sent again and again.
            why = "the login takes longer than a worker may run: lower the delay of the crawl"
            raise LoginUnreachableError(why) from deferred

    async def _finish(self, key: tuple[str, str], after: SessionState, held: SessionState) -> None:
        # If the lease has expired, another worker has changed the state, which counts.
        await self._put(key, after, to_text(held))

    # --- lost sessions ----------------------------------------------------------------------

    async def judge(
        self, crawl: Crawl, target: Target, given: Answered, at_ms: int
    ) -> Answered | PageResult:
        """Return the response, or another attempt at its URL if the response asks for a login.

        `at_ms` is the time of the request. After the last attempt, the URL fails. Imported cookies
        cannot be renewed, so their URLs fail at once.
        """
        auth, answer = auth_for(crawl.auth, target.url), given.answer
        login = None if auth is None else auth.asked
        if auth is None or login is None or not isinstance(answer, Response):
            return given
        if not _asks(auth, login, target.url, given, answer):
            return given
        counts = {**given.counts, SESSION_LOST: 1}
        if auth.cookies is not None:
            ended = answers.End(outcome=Outcome.FAILED, reason=Reason.LOGIN, error=COOKIES_ENDED)
            _log.info("session.lost", extra={"crawl": crawl.id, "host": auth.origin})
            return replace_given(given, ended, counts)
        await self._mark_lost((crawl.id, auth.origin), at_ms)
        again = answers.Retry(reason=Reason.LOGIN, error="it asked for a login again")
        end = answers.exhausted(again, target.attempt, retries_of(crawl, target.url))
        if end is not None and answer.status == login.lost_page.status:
            return given._replace(counts=counts)  # the session is valid, so this is the page
        if end is not None:
            return replace_given(given, end, counts)
        target = next_attempt(target, SESSION_LOST)
        return PageResult(end=Returning(target=target, delay_s=0, why="retries"), counts=counts)

    async def _mark_lost(self, key: tuple[str, str], at_ms: int) -> None:
        """Mark a session as lost, unless the request belongs to an earlier session."""
        known = self._known.get(key)
        if known is None or at_ms < known.since_ms:
            return
        text = await self._hosts.session(*key)
        state = from_text(text)
        valid = state.stage is SessionStage.VALID and state.epoch == known.epoch
        if valid and await self._put(key, state.lost(), text):
            told = {"crawl": key[0], "host": key[1], "epoch": state.epoch}
            _log.info("session.lost", extra=told)
        if self._known.get(key) is known:
            del self._known[key]

    async def _put(self, key: tuple[str, str], state: SessionState, was: str | None) -> bool:
        return await self._hosts.keep_session(*key, to_text(state), was, self._clock.now_ms())

    @property
    def _own_name(self) -> str:
        if not self._name:
            self._name = f"{self._ports.delivery_random.getrandbits(64):016x}"
        return self._name


def _asks(auth: OriginAuth, login: Login, url: str, given: Answered, answer: Response) -> bool:
    if auth.cookies is not None and answer.status != UNAUTHORIZED and login.is_target(url):
        # A page links to the login page, which has its form in a valid session, too.
        return False
    refresh = None if given.page is None else given.page.refresh
    if refresh is not None and (login.is_page(refresh) or login.is_target(refresh)):
        return True
    page_asks = given.reading is not None and given.reading.lost
    return page_asks or asks_for_login(login, url, answer)


def _told(visit: HostVisit, auth: OriginAuth) -> dict[str, str]:
    return {"crawl": visit.context.crawl.id, "host": auth.origin, "login": auth.kind}


def replace_given(given: Answered, end: answers.End, counts: Mapping[str, int]) -> Answered:
    """Return a response as the failed end of its URL, without its content."""
    answer = (
        replace(given.answer, body=None) if isinstance(given.answer, Response) else given.answer
    )
    return given._replace(answer=answer, verdict=end, reading=None, counts=counts)
