"""Build components from the ports of a container.

Imports are inside the functions, because a container needs only one of the components.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orbweaver.api.app import Api
    from orbweaver.app.ports import PortSet
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.dead_letter_admin import DeadLetterAdmin
    from orbweaver.control.scheduler import Starter
    from orbweaver.control.seed_preview import SeedPreviewer
    from orbweaver.control.webhook import Notifier
    from orbweaver.delivery.deliverer import Courier, Deliverer, Receiver
    from orbweaver.diagnostics.explainer import Explainer
    from orbweaver.erasure.ports import Stores
    from orbweaver.frontier.pack_result import UncommittedResults
    from orbweaver.model.ports import Fetcher
    from orbweaver.worker.batch import Worker


# Number of new objects between garbage collections. Python's default of 700 takes a tenth of a
# worker's CPU. Pages leave no cyclic garbage (measured in November 2026).
GARBAGE_OBJECTS = 10_000


def keep_made() -> None:
    """Run the garbage collector seldom, and exclude all objects that exist now."""
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)


def worker_of(ports: PortSet, underway: UncommittedResults | None = None) -> Worker:
    """Build a worker. `underway` collects its results that are not committed yet."""
    from orbweaver.model.metrics import Service
    from orbweaver.worker.batch import Worker

    metrics = ports.metrics(Service.WORKER)
    return Worker(
        ports,
        fetcher=ports.watched(fetcher_of(ports), metrics),
        metrics=metrics,
        of_crawl=ports.of_crawl,
        underway=underway,
    )


def fetcher_of(ports: PortSet) -> Fetcher:
    """Build the HTTP client, with the proxies of the stack or process if there are any."""
    from orbweaver.adapters.web.client import HttpFetcher, Limits
    from orbweaver.adapters.web.large_bodies import LargeBodies

    settings = ports.settings
    at_once = settings.fetching.fetch_concurrency
    allowed = settings.fetching.allowed
    # The crawl limits concurrent requests per host (worker/fetch_pack.py).
    limits = Limits(connections=2 * at_once, connections_per_host=at_once)
    large = LargeBodies(settings.fetching.large_bodies)
    direct = HttpFetcher(allowed=allowed, limits=limits, large=large)
    if not ports.proxies:
        return direct
    from orbweaver.adapters.web.proxy_client import with_proxies

    return with_proxies(
        direct,
        ports.proxies,
        ports.clock,
        ports.secrets,
        allowed=allowed,
        limits=limits,
        large=large,
    )


def control_of(ports: PortSet, underway: UncommittedResults | None = None) -> Control:
    """Build the component that starts, changes and shows crawls.

    Its counts include `underway`, the results that this process has not committed yet.
    """
    from orbweaver.control.crawl_control import Control, ControlPorts

    return Control(
        ControlPorts(
            queue=ports.queue,
            crawls=ports.crawls,
            packs=ports.packs,
            pages=ports.pages,
            hosts=ports.hosts,
            clock=ports.clock,
            settings=ports.settings,
            refuse_without_proxies=ports.refuse_without_proxies,
        ),
        underway=None if underway is None else underway.counts,
    )


def explainer_of(ports: PortSet, control: Control, *, letters: bool = True) -> Explainer:
    """Build the component that explains what happened to a URL.

    With `letters`, it reads dead letters.
    """
    from orbweaver.diagnostics.explainer import Explainer

    return Explainer(
        finder=control,
        crawls=ports.crawls,
        frontier=ports.frontier,
        packs=ports.packs,
        backlog=ports.backlog,
        history=ports.pages,
        hosts=ports.hosts,
        clock=ports.clock,
        settings=ports.settings,
        letters=undertaker_of(ports) if letters else None,
    )


def stores_of(ports: PortSet) -> Stores:
    from orbweaver.erasure.ports import Stores

    return Stores(
        traces=ports.traces,
        dead_letters=ports.dead_letters,
        queue=ports.queue,
        crawls=ports.crawls,
        pages=ports.pages,
        files=ports.files,
        events=ports.events,
        clock=ports.clock,
        catalogue=ports.catalogue,
    )


def undertaker_of(ports: PortSet) -> DeadLetterAdmin:
    from orbweaver.control.dead_letter_admin import DeadLetterAdmin

    return DeadLetterAdmin(
        dead_letters=ports.dead_letters,
        queue=ports.queue,
        crawls=ports.crawls,
        packs=ports.packs,
        clock=ports.clock,
    )


def api_of(ports: PortSet, *, signed: bool = True) -> Api:
    """Build the HTTP API of a stack, whose requests are `signed`, or of a store on this machine."""
    from orbweaver.api.app import Api
    from orbweaver.api.context import HandlerContext

    control = control_of(ports)
    means = HandlerContext(
        control=control,
        # The role of a stack's API has no permission to read dead letters.
        explainer=explainer_of(ports, control, letters=not signed),
        queue=ports.queue,
        crawls=ports.crawls,
        pages=ports.pages,
        files=ports.files,
        backlog=ports.backlog,
        frontier=ports.frontier,
        clock=ports.clock,
        allowed=ports.settings.fetching.allowed,
    )
    return Api(means, signed=signed)


@asynccontextmanager
async def previewing(ports: PortSet) -> AsyncIterator[SeedPreviewer]:
    from orbweaver.control.seed_preview import SeedPreviewer
    from orbweaver.politeness.host_health import HostHealth

    fetcher = fetcher_of(ports)
    try:
        yield SeedPreviewer(
            fetcher=fetcher,
            reader=ports.reader,
            hosts=ports.hosts,
            health=HostHealth(hosts=ports.hosts, clock=ports.clock, random=ports.random),
            clock=ports.clock,
            settings=ports.settings,
        )
    finally:
        if (close := getattr(fetcher, "aclose", None)) is not None:
            await close()


@contextmanager
def starting(ports: PortSet) -> Iterator[Starter]:
    from orbweaver.control.scheduler import Starter
    from orbweaver.model.metrics import Service

    metrics = ports.metrics(Service.STARTER)
    try:
        yield Starter(control=control_of(ports), clock=ports.clock, metrics=metrics)
    finally:
        metrics.flush()


@asynccontextmanager
async def notifying(ports: PortSet) -> AsyncIterator[Notifier]:
    """Build the sender of webhooks for one invocation. It does not use the crawls' proxies."""
    from orbweaver.adapters.web.client import HttpFetcher
    from orbweaver.control.webhook import Notifier
    from orbweaver.model.metrics import Service

    metrics = ports.metrics(Service.NOTIFIER)
    fetcher = HttpFetcher(allowed=ports.settings.fetching.allowed)
    try:
        yield Notifier(
            crawls=ports.crawls,
            secrets=ports.secrets,
            fetcher=fetcher,
            queue=ports.queue,
            clock=ports.clock,
            metrics=metrics,
            settings=ports.settings,
        )
    finally:
        await fetcher.aclose()
        metrics.flush()


