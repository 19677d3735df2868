"""Settings are read from the environment at once, and each error names its variable."""

from __future__ import annotations

from dataclasses import fields

import pytest

from orbweaver.model.settings import DEFAULTS, GROUPS, PREFIX, Settings, SettingsError


def test_empty_environment_gives_polite_defaults() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.fetching.allow_addresses == ""
    assert settings.fetching.user_agent.startswith("orbweaver/")
    parts = ("_queue_url", "_table", "bucket", "database", "schedule_group", "failed_calls_queue")
    assert {default for name, default in DEFAULTS.items() if name.endswith(parts)} == {""}


def test_groups_have_few_fields_and_no_field_twice() -> None:
    groups = [fields(getattr(Settings(), group.name)) for group in fields(Settings)]
    assert max(map(len, groups)) <= 15
    assert len(GROUPS) == sum(map(len, groups))


def test_settings_are_parsed_by_type_of_field() -> None:
    settings = Settings.from_environment(
        {
            "ORBWEAVER_BUCKET": "b",
            "ORBWEAVER_RECEIVE_MAX": "7",
            "ORBWEAVER_FETCH_TOTAL_S": "2.5",
            "ORBWEAVER_UNKNOWN": "x",
            "BUCKET": "y",
        }
    )
    assert (
        settings.names.bucket,
        settings.worker.receive_max,
        settings.fetching.fetch_total_s,
    ) == ("b", 7, 2.5)


def test_settings_default_to_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORBWEAVER_BUCKET", "from-outside")
    assert Settings.from_environment().names.bucket == "from-outside"


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("ORBWEAVER_RECEIVE_MAX", "many", "must be a number (int), not 'many'"),
        ("ORBWEAVER_RECEIVE_MAX", "2.5", "must be a number (int), not '2.5'"),
        ("ORBWEAVER_RECEIVE_MAX", "", "must be a number (int), not ''"),
        ("ORBWEAVER_WAIT_S_MAX", "soon", "must be a number (float), not 'soon'"),
        ("ORBWEAVER_RECEIVE_MAX", "0", "must be greater than 0, not 0"),
        ("ORBWEAVER_BODY_BYTES_MAX", "-1", "must be greater than 0, not -1"),
        ("ORBWEAVER_WAIT_S_MAX", "0.0", "must be greater than 0, not 0.0"),
        ("ORBWEAVER_WAIT_S_MAX", "nan", "must be greater than 0, not nan"),
        ("ORBWEAVER_WAIT_S_MAX", "inf", "must be greater than 0, not inf"),
    ],
)
def test_invalid_value_names_variable_and_problem(variable: str, value: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    assert str(caught.value).startswith(f"{variable} {problem}")


def test_zero_is_rejected_for_every_limit() -> None:
    for name, default in DEFAULTS.items():
        if isinstance(default, int | float):
            with pytest.raises(SettingsError, match=PREFIX + name.upper()):
                Settings.from_environment({PREFIX + name.upper(): "0"})


@pytest.mark.parametrize(
    ("environment", "closed"),
    [
        ({}, set()),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, {4566}),
        (
            {"AWS_ENDPOINT_URL": "http://emulator:4566/", "ORBWEAVER_CLOSED_PORTS": "9, 10"},
            {4566, 9, 10},
        ),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"}, {9000}),
        ({"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001"}, {9001}),
        ({"AWS_ENDPOINT_URL": "https://sqs.example.com"}, set()),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:none"}, set()),
    ],
)
def test_ports_of_stack_are_closed(environment: dict[str, str], closed: set[int]) -> None:
    assert Settings.from_environment(environment).fetching.allowed.closed == closed


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ORBWEAVER_ALLOW_ADDRESSES", "localhost:80"), ("ORBWEAVER_CLOSED_PORTS", "http")],
)
def test_invalid_address_or_port_names_variable(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable.removeprefix("ORBWEAVER_")) as caught:
        Settings.from_environment({variable: value})
    assert value in str(caught.value)
