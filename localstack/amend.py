"""Sets properties that an emulator's CloudFormation ignores. This does not run on AWS.

MiniStack (1.5.33) supports two properties in its own APIs, but ignores them in a template:
`TimeToLiveSpecification` of a table (no item would expire) and `RecursiveLoop` of a function (a
crawl would stop after 16 hops). Its custom resources do not protect tables either. The values are
taken from the template in the cloud assembly, so an emulator gets the same values as AWS. A
property is set only if its value differs, because AWS and LocalStack refuse to set a table's
properties twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localstack import assembly, removal
from localstack.errors import LocalStackError, aws_errors

if TYPE_CHECKING:
    from pathlib import Path

    from localstack.retained import Lend

LIFE, LOOP = "TimeToLiveSpecification", "RecursiveLoop"


def apply(folder: Path, lend: Lend) -> None:
    """Change the resources of a deployed stack to match the template in the assembly `folder`."""
    stack, template = assembly.stack_of(folder)
    resources = removal.resources_of(stack, lend)
    wanted = {
        logical: declared["Properties"]
        for logical, declared in template["Resources"].items()
        if {LIFE, LOOP} & set(declared.get("Properties", {}))
    }
    names = {one.logical: one.name for one in resources}
    if lacking := sorted(set(wanted) - set(names)):
        raise LocalStackError(
            f"The stack lacks {', '.join(lacking)}, because its last deployment failed:"
            " run `orbweaver destroy`, then deploy again"
        )
    with (
        aws_errors("complete the deployment to the emulator"),
        lend("dynamodb") as dynamodb,
        lend("lambda") as functions,
    ):
        removal.protect(resources, lend)
        for logical, properties in wanted.items():
            if LIFE in properties:
                _expire(dynamodb, names[logical], properties[LIFE])
            else:
                _loop(functions, names[logical], properties[LOOP])


def _expire(dynamodb: Any, table: str, wanted: dict[str, Any]) -> None:
    found = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    enabled = found["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
    attribute = wanted["AttributeName"] if wanted["Enabled"] else None
    if (found["AttributeName"] if enabled else None) != attribute:
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)


def _loop(functions: Any, name: str, wanted: str) -> None:
    if functions.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] != wanted:
        functions.put_function_recursion_config(FunctionName=name, RecursiveLoop=wanted)
