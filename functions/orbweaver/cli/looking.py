"""Commands that look: status, pages, page, export, robots, url. None of them changes a crawl."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.memory import MemoryHosts, World
from orbweaver.cli import files, report, text
from orbweaver.cli.crawling import FAILED, OK, attended
from orbweaver.cli.display import Objects, heading, rows
from orbweaver.cli.parser import UsageError
from orbweaver.cli.progress import Meter, as_json
from orbweaver.cli.session import chosen
from orbweaver.core.crawl import Crawl
from orbweaver.core.export import row
from orbweaver.core.outcome import Outcome
from orbweaver.core.record import day_of
from orbweaver.core.robots import Robots
from orbweaver.core.url import canonicalize, host_of, url_hash
from orbweaver.robots import RobotsKeeper, Unreachable
from orbweaver.settings import Settings

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.session import Session, Surroundings
    from orbweaver.core.record import PageRecord
    from orbweaver.robots import Ruling

CRAWLS_SHOWN = 10
ROBOTS_S_MAX = 60.0


# --- status -------------------------------------------------------------------------------------


def status(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Show how a crawl is doing."""
    display = around.display(arguments)

    async def go() -> int:
        async with chosen(arguments, around) as session:
            if arguments.watch:
                crawl = await session.control.find(arguments.which)
                view = await session.watch(crawl.id, display)
                display.close()
                if isinstance(display, Objects):
                    display.put(report.result(view, None, OK))
                else:
                    around.write("", *report.lines(view))
                return OK
            view = Meter().see(await session.read(arguments.which))
            if arguments.json:
                around.write(json.dumps({"type": "status", **as_json(view)}))
                return OK
            around.write(text.clean(heading(view)))
            around.write(
                *(
                    f"  {line}"
                    for line in text.table(
                        [(label, text.clean(words)) for label, words in rows(view)]
                    )
                )
            )
            if arguments.which is None:
                await _others(session, view.reading.status.crawl, around)
            return OK

    return attended(go(), arguments.which or "the crawl", around, display)


async def _others(session: Session, shown: Crawl, around: Surroundings) -> None:
    crawls = [crawl for crawl in await session.control.crawls() if crawl.id != shown.id]
    if crawls:
        around.write("", "other crawls")
        around.write(*(f"  {crawl.id}  {crawl.state}" for crawl in crawls[:CRAWLS_SHOWN]))
    if len(crawls) > CRAWLS_SHOWN:
        around.write(f"  and {len(crawls) - CRAWLS_SHOWN} more")


# --- pages --------------------------------------------------------------------------------------


async def pages(arguments: argparse.Namespace, around: Surroundings) -> int:
    """List the pages of a crawl, a line each."""
    outcome = Outcome(arguments.outcome) if arguments.outcome else None
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.which)
        number = 0
        found = session.control.pages(crawl, outcome=outcome, limit=arguments.limit)
        async for record in found:
            number += 1
            around.write(_json(record) if arguments.json else _line(record))
        if not arguments.json:
            what = text.plural(number, f"{outcome} page" if outcome else "page")
            around.note(f"{what} of {crawl.id}")
        if not number:
            await _point_back(session, crawl, around)
    return OK


async def _point_back(session: Session, crawl: Crawl, around: Surroundings) -> None:
    """Name the run before one without records: a name means the newest run, new or not."""
    runs = [run for run in await session.control.crawls() if run.name == crawl.name]
    older = [run.id for run in runs if run.started_at_ms < crawl.started_at_ms]
    if older:
        around.note(f"the run before it: {older[0]}")


