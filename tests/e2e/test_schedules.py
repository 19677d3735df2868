"""Recurring crawls on a deployed stack: created by command, fired by the scheduler."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orbweaver.control.schedule import DUE
from tests.e2e.stand import Stand, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

NAME = "recurring"
DEFINITION = """
name = "{name}"
seeds = ["{url}"]
[politeness]
delay = 0
[schedule]
cron = "0 3 * * ? *"
timezone = "Europe/Berlin"
"""


def runs(stand: Stand) -> dict[str, str]:
    return {
        item["k"]["S"]: item["state"]["S"]
        for item in stand.scan("CrawlsTable")
        if item.get("name") == {"S": NAME} and "state" in item
    }


def fire(stand: Stand, told: str, due: str) -> dict[str, str]:
    """Invoke a schedule's target with a time in it, as AWS does."""
    with stand.client("lambda") as functions:
        answer = functions.invoke(
            FunctionName=stand.outputs["StarterFunctionArn"], Payload=told.replace(DUE, due)
        )
        said = answer["Payload"].read()
    assert "FunctionError" not in answer, f"{said!r}\n{stand.log()}"
    found: dict[str, str] = json.loads(said)
    return found


def fired_soon(stand: Stand, scheduled: dict[str, Any]) -> str:
    """Let the emulator's scheduler fire the target once, now; return the scheduled time."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    due = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    target = {**scheduled["Target"], "Input": scheduled["Target"]["Input"].replace(DUE, due)}
    with stand.client("scheduler") as scheduler:
        scheduler.create_schedule(
            Name="once",
            GroupName=scheduled["GroupName"],
            ScheduleExpression=f"at({at:%Y-%m-%dT%H:%M:%S})",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target,
            ActionAfterCompletion="DELETE",
        )
    return due


def test_crawl_recurs_until_schedule_is_removed(stand: Stand, tmp_path: Path) -> None:
    with graph.serve_in_background({"/": graph.page("Home")}) as site:
        file = tmp_path / "crawl.toml"
        file.write_text(DEFINITION.format(name=NAME, url=site.url))
        put = stand.orbweaver("schedule", "put", "--config", str(file), "--json").result
        assert (put["name"], put["expression"]) == (NAME, "cron(0 3 * * ? *)")
        assert datetime.fromisoformat(put["next"][0]).timestamp() > time.time()
        assert f"{NAME}  cron 0 3 * * ? *  Europe/Berlin" in stand.orbweaver("schedule", "list").out

        with stand.client("scheduler") as scheduler:
            scheduled = scheduler.get_schedule(GroupName=stand.outputs["ScheduleGroup"], Name=NAME)
        assert scheduled["ScheduleExpressionTimezone"] == "Europe/Berlin"
        assert scheduled["Target"]["RoleArn"] == stand.outputs["ScheduleRoleArn"]
        due = fired_soon(stand, scheduled)
        first = f"{NAME}-{due[:10].replace('-', '')}-{due[11:19].replace(':', '')}"
        until(lambda: runs(stand) == {first: "finished"}, "the run ends", log=stand.log)
        assert site.log.paths().count("/") == 1

        told = scheduled["Target"]["Input"]
        assert fire(stand, told, due) == {"crawl": first}
        assert list(runs(stand)) == [first]

        stand.orbweaver("schedule", "remove", NAME)
        assert NAME not in stand.orbweaver("schedule", "list").out.split()
        gone = stand.orbweaver("schedule", "remove", NAME, code=2)
        assert "there is no schedule" in gone.err
