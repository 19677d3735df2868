"""Exit codes by cause, their documentation, and commands that print less."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from orbweaver.adapters.local.logs import logging_to_stderr
from orbweaver.cli.causes import code_without_pages
from orbweaver.cli.exit_codes import MEANS
from tests.unit.cli.fakes import SITE, Row, Stage
from tests.unit.cli.views import view_of

DOCS = Path(__file__).parents[3] / "docs" / "exit-codes.md"


def test_documentation_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", DOCS.read_text(), re.MULTILINE)
    assert {int(code): means for code, means in rows} == MEANS


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"failed.dns_unknown": 1}, 4),
        ({"failed.timeout": 2, "failed.http_client_error": 1}, 4),
        ({"failed.connect": 1, "failed.dns": 1, "failed.http_server_error": 1}, 4),
        ({"failed.proxy_rejected": 1}, 4),
        ({"failed.tls": 1}, 5),
        ({"skipped.robots": 3, "failed.connect": 1}, 6),
        ({"failed.forbidden": 1}, 6),
        ({"failed.blocked": 1}, 6),
        ({"failed.login": 1}, 6),
        ({"skipped.content_type": 1}, 7),
        ({"skipped.duration": 1}, 7),
        ({}, 7),
        ({"failed.http_client_error": 1}, 8),
        ({"skipped.robots_unreachable": 2, "robots_unreachable.tls": 2}, 5),
        ({"skipped.robots_unreachable": 2, "robots_unreachable.answered": 2}, 8),
        ({"skipped.robots_unreachable": 1}, 4),
    ],
)
def test_crawl_without_pages_ends_with_the_code_of_its_most_frequent_cause(
    counts: dict[str, int], code: int
) -> None:
    assert code_without_pages(view_of(counts)) == code


@pytest.mark.parametrize(
    ("options", "said", "noted"),
    [
        ("--quiet", [], []),
        ("--quiet --json", ["result"], []),
        ("--progress json", None, ["step", "step", "progress"]),
        ("--progress none --json", ["result"], []),
    ],
)
def test_output_with_quiet_and_progress(
    stage: Stage, options: str, said: list[str] | None, noted: list[str]
) -> None:
    stage.site = [Row("/")]
    assert stage.run(f"crawl {SITE} --out data {options}") == 0
    assert [json.loads(line)["type"] for line in stage.noted.splitlines()] == noted
    if said is None:
        assert "fetched" in stage.said
    else:
        assert [json.loads(line)["type"] for line in stage.said.splitlines()] == said


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ORBWEAVER_LOG_LEVEL", "inf", "ORBWEAVER_LOG_LEVEL: 'inf' is invalid: did you mean info?"),
        ("ORBWEAVER_LOG_LEVEL", "WARN", "ORBWEAVER_LOG_LEVEL: 'warn' is invalid"),
        ("ORBWEAVER_LOG_LEVEL", "", "there is no none.toml"),
        ("ORBWEAVER_LOG_FORMAT", "jsn", "ORBWEAVER_LOG_FORMAT: 'jsn' is invalid"),
        ("ORBWEAVER_LOG_FORMAT", "", "there is no none.toml"),
    ],
)
def test_log_variable_is_checked_like_its_option(
    variable: str, value: str, said: str, stage: Stage
) -> None:
    stage.environment = {variable: value}
    assert said in stage.errors("check none.toml")


@pytest.mark.parametrize(
    ("environment", "lines"),
    [({}, 1), ({"ORBWEAVER_LOG_LEVEL": "info"}, 2), ({"ORBWEAVER_LOG_LEVEL": "error"}, 0)],
)
def test_level_and_form_of_log_events(
    capsys: pytest.CaptureFixture[str], environment: dict[str, str], lines: int
) -> None:
    logger = logging.getLogger("orbweaver.worker")
    for form in ("text", "json"):
        with logging_to_stderr({**environment, "ORBWEAVER_LOG_FORMAT": form}):
            logger.info("crawl.finished", extra={"crawl": "a"})
            logger.warning("page.costly", extra={"url": "https://a.b/\x1b[2J"})
        printed = capsys.readouterr().err.splitlines()
        assert len(printed) == lines
        for line in printed[-1:]:
            if form == "text":
                assert line[8:] == ' WARNING page.costly url="https://a.b/\\u001b[2J"'
            else:
                assert json.loads(line)["url"] == "https://a.b/\x1b[2J"
