"""Every metric on a dashboard is emitted by the code."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import CollectorRegistry

from orbweaver.budget.billing_units import Term
from orbweaver.cli.gauges import families
from orbweaver.model.metrics import Metric, Service, field_of
from orbweaver.model.outcome import FAILURES, Outcome, Reason
from tests.unit.cli.scraping import samples, scraped, serving
from tests.unit.cli.test_exposing import COUNTS, CRAWL, stage_with
from tests.unit.emission import crawl_everything, export_a_day, functions

GRAFANA = Path(__file__).parents[3] / "docs/grafana"
PROMQL_NAME = re.compile(r"\borbweaver_[a-z_]+\b")
SELECTED = re.compile(r'\b([a-z_]+)(=~?)"([^"$]+)"')


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    logger = logging.getLogger("orbweaver")
    before = (logger.handlers[:], logger.level, logger.propagate)
    logger.handlers[:] = []
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def dashboard(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GRAFANA / f"{name}.json").read_text())
    return found


def targets(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the title of each panel with its queries."""
    for panel in dashboard(name)["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target


def test_every_metric_is_emitted_by_crawl_and_export(monkeypatch: pytest.MonkeyPatch) -> None:
    with functions(monkeypatch) as (function, container):
        crawl_everything(function, container)
        export_a_day(function, container)
    # test_host_claims.py covers refused files, which need a polite crawl of several minutes.
    others = ("Schedules", "Webhooks", "Deliver", Metric.CLAIMS_REFUSED)
    expected = {str(metric) for metric in Metric if not metric.startswith(others)}
    assert function.metrics == {
        "worker": expected - {Metric.EXPORTS_SEALED},
        "exporter": {Metric.EXPORTS_SEALED, Metric.COST_DOLLARS},
    }
    (fell_short, *_) = (
        line[Metric.YIELD_DROP_PERCENT]
        for line in function.lines
        if Metric.YIELD_DROP_PERCENT in line
    )
    assert fell_short == [95]
    assert sum(line.get(field_of(Reason.HTTP_CLIENT_ERROR), 0) for line in function.lines) >= 1
    ended = sum(sum(line.get(Metric.URLS_ENDED, [])) for line in function.lines)
    assert ended == sum(
        sum(line.get(str(outcome), [])) for line in function.lines for outcome in Outcome
    )


def test_cloudwatch_dashboard_names_emitted_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    with functions(monkeypatch) as (function, container):
        crawl_everything(function, container)
        export_a_day(function, container)
    queues, programs = set(), set()
    seen = set()
    for title, target in targets("cloudwatch"):
        if target["queryMode"] == "Logs":
            assert target["logGroupNames"] == ["/aws/lambda/${stack}-worker"]
            named = re.findall(r"sum\((\w+)\) as (\w+)", target["expression"])
            assert {*named} == {(field_of(reason), str(reason)) for reason in FAILURES}
            assert f"ispresent({Metric.FAILED})" in target["expression"]
            continue
        match target["namespace"]:
            case "Orbweaver":
                service = target["dimensions"]["service"]
                assert target["dimensions"].keys() == {"stack", "service"}
                assert target["dimensions"]["stack"] == "${stack}"
                assert target["metricName"] in function.metrics[service], title
                seen.add(target["metricName"])
            case "AWS/SQS":
                queues.add(target["dimensions"]["QueueName"])
            case "AWS/Lambda":
                programs.add(target["dimensions"]["FunctionName"])
            case _:
                ids = {one["id"] for _, one in targets("cloudwatch")}
                assert {*re.findall(r"\b[a-e]\b", target["expression"])} <= ids
    assert {Metric.FETCHED, Metric.FETCH_MS, Metric.COST_DOLLARS, Metric.URLS_ENDED} <= seen
    assert {name.removeprefix("${stack}-") for name in programs} <= {*Service, "api"}
    known = {"crawl", "express", "dead-letters", "failed-calls"}
    known |= {"exporter-failures", "exporter-dead-letters"}
    assert {name.removeprefix("${stack}-") for name in queues} == known


async def test_prometheus_dashboard_names_scraped_series() -> None:
    async with serving(stage_with(CRAWL)) as url:
        _, _, text = await scraped(url)
    labels: dict[str, set[str]] = {}
    for name, found in samples(text):
        labels.setdefault(name, set()).update(label for label, _ in found)
    words = {
        "outcome": {*map(str, Outcome)},
        "reason": {*map(str, Reason)},
        "term": {*map(str, Term)},
        "orbweaver_crawl_state": {"running"},
        "job": {"orbweaver"},
    }
    named = set()
    for title, target in targets("prometheus"):
        expression = target["expr"]
        series = {name for name in PROMQL_NAME.findall(expression) if name in labels}
        unknown = {*PROMQL_NAME.findall(expression)} - series
        assert unknown <= {"orbweaver_crawl_state"}, f"{title}: {unknown}"
        named |= series
        for label, _, value in SELECTED.findall(expression):
            assert {*value.split("|")} <= words[label], title
        for grouped in re.findall(r"by \((\w+)\)", expression) + re.findall(
            r"{{(\w+)}}", target["legendFormat"]
        ):
            assert any(grouped in labels[name] for name in series), title
    assert named == labels.keys() - {"orbweaver_crawl_start_timestamp_seconds"}


def _data_source(found: dict[str, Any]) -> str:
    """Return the name of a data source: a variable, or an input of the import."""
    variables = [one for one in found["templating"]["list"] if one["type"] == "datasource"]
    (one,) = variables or found["__inputs"]
    name: str = one["name"]
    return name


def test_prometheus_dashboard_can_be_provisioned() -> None:
    """A file that Grafana provisions cannot have inputs, so a variable selects the data source."""
    found = dashboard("prometheus")
    assert "__inputs" not in found
    (variable, *others) = found["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    assert [one["datasource"]["uid"] for one in others] == [f"${{{variable['name']}}}"]


@pytest.mark.parametrize("name", ["prometheus", "cloudwatch"])
def test_dashboards_can_be_imported(name: str) -> None:
    found = dashboard(name)
    assert found["id"] is None
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24
    kinds = {one["id"] for one in found["__requires"] if one["type"] == "panel"}
    assert kinds == {panel["type"] for panel in panels}
    for panel in panels:
        references = [target["refId"] for target in panel.get("targets", ())]
        assert len(references) == len({*references})
        if panel["type"] != "text":
            assert panel["datasource"] == {"type": name, "uid": f"${{{_data_source(found)}}}"}


def test_metric_families_have_unique_names() -> None:
    class Once:
        def collect(self) -> Iterator[Any]:
            return families([], None)

    registry = CollectorRegistry()
    registry.register(Once())
    names = [family.name for family in registry.collect()]
    assert len(names) == len({*names})
    assert COUNTS
