"""Exports as Athena tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.cli.query.saved import saved
from orbweaver.exporting.glue_schema import TABLES, glue_columns
from tests.infra.template import text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

GROUP = "AWS::Athena::WorkGroup"


def tables(stack: Synthesized) -> dict[str, dict[str, Any]]:
    found = stack.properties("AWS::Glue::Table").values()
    return {table["TableInput"]["Name"]: table for table in found}


@pytest.mark.parametrize("stack", ["aws", "local"])
def test_tables_have_export_columns_and_day(request: pytest.FixtureRequest, stack: str) -> None:
    found = tables(request.getfixturevalue(stack))
    assert found.keys() == {table.name for table in TABLES}
    for table in TABLES:
        made = found[table.name]
        assert made["DatabaseName"] == "orbweaver"
        assert made["TableInput"]["StorageDescriptor"]["Columns"] == glue_columns(table.columns)
        assert made["TableInput"]["PartitionKeys"] == [{"Name": "dt", "Type": "string"}]


def test_days_are_projected(aws: Synthesized) -> None:
    said = tables(aws)["pages"]["TableInput"]["Parameters"]
    assert text(said["storage.location.template"]) == (
        "s3://<StorageBucket>/exports/pages/parquet/dt=${dt}/"
    )
    assert said["projection.dt.range"] == "2026-01-01,NOW"
    assert said["projection.dt.format"] == "yyyy-MM-dd"


def test_tables_depend_on_database(aws: Synthesized) -> None:
    for table in aws.resources("AWS::Glue::Table").values():
        assert any(one.startswith("CatalogueDatabase") for one in table["DependsOn"])


def test_workgroup_limits_override_clients(aws: Synthesized) -> None:
    group = aws.only(GROUP)["WorkGroupConfiguration"]
    assert group["EnforceWorkGroupConfiguration"] is True
    assert group["BytesScannedCutoffPerQuery"] == 10_000_000_000
    results = group["ResultConfiguration"]
    assert text(results["OutputLocation"]) == "s3://<StorageBucket>/athena-results/"
    assert results["EncryptionConfiguration"] == {"EncryptionOption": "SSE_S3"}


def test_query_results_use_key_of_stack(synthesize: Synthesize) -> None:
    group = synthesize(kms_key="generate").only(GROUP)["WorkGroupConfiguration"]
    encrypted = group["ResultConfiguration"]["EncryptionConfiguration"]
    assert encrypted["EncryptionOption"] == "SSE_KMS"
    assert text(encrypted["KmsKey"]) == "<EncryptionKey.Arn>"


def test_saved_queries_equal_command_lines(aws: Synthesized) -> None:
    found = aws.properties("AWS::Athena::NamedQuery").values()
    assert {query["Name"]: query["QueryString"] for query in found} == {
        query.name: query.sql for query in saved().values()
    }
    assert {query["WorkGroup"] for query in found} == {"Orbweaver"}


def test_emulator_has_no_saved_queries(local: Synthesized) -> None:
    """MiniStack refuses this resource type, and with it the whole stack."""
    assert not local.properties("AWS::Athena::NamedQuery")
    assert local.only(GROUP)["Name"] == "Orbweaver"


def test_exporter_registers_only_item_tables(aws: Synthesized) -> None:
    allowed = aws.allowed("ExporterProgramRole")
    glue = {resource: actions for resource, actions in allowed.items() if ":glue:" in resource}
    actions = {"glue:GetTable", "glue:CreateTable", "glue:UpdateTable"}
    where = "arn:<AWS::Partition>:glue:<AWS::Region>:<AWS::AccountId>"
    assert glue == {
        f"{where}:catalog": actions,
        f"{where}:database/orbweaver": actions,
        f"{where}:table/orbweaver/items_*": actions,
    }
