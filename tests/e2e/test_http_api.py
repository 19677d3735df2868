"""The HTTP API through the gateway, with signed requests as any client sends them."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.e2e.stand import until
from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SEEDS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the API answered."""

    status: int
    content_type: str
    body: dict[str, Any]


def post_seeds(stand: Stand, body: bytes) -> Reply:
    """Send a signed `POST /seeds`, by the emulator's own form of the API's URL."""
    endpoint = stand.environment["AWS_ENDPOINT_URL"]
    api = urlsplit(stand.outputs["ApiUrl"])
    api_id, stage = (api.hostname or "").split(".")[0], api.path.strip("/")
    url = f"{endpoint}/restapis/{api_id}/{stage}/_user_request_/seeds"
    request = AWSRequest(
        method="POST", url=url, data=body, headers={"Content-Type": "application/json"}
    )
    keys = (stand.environment["AWS_ACCESS_KEY_ID"], stand.environment["AWS_SECRET_ACCESS_KEY"])
    region = stand.environment["AWS_REGION"]
    SigV4Auth(Credentials(*keys), "execute-api", region).add_auth(request)
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
    try:
        connection.request("POST", urlsplit(url).path, body=body, headers=dict(request.headers))
        answer = connection.getresponse()
        said = answer.read()
    finally:
        connection.close()
    return Reply(
        status=answer.status,
        content_type=answer.headers["Content-Type"],
        body=json.loads(said),
    )


def test_seeds_are_crawled(stand: Stand) -> None:
    """What is posted is accepted, and then asked for."""
    with graph.serve_in_background({"/posted": graph.page("Posted")}) as site:
        reply = post_seeds(stand, json.dumps({"url": f"{site.url}/posted"}).encode())

        assert (reply.status, reply.content_type) == (202, "application/json")
        assert reply.body == {"crawl": "default", "accepted": 1}
        until(lambda: "/posted" in site.log.paths(), "the seed is asked for", log=stand.log)
        stand.wait_idle()


BAD = {
    "not a URL": ({"url": "nonsense"}, 400),
    "one of two is not http": ({"urls": ["SITE/good", "ftp://site.invalid/"]}, 400),
    "unknown crawl": ({"url": "SITE/good", "crawl": "nobody"}, 404),
    "too many": ({"urls": ["SITE/good"] * (SEEDS_MAX + 1)}, 413),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_seeds_are_refused_whole(stand: Stand, case: str) -> None:
    """What cannot be crawled is answered with a problem (RFC 9457), and nothing is enqueued."""
    body, status = BAD[case]
    with graph.serve_in_background({"/good": graph.page("Good")}) as site:
        text = json.dumps(body).replace("SITE", site.url)

        reply = post_seeds(stand, text.encode())

        assert (reply.status, reply.content_type) == (status, "application/problem+json")
        assert reply.body["status"] == status
        assert reply.body["detail"]
        assert stand.queued() == 0
        assert site.log.paths() == []


@pytest.mark.parametrize("body", [b"", b"{", b'{"uri": "http://a.invalid/"}', b'{"url": 5}'])
def test_the_gateway_refuses_what_is_no_seed(stand: Stand, body: bytes) -> None:
    """A body of another shape does not reach the function: the gateway answers 400."""
    reply = post_seeds(stand, body)

    assert reply.status == 400
    assert stand.queued() == 0
