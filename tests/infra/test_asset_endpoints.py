"""Endpoints with the asset alone: requests go to AWS in the right region."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from infra.asset import build
from tests.infra.test_asset import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.infra, pytest.mark.slow, pytest.mark.timeout(300)]

# Sends a request to each service with the product's clients and no given endpoint; prints the URL.
ENDPOINTS = """
import asyncio, json, sys
folder, calls = sys.argv[1:]
sys.path.insert(0, folder)
from orbweaver.adapters.aws.clients import Aws
class Caught(Exception):
    pass
async def asked():
    urls = {}
    async with Aws() as clients:
        for service, (operation, parameters) in json.loads(calls).items():
            client = await clients.client(service)
            def catch(request, **_):
                urls[service] = request.url
                raise Caught
            client.meta.events.register("before-send", catch)
            try:
                await getattr(client, operation)(**parameters)
            except Caught:
                pass
    print(json.dumps(urls))
asyncio.run(asked())
"""


@pytest.fixture(scope="module")
def asset() -> Path:
    return build(LOCAL, "runtime").folder


def requests(region: str, domain: str) -> dict[str, tuple[str, Mapping[str, object], str]]:
    queue = f"https://sqs.{region}.{domain}/123456789012/crawl"
    entry = {"Source": "orbweaver", "DetailType": "x", "Detail": "{}"}
    return {
        "dynamodb": (
            *("get_item", {"TableName": "crawls", "Key": {"k": {"S": "a"}}}),
            f"https://dynamodb.{region}.{domain}/",
        ),
        "sqs": ("get_queue_attributes", {"QueueUrl": queue}, f"https://sqs.{region}.{domain}/"),
        "s3": (
            *("head_object", {"Bucket": "a-bucket", "Key": "bodies/x"}),
            f"https://a-bucket.s3.{region}.{domain}/bodies/x",
        ),
        "events": ("put_events", {"Entries": [entry]}, f"https://events.{region}.{domain}/"),
        "glue": (
            *("get_table", {"DatabaseName": "d", "Name": "t"}),
            f"https://glue.{region}.{domain}/",
        ),
        "secretsmanager": (
            *("get_secret_value", {"SecretId": "x"}),
            f"https://secretsmanager.{region}.{domain}/",
        ),
        "ssm": ("get_parameter", {"Name": "x"}, f"https://ssm.{region}.{domain}/"),
    }


@pytest.mark.parametrize(
    ("region", "domain"),
    [
        ("eu-central-1", "amazonaws.com"),
        ("ap-southeast-5", "amazonaws.com"),
        ("us-gov-west-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
    ],
)
@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_requests_use_regional_aws_endpoints(
    asset: Path, region: str, domain: str, variable: str
) -> None:
    """With pruned models, keys and a region only.

    The requests are intercepted before they are sent.
    """
    wanted = requests(region, domain)
    if variable == "AWS_DEFAULT_REGION" or not region.startswith("eu-"):
        wanted = {name: wanted[name] for name in ("dynamodb", "s3", "sqs")}
    calls = {name: [operation, given] for name, (operation, given, _) in wanted.items()}
    words = [sys.executable, "-I", "-S", "-c", ENDPOINTS, str(asset), json.dumps(calls)]
    keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "b", variable: region}
    done = subprocess.run(words, env=keys, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: url for name, (_, _, url) in wanted.items()}
