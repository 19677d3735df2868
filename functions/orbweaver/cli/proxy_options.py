"""Proxies of workers on this machine, from options (`command.PROXIES`) or the environment."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from orbweaver.cli.exit_codes import UsageError
from orbweaver.fetching.proxy_config import IGNORED, ProxyConfig, ignored_in
from orbweaver.fetching.proxy_pool import PoolError
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import USER_AGENT
from orbweaver.model.url import host_of
from orbweaver.model.user_agent import identity_of

if TYPE_CHECKING:
    from orbweaver.cli.context import CliContext, ReachProxy
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.settings import Settings

TRIED_MAX = 16  # proxies whose connection is tried before a crawl starts


def proxies_given(arguments: argparse.Namespace) -> bool:
    return bool(arguments.proxy or arguments.proxy_list)


def proxies_of(
    arguments: argparse.Namespace, around: CliContext, settings: Settings
) -> ProxyConfig:
    """Return the proxies of a command: options before the environment. Raises UsageError."""
    from orbweaver.adapters.web.proxy_sources import read_file
    from orbweaver.app.store_runner import store_proxies
    from orbweaver.model.errors import PortError

    urls, file = tuple(arguments.proxy), arguments.proxy_list
    if not urls and file is None:
        found = store_proxies(around.environment, settings)
        if not found.secret and ignored_in(around.environment):
            around.note(f"{IGNORED} has no effect, as in curl: set http_proxy in lower case")
        return found
    name = "--proxy" if urls else "--proxy-list"
    if urls and file is not None:
        raise UsageError("--proxy and --proxy-list: give one of them")
    if getattr(arguments, "proxies", None) == "no":
        raise UsageError(f"{name}: --proxies no requests all pages directly: omit one of them")
    if file is None:
        return ProxyConfig(urls=urls)
    path = around.folder / file
    try:
        read_file(path)
    except (PortError, PoolError) as error:
        raise UsageError(f"--proxy-list: {_in_file(error, str(file))}") from None
    return ProxyConfig(file=str(path.absolute()))


def _in_file(error: Exception, file: str) -> str:
    return f"{file}: {error}" if isinstance(error, PoolError) else str(error)


async def trouble_of_seed(
    crawl: Crawl, config: ProxyConfig, around: CliContext, url: str
) -> Failure | None:
    """Return why the server of a seed, or all its proxies, cannot be used, or None."""
    if around.reach is None or around.reach_proxy is None:
        return None
    if crawl.proxied and config.is_proxied(url):
        return await _trouble_of_proxies(config, url, around.reach_proxy)
    return await around.reach(url, identity_of(crawl, host_of(url), USER_AGENT).trust)


async def _trouble_of_proxies(config: ProxyConfig, url: str, reach: ReachProxy) -> Failure | None:
    """Return why no proxy of a URL can be used. None: one can, or their list is a secret."""
    from yarl import URL

    from orbweaver.adapters.web.proxy_sources import source_of

    source = None if config.secret else source_of(config, None)(URL(url, encoded=True))
    proxies = () if source is None else await source.read()
    if not 1 <= len(proxies) <= TRIED_MAX:
        return None
    found = await asyncio.gather(*(reach(proxy) for proxy in proxies))
    failed = [(proxy, failure) for proxy, failure in zip(proxies, found, strict=True) if failure]
    if len(failed) < len(found):
        return None
    detail = "; ".join(f"proxy {proxy.name}: {failure.detail}" for proxy, failure in failed)
    return Failure(reason=Reason.PROXY, detail=detail)
