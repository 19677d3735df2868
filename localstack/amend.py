"""Sets properties that an emulator's CloudFormation ignores.

MiniStack (1.5.33) supports two properties in its own APIs but ignores them in a template:
`TimeToLiveSpecification` of a table (nothing would expire) and `RecursiveLoop` of a function (a
crawl would stop after 16 hops). The values come from the template in the cloud assembly, so an
emulator gets the same as AWS. Only differing values are set, because AWS and LocalStack refuse to
set a table's twice. This does not run on AWS.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    Lend = Callable[[str], AbstractContextManager[Any]]  # service name to client
    # Physical name and wanted value of each resource that has the property.
    Wanted = dict[str, Any]

STACK = "aws:cloudformation:stack"


def apply(assembly: Path, lend: Lend) -> None:
    """Change the deployed stacks of an assembly to match their templates."""
    try:
        for name, template in _templates(assembly):
            deployed = _deployed(name, lend)
            _expire(_wanted(template, deployed, "DynamoDB::Table", "TimeToLiveSpecification"), lend)
            _loop(_wanted(template, deployed, "Lambda::Function", "RecursiveLoop"), lend)
    except (BotoCoreError, ClientError) as error:
        raise LocalStackError(f"Cannot complete the deployment to the emulator: {error}") from error


def _templates(assembly: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    artifacts = json.loads((assembly / "manifest.json").read_text()).get("artifacts", {})
    for artifact, described in artifacts.items():
        if described["type"] == STACK:
            properties = described["properties"]
            template = json.loads((assembly / properties["templateFile"]).read_text())
            yield properties.get("stackName", artifact), template


def _deployed(stack: str, lend: Lend) -> dict[str, str]:
    """Return the resources of a deployed stack: physical id by logical id."""
    with lend("cloudformation") as cloudformation:
        found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    # A resource whose creation failed has no physical id.
    return {item["LogicalResourceId"]: item.get("PhysicalResourceId", "") for item in found}


def _wanted(
    template: dict[str, Any], deployed: dict[str, str], kind: str, property_: str
) -> Wanted:
    properties = {
        logical: resource["Properties"][property_]
        for logical, resource in template.get("Resources", {}).items()
        if resource["Type"] == f"AWS::{kind}" and property_ in resource.get("Properties", {})
    }
    lacking = sorted(logical for logical in properties if not deployed.get(logical))
    if lacking:
        raise LocalStackError(
            f"The stack lacks {', '.join(lacking)}, because its last deployment failed:"
            " run `orbweaver destroy`, then deploy again"
        )
    return {deployed[logical]: value for logical, value in properties.items()}


def _expire(wanted: Wanted, lend: Lend) -> None:
    with lend("dynamodb") as dynamodb:
        for table, specification in wanted.items():
            found = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
            enabled = found["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
            wanted_attribute = specification["AttributeName"] if specification["Enabled"] else None
            if (found["AttributeName"] if enabled else None) != wanted_attribute:
                dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)


def _loop(wanted: Wanted, lend: Lend) -> None:
    with lend("lambda") as functions:
        for function, loop in wanted.items():
            found = functions.get_function_recursion_config(FunctionName=function)
            if found["RecursiveLoop"] != loop:
                functions.put_function_recursion_config(FunctionName=function, RecursiveLoop=loop)
