"""Audits and backlinks of exported runs in the console."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.cli.audit.as_json import document_of
from orbweaver.cli.audit.background import FINDINGS_MAX
from orbweaver.cli.audit.catalog import checks
from orbweaver.cli.audit.exported import ExportAudit
from orbweaver.cli.query.tables import exports_in
from tests.unit.cli.audit_site import Site, at
from tests.unit.cli.exports import made, put
from tests.unit.console.stage import RUN, opened

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit.console.stage import Stage

EARLIER = "site-0"
PAGES = 12


def site(*, links: bool = True, broken: int = PAGES) -> Site:
    found = Site().page("/", linked=False, depth=0).bare("/sitemap.xml", "sitemap", status=200)
    found.broken("/gone")
    for number in range(PAGES):
        found.page(f"/p/{number}")
        if number < broken:
            found.link(f"/p/{number}", "/gone", text=f"offer {number}")
            found.link(f"/p/{number}", "/gone", "area", text=None)
    found.link("/gone", "/gone").link("/sitemap.xml", "/gone", "sitemap", text=None)
    if not links:
        found.links.clear()
    return found


def export(folder: Path, crawl: str = RUN.id, of: Site | None = None, at_ms: int = 0) -> None:
    rows = (of or site()).rows
    for _, lines in rows:
        for line in lines:
            line["fetched_at"] += at_ms
    kept = [(table, lines) for table, lines in rows if lines]
    put(folder / "out" / crawl, made(kept, crawl=crawl, names=("parquet",)))


async def ended(stage: Stage, query: str = "") -> dict[str, Any]:
    """Return the first state of an audit that is not `running`."""
    while True:
        found: dict[str, Any] = await stage.get(f"/console/audit?crawl={RUN.id}{query}")
        if found["state"] != "running":
            return found
        await asyncio.sleep(0.05)


def reported(folder: Path, since: str | None = None) -> Any:
    """Return the report as `orbweaver audit --format json` does."""
    audit = ExportAudit(
        exports=exports_in(folder / "out", folder, None),
        which=RUN.id,
        since=since,
        checks=[*checks().values()],
        limit=FINDINGS_MAX,
    )
    report = audit.report(folder / "spill", lambda _done, _of: None)
    return json.loads(json.dumps(document_of(report)))


async def test_audit_equals_command_and_is_kept_until_export_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = asyncio.create_subprocess_exec

    async def counted(*words: Any, **given: Any) -> Any:
        started.append(given["cwd"])
        return await start(*words, **given)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    export(tmp_path)
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        found = await ended(stage)
        assert found["report"] == await asyncio.to_thread(reported, tmp_path)
        assert (found["state"], found["crawl"], found["name"]) == ("done", RUN.id, RUN.name)
        broken = next(one for one in found["report"]["checks"] if one["check"] == "broken-link")
        assert (broken["faults"], len(broken["findings"])) == (PAGES + 1, FINDINGS_MAX)
        assert found["report"]["earlier_runs"] == []
        assert await ended(stage) == found
        assert len(started) == 1
        export(tmp_path, of=site(broken=1))
        assert (await ended(stage))["report"] == await asyncio.to_thread(reported, tmp_path)
        assert len(started) == 2


async def test_audit_since_run_counts_new_fixed_and_remaining(tmp_path: Path) -> None:
    export(tmp_path, of=site(broken=2), at_ms=1_000)
    export(tmp_path, EARLIER, site(broken=3))
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        report = (await ended(stage, f"&since={EARLIER}"))["report"]
        assert report == await asyncio.to_thread(reported, tmp_path, EARLIER)
        assert report["statuses"]["fixed"] == 1
        assert (report["since"], report["earlier_runs"]) == (EARLIER, [EARLIER])
        found = await ended(stage, "&since=nothing")
        assert (found["state"], "no pages of nothing" in found["why"]) == ("failed", True)


async def test_audit_without_export_names_export_command(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        found = await ended(stage)
        assert (found["state"], "no exports in out" in found["why"]) == ("absent", True)
        export(tmp_path, "other-1")
        assert f"`orbweaver export --crawl {RUN.id}`" in (await ended(stage))["why"]
        assert (await stage.ask("GET", "/console/audit?crawl=nope")).status == 404


async def test_failed_audit_tells_why_and_runs_again_on_request(tmp_path: Path) -> None:
    export(tmp_path)
    [links] = (tmp_path / "out").rglob("links/**/*.parquet")
    body = links.read_bytes()
    links.write_bytes(bytes(len(body)))
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        found = await ended(stage)
        assert (found["state"], "No magic bytes" in found["why"]) == ("failed", True)
        links.write_bytes(body)
        assert (await ended(stage))["state"] == "done"


async def test_audits_run_one_at_a_time_and_end_with_console(tmp_path: Path) -> None:
    export(tmp_path, of=site(broken=2), at_ms=1_000)
    export(tmp_path, EARLIER)
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        for query in ("", f"&since={EARLIER}"):
            found = await stage.get(f"/console/audit?crawl={RUN.id}{query}")
            assert (found["state"], found["done"]) == ("running", 0)
    assert not [path for path in (tmp_path / "queries").iterdir() if path.name != "files"]


async def test_backlinks_count_pages_and_name_the_first(tmp_path: Path) -> None:
    export(tmp_path)
    async with opened(tmp_path) as stage:
        await stage.ports.crawls.create(replace(RUN, links=True))
        found = await stage.get(f"/console/backlinks?crawl={RUN.id}&url={at('/gone')}")
        backlinks = found["backlinks"]
        assert (backlinks["pages"], backlinks["sitemaps"], found["why"]) == (PAGES, 1, None)
        first = {"url": at("/p/0"), "kind": "a", "text": "offer 0"}
        assert (len(backlinks["first"]), first in backlinks["first"]) == (10, True)


async def test_backlinks_without_links_tell_why(tmp_path: Path) -> None:
    kept = replace(RUN, id="site-2", links=True)
    async with opened(tmp_path) as stage:
        await stage.begin("/")
        await stage.ports.crawls.create(kept)

        async def why(crawl: str) -> str:
            found = await stage.get(f"/console/backlinks?crawl={crawl}&url={at('/gone')}")
            assert found["backlinks"] is None
            return str(found["why"])

        assert "`--links`" in await why(RUN.id)
        assert "no exports in out" in await why(kept.id)
        export(tmp_path, kept.id, site(links=False))
        assert f"no links of {kept.id}" in await why(kept.id)
