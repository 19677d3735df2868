"""Client of the HTTP API that signs requests to the URL in the stack's outputs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.e2e import strict
from tests.e2e.stand import Stand, until

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Response of the API."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def content_type(self) -> str:
        return self.headers["Content-Type"]


class Caller:
    """Calls a stack's API with the stack's keys or others."""

    def __init__(self, stand: Stand, keys: tuple[str, str] | None = None) -> None:
        environment = stand.environment
        api = urlsplit(stand.outputs["ApiUrl"])
        assert f"{api.scheme}://{api.netloc}" == environment["AWS_ENDPOINT_URL"]
        self._place = api.netloc
        self._base = api.path.removesuffix("/")
        self._region = environment["AWS_REGION"]
        mine = (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        self._keys = mine if keys is None else keys

    @property
    def url(self) -> str:
        return f"http://{self._place}{self._base}"

    def signed(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> dict[str, str]:
        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
        SigV4Auth(Credentials(*self._keys), "execute-api", self._region).add_auth(request)
        return dict(request.headers)

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Reply:
        """Send a request; a body that is not text yet is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = dict(headers if headers is not None else JSON if body is not None else {})
        if signed:
            given = self.signed(method, self.url + target, body, given)
        return self.send(method, target, body, given)

    def send(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        connection = http.client.HTTPConnection(self._place, timeout=60)
        try:
            connection.request(method, self._base + target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        return Reply(status=answer.status, headers=dict(answer.headers), body=json.loads(said))


@contextmanager
def undisturbed(stand: Stand) -> Iterator[None]:
    """Switch the workers off for a block and drop the messages that it sent.

    A crawl can end while one of its packs (batches of URLs) is delayed, so the block starts with
    empty queues.
    """
    crawls = _crawls(stand)
    strict.switch(stand, enabled=False)
    until(lambda: not stand.in_work(), "nobody works", log=stand.log)
    stand.purge()
    try:
        yield
    finally:
        stand.purge()
        with stand.client("dynamodb") as dynamodb:
            for key in _crawls(stand) - crawls:
                item = {"k": {"S": key}}
                dynamodb.delete_item(TableName=stand.outputs["CrawlsTable"], Key=item)
        strict.switch(stand, enabled=True)


def _crawls(stand: Stand) -> set[str]:
    return {item["k"]["S"] for item in stand.scan("CrawlsTable")}