async def page(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Show what became of a URL."""
    url = _canonical(arguments.url)
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.crawl) if arguments.crawl else None
        records = await session.control.page(url, crawl)
    if not records:
        where = f"in {crawl.id}" if crawl else "in any crawl"
        around.note(f"there is no record of {url} {where}")
        return FAILED
    for place, record in enumerate(records):
        if arguments.json:
            around.write(_json(record))
            continue
        cells = json.loads(_json(record))
        known = [(key, text.clean(str(cell))) for key, cell in cells.items() if cell is not None]
        around.write(*([""] if place else []), *text.table(known))
    return OK


def _json(record: PageRecord) -> str:
    """Spell a record as exports do, in ASCII."""
    return json.dumps(json.loads(row(record)), ensure_ascii=True)


def _line(record: PageRecord) -> str:
    parts = (
        f"{record.outcome:<10} {record.reason:<18} {record.status or '':>3} ",
        text.clean(record.url),
        text.clean(record.title or record.error or ""),
    )
    return " ".join(parts).rstrip()


# --- export -------------------------------------------------------------------------------------


async def export(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Write page records into files: of a crawl, of a day, or of a crawl's day."""
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.crawl) if arguments.crawl else None
        folder = arguments.out or (files.OUT / crawl.id if crawl else files.OUT)
        place = around.folder / folder
        files.check_folder(place, crawl.name if crawl else None, crawl.id if crawl else None)
        if crawl is not None and arguments.day is None:
            written = await files.export_crawl(session, crawl, place)
        else:
            day = arguments.day or day_of(around.clock.now_ms())
            written = await files.export_day(session, day, crawl, place)
        written = replace(written, folder=folder)
        if crawl is not None and not written.rows:
            await _point_back(session, crawl, around)
    if arguments.json:
        paths = [str(path) for path, _, _ in written.parts]
        body = {"type": "result", "out": str(folder), "rows": written.rows, "files": paths}
        around.write(json.dumps(body))
    else:
        around.write(*report.files(written))
    return OK


# --- decide and print ---------------------------------------------------------------------------


def url(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Show the canonical form of a reference."""
    base = _canonical(arguments.base) if arguments.base else None
    canonical = _canonical(arguments.reference, base)
    if arguments.json:
        body = {"url": canonical, "host": host_of(canonical), "hash": url_hash(canonical)}
        around.write(json.dumps(body))
    else:
        around.write(canonical)
    return OK


async def robots(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Fetch a URL's robots.txt as a crawl would, and say what it allows."""
    target = _canonical(arguments.url)
    host = host_of(target)
    agent = arguments.user_agent or Settings().user_agent
    crawl = Crawl(id="robots", name="robots", started_at_ms=0, delay_ms=0, user_agent=agent)
    hosts = MemoryHosts(World())
    async with around.web() as fetcher:
        keeper = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=around.clock, settings=Settings())
        until_ms = around.clock.now_ms() + round(ROBOTS_S_MAX * 1000)
        ruling = await keeper.of(host, crawl, until_ms)
    entry = (await hosts.look(host)).robots
    body = {
        "url": target,
        "robots": f"{host}/robots.txt",
        "user_agent": agent,
        **_decision(ruling, target, agent),
        "bytes": len(entry.body) if entry and entry.body is not None else None,
    }
    if arguments.json:
        around.write(json.dumps(body))
    else:
        known = [(key, text.clean(_word(value))) for key, value in body.items()]
        around.write(*text.table([(key, word) for key, word in known if word]))
    return OK


def _decision(ruling: Ruling, target: str, agent: str) -> dict[str, Any]:
    match ruling:
        case None:
            return {"allowed": True, "why": "there is no robots.txt, so everything is allowed"}
        case Unreachable(detail=detail):
            return {"allowed": False, "why": f"unreachable, so nothing is allowed: {detail}"}
        case Robots():
            rule = ruling.line(agent, target)
            return {
                "allowed": ruling.allows(agent, target),
                "why": rule or "no rule matches",
                "crawl_delay_s": ruling.crawl_delay(agent),
                "sitemaps": list(ruling.sitemaps),
            }
        case _:
            return {"allowed": False, "why": "the host lets nobody in for now"}


def _word(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return " ".join(map(str, value))
        case _:
            return str(value)


def _canonical(reference: str, base: str | None = None) -> str:
    try:
        return canonicalize(reference, base)
    except ValueError as error:
        raise UsageError(f"{text.cut(reference, 200)!r}: {error}") from error
