"""The `deliver` command: deliver existing exports again."""

from __future__ import annotations

from argparse import Namespace

from orbweaver.cli.command import answer, command, option
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import NOT_FOUND, OK, UsageError
from orbweaver.cli.session import Session, chosen
from orbweaver.cli.store import StorePlace
from orbweaver.delivery.plan import DeliveryOrder, spelled
from orbweaver.exporting.manifest import PREFIX, days_between
from orbweaver.model.page_record import DAY_MS, day_of

_NOBODY = (
    "the stack has no receiver of exports: deploy with -c sftp_url=… or -c copy_bucket=…"
    " (docs/delivery.md)"
)
_STORE = (
    "a store does not deliver exports: copy the files of `orbweaver export`, or use a stack"
    " (docs/delivery.md)"
)


async def deliver(arguments: Namespace, around: CliContext) -> int:
    """Queue existing exports for delivery. Each receiver gets only files that it does not have."""
    async with chosen(arguments, around) as session:
        if isinstance(session.place, StorePlace):
            raise UsageError(f"orbweaver deliver: {_STORE}")
        if not session.settings.queues.delivery_queue_url:
            raise UsageError(f"orbweaver deliver: {_NOBODY}")
        orders = await _orders(arguments, around, session)
        files = session.ports.files
        standing = [one for one in orders if await files.get(PREFIX + one.path) is not None]
        for order in standing:
            await session.ports.deliveries.send(spelled(order))
    bodies = (
        {"type": "delivery", "day": one.day, "crawl": one.crawl, "manifest": PREFIX + one.path}
        for one in standing
    )
    lines = (f"queued for delivery: {PREFIX}{order.path}" for order in standing)
    answer(arguments, around, bodies, *lines)
    if not standing:
        around.note(f"there is no export at {', '.join(PREFIX + order.path for order in orders)}")
        return NOT_FOUND
    return OK


async def _orders(
    arguments: Namespace, around: CliContext, session: Session
) -> list[DeliveryOrder]:
    now_ms = around.clock.now_ms()
    if arguments.crawl is None:
        return [DeliveryOrder(day=arguments.day or day_of(now_ms - DAY_MS), again=True)]
    crawl = await session.control.find(arguments.crawl)
    days = (
        [arguments.day]
        if arguments.day
        else days_between(crawl.started_at_ms, crawl.finished_at_ms or now_ms)
    )
    return [DeliveryOrder(day=day, crawl=crawl.id, again=True) for day in days]


COMMANDS = (
    command(
        "deliver",
        deliver,
        option("--day YYYY-MM-DD", "default: yesterday, UTC"),
        option("--crawl ID", "exports of this crawl only (without --day: all its days)"),
    ),
)
