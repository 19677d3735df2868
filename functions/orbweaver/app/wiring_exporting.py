"""Build exporters from the ports of a container: on a queue, or into a folder without a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orbweaver.model.settings import PREFIX, Settings, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.app.ports import PortSet
    from orbweaver.exporting.change_feed import ChangeFeed
    from orbweaver.exporting.exporter import Exporter, InProcessExporter
    from orbweaver.exporting.run_state import UnitProgress
    from orbweaver.frontier.ports import Pages
    from orbweaver.model.ports import Metrics


def exporter_of(ports: PortSet) -> Exporter:
    """Build an exporter that shares its work through a queue."""
    from orbweaver.exporting.exporter import ExporterParts

    settings, clock, random = ports.settings, ports.clock, ports.random
    return ExporterParts(
        pages=ports.pages,
        crawls=ports.crawls,
        files=ports.files,
        orders=ports.orders,
        events=ports.events,
        feed=_feed_of(ports),
        catalogue=ports.catalogue,
        clock=clock,
        random=random,
        formats=_formats(settings),
        part_rows_max=settings.exports.part_rows_max,
        part_bytes_max=settings.exports.part_bytes_max,
        span=_span(settings),
    ).exporter()


def _formats(settings: Settings) -> tuple[str, ...]:
    from orbweaver.exporting.manifest import formats_in

    try:
        return formats_in(settings.exports.export_formats)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}EXPORT_FORMATS: {error}") from error


def _span(settings: Settings) -> str:
    from orbweaver.exporting.run_state import SPANS

    if settings.exports.export_span not in SPANS:
        raise SettingsError(f"{PREFIX}EXPORT_SPAN must be one of {', '.join(SPANS)}")
    return settings.exports.export_span


def _feed_of(ports: PortSet) -> ChangeFeed:
    from orbweaver.exporting.change_feed import ChangeFeed
    from orbweaver.exporting.file_store import Store
    from orbweaver.exporting.snapshot import Snapshots

    # Changes compare a run with the previous one, which may have been exported elsewhere. So
    # snapshots are in the stack's bucket.
    store = Store(files=ports.files, clock=ports.clock, random=ports.random)
    return ChangeFeed(
        pages=ports.pages,
        crawls=ports.crawls,
        snapshots=Snapshots(store=store),
        page_retention_s=ports.settings.retention.page_retention_s,
    )


@contextmanager
def exports_counted(ports: PortSet) -> Iterator[Metrics]:
    from orbweaver.model.metrics import Service

    metrics = ports.metrics(Service.EXPORTER)
    try:
        yield metrics
    finally:
        metrics.flush()


def alone_of(
    ports: PortSet,
    folder: Path,
    formats: tuple[str, ...],
    tell: Callable[[UnitProgress], None] | None = None,
    pages: Pages | None = None,
) -> InProcessExporter:
    """Build an exporter that writes into a folder without a queue.

    With `pages`, it exports that source without a change feed. It calls `tell` with its progress.
    """
    from orbweaver.adapters.local.folder import FolderFiles
    from orbweaver.exporting.exporter import ExporterParts, InProcessExporter, WaitingExport

    settings, clock, random = ports.settings, ports.clock, ports.random
    files, waiting = FolderFiles(folder), WaitingExport()
    assembly = ExporterParts(
        pages=pages or ports.pages,
        crawls=ports.crawls,
        files=files,
        bodies=ports.files,
        orders=waiting,
        feed=_feed_of(ports) if pages is None else None,
        clock=clock,
        random=random,
        formats=formats,
        part_rows_max=settings.exports.part_rows_max,
        part_bytes_max=settings.exports.part_bytes_max,
        prefix="",
        cuts_crawls=False,
        tell=tell,
    )
    return InProcessExporter(exporter=assembly.exporter(), waiting=waiting)
