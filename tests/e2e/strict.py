"""The stack on its own emulator, which is stricter than the shared one.

CloudFormation alone deploys it from the assembly that `cdk deploy` takes, because an emulator that
enforces IAM refuses the roles that the CDK command line uses for uploads. The functions run the
assembly's code in place: dozens of containers start here, and each would unpack 90 MB.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from localstack import cdk, emulator, layout
from localstack.stack import CONTEXT, Stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.stand import Stand

NAME = "Orbweaver"
BUCKET = f"cdk-hnb659fds-assets-{layout.ACCOUNT}-{layout.REGION}"  # Named by the template.
TOOLKIT_VERSION = "/cdk-bootstrap/hnb659fds/version"  # A parameter of the template.
TOOLKIT = "30"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
WAIT = {"Delay": 1, "MaxAttempts": 60}
TEMPLATE = "template.json"
SOURCES = ("SeedEventSource", "CrawlEventSource", "ExpressEventSource", "ExportEventSource")


class Patient(Stand):
    """A test stack that keeps its clients, because creating one takes longer than most calls."""

    def __init__(self, stack: Stack, folder: Path, kept: ExitStack) -> None:
        """Keep clients until `kept` is closed."""
        super().__init__(stack, folder)
        self._kept = kept
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> AbstractContextManager[Any]:
        if service not in self._clients:
            self._clients[service] = self._kept.enter_context(super().client(service))
        return nullcontext(self._clients[service])


@contextmanager
def standing(folder: Path, settings: Mapping[str, str]) -> Iterator[Stand]:
    """Deploy the stack to an emulator with these settings for a block."""
    running = emulator.start(port=0, keep=False, settings=settings)
    try:
        outputs = _deploy(running)
        with ExitStack() as kept:
            yield Patient(Stack(emulator=running, outputs=outputs), folder, kept)
    finally:
        running.stop()


def _deploy(running: emulator.Emulator) -> dict[str, str]:
    environment = running.environment()
    assembly = cdk.synthesize(environment, CONTEXT | LOCAL_CONTEXT)
    template_url = _publish(assembly, running.directory / "code", environment)
    with cdk.client("cloudformation", environment) as cloudformation:
        cloudformation.create_stack(
            StackName=NAME, TemplateURL=template_url, Capabilities=CAPABILITIES
        )
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=NAME, WaiterConfig=WAIT)
    cdk.amend(assembly, lambda service: cdk.client(service, environment))
    outputs = cdk.stack_outputs(NAME, environment)
    assert outputs is not None
    return outputs


def _publish(assembly: Path, code: Path, environment: Mapping[str, str]) -> str:
    """Upload an assembly's template and an empty archive in place of its code.

    The code itself goes below `code`. Returns the template's URL.
    """
    files = json.loads((assembly / f"{NAME}.assets.json").read_text())["files"].values()
    places = []
    for file in files:
        if file["source"]["path"].endswith(".zip"):
            (place,) = file["destinations"].values()
            places.append(place["objectKey"])
            with zipfile.ZipFile(assembly / file["source"]["path"]) as archive:
                archive.extractall(code / places[-1])
    template = json.loads((assembly / f"{NAME}.template.json").read_text())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            own = code / resource["Properties"]["Code"]["S3Key"]
            resource["Properties"]["Environment"]["Variables"]["PYTHONPATH"] = str(own)
    with cdk.client("ssm", environment) as ssm:
        ssm.put_parameter(Name=TOOLKIT_VERSION, Value=TOOLKIT, Type="String")
    with cdk.client("s3", environment) as s3:
        s3.create_bucket(Bucket=BUCKET)
        for place in places:
            s3.put_object(Bucket=BUCKET, Key=place, Body=_nothing())
        s3.put_object(Bucket=BUCKET, Key=TEMPLATE, Body=json.dumps(template))
    return f"{environment[layout.ENDPOINT]}/{BUCKET}/{TEMPLATE}"


def _nothing() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("elsewhere", "")
    return body.getvalue()


def switch(stand: Stand, *, enabled: bool) -> None:
    with stand.client("lambda") as functions:
        for name in SOURCES:
            functions.update_event_source_mapping(UUID=stand.outputs[name], Enabled=enabled)
