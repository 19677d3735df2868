"""Runs the CDK app against the endpoint in `AWS_ENDPOINT_URL`, or against AWS without one.

For an emulator, CDK asks no questions, its output appears only if it fails, and an unchanged
assembly comes from the cache. For AWS, CDK uses the terminal, shows its progress, and asks before
it widens permissions; the assembly is always new. An interrupted command ends with all its
processes. The CDK command line is the one in node_modules, run by the Node of .venv.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from localstack import adoption, amend, assembly, installed, layout, processes, removal
from localstack.api_address import local_outputs
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from localstack.retained import Lend

    Say = Callable[[str], None]

MARK = "orbweaver:stack"  # context key that marks a planned deployment
TOOLKIT = "CDKToolkit"  # the stack that `cdk bootstrap` makes
RUN_S_MAX = 900.0
LINES_SHOWN = 40
ANSWER_CHARS = 120
TOLD_EVERY_S = 10.0
_GRACE_S = 5.0
_STANDING = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")


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
    """Return the region of an environment's variables, or else of its profile."""
    named = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    try:
        return named or boto3.Session(profile_name=environment.get("AWS_PROFILE")).region_name
    except BotoCoreError as error:
        raise LocalStackError(f"Cannot read the AWS profile: {error}") from error


def _open(service: str, environment: Mapping[str, str]) -> Any:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if is_emulator(environment):
        session = boto3.Session(
            aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID", "test"),
            aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY", "test"),
            region_name=region or layout.REGION,
        )
        # Two attempts suffice: a service on this machine that does not answer is not running.
        tries = Config(retries={"total_max_attempts": 2})
        return session.client(service, endpoint_url=environment[layout.ENDPOINT], config=tries)
    session = boto3.Session(profile_name=environment.get("AWS_PROFILE"), region_name=region)
    return session.client(service)


