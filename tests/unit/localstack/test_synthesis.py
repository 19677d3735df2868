"""Synthesis by the command line of CDK itself: kept settings without AWS access."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstack import cdk, deployment, layout, synthesis
from localstack.errors import LocalStackError
from tests.unit.localstack.test_deployment import Account

ROOT = Path(__file__).resolve().parents[3]
ACCOUNT = "123456789012"
# Variables that CDK sets for an app. A stub has the region of `Account`.
CDK = {"CDK_DEFAULT_ACCOUNT": ACCOUNT, "CDK_DEFAULT_REGION": "eu-central-1"}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Account]:
    account = Account()
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    monkeypatch.setattr(layout, "LEFT", tmp_path / "left")
    monkeypatch.setattr(cdk, "client", account.client)
    yield account
    account.finished()


def test_plan_existing_stack_keeps_settings(account: Account) -> None:
    """A plain `cdk deploy` keeps keys, leaves workers off and fits concurrency to the account."""
    account.put("sts", "get_caller_identity", {"Account": ACCOUNT})
    account.stands(alarm_email="me@example.org", contact="us")
    account.switched("Disabled", "Disabled", "Disabled")
    account.quota(10)
    said = list[str]()
    given = {"contact": "me"}
    planned = synthesis.plan(given, given, CDK, say=said.append)
    assert planned.stack_exists
    wanted = {"alarm_email": "me@example.org", "contact": "me", "worker_enabled": "no"}
    assert wanted.items() <= planned.context.items()
    limits = [int(value) for key, value in planned.context.items() if "concurrency_max" in key]
    assert 0 < sum(limits) <= 8
    assert "keeps what the stack was deployed with: alarm_email=me@example.org" in said


def test_plan_new_stack_names_data_of_earlier_one(account: Account, tmp_path: Path) -> None:
    """CDK cannot import the data, so the app names the command that can."""
    for _ in range(2):
        account.put("sts", "get_caller_identity", {"Account": ACCOUNT})
    account.put("cloudformation", "describe_stacks", "ValidationError")
    account.quota(1_000)
    left = tmp_path / "left" / f"Orbweaver-{ACCOUNT}-eu-central-1.json"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    said = list[str]()
    planned = synthesis.plan({}, {}, CDK, say=said.append)
    assert not planned.stack_exists
    assert "`orbweaver deploy` takes it up again" in said[-1]


@pytest.mark.parametrize(
    ("context", "environment", "exists"),
    [
        ({}, {}, False),  # no credentials
        ({"keep_settings": "no"}, CDK, False),
        ({"target": "local"}, CDK, False),
        ({deployment.MARK: "exists"}, CDK, True),  # `orbweaver deploy` has planned
        ({deployment.MARK: ""}, CDK, False),
    ],
)
def test_plan_without_need_makes_no_aws_call(
    account: Account, context: dict[str, str], environment: dict[str, str], *, exists: bool
) -> None:
    given = {key: value for key, value in context.items() if ":" not in key}
    planned = synthesis.plan(given, context, environment, say=lambda _: None)
    assert planned == synthesis.Planned(context=given, stack_exists=exists)


def test_plan_of_other_account_is_refused(account: Account) -> None:
    """`--profile` of CDK does not reach the app, which would read another account."""
    account.put("sts", "get_caller_identity", {"Account": "210987654321"})
    with pytest.raises(LocalStackError, match="set AWS_PROFILE instead of --profile"):
        synthesis.plan({}, {}, CDK, say=lambda _: None)


def test_plan_with_unreadable_settings_is_refused(account: Account) -> None:
    account.put("sts", "get_caller_identity", {"Account": ACCOUNT})
    account.put("cloudformation", "describe_stacks", "AccessDenied")
    with pytest.raises(LocalStackError, match="-c keep_settings=no"):
        synthesis.plan({}, {}, CDK, say=lambda _: None)


def test_app_without_setup_names_make_setup(tmp_path: Path) -> None:
    ran = subprocess.run(
        [ROOT / "tools" / "app.sh"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        f"There is no .venv/bin/python in {tmp_path}: run `make setup`, then this command again."
    ]
