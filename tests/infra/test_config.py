"""Settings of a stack, and errors of invalid ones."""

from __future__ import annotations

import itertools
import json
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from infra.config import Config, describe
from infra.keys import ConfigError, convert
from infra.wheels import Runtime, host_runtime
from orbweaver.budget.estimate import MEMORY_MB
from orbweaver.model.crawl_settings import HOST_BOUNDS
from orbweaver.model.settings import Settings
from orbweaver.rendering.task import RenderLimits

ROOT = Path(__file__).resolve().parents[2]
KEYS = [item.name for item in fields(Config) if item.metadata]

# Keys that CDK and its command line put into the context.
CDK_CONTEXT = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:bundling-stacks": ["**"],
    "@aws-cdk/core:target-partitions": ["aws"],
    "cli-telemetry": False,
    "availability-zones:account=1:region=us-east-1": ["us-east-1a"],
}

# Context, and the texts that the error line must contain: key, value, fix.
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"worker_memmory_mb": "2048"}, ["worker_memmory_mb", "2048", "worker_memory_mb?"]),
    ({"worker-memory": "9"}, ["worker-memory", "9", "is unknown"]),
    ({"zzz": "1"}, ["zzz", "is unknown", "python -m infra.config"]),
    ({"target": "azure"}, ["target", "azure", "aws or local"]),
    ({"worker_memory_mb": "64"}, ["worker_memory_mb", "64", "256 to 10240"]),
    ({"worker_memory_mb": "1GB"}, ["worker_memory_mb", "1GB", "whole number"]),
    ({"worker_memory_mb": True}, ["worker_memory_mb", "True", "whole number"]),
    ({"worker_memory_mb": "-1"}, ["worker_memory_mb", "-1", "whole number"]),
    ({"worker_memory_mb": "1" * 400}, ["worker_memory_mb", "whole number"]),
    (
        {"worker_memory_mb": "370"},
        ["370", "set 375", "body_bytes_max", "375 MB at once: 101 of programs", "16 of 64 bodies"],
    ),
    ({"body_bytes_max": "15728640"}, ["worker_memory_mb", "375", "set 405", "45 of 3 large"]),
    ({"worker_concurrency_max": "0"}, ["worker_concurrency_max", "0", "2 to 1000"]),
    ({"log_retention_d": "2"}, ["log_retention_d", "2", "14"]),
    ({"removal": "snapshot"}, ["removal", "snapshot", "retain or destroy"]),
    ({"stack_name": "a b"}, ["stack_name", "a b", "letters, digits and hyphens"]),
    ({"exporter_cron": "0 2 * * *"}, ["exporter_cron", "0 2 * * *", "cron("]),
    ({"alarm_email": "nobody"}, ["alarm_email", "nobody", "mail address"]),
    ({"permissions_boundary": "a b"}, ["permissions_boundary", "a b", "managed policy"]),
    ({"permissions_boundary": "arn:aws:iam::1:policy/x"}, ["permissions_boundary", "ARN"]),
    ({"frugal": "yes", "alarms": "all"}, ["alarms", "all", "frugal"]),
    ({"qualifier": "elevenchars"}, ["qualifier", "elevenchars", "up to 10"]),
    ({"contact": "a\r\nX: b"}, ["contact", "printable"]),
    ({"proxy_secret": "http://p.test:3128"}, ["proxy_secret", "name or whole ARN"]),
    ({"proxy_secret": "arn:aws:secretsmanager:eu-west-1:1:secret:x"}, ["proxy_secret", "ARN"]),
    ({"webhook_secret": "a key of mine"}, ["webhook_secret", "generate, or the name"]),
    ({"rendering": "auto"}, ["rendering", "auto", "no or yes"]),
    ({"target": "local", "renderer_concurrency_max": "3"}, ["renderer_concurrency_max", "3"]),
    (
        {"rendering": "yes", "body_bytes_max": "209715200", "worker_memory_mb": "1024"},
        [
            *("body_bytes_max", "lower it", "a renderer has 2048 MB"),
            *("1002 of a browser before it is killed", "48 of what 4 pages load"),
            "64 of shared scripts and styles",
        ],
    ),
    ({"body_bytes_max": "0"}, ["body_bytes_max", "0", "from 1 to"]),
    (
        {"allow_addresses": "127.0.0.1/32"},
        ["allow_addresses", "127.0.0.1/32", "target=local"],
    ),
    (
        {"target": "aws", "allow_addresses": "10.0.0.0/8"},
        ["allow_addresses", "10.0.0.0/8", "target=local"],
    ),
    (
        {"target": "local", "allow_addresses": "localhost:8000"},
        ["allow_addresses", "localhost:8000", "127.0.0.1:8000"],
    ),
]


