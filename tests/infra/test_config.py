"""Settings of a stack, and errors of invalid ones."""

from __future__ import annotations

import itertools
import json
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from infra.config import LIMITS, Config, describe
from infra.keys import ConfigError, convert
from infra.runtime import host_runtime
from orbweaver.budget.rounds import MEMORY_MB
from orbweaver.model.settings import Settings

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
    ({"worker-timeout": "9"}, ["worker-timeout", "9", "is unknown"]),
    ({"zzz": "1"}, ["zzz", "is unknown", "python -m infra.config"]),
    ({"target": "azure"}, ["target", "azure", "aws or local"]),
    ({"worker_memory_mb": "64"}, ["worker_memory_mb", "64", "256 to 10240"]),
    ({"worker_memory_mb": "1GB"}, ["worker_memory_mb", "1GB", "whole number"]),
    ({"worker_memory_mb": True}, ["worker_memory_mb", "True", "whole number"]),
    ({"worker_memory_mb": "-1"}, ["worker_memory_mb", "-1", "whole number"]),
    ({"worker_memory_mb": "1" * 400}, ["worker_memory_mb", "whole number"]),
    (
        {"worker_memory_mb": "370"},
        ["370", "set 375", "large_bodies=2", "375 MB at once: 101 of programs", "16 of 64 bodies"],
    ),
    (
        {"worker_memory_mb": "320"},
        ["320", "set 375", "or lower large_bodies, fetch_concurrency, body_bytes_max, waiting_"],
    ),
    ({"receive_max": "1"}, ["receive_max", "1", "3 to 1000"]),
    ({"worker_concurrency_max": "0"}, ["worker_concurrency_max", "0", "2 to 1000"]),
    ({"queue_retention_d": "14"}, ["queue_retention_d", "14", "1 to 13"]),
    (
        {"queue_retention_d": "9", "dead_letter_retention_d": "9"},
        ["dead_letter_retention_d", "9", "more than queue_retention_d"],
    ),
    ({"log_retention_d": "2"}, ["log_retention_d", "2", "14"]),
    ({"batch_size": "25", "batch_window_s": "0"}, ["batch_size", "25", "batch_window_s=1"]),
    ({"runtime": "arm64/python3.11"}, ["runtime", "arm64/python3.11", "python3.13"]),
    ({"runtime": "mips/python3.13"}, ["runtime", "mips", "arm64 or x86_64"]),
    ({"target": "local", "runtime": "arm64/python2.7"}, ["runtime", host_runtime()]),
    ({"removal": "snapshot"}, ["removal", "snapshot", "retain or destroy"]),
    ({"recursive_loop": "allow"}, ["recursive_loop", "allow", "Allow or Terminate"]),
    ({"stack_name": "a b"}, ["stack_name", "a b", "letters, digits and hyphens"]),
    ({"exporter_cron": "0 2 * * *"}, ["exporter_cron", "0 2 * * *", "cron("]),
    ({"alarm_email": "nobody"}, ["alarm_email", "nobody", "mail address"]),
    ({"permissions_boundary": "a b"}, ["permissions_boundary", "a b", "managed policy"]),
    ({"permissions_boundary": "arn:aws:iam::1:policy/x"}, ["permissions_boundary", "ARN"]),
    ({"frugal": "yes", "alarms": "all"}, ["alarms", "all", "frugal"]),
    ({"frugal": "yes", "invalid_items_percent": "5"}, ["invalid_items_percent", "5", "frugal"]),
    ({"qualifier": "elevenchars"}, ["qualifier", "elevenchars", "up to 10"]),
    ({"user_agent": "a\r\nX: b"}, ["user_agent", "printable"]),
    ({"proxy_secret": "http://p.test:3128"}, ["proxy_secret", "name or whole ARN"]),
    ({"proxy_secret": "arn:aws:secretsmanager:eu-west-1:1:secret:x"}, ["proxy_secret", "ARN"]),
    ({"webhook_secret": "a key of mine"}, ["webhook_secret", "generate, or the name"]),
    ({"user_agent": "mine/1", "contact": "me@example.org"}, ["contact", "either"]),
    ({"rendering": "auto"}, ["rendering", "auto", "no or yes"]),
    ({"renderer_memory_mb": "4096"}, ["renderer_memory_mb", "4096", "rendering=yes"]),
    ({"target": "local", "renderer_concurrency_max": "3"}, ["renderer_concurrency_max", "3"]),
    (
        {"rendering": "yes", "renderer_memory_mb": "1400"},
        [
            *("renderer_memory_mb", "1400", "set 1489", "large_bodies"),
            *("1002 of a browser before it is killed", "48 of what 4 pages load"),
            "64 of shared scripts and styles",
        ],
    ),
    (
        {"rendering": "yes", "renderer_timeout_s": "120"},
        ["renderer_timeout_s", "120", "at least 152: 20 of fetch_total_s + 124 for a page + 8 of"],
    ),
    ({"body_bytes_max": "0"}, ["body_bytes_max", "0", "greater than 0"]),
    ({"fetch_total_s": "soon"}, ["fetch_total_s", "soon", "number"]),
    ({"worker_timeout_s": "30", "fetch_total_s": "25"}, ["worker_timeout_s", "30", "at least 33"]),
    (
        {"allow_addresses": "127.0.0.1/32"},
        ["allow_addresses", "127.0.0.1/32", "target=local"],
    ),
    (
        {"target": "aws", "allow_addresses": "10.0.0.0/8"},
        ["allow_addresses", "10.0.0.0/8", "target=local"],
    ),
    ({"closed_ports": "8080"}, ["closed_ports", "8080", "target=local"]),
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
    assert [convert(item, str(bound), local=False) for bound in bounds] == bounds


