"""The operations: method and path, handler, bodies and statuses.

What a request may hold is said by who answers, in the types of `path`, `query`, `headers` and
`body`: they are read by these types, and described by them. What is answered is checked against
this table before it is sent, and the gateway has exactly these routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, get_type_hints

from orbweaver.api import crawls, pages, requests, responses, results, seeds
from orbweaver.api.context import Means, Reply
from orbweaver.api.problems import ALWAYS

Act: TypeAlias = Callable[..., Awaitable[Reply]]
PARTS = ("path", "query", "headers", "body")
# Names that the modules of handlers use for type checkers alone.
NAMES = {**vars(requests), "Means": Means, "Reply": Reply}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that may be asked; `refusals` beside those that may always come."""

    name: str
    method: str
    path: str
    act: Act | None
    answers: Mapping[int, Any]
    refusals: tuple[int, ...] = ()
    body_needed: bool = True

    @cached_property
    def takes(self) -> Mapping[str, Any]:
        """The types of what it takes, by where that stands."""
        if self.act is None:
            return {}
        hints = get_type_hints(self.act, localns=NAMES, include_extras=True)
        return {part: hints[part] for part in PARTS if part in hints}

    @property
    def knows_its_request(self) -> bool:
        """Whether who answers asks for the request's id."""
        return self.act is not None and "request_id" in self.act.__annotations__

    @property
    def statuses(self) -> tuple[int, ...]:
        """All statuses of problems that it may come to."""
        more = (415,) if "body" in self.takes else ()
        return tuple(sorted({*ALWAYS, *self.refusals, *more}))


def _steer(name: str, act: Act) -> Operation:
    return Operation(
        name=name,
        method="POST",
        path=f"/crawls/{{id}}/{name}",
        act=act,
        answers={200: responses.Run},
        refusals=(404, 409),
    )


def _look(name: str, act: Act, kind: type) -> Operation:
    return Operation(
        name=name,
        method="GET",
        path=f"/crawls/{{id}}/{name}",
        act=act,
        answers={200: kind},
        refusals=(404,),
    )


OPERATIONS = (
    Operation(
        name="start",
        method="POST",
        path="/crawls",
        act=crawls.start,
        answers={201: responses.Run, 200: responses.Run},
        refusals=(409,),
    ),
    Operation(
        name="list", method="GET", path="/crawls", act=crawls.listed, answers={200: responses.Runs}
    ),
    Operation(
        name="status",
        method="GET",
        path="/crawls/{id}",
        act=crawls.show,
        answers={200: responses.Progress},
        refusals=(404,),
    ),
    Operation(
        name="edit",
        method="PATCH",
        path="/crawls/{id}",
        act=crawls.edit,
        answers={200: responses.Run},
        refusals=(404, 409),
    ),
    _look("hosts", crawls.hosts, responses.HostList),
    _look("report", crawls.report, responses.LeftOut),
    _look("pages", pages.pages, responses.Rows),
    _look("items", results.items, responses.FoundItems),
    _look("texts", results.texts, responses.FoundTexts),
    _look("exports", results.exports, responses.ExportedFiles),
    _steer("pause", crawls.pause),
    _steer("resume", crawls.resume),
    _steer("cancel", crawls.cancel),
    Operation(
        name="retry",
        method="POST",
        path="/crawls/{id}/retry",
        act=crawls.retry,
        answers={201: responses.Runs, 200: responses.Runs},
        refusals=(404, 409),
        body_needed=False,
    ),
    Operation(
        name="seeds",
        method="POST",
        path="/seeds",
        act=seeds.take,
        answers={202: responses.Accepted},
        refusals=(404, 409),
    ),
    Operation(
        name="explain",
        method="GET",
        path="/explain",
        act=pages.explain,
        answers={200: responses.Explained},
        refusals=(404,),
    ),
    Operation(
        name="openapi",
        method="GET",
        path="/openapi.json",
        act=None,
        answers={200: dict},
    ),
)
