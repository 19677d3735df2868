"""What README and guide say is so: commands parse, links lead somewhere, tables are complete."""

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
from orbweaver.model.settings import Settings
from orbweaver.politeness.robots_txt import parse as parse_robots

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "localstack/README.md"])
OPERATIONS = (ROOT / "docs/operations.md").read_text()
# Of `aws` itself, whatever the operation.
GLOBAL_OPTIONS = {"query", "output", "region", "profile", "cli-binary-format"}
S3_COMMANDS = {"ls", "cp", "sync"}
SHELLS = {"sh", "bash", ""}
FENCE = re.compile(r"^[ ]*```(\w*)\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> Iterator[str]:
    """List what stands in fences that a shell may read, lines joined where they are continued."""
    for kind, body in FENCE.findall(path.read_text()):
        if kind in SHELLS:
            yield re.sub(r"\\\n\s*", "", body)


def commands(first: str) -> list[tuple[str, list[str]]]:
    """List the commands of all pages that begin with a word, in fences and in sentences."""
    found = []
    for path in PAGES:
        lines = [line.strip() for body in blocks(path) for line in body.splitlines()]
        # In a sentence a command may be named without all that it needs.
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
    """Make test parameters of commands, with readable names."""
    return [
        pytest.param(words, id=f"{page}: {' '.join(words)[:60]}") for page, words in commands(first)
    ]


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", named("orbweaver"))
def test_commands_of_ours_parse(words: list[str]) -> None:
    """Every `orbweaver …` line is one that the parser takes, with context keys that exist."""
    arguments = parse(words[1:])
    assert arguments.command in MODULES
    target = {"target": "local"} if arguments.command == "local" else {}
    Config.from_context({**target, **dict(getattr(arguments, "context", []))})


@pytest.mark.parametrize("words", named("make"))
def test_targets_of_make_exist(words: list[str]) -> None:
    """Every `make …` line names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert words[1] in targets


@pytest.mark.parametrize("words", named("python"))
def test_modules_to_run_exist(words: list[str]) -> None:
    """Every `python -m …` line names a module of ours that can be run."""
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
    """Read the parameters of an AWS operation, spelled as options."""
    model = botocore.session.Session().get_service_model(service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in names, f"aws {service} has no {operation}"
    shape = model.operation_model(names[operation]).input_shape
    assert shape is not None
    return {xform_name(name, "-"): member for name, member in shape.members.items()}


@pytest.mark.parametrize("words", named("aws"))
def test_commands_of_aws_exist(words: list[str]) -> None:
    """Every `aws …` line names an operation, and options that it has."""
    _, service, operation, *rest = words
    if service == "s3":
        assert operation in S3_COMMANDS
        return
    known = members(service, operation)
    options = [word.removeprefix("--") for word in rest if word.startswith("--")]
    assert options
    for option in options:
        assert option in known.keys() | GLOBAL_OPTIONS, option


def test_variables_are_outputs_of_the_stack() -> None:
    """What stands for a part of the stack is spelled as its output is."""
    source = (ROOT / "infra/stack.py").read_text()
    outputs = set(re.findall(r'^\s+"([A-Z]\w+)": ', source, re.MULTILINE))
    assert set(NAMES) <= outputs
    # ARNs of queues are looked up beside it.
    looked_up = {"DeadLetterQueueArn", "CrawlQueueArn"}
    for path in PAGES:
        for name in re.findall(r"\$\{?([A-Z][a-z]\w+)", path.read_text()):
            assert name in outputs | looked_up, f"{path.name}: {name}"


def test_there_are_commands_to_test() -> None:
    """The pages were read: each kind of command is among them."""
    assert len(commands("orbweaver")) >= 15
    assert len(commands("make")) >= 3
    assert len(commands("aws")) >= 6
    assert commands("python")


def test_every_command_is_written_about() -> None:
    """No command of the command line is missing from README and guide."""
    shown = {words[1] for _, words in commands("orbweaver")}
    text = "".join(path.read_text() for path in PAGES)
    for command in MODULES:
        assert command in shown or f"`orbweaver {command}" in text, command


# --- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link names a file or folder, and every anchor a heading in it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        assert linked.is_relative_to(ROOT)
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


def test_decisions_are_numbered_and_say_what_they_cost() -> None:
    """Each ADR has its number, and the parts that make it worth keeping."""
    for number, path in enumerate(sorted((ROOT / "docs/adr").glob("*.md")), 1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number}. ")
        for part in ("**Decided.**", "**Instead of**", "**What it costs.**", "**To take it back**"):
            assert part in text, f"{path.name}: {part}"


# --- tables -----------------------------------------------------------------------------------


def rows(text: str, heading: str) -> list[list[str]]:
    """Read the cells of the table under a header row that begins with these words."""
    found = re.search(
        rf"^\| {re.escape(heading)} \|.*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE
    )
    assert found, heading
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        for line in found[1].splitlines()
    ]


def test_every_outcome_and_reason_is_explained() -> None:
    """The table names every outcome and every reason, once."""
    table = rows(OPERATIONS, "outcome | reason | means")
    assert sorted(row[1] for row in table) == sorted(Reason)
    assert list(dict.fromkeys(row[0] for row in table)) == [str(outcome) for outcome in Outcome]


@pytest.mark.parametrize(
    ("heading", "enum"), [("refused | means", Refusal), ("stop | means", Stop)]
)
def test_every_refusal_and_every_end_is_explained(heading: str, enum: Any) -> None:
    """Links that were left out, and crawls that ended, have a word for it that is explained."""
    assert [row[0] for row in rows(OPERATIONS, heading)] == [str(member) for member in enum]


def test_every_state_is_named() -> None:
    """What `orbweaver status` shows is in the guide."""
    for state in State:
        assert f"`{state}`" in OPERATIONS


def test_every_alarm_has_a_remedy() -> None:
    """The table of alarms is that of the stack."""
    alarms = [
        keyword.value.value
        for module in ("monitoring", "watch")
        for node in ast.walk(ast.parse((ROOT / f"infra/{module}.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Watch"
        for keyword in node.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    ]
    assert len(alarms) > 5
    assert [row[0] for row in rows(OPERATIONS, "alarm | means | do")] == alarms


def called(*methods: str) -> set[str]:
    """Find the first words that methods are called with, all over the package."""
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
    """Whatever is logged has a line in the guide, and nothing else has."""
    logged = called(
        *(f"_log.{level}" for level in ("debug", "info", "warning", "error", "exception"))
    )
    assert {row[0] for row in rows(OPERATIONS, "event | means")} == logged


def test_every_metric_is_explained() -> None:
    """The table of metrics is the list of them, in its order, each with who counts it."""
    table = rows(OPERATIONS, "metric | of | counts")
    assert [row[0] for row in table] == [str(metric) for metric in Metric]
    assert {row[1] for row in table} == {*map(str, Service), "all"}


def test_everything_that_prometheus_sees_is_explained() -> None:
    """The table of what is scraped names all that is, with its labels."""
    families = gauges.families((), Depths())
    table = {row[0]: row[1] for row in rows(OPERATIONS, "metric | labels | counts")}
    shown = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in families
    }
    assert table.keys() == shown


def test_every_column_is_explained() -> None:
    """The table of columns is that of the records, in their order, and says the same of them."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", (ROOT / "docs/records.md").read_text())
    told = [(name, means.replace("`", "")) for name, means in rows(text, "column | meaning")]
    assert told == [(column.name, column.text) for column in PAGES_TABLE.columns]


def test_settings_that_are_named_exist() -> None:
    """Limits in backquotes are settings of the functions, or context keys."""
    known = {field.name for field in (*fields(Settings), *fields(Config))} | set(COLUMNS)
    for path in PAGES:
        for name in re.findall(
            r"`([a-z]+_[a-z_]*(?:_s|_max|_d|_mb|_ms|_enabled))`", path.read_text()
        ):
            assert name in known | {"started_at_ms", "finished_at_ms"}, f"{path.name}: {name}"


def test_the_example_of_robots_is_one() -> None:
    """The rules that the guide speaks of are read by the parser that it links to."""
    assert parse_robots(b"User-agent: *\nCrawl-delay: 60").crawl_delay("orbweaver") == 60
