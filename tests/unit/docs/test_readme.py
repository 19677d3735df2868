"""README and guides: commands parse, tables are complete."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from infra.config import Config
from orbweaver.cli import gauges
from orbweaver.cli.arguments import parse
from orbweaver.cli.commands import MODULES
from orbweaver.cli.stack import NAMES
from orbweaver.frontier.queues import Depths
from orbweaver.model.columns import PAGES as PAGES_TABLE
from orbweaver.model.crawl import State, Stop
from orbweaver.model.metrics import Metric, Service
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import COLUMNS
from orbweaver.model.settings import GROUPS
from orbweaver.politeness.robots_txt import parse as parse_robots

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "localstack/README.md"])
OPERATIONS = (ROOT / "docs/operations.md").read_text()
# Global options of `aws`.
GLOBAL_OPTIONS = {"query", "output", "region", "profile", "cli-binary-format"}
S3_COMMANDS = {"ls", "cp", "sync"}
SHELLS = {"sh", "bash", ""}
FENCE = re.compile(r"^[ ]*```(\w*)\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> Iterator[str]:
    """Yield the contents of shell fences, with continued lines joined."""
    for kind, body in FENCE.findall(path.read_text()):
        if kind in SHELLS:
            yield re.sub(r"\\\n\s*", "", body)


def commands(first: str) -> list[tuple[str, list[str]]]:
    """Return all commands of the pages that start with a word, in fences and sentences."""
    found = []
    for path in PAGES:
        lines = [line.strip() for body in blocks(path) for line in body.splitlines()]
        # In a sentence, a command may be incomplete.
        spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", path.read_text()))
        lines += [span for span in spans if len(span.split()) > 2 and "…" not in span]
        found += [
            (
                path.relative_to(ROOT).as_posix(),
                shlex.split(re.sub("[<>].*", "", line), comments=True),
            )
            for line in lines
            if line.startswith(f"{first} ") and "|" not in line and "--help" not in line
        ]
    return found


def named(first: str) -> list[Any]:
    """Return test parameters of commands, with readable ids."""
    return [
        pytest.param(words, id=f"{page}: {' '.join(words)[:60]}") for page, words in commands(first)
    ]


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", named("orbweaver"))
def test_orbweaver_commands_parse(words: list[str]) -> None:
    arguments = parse(words[1:])
    assert arguments.command in MODULES
    target = {"target": "local"} if arguments.command == "local" else {}
    Config.from_context({**target, **dict(getattr(arguments, "context", []))})


@pytest.mark.parametrize("words", named("make"))
def test_make_targets_exist(words: list[str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert words[1] in targets


@pytest.mark.parametrize("words", named("python"))
def test_python_modules_can_be_run(words: list[str]) -> None:
    assert words[1] == "-m"
    found = importlib.util.find_spec(words[2])
    assert found is not None
    if found.submodule_search_locations is not None:
        found = importlib.util.find_spec(f"{words[2]}.__main__")
        assert found is not None
    assert found.origin is not None
    assert '__name__ == "__main__"' in Path(found.origin).read_text()


@cache
def members(service: str, operation: str) -> dict[str, Any]:
    """Return the parameters of an AWS operation, spelled as options."""
    model = botocore.session.Session().get_service_model(service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in names, f"aws {service} has no {operation}"
    shape = model.operation_model(names[operation]).input_shape
    assert shape is not None
    return {xform_name(name, "-"): member for name, member in shape.members.items()}


@pytest.mark.parametrize("words", named("aws"))
def test_aws_commands_and_options_exist(words: list[str]) -> None:
    _, service, operation, *rest = words
    if service == "s3":
        assert operation in S3_COMMANDS
        return
    known = members(service, operation)
    options = [word.removeprefix("--") for word in rest if word.startswith("--")]
    assert options
    for option in options:
        assert option in known.keys() | GLOBAL_OPTIONS, option


def test_variables_are_outputs_of_stack() -> None:
    source = (ROOT / "infra/stack.py").read_text()
    outputs = set(re.findall(r'^\s+"([A-Z]\w+)": ', source, re.MULTILINE))
    assert set(NAMES) <= outputs
    # The pages look up the ARNs of queues.
    looked_up = {"DeadLetterQueueArn", "CrawlQueueArn"}
    for path in PAGES:
        for name in re.findall(r"\$\{?([A-Z][a-z]\w+)", path.read_text()):
            assert name in outputs | looked_up, f"{path.name}: {name}"


def test_each_kind_of_command_is_found() -> None:
    assert len(commands("orbweaver")) >= 15
    assert len(commands("make")) >= 3
    assert len(commands("aws")) >= 6
    assert commands("python")


def test_every_command_is_documented() -> None:
    shown = {words[1] for _, words in commands("orbweaver")}
    text = "".join(path.read_text() for path in PAGES)
    for command in MODULES:
        assert command in shown or f"`orbweaver {command}" in text, command


# --- decisions -------------------------------------------------------------------------------


def test_adrs_are_numbered_and_have_all_parts() -> None:
    for number, path in enumerate(sorted((ROOT / "docs/adr").glob("*.md")), 1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number}. ")
        for part in (
            "**Decided.**",
            "**Rejected",
            "**What it costs.**",
            "**To reverse this decision**",
        ):
            assert part in text, f"{path.name}: {part}"


# --- tables -----------------------------------------------------------------------------------


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a header row that starts with these words."""
    found = re.search(
        rf"^\| {re.escape(heading)} \|.*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE
    )
    assert found, heading
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        for line in found[1].splitlines()
    ]


