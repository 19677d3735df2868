"""Deeds (pieces of work) of the hosted console: API requests, message counts, dead letters."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from orbweaver.console.users import Group
from tests.e2e.deeds import Act, Answer, Bench
from tests.e2e.needs import NEEDED, ONLY_GUARDED
from tests.iam.account import CLIENT, ISSUER, Here

ROLE = "console"
TOKEN_S = 3_600


def event_of(method: str, path: str, query: str = "", **given: Any) -> dict[str, Any]:
    """Build a steering user's request as an HTTP API sends it (payload format 2.0)."""
    claims = {
        "iss": ISSUER,
        "client_id": CLIENT,
        "token_use": "access",
        "username": "somebody",
        "exp": str(int(time.time()) + TOKEN_S),
        "cognito:groups": f"[{Group.STEER}]",
    }
    context = {
        "requestId": given.pop("request", "request"),
        "http": {"method": method, "path": path},
        "authorizer": {"jwt": {"claims": claims}},
    }
    return {"rawPath": path, "rawQueryString": query, "requestContext": context, **given}


class Hosted(Here):
    """Tests' access to the functions that sends API requests through the console."""

    def _invoke(self, part: str, event: dict[str, Any]) -> tuple[Any, Answer]:
        if part != "Api":
            return super()._invoke(part, event)
        asked = event_of(
            event["httpMethod"],
            f"/api{event['path']}",
            urlencode(event.get("queryStringParameters") or {}),
            headers=event.get("headers") or {},
            body=event.get("body") or "",
            request=event["requestContext"]["requestId"],
        )
        return self.functions.invoke(ROLE, asked)


def _hosted(deed: Callable[[Bench], Act]) -> Callable[[Here], Act]:
    def done(bench: Here) -> Act:
        other = copy.copy(bench)
        other.__class__ = Hosted
        return deed(other)

    done.__name__ = f"{deed.__name__}_by_the_console"
    return done


def messages_counted(bench: Here) -> Act:
    event = event_of("GET", f"/console/crawls/{bench.crawl().id}")

    def act() -> Answer:
        reply, answer = bench.functions.invoke(ROLE, event)
        done = reply is not None and "queue" in json.loads(reply["body"]).get("shown", {})
        return replace(answer, failed=answer.failed or not done)

    return act


def letters_looked_at(bench: Here) -> Act:
    """View a dead letter and put it back; others stay hidden for a while."""
    event = event_of("GET", "/console/dead-letters")

    def act() -> Answer:
        with bench.stand.client("sqs") as sqs:
            url = bench.stand.outputs["DeadLetterQueueUrl"]
            sqs.send_message(QueueUrl=url, MessageBody='{"url": "https://example.com/"}')
        reply, answer = bench.functions.invoke(ROLE, event)
        done = reply is not None and json.loads(reply["body"]).get("letters", 0) > 0
        return replace(answer, failed=answer.failed or not done)

    return act


HOSTED = {
    letters_looked_at: (
        f"{ROLE} sqs:ReceiveMessage dead-letters",
        f"{ROLE} sqs:ChangeMessageVisibility dead-letters",
    ),
    messages_counted: tuple(
        f"{ROLE} sqs:GetQueueAttributes {queue}"
        for queue in ("seeds", "crawl", "express", "dead-letters")
    ),
    **{
        _hosted(deed): tuple(f"{ROLE}{one.removeprefix('api')}" for one in grants)
        for deed, grants in (NEEDED | ONLY_GUARDED).items()
        if all(one.startswith("api ") for one in grants)
    },
}
