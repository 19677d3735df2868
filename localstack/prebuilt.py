"""Deploys the local stack without CDK, from a template in the wheel.

- This applies to an emulator if CDK is not installed. A checkout deploys with CDK, locally as on
  AWS.
- When the wheel is built, `ship.py` makes a template for each context in `contexts`. Any other
  context changes the template, which requires CDK.
- Three machine-dependent values are filled in: the functions' Python version, their architecture,
  and the location of their code, which is built here.
- The result has the parts of a cloud assembly that `assembly` and `amend` read.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from localstack import assembly, extras, installed, layout
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localstack.installed import Say
    from localstack.retained import Lend

TEMPLATES = installed.SHIPPED / "templates"
STACK = "Orbweaver"
TEMPLATE = f"{STACK}.template.json"
BUCKET = "orbweaver-local-assets"
FUNCTION, SOURCE = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping"
WORKER = "handlers.worker.handler"
# Context keys. The last is from infra/deploy_context.py, and empty if no context was given.
ENABLED, FORMATS, KEY = "worker_enabled", "export_formats", "orbweaver:context"
LIBRARIES = ("runtime", "files")
WAIT = {"Delay": 1, "MaxAttempts": 300}
FAILED = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED")


def is_used(environment: Mapping[str, str]) -> bool:
    """Return whether this module deploys the stack."""
    return bool(environment.get(layout.ENDPOINT)) and not extras.has_cdk()


def contexts(common: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the contexts whose templates the wheel contains, by name."""
    whole = {**common, KEY: "{}"}
    # Without Parquet, functions need no pyarrow, which saves 165 MB of download and unpacking.
    return {"whole": whole, "jsonl": {**whole, FORMATS: "jsonl"}}


def synthesize(context: Mapping[str, str], *, say: Say, root: Path, store: Path) -> Path:
    """Return the folder of an assembly for a context, from the cache or new."""

    def make(folder: Path) -> None:
        template = _template(context)
        with installed.report_step("building the functions' code (once for this version)", say):
            archives = _archives(context, root)
        fill(template, {name: path.name for name, path in archives.items()}, context)
        for path in set(archives.values()):
            os.link(path, folder / path.name)
        (folder / TEMPLATE).write_text(json.dumps(template))
        properties = {"templateFile": TEMPLATE, "stackName": STACK}
        artifact = {"type": "aws:cloudformation:stack", "properties": properties}
        (folder / "manifest.json").write_text(json.dumps({"artifacts": {STACK: artifact}}))

    return assembly.obtain(assembly.fingerprint(root, context), store, make)[0]


def fill(template: dict[str, Any], archives: Mapping[str, str], context: Mapping[str, str]) -> None:
    """Fill in machine-dependent values, and whether the workers are on."""
    from infra.runtime import host_runtime

    architecture, python = host_runtime().split("/")
    resources = template["Resources"]
    functions = {key: each for key, each in resources.items() if each["Type"] == FUNCTION}
    for function in functions.values():
        properties = function["Properties"]
        key = archives[properties["Code"]["S3Key"]]
        properties |= {"Architectures": [architecture], "Runtime": python}
        properties["Code"] = {"S3Bucket": BUCKET, "S3Key": key}
    if context.get(ENABLED) == "no":
        for source in (each["Properties"] for each in resources.values() if each["Type"] == SOURCE):
            if functions[source["FunctionName"]["Ref"]]["Properties"]["Handler"] == WORKER:
                source["Enabled"] = False


def deploy(folder: Path, lend: Lend) -> dict[str, str]:
    try:
        with lend("s3") as s3:
            s3.create_bucket(Bucket=BUCKET)
            for file in (*folder.glob("*.zip"), folder / TEMPLATE):
                s3.upload_file(str(file), BUCKET, file.name)
            # By URL, because a template in a request is limited to 51,200 bytes.
            template_url = f"{s3.meta.endpoint_url}/{BUCKET}/{TEMPLATE}"
        with lend("cloudformation") as cloudformation:
            _deploy(template_url, cloudformation)
            found = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        raise LocalStackError(f"Cannot deploy to the emulator: {error}") from error
    return {item["OutputKey"]: item["OutputValue"] for item in found.get("Outputs", ())}


def _deploy(template_url: str, cloudformation: Any) -> None:
    status = _status(cloudformation)
    if status in FAILED:
        cloudformation.delete_stack(StackName=STACK)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig=WAIT)
        status = None
    given = {
        "StackName": STACK,
        "TemplateURL": template_url,
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
    }
    try:
        if status is None:
            cloudformation.create_stack(**given)
            waiter = cloudformation.get_waiter("stack_create_complete")
        else:
            cloudformation.update_stack(**given)
            waiter = cloudformation.get_waiter("stack_update_complete")
        waiter.wait(StackName=STACK, WaiterConfig=WAIT)
    except ClientError as error:
        if "No updates" not in str(error):
            raise
    except WaiterError as error:
        events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
        reasons = [
            f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', '')}"
            for one in events
            if one["ResourceStatus"].endswith("FAILED")
        ]
        raise LocalStackError("\n".join(["The stack was not deployed:", *reasons])) from error


def _status(cloudformation: Any) -> str | None:
    try:
        found = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # "Stack … does not exist"
            return None
        raise
    status = str(found[0]["StackStatus"])
    return None if status == "DELETE_COMPLETE" else status


def _template(context: Mapping[str, str]) -> dict[str, Any]:
    wanted = {key: value for key, value in context.items() if key != ENABLED}
    shipped = [json.loads(file.read_text()) for file in sorted(TEMPLATES.glob("*.json"))]
    for one in shipped:
        if one["context"] == wanted:
            template: dict[str, Any] = one["template"]
            return template
    usual = set(shipped[0]["context"].items()) if shipped else set()
    given = ", ".join(f"{key}={value}" for key, value in wanted.items() - usual if key != KEY)
    raise extras.ExtraMissing(
        f"{given or 'this'} changes the stack's template, which needs CDK:"
        f" {extras.install_words(extras.DEPLOY)}"
    )


def _archives(context: Mapping[str, str], root: Path) -> dict[str, Path]:
    from infra.asset import build
    from infra.runtime import Runtime, host_runtime
    from infra.wheels import AssetError

    runtime, store = Runtime.parse(host_runtime(), native=True), layout.LOCAL / "asset"
    try:
        plain = build(runtime, "runtime", root=root, store=store).archive
        if context.get(FORMATS) == "jsonl":
            return dict.fromkeys(LIBRARIES, plain)
        return {"runtime": plain, "files": build(runtime, "files", root=root, store=store).archive}
    except AssetError as error:
        raise LocalStackError(str(error)) from error
