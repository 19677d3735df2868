"""Runs the CDK app against the endpoint in `AWS_ENDPOINT_URL`, or against AWS without one.

For an emulator, CDK asks no questions, shows its output only if it fails, and takes an unchanged
assembly from the cache. For AWS, CDK uses the terminal, shows its progress, and asks before it
widens permissions. The assembly is always new. An interrupted command ends with all its processes.
The Node of .venv runs the CDK command line in node_modules.

MiniStack (1.5.33) supports two properties in its own APIs, but ignores them in a template:
`TimeToLiveSpecification` of a table (no item would expire) and `RecursiveLoop` of a function (a
crawl would stop after 16 hops). The values are taken from the template in the cloud assembly, so
an emulator gets the same values as AWS. A property is set only if its value differs, because AWS
and LocalStack refuse to set a table's properties twice.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from localstack import assembly, installed, layout, processes, removal
from localstack.errors import LocalStackError, aws_errors
from localstack.removal import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from localstack.removal import Lend

    Say = Callable[[str], None]


MARK = "orbweaver:stack"  # context key that shows the app that a deployment was planned
TOOLKIT = "CDKToolkit"  # the stack that `cdk bootstrap` makes
QUALIFIER = "hnb659fds"  # CDK's default qualifier
LINES_SHOWN = 40
ANSWER_CHARS = 120
API_URL = "ApiUrl"
_API = re.compile(r"https://([a-z0-9]+)\.execute-api\.[^/]+/([^/]+)/")
# States of a stack without a running change, whose last change was completed or rolled back.
SETTLED = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
LIFE, LOOP = "TimeToLiveSpecification", "RecursiveLoop"
_CREATION = threading.Lock()  # boto3 creates clients of a session in one thread at a time.


def is_emulator(environment: Mapping[str, str]) -> bool:
    return bool(environment.get(layout.ENDPOINT))


@contextlib.contextmanager
def client(service: str, environment: Mapping[str, str]) -> Iterator[Any]:
    with contextlib.closing(_open(service, environment)) as opened:
        try:
            yield opened
        except ResponseParserError as error:  # not a subclass of botocore's two base classes
            where = environment.get(layout.ENDPOINT) or opened.meta.endpoint_url
            said = str(error).partition("\n")[0][:ANSWER_CHARS]
            raise LocalStackError(
                f"{where} does not answer {service} as AWS does: is it the right endpoint, and is a"
                f" proxy in between? ({said})"
            ) from error


def region_of(environment: Mapping[str, str]) -> str | None:
    """Return the AWS region from environment variables, or from the profile that they name."""
    named = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    try:
        return named or boto3.Session(profile_name=environment.get("AWS_PROFILE")).region_name
    except BotoCoreError as error:
        raise LocalStackError(f"Cannot read the AWS profile: {error}") from error


def _open(service: str, environment: Mapping[str, str]) -> Any:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if is_emulator(environment):
        session = _emulator_session(
            environment.get("AWS_ACCESS_KEY_ID", "test"),
            environment.get("AWS_SECRET_ACCESS_KEY", "test"),
            region or layout.REGION,
        )
        # Two attempts are enough. A service on this machine that does not answer them is not
        # running.
        tries = Config(retries={"total_max_attempts": 2})
        with _CREATION:
            return session.client(service, endpoint_url=environment[layout.ENDPOINT], config=tries)
    session = boto3.Session(profile_name=environment.get("AWS_PROFILE"), region_name=region)
    return session.client(service)


@functools.cache
def _emulator_session(key_id: str, secret: str, region: str) -> boto3.Session:
    """Return one session per account, because a new session parses the service models again."""
    return boto3.Session(aws_access_key_id=key_id, aws_secret_access_key=secret, region_name=region)


def describe_stack(name: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return CloudFormation's description of a stack, or None if the stack does not exist."""
    try:
        with client("cloudformation", environment) as cloudformation:
            found: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # "Stack … does not exist"
            return None
        raise LocalStackError(f"Cannot ask for the stack {name}: {error}") from error
    except BotoCoreError as error:
        raise LocalStackError(
            f"Cannot reach {environment.get(layout.ENDPOINT, 'AWS')} ({error}): is it up, and are"
            " credentials and a region set?"
        ) from error
    return found


