"""Which stack a command speaks to, and what is learned of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.cli.stacks import Depths, Unreachable, environment_of, settings_of
from tests.unit.cli.fakes import LOCAL, OUTPUTS, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

AWS = {"AWS_PROFILE": "me"}
OTHER = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9999"}


@pytest.mark.parametrize(
    ("target", "up", "environment", "expected"),
    [
        (None, False, {}, {}),
        (None, False, AWS, AWS),
        (None, True, {}, LOCAL),
        (None, True, AWS, LOCAL),
        (None, True, OTHER, OTHER),
        (None, False, OTHER, OTHER),
        ("local", True, OTHER, LOCAL),
        ("local", True, AWS, LOCAL),
        ("aws", True, AWS, AWS),
        ("aws", True, OTHER, OTHER),
    ],
)
def test_the_target_is_chosen(
    target: str | None, up: bool, environment: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    """The option decides, then an endpoint, then what runs here, then the account."""
    assert environment_of(target, Machine(up_already=up), environment) == expected


def test_a_local_target_must_run() -> None:
    """Where nothing runs, the message says what to run."""
    with pytest.raises(Unreachable, match="orbweaver local up"):
        environment_of("local", Machine(), {})


def test_settings_are_the_outputs_and_the_workers_limits() -> None:
    """Names come from the outputs, limits from the worker's variables; others are not ours."""
    function = {"ORBWEAVER_PAGES_SHARDS": "4", "ORBWEAVER_PAGES_TABLE": "old", "OTHER": "x"}
    settings = settings_of("Orbweaver", Machine(function=function), LOCAL)
    assert settings.pages_shards == 4
    assert settings.pages_table == "the-PagesTable"
    assert settings.seed_queue_url == "the-CrawlQueueUrl"
    assert settings.crawl_queue_url == "the-PackQueueUrl"
    assert settings.export_queue_url == "the-ExportQueueUrl"


def test_settings_do_without_what_may_not_be_read() -> None:
    """A role that may not look at the worker gets the usual limits; so does an older stack."""
    outputs = {key: value for key, value in OUTPUTS.items() if key != "WorkerFunction"}
    assert settings_of("Orbweaver", Machine(deployed=outputs), LOCAL).pages_shards == 16


@pytest.mark.parametrize(
    ("machine", "environment", "said"),
    [
        (Machine(deployed=None), LOCAL, "no stack 'Orbweaver' at http://127.0.0.1:4566: run"),
        (Machine(deployed=None), {}, "at this AWS account and region"),
        (
            Machine(deployed={"Bucket": "b"}),
            LOCAL,
            "does not say its CrawlQueueUrl, PackQueueUrl,",
        ),
        (Machine(function={"ORBWEAVER_PAGES_SHARDS": "no"}), LOCAL, "of another version"),
        (Machine(broken=True), LOCAL, "Cannot reach it"),
    ],
)
def test_a_stack_that_cannot_be_used_says_what_to_do(
    machine: Machine, environment: Mapping[str, str], said: str
) -> None:
    """No stack, an old stack and no answer are told apart."""
    with pytest.raises(Unreachable, match=said):
        settings_of("Orbweaver", machine, environment)


def test_queues_are_idle_when_only_dead_letters_are_left() -> None:
    """Dead letters do not move by themselves."""
    assert Depths(dead=3).idle
    assert not Depths(delayed=1).idle