def stack_outputs(name: str, environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return a stack's outputs, or None if the stack does not exist or is incomplete."""
    try:
        with client("cloudformation", environment) as cloudformation:
            described = cloudformation.describe_stacks(StackName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # "Stack … does not exist"
            return None
        raise LocalStackError(f"Cannot ask for the stack {name}: {error}") from error
    except BotoCoreError as error:
        raise LocalStackError(
            f"Cannot reach {environment.get(layout.ENDPOINT, 'AWS')} ({error}): is it up, and are"
            " credentials and a region set?"
        ) from error
    stack = described["Stacks"][0]
    if stack["StackStatus"] not in _STANDING:
        return None
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", ())}
    return local_outputs(outputs, environment)


def synthesize(
    environment: Mapping[str, str],
    context: Mapping[str, str],
    *,
    say: Say = lambda _: None,
    root: Path = layout.ROOT,
    store: Path = layout.ASSEMBLIES,
) -> Path:
    """Return the folder of a context's cloud assembly, for an emulator maybe from the cache."""
    reusable = is_emulator(environment)
    key = assembly.fingerprint(root, context) if reusable else "aws"

    def make(folder: Path) -> None:
        once = ": once for this version on this machine, it is kept" if reusable else ""
        say(f"synthesizing the stack{once}")
        words = ["synth", "--quiet", "--output", str(folder), *_context_words(context)]
        _run(words, environment, root=root, attached=not reusable, say=say)

    if not reusable:
        with contextlib.suppress(FileNotFoundError):
            (store / key / "manifest.json").unlink()
    return assembly.obtain(key, store, make)[0]


def bootstrap(
    environment: Mapping[str, str],
    *,
    qualifier: str = "",
    say: Say = lambda _: None,
    root: Path = layout.ROOT,
) -> None:
    """Bootstrap CDK in an account and region, once per qualifier."""
    if qualifier:
        if adoption.bootstrapped(qualifier, _lender(environment)):
            return
    elif stack_outputs(TOOLKIT, environment) is not None:
        return
    say("preparing the account for CDK")
    words = ["bootstrap"]
    if qualifier:
        words += ["--qualifier", qualifier, "--toolkit-stack-name", f"{TOOLKIT}-{qualifier}"]
    if is_emulator(environment):
        words.append(f"aws://{layout.ACCOUNT}/{layout.REGION}")
        # With account and region given, the app need not run to find them.
        words += ["--app", ""]
    else:
        words += ["-c", f"{MARK}="]
    _run(words, environment, root=root, attached=not is_emulator(environment), say=say)


def deploy(
    environment: Mapping[str, str],
    context: Mapping[str, str] | None = None,
    *,
    say: Say = lambda _: None,
    yes: bool = False,
    root: Path = layout.ROOT,
    store: Path = layout.ASSEMBLIES,
) -> dict[str, str]:
    """Deploy the stack and return its outputs. If `yes`, AWS is changed without asking."""
    context = context or {}
    installed.ensure_cdk(say)
    bootstrap(environment, qualifier=context.get("qualifier", ""), say=say, root=root)
    folder = synthesize(environment, context, say=say, root=root, store=store)
    outputs_by_key = _deploy(folder, environment, say=say, yes=yes, root=root)
    if is_emulator(environment):
        amend.apply(folder, _lender(environment))
        for name in assembly.stack_names(folder):
            removal.protect(removal.resources_of(name, _lender(environment)), _lender(environment))
    return local_outputs(outputs_by_key, environment)


def _deploy(
    folder: Path, environment: Mapping[str, str], *, say: Say, yes: bool, root: Path
) -> dict[str, str]:
    lend, held = _lender(environment), {}
    for name in assembly.stack_names(folder):
        held[name] = _adopt_left(name, folder, environment, say=say, root=root)
    say("deploying the stack")
    with tempfile.TemporaryDirectory() as scratch:
        outputs = Path(scratch) / "outputs.json"
        words = ["deploy", "--all", "--app", str(folder), "--outputs-file", str(outputs)]
        if yes or is_emulator(environment):
            words += ["--require-approval", "never"]
        if is_emulator(environment):
            words += ["--method", "direct"]  # faster without a change set, which no one reads
        _run(words, environment, root=root, attached=not is_emulator(environment), say=say)
        by_stack = json.loads(outputs.read_text()) if outputs.exists() else {}
    for name, before in held.items():
        if before and (left := removal.dropped(before, removal.resources_of(name, lend))):
            removal.remember(left, lend, adoption.place(name, root, lend), say)
    return {key: value for stack in by_stack.values() for key, value in stack.items()}


def _adopt_left(
    name: str, folder: Path, environment: Mapping[str, str], *, say: Say, root: Path
) -> list[removal.Resource]:
    """Import an earlier stack's resources. Return the resources that the stack already had."""
    lend, there = _lender(environment), stack_outputs(name, environment) is not None

    def adopt(mapping: Path) -> None:
        words = ["import", name, "--app", str(folder), "--resource-mapping", str(mapping)]
        # The template may contain other changes too, which the deployment makes afterwards.
        words += ["--force"] if there else []
        _run(words, environment, root=root, attached=not is_emulator(environment))

    if not there and not is_emulator(environment):
        adoption.wait(name, lend, say)
    file = adoption.place(name, root, lend)
    held = removal.resources_of(name, lend) if there else []
    if file.exists():
        declared = assembly.resources(folder, name)
        deployed = {one.logical for one in held}
        adoption.adopt(file, declared, deployed, adopt, lend, say)
    return removal.resources_of(name, lend) if there else []


def _lender(environment: Mapping[str, str]) -> Lend:
    return lambda service: client(service, environment)


def destroy(
    environment: Mapping[str, str],
    context: Mapping[str, str] | None = None,
    *,
    say: Say = lambda _: None,
    yes: bool = False,
    root: Path = layout.ROOT,
    store: Path = layout.ASSEMBLIES,
) -> None:
    """Remove the stack. If `yes`, AWS is changed without asking."""
    # Buckets are emptied before, or, if CDK asks, after it has failed because they are not empty.
    # Workers may fill them again meanwhile, so there are two attempts.
    installed.ensure_cdk(say)
    # A removal needs only the names of stacks, so the app makes no plan.
    marked = {**(context or {}), **({} if is_emulator(environment) else {MARK: ""})}
    folder = synthesize(environment, marked, say=say, root=root, store=store)
    names, lend = assembly.stack_names(folder), _lender(environment)
    held = {name: removal.resources_of(name, lend) for name in names}
    attached = not is_emulator(environment)
    asked = attached and not yes
    say("removing the stack")
    words = ["destroy", "--all", "--app", str(folder)]
    for found in () if asked else held.values():
        removal.empty(found, lend, say)
    try:
        _run([*words, *([] if asked else ["--force"])], environment, root=root, attached=attached)
    except LocalStackError:
        stuck = [one for name in names for one in removal.resources_of(name, lend) if one.stuck]
        if not removal.empty(stuck, lend, say):
            raise
        _run([*words, "--force"], environment, root=root, attached=attached)
    for name, found in held.items():
        if stack_outputs(name, environment) is not None:
            raise LocalStackError(f"the stack {name} still stands: it was not to be removed")
        removal.finish(found, lend, adoption.place(name, root, lend), say)


def _context_words(context: Mapping[str, str]) -> list[str]:
    return [word for key, value in context.items() for word in ("-c", f"{key}={value}")]


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    root: Path,
    attached: bool,
    say: Say = lambda _: None,
) -> None:
    """Run a CDK command, attached to the terminal or with hidden output and time limit."""
    if not layout.CDK.exists():
        raise LocalStackError("The CDK command line is not installed: run `make setup`")
    command = [str(layout.node_directory() / "node"), str(layout.CDK), "--no-notices", *words]
    surroundings = layout.tool_environment(environment)
    if attached:
        ended = subprocess.run(command, cwd=root, env=surroundings, check=False).returncode
        if ended != 0:
            raise LocalStackError(f"`cdk {words[0]}` failed: see its words above")
        return
    with group(command, root, surroundings) as (process, timed_out):
        said = _heard(process, say)
    if timed_out.is_set():
        said += f"\nstopped after {RUN_S_MAX:.0f} s"
    if process.returncode != 0:
        tail = "\n".join(said.splitlines()[-LINES_SHOWN:])
        raise LocalStackError(f"`cdk {words[0]}` failed. Its last words:\n{tail}")


def _heard(process: subprocess.Popen[str], say: Say, told_every_s: float = TOLD_EVERY_S) -> str:
    """Return a process's output when it has ended. Reports the elapsed time until then."""
    for times in itertools.count(1):
        try:
            return process.communicate(timeout=told_every_s)[0]
        except subprocess.TimeoutExpired:
            say(f"  {times * told_every_s:.0f} s so far")
    raise AssertionError("counting has no end")


@contextlib.contextmanager
def group(
    command: Sequence[str], root: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], threading.Event]]:
    """Run a command in its own process group, which ends with the block or its time limit."""
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timed_out = threading.Event()

    def expire() -> None:
        timed_out.set()
        _end(process)

    timer = threading.Timer(RUN_S_MAX, expire)
    timer.daemon = True
    timer.start()
    try:
        yield process, timed_out
    finally:
        timer.cancel()
        if process.poll() is None:
            _end(process)
        if process.stdout is not None:
            process.stdout.close()


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_S)
    processes.kill_group(process.pid)
    process.wait()