@pytest.mark.parametrize(("context", "named"), REFUSED)
def test_invalid_setting_is_one_line_error(context: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(ConfigError) as refusal:
        Config.from_context(context)
    said = str(refusal.value)
    assert said.startswith("context key ")
    assert "\n" not in said.replace("\r\n", "")
    assert [name for name in named if name not in said] == []


def test_keys_of_cdk_are_ignored() -> None:
    assert Config.from_context(CDK_CONTEXT) == Config()
    in_file = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert Config.from_context(in_file) == Config()


@pytest.mark.parametrize(("key", "value"), [("worker_memory_mb", 2048), ("page_retention_d", 7)])
def test_numbers_are_text_or_numbers(key: str, value: int) -> None:
    """The command line gives text, cdk.json numbers."""
    made = [Config.from_context({key: given}) for given in (value, str(value))]
    assert made[0] == made[1]
    assert getattr(made[0], key) == value


@pytest.mark.parametrize("item", [item for item in fields(Config) if "low" in item.metadata])
def test_bounds_of_number_are_inclusive(item: Field[Any]) -> None:
    bounds = [item.metadata["low"], item.metadata["high"]]
    assert [convert(item, str(bound)) for bound in bounds] == bounds


def test_local_defaults() -> None:
    local = Config.from_context({"target": "local"})
    assert local.functions_run_on == Runtime.parse(host_runtime(), native=True)
    assert (local.worker_concurrency_max, local.express_concurrency_max) == (2, 2)
    assert not local.kept
    assert Config().kept


def test_given_values_override_local_defaults() -> None:
    local = Config.from_context({"target": "local", "worker_concurrency_max": "3"})
    assert local.worker_concurrency_max == 3


def test_default_environment_keeps_functions_defaults() -> None:
    """Ledgers (records of finished packs of URLs) outlive every message."""
    assert Settings.from_environment(Config().environment()) == Settings()


def test_memory_default_is_consistent() -> None:
    assert Config().worker_memory_mb == Settings().function.memory_mb == MEMORY_MB


def test_settings_reach_functions_environment() -> None:
    context = {
        "page_retention_d": "5",
        "body_bytes_max": "800000",
        "contact": "https://example.org/bot",
    }
    settings = Settings.from_environment(Config.from_context(context).environment())
    # On the queue, deferred for a newer version, and in the dead letters.
    assert settings.retention.ledger_retention_s == (4 + 7 + 14 + 1) * 86_400
    assert settings.retention.page_retention_s == 5 * 86_400
    assert (settings.worker.receive_max, settings.fetching.body_bytes_max) == (5, 800_000)
    assert settings.fetching.user_agent.startswith("orbweaver/")
    assert settings.fetching.user_agent.endswith(" (+https://example.org/bot)")


@pytest.mark.parametrize(
    ("expression", "span"),
    [
        ("cron(0 2 * * ? *)", "day"),
        ("cron(30 23 ? * MON-FRI *)", "day"),
        ("rate(1 day)", "day"),
        ("cron(5 * * * ? *)", "hour"),
        ("cron(0 6,18 * * ? *)", "hour"),
        ("cron(0/30 2 * * ? *)", "hour"),
        ("rate(6 hours)", "hour"),
    ],
)
def test_export_span_follows_schedule(expression: str, span: str) -> None:
    assert Config.from_context({"exporter_cron": expression}).export_span == span


def test_constants_fit_into_timeouts_and_retentions() -> None:
    settings, config = Settings(), Config()
    needed_s = settings.fetching.fetch_total_s + settings.worker.apply_reserve_s
    assert needed_s < config.worker_timeout_s
    (timeout, _) = (one.bounds for one in HOST_BOUNDS)
    assert timeout is not None
    assert timeout[1] / 1000 + settings.worker.apply_reserve_s < config.worker_timeout_s
    assert needed_s + RenderLimits().page_s_max < config.renderer_timeout_s
    assert config.queue_retention_d < config.dead_letter_retention_d <= 14


def test_context_keys_are_few() -> None:
    assert len(KEYS) <= 35


def test_allowed_addresses_reach_emulator_only() -> None:
    local = Config.from_context({"target": "local", "allow_addresses": "127.0.0.1/32"})
    assert local.environment()["ORBWEAVER_ALLOW_ADDRESSES"] == "127.0.0.1/32"
    assert "ORBWEAVER_ALLOW_ADDRESSES" not in Config().environment()


def test_every_key_is_described_once() -> None:
    rows = [row.split("|")[1:-1] for row in describe().splitlines()[2:]]
    assert [row[0].strip().strip("`") for row in rows] == KEYS
    assert all(cell.strip() for cell in itertools.chain.from_iterable(rows))


def test_password_in_proxies_key_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        Config.from_context({"proxy_secret": '["http://me:word@p.test:3128"]'})
    assert "word" not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        Config.from_context({"webhook_secret": "my own word"})
    assert "word" not in str(raised.value).replace("webhook", "")
