"""Resources that outlive a stack, for every context key that can add some."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from infra.config import Config
from localstack.removal import KINDS, PARTS
from tests.infra.template import SFTP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.infra.template import Synthesize

pytestmark = pytest.mark.infra

SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:proxies-AbCdEf"
KEY_ARN = "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789012"
# Contexts for keys whose values are free text, by key.
TEXTS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("kms_key",): {"kms_key": "generate"},
    ("kms_key ",): {"kms_key": KEY_ARN},
    ("webhook_secret",): {"webhook_secret": "generate"},
    ("proxy_secret",): {"proxy_secret": SECRET_ARN},
    ("copy_bucket",): {"copy_bucket": "their-exports"},
    (*SFTP,): SFTP | {"sftp_secret": SECRET_ARN},
    ("alarm_email",): {"alarm_email": "me@example.org"},
}
# Keys that change only properties or names of resources.
PLAIN = {
    *("stack_name", "contact", "allow_addresses"),
    *("export_retention_d", "exporter_cron", "export_formats"),
    *("permissions_boundary", "qualifier", "extractor"),
}
# A stack on an emulator retains nothing by default, and no stack does with `destroy`.
NOTHING_KEPT = {("target", "local"), ("removal", "destroy")}


def contexts() -> Iterator[Mapping[str, str]]:
    covered = {key.strip() for keys in TEXTS for key in keys} | PLAIN
    yield from TEXTS.values()
    for item in fields(Config):
        rule = item.metadata
        if not rule or "low" in rule or item.name in covered:
            continue
        options = rule["takes"].split(" or ")
        assert "|".join(options) == rule["pattern"], f"give {item.name} a context in TEXTS"
        for option in options:
            if option != item.default and (item.name, option) not in NOTHING_KEPT:
                yield {item.name: option}


@pytest.mark.parametrize("context", [*contexts()], ids=",".join)
def test_retained_resource_is_named_and_adopted(
    synthesize: Synthesize, context: Mapping[str, str]
) -> None:
    resources = synthesize(**context).template["Resources"]
    kept = {
        name: one
        for name, one in resources.items()
        if one.get("DeletionPolicy", "Delete") != "Delete"
    }
    assert len(kept) >= 6
    for name, one in kept.items():
        kind = KINDS[one["Type"]]
        assert kind.commands, name
        assert kind.identifiers or kind.shared, name
        # Resources shared in the account must stay; the rest is removed with a failed first create.
        assert one["DeletionPolicy"] == ("Retain" if kind.shared else "RetainExceptOnCreate"), name
        if (part := PARTS.get(one["Type"])) is not None:
            own, parent = (one["Properties"][key] for key in part)
            assert isinstance(own, str)
            assert parent["Ref"] in kept