def test_every_outcome_and_reason_is_explained() -> None:
    table = rows(OPERATIONS, "outcome | reason | means")
    assert sorted(row[1] for row in table) == sorted(Reason)
    assert list(dict.fromkeys(row[0] for row in table)) == [str(outcome) for outcome in Outcome]


@pytest.mark.parametrize(
    ("heading", "enum"), [("refused | means", Refusal), ("stop | means", Stop)]
)
def test_every_refusal_and_stop_is_explained(heading: str, enum: Any) -> None:
    assert [row[0] for row in rows(OPERATIONS, heading)] == [str(member) for member in enum]


def test_every_state_is_named() -> None:
    for state in State:
        assert f"`{state}`" in OPERATIONS


def test_every_alarm_has_a_remedy() -> None:
    alarms = [
        keyword.value.value
        for node in ast.walk(ast.parse((ROOT / "infra/watch.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Watch"
        for keyword in node.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    ]
    assert len(alarms) > 5
    assert [row[0] for row in rows(OPERATIONS, "alarm | means | do")] == alarms


def called(*methods: str) -> set[str]:
    """Return the first string argument of every method call in the package."""
    return {
        node.args[0].value
        for path in (ROOT / "functions/orbweaver").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in methods
        if node.args and isinstance(node.args[0], ast.Constant)
        if isinstance(node.args[0].value, str)
    }


@pytest.mark.thorough
def test_every_log_event_is_explained() -> None:
    logged = called(
        *(f"_log.{level}" for level in ("debug", "info", "warning", "error", "exception"))
    )
    assert {row[0] for row in rows(OPERATIONS, "event | means")} == logged


def test_every_metric_is_explained_with_its_service() -> None:
    table = rows(OPERATIONS, "metric | of | counts")
    assert [row[0] for row in table] == [str(metric) for metric in Metric]
    assert {row[1] for row in table} == {*map(str, Service), "all"}


def test_every_prometheus_metric_is_explained() -> None:
    families = gauges.families((), Depths())
    table = {row[0]: row[1] for row in rows(OPERATIONS, "metric | labels | counts")}
    shown = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in families
    }
    assert table.keys() == shown


def test_every_column_is_explained_in_order() -> None:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", (ROOT / "docs/records.md").read_text())
    told = [(name, means.replace("`", "")) for name, means in rows(text, "column | meaning")]
    assert told == [(column.name, column.text) for column in PAGES_TABLE.columns]


def test_named_settings_exist() -> None:
    known = {*GROUPS, *COLUMNS, *(field.name for field in fields(Config))}
    for path in PAGES:
        for name in re.findall(
            r"`([a-z]+_[a-z_]*(?:_s|_max|_d|_mb|_ms|_enabled))`", path.read_text()
        ):
            assert name in known | {"started_at_ms", "finished_at_ms"}, f"{path.name}: {name}"


def test_robots_example_is_parsed() -> None:
    assert parse_robots(b"User-agent: *\nCrawl-delay: 60").crawl_delay("orbweaver") == 60