def test_large_batches_need_one_second_window() -> None:
    config = Config.from_context({"batch_size": "25", "batch_window_s": "1"})
    assert (config.batch_size, config.batch_window_s) == (25, 1)


def test_local_defaults() -> None:
    local = Config.from_context({"target": "local"})
    assert local.runtime == host_runtime()
    assert local.functions_run_on.native
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
    assert Config().worker_memory_mb == Settings().memory_mb == MEMORY_MB


def test_settings_reach_functions_environment() -> None:
    context = {
        "queue_retention_d": "2",
        "dead_letter_retention_d": "3",
        "page_retention_d": "5",
        "receive_max": "7",
        "fetch_concurrency": "8",
        "contact": "https://example.org/bot",
    }
    settings = Settings.from_environment(Config.from_context(context).environment())
    # On the queue, deferred for a newer version, and in the dead letters.
    assert settings.ledger_retention_s == (2 + 7 + 3 + 1) * 86_400
    assert settings.page_retention_s == 5 * 86_400
    assert (settings.receive_max, settings.fetch_concurrency) == (7, 8)
    assert settings.user_agent.startswith("orbweaver/")
    assert settings.user_agent.endswith(" (+https://example.org/bot)")


def test_custom_user_agent_is_unchanged() -> None:
    config = Config.from_context({"user_agent": "mine/1 (+me@example.org)"})
    assert config.environment()["ORBWEAVER_USER_AGENT"] == "mine/1 (+me@example.org)"


def test_allowed_addresses_reach_emulator_only() -> None:
    local = Config.from_context({"target": "local", "allow_addresses": "127.0.0.1/32"})
    assert local.environment()["ORBWEAVER_ALLOW_ADDRESSES"] == "127.0.0.1/32"
    assert "ORBWEAVER_ALLOW_ADDRESSES" not in Config().environment()


def test_every_key_is_described_once() -> None:
    rows = [row.split("|")[1:-1] for row in describe().splitlines()[2:]]
    assert [row[0].strip().strip("`") for row in rows] == [*KEYS, *LIMITS]
    assert all(cell.strip() for cell in itertools.chain.from_iterable(rows))


def test_password_in_proxies_key_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        Config.from_context({"proxy_secret": '["http://me:word@p.test:3128"]'})
    assert "word" not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        Config.from_context({"webhook_secret": "my own word"})
    assert "word" not in str(raised.value).replace("webhook", "")
