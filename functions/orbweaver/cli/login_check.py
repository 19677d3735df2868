"""`check --login`: try the logins of a definition, and report each step without secrets.

This machine sends the requests, even with the secrets of a stack. A temporary store, which is
deleted at the end, has the cookies.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orbweaver.adapters.local.secrets import LocalSecrets
from orbweaver.app.store_ports import SECRETS
from orbweaver.app.wiring import fetcher_of
from orbweaver.cli import text
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import chosen
from orbweaver.cli.store import opened_store, store_of
from orbweaver.fetching.cookies_file import CookiesFileError, read_cookies
from orbweaver.fetching.login_form import (
    LoginFormError,
    asks_for_login,
    is_login_page,
    page_of,
)
from orbweaver.fetching.response_verdict import REDIRECTS
from orbweaver.model.auth import Login, OriginAuth, problem_at_place
from orbweaver.model.errors import Permanent
from orbweaver.model.http_exchange import Response, location_of
from orbweaver.model.named_origins import origins_of
from orbweaver.model.settings import STORE
from orbweaver.model.url import host_of, resolved
from orbweaver.worker.cookies import Cookies
from orbweaver.worker.login import (
    REDIRECTS_MAX,
    LoginAgent,
    LoginDeferredError,
    LoginRejectedError,
    LoginTask,
    LoginUnreachableError,
)
from orbweaver.worker.sessions import login_headers

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Secrets

_EXPORT = "the cookies do not log in: export fresh cookies"
# Longest time for one login, with the delay before each request.
LOGIN_MS_MAX = 180_000


async def try_logins(arguments: Namespace, around: CliContext, crawl: Crawl) -> int:
    """Try each login of a crawl. Return `FAILED` if one fails."""
    if not crawl.auth:
        fix = 'write [auth."https://example.org"] (docs/login.md)'
        raise UsageError(f"{arguments.file} has no login to try: {fix}")
    failed = False
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        place = Path(folder) / STORE
        async with (
            _secrets_of(arguments, around, crawl) as secrets,
            opened_store(place, around.environment, writes=True) as ports,
        ):
            fetcher = fetcher_of(ports)
            cookies = Cookies(hosts=ports.hosts, clock=ports.clock)
            agent = LoginAgent(fetcher, ports.hosts, cookies, ports.clock, ports.settings)
            async with aclosing(fetcher):  # type: ignore[type-var]
                for auth in crawl.auth:
                    steps: list[str] = []
                    error = await _error_of(agent, crawl, auth, secrets, steps)
                    failed = failed or error is not None
                    _show(arguments, around, auth, steps, error)
    return FAILED if failed else OK


@asynccontextmanager
async def _secrets_of(
    arguments: Namespace, around: CliContext, crawl: Crawl
) -> AsyncIterator[Secrets]:
    """Open the secrets of this machine, or of the stack that the options name.

    Raises UsageError if a reference cannot be read there.
    """
    folder = store_of(arguments, around.folder, around.environment, makes=True)
    if folder is not None:
        _check_place(crawl, None)
        yield LocalSecrets(folder / SECRETS, around.environment)
        return
    async with chosen(arguments, around) as session:
        _check_place(crawl, session.settings.names.stack)
        yield session.ports.secrets


def _check_place(crawl: Crawl, stack: str | None) -> None:
    why = problem_at_place(crawl.auth, stack)
    if why is not None:
        raise UsageError(f"auth: {why}")


async def _error_of(
    agent: LoginAgent, crawl: Crawl, auth: OriginAuth, secrets: Secrets, steps: list[str]
) -> str | None:
    """Try one login. Return why it failed, or None."""
    try:
        values = {one: await secrets.read(one) for one in auth.references}
        steps.append(f"secrets read: {', '.join(values) or 'none'}")
        task = LoginTask(
            crawl=crawl,
            auth=auth,
            until_ms=agent.clock.now_ms() + LOGIN_MS_MAX,
            values=values,
            named=origins_of(crawl),
            say=steps.append,
        )
        return await _refusal_of(agent, task, steps)
    except LoginDeferredError:
        return "the host must not be requested now: try again later"
    except (Permanent, CookiesFileError, LoginRejectedError, LoginUnreachableError) as error:
        return str(error)


async def _refusal_of(agent: LoginAgent, task: LoginTask, steps: list[str]) -> str | None:
    auth, crawl = task.auth, task.crawl
    if auth.login is not None:
        await agent.log_in(task)
        return None
    if auth.cookies is not None:
        found = read_cookies(task.values[auth.cookies], auth.origin, agent.clock.now_ms())
        names = ", ".join(one.name for one in found.cookies) or "none"
        dropped = f"dropped: {found.expired} expired, {found.others} of other hosts"
        steps.append(f"cookies: {names}; {dropped}")
        await agent.cookies.add(crawl.id, f"{auth.origin}/", found.cookies)
    own = (one for one in crawl.references if host_of(one) == auth.origin)
    url = next(own, f"{auth.origin}/")
    for _ in range(REDIRECTS_MAX + 1):
        answer = await agent.request(task, url, login_headers(auth, task.values))
        shown = url.partition("?")[0]
        steps.append(f"page fetched: {shown}, status {answer.status}")
        if answer.status in (401, 403):
            return f"the site refuses the login with status {answer.status}"
        location = location_of(answer) if answer.status in REDIRECTS else None
        target = resolved(location, url, tracking=frozenset()) if location else None
        if auth.asked is not None and asks_for_login(auth.asked, url, answer):
            return f"{shown} redirects to {(target or '').partition('?')[0]}: {_EXPORT}"
        if target is None or host_of(target) != auth.origin:
            return None if auth.asked is None else _why_lost(auth.asked, url, answer)
        url = target
    return f"there are more than {REDIRECTS_MAX} redirects"


def _why_lost(login: Login, url: str, answer: Response) -> str | None:
    try:
        lost = is_login_page(login.lost_page, page_of(answer, url))
    except LoginFormError as error:
        return str(error)
    return f"{url.partition('?')[0]} asks for a login: {_EXPORT}" if lost else None


def _show(
    arguments: Namespace,
    around: CliContext,
    auth: OriginAuth,
    steps: list[str],
    error: str | None,
) -> None:
    if arguments.json:
        body = {"origin": auth.origin, "login": auth.kind, "steps": steps, "error": error}
        around.write(json.dumps(body))
        return
    around.write(f"{auth.origin} ({auth.kind})", *(f"  {text.clean(step)}" for step in steps))
    around.write(f"  failed: {text.clean(error)}" if error else "  logged in")