@contextmanager
def delivering(ports: PortSet) -> Iterator[Deliverer]:
    from orbweaver.delivery.deliverer import Deliverer
    from orbweaver.model.metrics import Service

    settings = ports.settings
    metrics = ports.metrics(Service.DELIVERY)
    receivers = {}
    if settings.delivery.copy_bucket:
        receivers["bucket"] = _copying(ports)
    if settings.delivery.sftp_host:
        receivers["sftp"] = _uploading(ports)
    try:
        yield Deliverer(
            files=ports.files,
            receivers=receivers,
            queue=ports.deliveries,
            clock=ports.clock,
            metrics=metrics,
        )
    finally:
        metrics.flush()


def _copying(ports: PortSet) -> Receiver:
    from orbweaver.delivery.deliverer import Receiver
    from orbweaver.exporting.formats import FORMATS

    @asynccontextmanager
    async def opened() -> AsyncIterator[Courier]:
        yield await ports.bucket_courier()

    return Receiver(formats=FORMATS, courier=opened)


def _uploading(ports: PortSet) -> Receiver:
    from orbweaver.delivery.deliverer import Receiver
    from orbweaver.delivery.plan import formats_of
    from orbweaver.exporting.manifest import PREFIX

    @asynccontextmanager
    async def opened() -> AsyncIterator[Courier]:
        from orbweaver.adapters.local.sftp import SftpCourier
        from orbweaver.adapters.local.sftp_connection import Server, SftpIdentity, connected
        from orbweaver.delivery.plan import host_keys_of

        settings = ports.settings
        server = Server(
            host=settings.delivery.sftp_host,
            port=settings.delivery.sftp_port,
            user=settings.delivery.sftp_user,
            keys=host_keys_of(settings.delivery.sftp_host_key),
        )
        # Read each time, so that a changed key takes effect at once.
        identity = SftpIdentity.parse(await ports.secrets.read(settings.delivery.sftp_secret))
        async with connected(server, identity, settings.fetching.allowed) as sftp:
            yield SftpCourier(
                sftp,
                files=ports.files,
                prefix=PREFIX,
                folder=settings.delivery.sftp_folder,
                clock=ports.clock,
            )

    return Receiver(formats=formats_of(ports.settings.delivery.sftp_formats), courier=opened)
