"""Build deliverers from the ports of a container: couriers and their receivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from orbweaver.app.ports import PortSet
from orbweaver.delivery.deliverer import Deliverer, Receiver

if TYPE_CHECKING:
    from orbweaver.delivery.ports import Courier


@contextmanager
def delivering(ports: PortSet) -> Iterator[Deliverer]:
    from orbweaver.delivery.deliverer import Deliverer
    from orbweaver.model.metrics import Service

    settings = ports.settings
    metrics = ports.metrics(Service.DELIVERY)
    receivers = {}
    if settings.copy_bucket:
        receivers["bucket"] = _copying(ports)
    if settings.sftp_host:
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
        from orbweaver.delivery.known_hosts import host_keys_of

        settings = ports.settings
        server = Server(
            host=settings.sftp_host,
            port=settings.sftp_port,
            user=settings.sftp_user,
            keys=host_keys_of(settings.sftp_host_key),
        )
        # Read each time, so that a changed key takes effect at once.
        identity = SftpIdentity.parse(await ports.secrets.read(settings.sftp_secret))
        async with connected(server, identity, settings.allowed) as sftp:
            yield SftpCourier(
                sftp,
                files=ports.files,
                prefix=PREFIX,
                folder=settings.sftp_folder,
                clock=ports.clock,
            )

    return Receiver(formats=formats_of(ports.settings.sftp_formats), courier=opened)
