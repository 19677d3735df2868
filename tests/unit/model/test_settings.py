"""Settings come from the environment, all at once, and say what is wrong with them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from orbweaver.model.settings import PREFIX, Settings, SettingsError


def test_an_empty_environment_gives_polite_defaults() -> None:
    """Nothing has to be set; nothing private may be crawled."""
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.allow_addresses == ""
    assert settings.user_agent.startswith("orbweaver/")
    parts = ("_queue_url", "_table", "bucket", "database", "schedule_group", "failed_calls_queue")
    named = [field.name for field in fields(settings) if field.name.endswith(parts)]
    assert {getattr(settings, name) for name in named} == {""}


def test_each_field_is_a_variable_of_its_name() -> None:
    """Texts, whole numbers and fractions are read by the field's type; other variables are not."""
    settings = Settings.from_environment(
        {
            "ORBWEAVER_BUCKET": "b",
            "ORBWEAVER_RECEIVE_MAX": "7",
            "ORBWEAVER_FETCH_TOTAL_S": "2.5",
            "ORBWEAVER_UNKNOWN": "x",
            "BUCKET": "y",
        }
    )
    assert (settings.bucket, settings.receive_max, settings.fetch_total_s) == ("b", 7, 2.5)


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is given nothing reads its own environment."""
    monkeypatch.setenv("ORBWEAVER_BUCKET", "from-outside")
    assert Settings.from_environment().bucket == "from-outside"


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
def test_a_value_that_does_not_fit_is_named(variable: str, value: str, problem: str) -> None:
    """The error names the variable, what it takes and what it was; 0 never means no limit."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    assert str(caught.value).startswith(f"{variable} {problem}")


def test_every_limit_is_checked() -> None:
    """No number may be 0."""
    for field in fields(Settings):
        if isinstance(field.default, int | float):
            with pytest.raises(SettingsError, match=PREFIX + field.name.upper()):
                Settings.from_environment({PREFIX + field.name.upper(): "0"})


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
def test_ports_of_the_stack_itself_are_closed(
    environment: dict[str, str], closed: set[int]
) -> None:
    """Those that the environment names as AWS's, whichever service's, and those given."""
    assert Settings.from_environment(environment).allowed.closed == closed


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ORBWEAVER_ALLOW_ADDRESSES", "localhost:80"), ("ORBWEAVER_CLOSED_PORTS", "http")],
)
def test_addresses_and_ports_that_are_none_are_named(variable: str, value: str) -> None:
    """They are read once at the start, so that no request is the first to find out."""
    with pytest.raises(SettingsError, match=variable.removeprefix("ORBWEAVER_")) as caught:
        Settings.from_environment({variable: value})
    assert value in str(caught.value)