def outputs_of(described: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the outputs of a described stack. The API's address is adapted to an emulator."""
    outputs = {item["OutputKey"]: item["OutputValue"] for item in described.get("Outputs", ())}
    return local_outputs(outputs, environment)


def stack_outputs(name: str, environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return the outputs of a stack, or None if it does not exist or is incomplete."""
    found = describe_stack(name, environment)
    if found is None or found["StackStatus"] not in SETTLED:
        return None
    return outputs_of(found, environment)


def local_outputs(outputs: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the outputs of a stack. For an emulator, its API gets the emulator's address.

    The emulator's CloudFormation returns a name of AWS, so clients would send signed requests to
    the Internet. MiniStack and LocalStack serve REST APIs at `/restapis/ID/STAGE/_user_request_/`.
    """
    endpoint, found = environment.get(layout.ENDPOINT), _API.fullmatch(outputs.get(API_URL, ""))
    if not endpoint or found is None:
        return dict(outputs)
    path = f"restapis/{found[1]}/{found[2]}/_user_request_/"
    return {**outputs, API_URL: f"{endpoint.rstrip('/')}/{path}"}


def synthesize(
    environment: Mapping[str, str],
    context: Mapping[str, str],
    *,
    say: Say = lambda _: None,
) -> Path:
    """Return the folder of the cloud assembly for a context.

    For an emulator, it is taken from the cache if possible.
    """
    reusable = is_emulator(environment)
    key = assembly.fingerprint(layout.ROOT, context) if reusable else "aws"

    def make(folder: Path) -> None:
        once = ": once for this version on this machine, it is kept" if reusable else ""
        say(f"synthesizing the stack{once}")
        words = ["synth", "--quiet", "--output", str(folder), *_context_words(context)]
        _run(words, environment, say=say)

    if not reusable:
        shutil.rmtree(layout.ASSEMBLIES / key, ignore_errors=True)
    return assembly.obtain(key, layout.ASSEMBLIES, make)


def bootstrap(
    environment: Mapping[str, str],
    *,
    qualifier: str = "",
    say: Say = lambda _: None,
) -> None:
    """Run `cdk bootstrap` in an account and region, unless it has run for this qualifier."""
    if qualifier:
        if _bootstrapped(qualifier, environment):
            return
    elif stack_outputs(TOOLKIT, environment) is not None:
        return
    say("preparing the account for CDK")
    words = ["bootstrap"]
    if qualifier:
        words += ["--qualifier", qualifier, "--toolkit-stack-name", f"{TOOLKIT}-{qualifier}"]
    if is_emulator(environment):
        _drop_left_assets(qualifier or QUALIFIER, _lender(environment))
        words.append(f"aws://{layout.ACCOUNT}/{layout.REGION}")
        # Account and region are given, so CDK does not need to run the app to find them.
        words += ["--app", ""]
    else:
        words += ["-c", f"{MARK}="]
    _run(words, environment, say=say)


def _bootstrapped(qualifier: str, environment: Mapping[str, str]) -> bool:
    name = f"/cdk-bootstrap/{qualifier}/version"
    with aws_errors(f"ask for the parameter {name}"), client("ssm", environment) as ssm:
        try:
            ssm.get_parameter(Name=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ParameterNotFound":
                return False
            raise
    return True


def _drop_left_assets(qualifier: str, lend: Lend) -> None:
    """Remove the asset bucket of a toolkit stack that no longer exists.

    If the emulator was killed, it has lost the stack but kept the bucket.
    """
    # A new toolkit stack creates a bucket with the same name.
    name = f"cdk-{qualifier}-assets-{layout.ACCOUNT}-{layout.REGION}"
    with lend("s3") as s3:
        if name in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
            bucket = removal.Resource(logical="", kind=BUCKET, name=name, kept=False)
            removal.empty([bucket], lend)
            s3.delete_bucket(Bucket=name)


def deploy(
    environment: Mapping[str, str],
    context: Mapping[str, str] | None = None,
    *,
    say: Say = lambda _: None,
    yes: bool = False,
) -> dict[str, str]:
    """Deploy the stack and return its outputs.

    With `yes`, CDK does not ask before it changes AWS.
    """
    context, lend = context or {}, _lender(environment)
    installed.ensure_cdk(say)
    bootstrap(environment, qualifier=context.get("qualifier", ""), say=say)
    folder = synthesize(environment, context, say=say)
    name, template = assembly.stack_of(folder)
    held = _import_left(name, template, folder, environment, say=say)
    say("deploying the stack")
    with tempfile.TemporaryDirectory() as scratch:
        outputs = Path(scratch) / "outputs.json"
        words = ["deploy", "--all", "--app", str(folder), "--outputs-file", str(outputs)]
        if yes or is_emulator(environment):
            words += ["--require-approval", "never"]
        if is_emulator(environment):
            words += ["--method", "direct"]  # faster: without a change set, which is not read
        _run(words, environment, say=say)
        found = json.loads(outputs.read_text()).get(name, {}) if outputs.exists() else {}
    if held and (left := removal.dropped(held, removal.resources_of(name, lend))):
        removal.remember(left, lend, removal.left_file(name, lend), say)
    if is_emulator(environment):
        amend(folder, lend)
    return local_outputs(found, environment)


def _import_left(
    name: str,
    template: Mapping[str, Any],
    folder: Path,
    environment: Mapping[str, str],
    *,
    say: Say,
) -> list[removal.Resource]:
    """Import the resources that an earlier stack has left.

    Returns the resources that the stack already had.
    """
    lend, exists = _lender(environment), stack_outputs(name, environment) is not None
    held = removal.resources_of(name, lend) if exists else []
    if not exists and not is_emulator(environment):
        removal.wait(name, lend, say)
    file, declared = removal.left_file(name, lend), template["Resources"]
    if file.exists():
        left = {*json.loads(file.read_text())} & {*declared} - {one.logical for one in held}
        if left:
            say(f"taking up {len(left)} resources that an earlier stack has left")
            words = ["import", name, "--app", str(folder), "--resource-mapping", str(file)]
            try:
                # With `--force`, CDK ignores other changes of the template. The deployment makes
                # them afterwards.
                _run([*words, *(["--force"] if exists else [])], environment)
            except LocalStackError as error:
                fix = f"to begin with new ones instead, remove them, or all, from {file}"
                raise LocalStackError(f"{error}\n{fix}") from error
        removal.forget_imported(file, declared)
    return held


def _lender(environment: Mapping[str, str]) -> Lend:
    return lambda service: client(service, environment)


def destroy(
    environment: Mapping[str, str],
    context: Mapping[str, str] | None = None,
    *,
    say: Say = lambda _: None,
    yes: bool = False,
) -> None:
    """Remove the stack. With `yes`, CDK does not ask before it changes AWS."""
    # Buckets must be empty. They are emptied before the removal. If CDK asks the user first, they
    # are emptied after CDK has failed because of them. Workers may have written into them
    # meanwhile, so the removal is tried twice.
    installed.ensure_cdk(say)
    # For a removal CDK needs only the names of stacks, so the app does not plan a deployment.
    marked = {**(context or {}), **({} if is_emulator(environment) else {MARK: ""})}
    folder = synthesize(environment, marked, say=say)
    (name, _), lend = assembly.stack_of(folder), _lender(environment)
    held = removal.resources_of(name, lend)
    asked = not is_emulator(environment) and not yes
    say("removing the stack")
    words = ["destroy", "--all", "--app", str(folder)]
    if not asked:
        removal.empty(held, lend, say)
    try:
        _run([*words, *([] if asked else ["--force"])], environment)
    except LocalStackError:
        stuck = [one for one in removal.resources_of(name, lend) if one.stuck]
        if not removal.empty(stuck, lend, say):
            raise
        _run([*words, "--force"], environment)
    if stack_outputs(name, environment) is not None:
        raise LocalStackError(f"the stack {name} still stands: it was not to be removed")
    removal.drop_logs(held, lend)
    removal.remember(held, lend, removal.left_file(name, lend), say)


def _context_words(context: Mapping[str, str]) -> list[str]:
    return [word for key, value in context.items() for word in ("-c", f"{key}={value}")]


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    say: Say = lambda _: None,
) -> None:
    """Run a CDK command.

    For AWS, it uses the terminal. For an emulator, its output is shown only if it fails.
    """
    if not layout.CDK.exists():
        raise LocalStackError("The CDK command line is not installed: run `make setup`")
    command = [str(layout.node_directory() / "node"), str(layout.CDK), "--no-notices", *words]
    surroundings = layout.tool_environment(environment)
    if is_emulator(environment):
        code, said = processes.run(command, layout.ROOT, surroundings, say)
        tail = "\n".join(said.splitlines()[-LINES_SHOWN:])
        shown = f". Its last words:\n{tail}"
    else:
        code = subprocess.run(command, cwd=layout.ROOT, env=surroundings, check=False).returncode
        shown = ": see its words above"
    if code != 0:
        raise LocalStackError(f"`cdk {words[0]}` failed{shown}")


def amend(folder: Path, lend: Lend) -> None:
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
