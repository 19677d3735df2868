"""Operations of the API: method, path, handler, bodies and statuses.

The types of a handler's `path`, `query`, `headers` and `body` decode and describe a request. The
API checks each response against this table before it sends the response. The gateway has exactly
these routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, get_type_hints

from orbweaver.api import crawls, pages, requests, responses
from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.problems import ALWAYS

Act: TypeAlias = Callable[..., Awaitable[Reply]]
PARTS = ("path", "query", "headers", "body")
# Handler modules import these names for type checkers only, but `get_type_hints` needs them.
NAMES = {**vars(requests), "HandlerContext": HandlerContext, "Reply": Reply}


@dataclass(frozen=True)
class Operation:
    """One operation. `refusals` are its error statuses besides the common ones (`ALWAYS`)."""

    name: str
    method: str
    path: str
    act: Act | None
    answers: Mapping[int, Any]
    refusals: tuple[int, ...] = ()
    body_needed: bool = True

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Types of the parameters by location: path, query, headers, body."""
        if self.act is None:
            return {}
        hints = get_type_hints(self.act, localns=NAMES, include_extras=True)
        return {part: hints[part] for part in PARTS if part in hints}

    @property
    def knows_its_request(self) -> bool:
        return self.act is not None and "request_id" in self.act.__annotations__

    @property
    def statuses(self) -> tuple[int, ...]:
        more = (415,) if "body" in self.parameters else ()
        return tuple(sorted({*ALWAYS, *self.refusals, *more}))


def _steer(name: str, act: Act) -> Operation:
    return Operation(name, "POST", f"/crawls/{{id}}/{name}", act, {200: responses.Run}, (404, 409))


def _look(name: str, act: Act, kind: type) -> Operation:
    return Operation(name, "GET", f"/crawls/{{id}}/{name}", act, {200: kind}, (404,))


_RUN, _RUNS = responses.Run, responses.Runs
OPERATIONS = (
    Operation("start", "POST", "/crawls", crawls.start, {201: _RUN, 200: _RUN}, (409,)),
    Operation("list", "GET", "/crawls", crawls.listed, {200: _RUNS}),
    Operation("overview", "GET", "/overview", crawls.overview, {200: responses.OverviewList}),
    Operation("check", "POST", "/check", crawls.check, {200: responses.Checked}),
    Operation("host", "GET", "/host", crawls.host, {200: responses.HostSeen}),
    Operation("status", "GET", "/crawls/{id}", crawls.show, {200: responses.Progress}, (404,)),
    Operation("edit", "PATCH", "/crawls/{id}", crawls.edit, {200: _RUN}, (404, 409)),
    replace(_steer("preview", crawls.preview), answers={200: responses.Differences}),
    _look("hosts", crawls.hosts, responses.HostList),
    _look("report", crawls.report, responses.LeftOut),
    _look("pages", pages.pages, responses.Rows),
    _look("items", pages.items, responses.FoundItems),
    _look("texts", pages.texts, responses.FoundTexts),
    _look("exports", pages.exports, responses.ExportedFiles),
    _steer("pause", crawls.pause),
    _steer("resume", crawls.resume),
    _steer("cancel", crawls.cancel),
    replace(_steer("retry", crawls.retry), answers={201: _RUNS, 200: _RUNS}, body_needed=False),
    Operation("seeds", "POST", "/seeds", crawls.take, {202: responses.Accepted}, (404, 409)),
    Operation("explain", "GET", "/explain", pages.explain, {200: responses.Explained}, (404,)),
    Operation("openapi", "GET", "/openapi.json", None, {200: dict}),
)
