"""Checks of account and machine: versions, region, credentials, quotas, bootstrap."""

from __future__ import annotations

import json
import platform
import re

import boto3
from botocore.exceptions import ClientError

from localstack import concurrency, layout
from localstack.doctor import masking
from localstack.doctor.ground import (
    Check,
    Finding,
    Ground,
    expect,
    failed,
    judged,
    number,
    passed,
    version,
)

PYTHON_MIN = (3, 11)
QUALIFIER = "hnb659fds"  # CDK's default bootstrap qualifier
BOOTSTRAP_MIN = 6  # the first bootstrap version that allows asset lookups
SERVICES: tuple[str, ...] = (
    "apigateway",
    "athena",
    "cloudwatch",
    "dynamodb",
    "events",
    "glue",
    "lambda",
    "logs",
)
SERVICES += ("s3", "scheduler", "secretsmanager", "sns", "sqs", "ssm")
REGION = re.compile(r"[a-z]{2}(-[a-z]{2,12}){1,3}-\d")


def versions(_ground: Ground) -> Finding:
    file = layout.CDK.parent.parent / "package.json"
    installed = file.is_file() and json.loads(file.read_text())["version"]
    seen = {"python": platform.python_version(), "boto3": boto3.__version__}
    problems = [] if installed else ["the CDK command line is not installed"]
    if tuple(map(int, platform.python_version_tuple()[:2])) < PYTHON_MIN:
        problems.append("Python is older than 3.11")
    return judged(problems, **seen, cdk=version(installed or "none"))


def region(ground: Ground) -> Finding:
    named = ground.environment.get("AWS_REGION", "")
    shown = named if REGION.fullmatch(named) else "(not a region's name)"
    session = boto3.Session()
    partition = session.get_partition_for_region(named) if REGION.fullmatch(named) else "aws"
    missing = [
        service
        for service in SERVICES
        if named not in session.get_available_regions(service, partition_name=partition)
    ]
    why = f"this botocore knows no {', '.join(missing)} there"
    return expect(not missing, why, region=shown, named_by=ground.region_from)


def credentials(ground: Ground) -> Finding:
    found = ground.client("sts").get_caller_identity()
    return passed(account=masking.account(str(found["Account"])))


def quota(ground: Ground) -> Finding:
    """Check that the account's Lambda concurrency suffices for the stack's limits."""
    limits = ground.client("lambda").get_account_settings()["AccountLimit"]
    free = number(limits["UnreservedConcurrentExecutions"])
    wanted = {
        key: getattr(ground.config, key)
        for key in concurrency.default_limits(renders=ground.config.renders)
    }
    given = {key: str(value) for key, value in wanted.items() if key in ground.given}
    # Each deployment chooses the limits that are not given.
    chosen, _ = concurrency.choose(free, wanted, given)
    total = sum({**wanted, **{key: number(value) for key, value in chosen.items()}}.values())
    why = f"the limits of the stack are {total:,} together, and Lambda runs {free:,} at once"
    return expect(total + concurrency.ROOM_MIN <= free, why, quota=free, limits=total)


def bootstrap(ground: Ground) -> Finding:
    name = f"/cdk-bootstrap/{ground.config.qualifier or QUALIFIER}/version"
    try:
        found = ground.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return failed("nothing was deployed here with CDK yet")
        raise
    enough = number(found) >= BOOTSTRAP_MIN
    return expect(enough, "it is too old", version=number(found))


CHECKS = (
    Check(
        id="machine.versions",
        title="Python, boto3 and CDK are there",
        run=versions,
        stack=False,
        do="run `make setup`",
    ),
    Check(
        id="account.credentials",
        title="credentials are accepted",
        run=credentials,
        stack=False,
        do="log in (`aws sso login`), or name a profile in AWS_PROFILE",
    ),
    Check(
        id="account.region",
        title="every service is there in the region",
        run=region,
        assumptions=("A76",),
        stack=False,
        do="choose another region by --region, or bring botocore up to date",
    ),
    Check(
        id="account.concurrency",
        title="Lambda's quota is enough for the limits of concurrency",
        run=quota,
        assumptions=("A28",),
        stack=False,
        do="`orbweaver deploy` chooses limits that fit; for more ask Service Quotas for"
        " Lambda's Concurrent executions",
    ),
)
# Runs after the first deployment, which bootstraps the account.
PREPARED = Check(
    id="account.bootstrap",
    title="the account is prepared for CDK",
    run=bootstrap,
    stack=False,
    do="run `orbweaver deploy`, which does it",
)
