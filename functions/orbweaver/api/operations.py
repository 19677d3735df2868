"""The operations: method and path, who answers, and with which bodies and statuses.

What a request may hold is said by who answers, in the types of `path`, `query`, `headers` and
`body`: they are read by these types, and described by them. What is answered is checked against
this table before it is sent, and the gateway has exactly these routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, get_type_hints

from orbweaver.api import answered, asked, records, results, runs, seeds
from orbweaver.api.means import Means, Reply
from orbweaver.api.problems import ALWAYS

Act: TypeAlias = Callable[..., Awaitable[Reply]]
PARTS = ("path", "query", "headers", "body")
# Names that the modules of those who answer use for type checkers alone.
NAMES = {**vars(asked), "Means": Means, "Reply": Reply}


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
        answers={200: answered.Run},
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
        act=runs.start,
        answers={201: answered.Run, 200: answered.Run},
        refusals=(409,),
    ),
    Operation(
        name="list", method="GET", path="/crawls", act=runs.listed, answers={200: answered.Runs}
    ),
    Operation(
        name="status",
        method="GET",
        path="/crawls/{id}",
        act=runs.show,
        answers={200: answered.Progress},
        refusals=(404,),
    ),
    Operation(
        name="edit",
        method="PATCH",
        path="/crawls/{id}",
        act=runs.edit,
        answers={200: answered.Run},
        refusals=(404, 409),
    ),
    _look("hosts", runs.hosts, answered.HostList),
    _look("report", runs.report, answered.LeftOut),
    _look("pages", records.pages, answered.Rows),
    _look("items", results.items, answered.FoundItems),
    _look("texts", results.texts, answered.FoundTexts),
    _look("exports", results.exports, answered.ExportedFiles),
    _steer("pause", runs.pause),
    _steer("resume", runs.resume),
    _steer("cancel", runs.cancel),
    Operation(
        name="retry",
        method="POST",
        path="/crawls/{id}/retry",
        act=runs.retry,
        answers={201: answered.Runs, 200: answered.Runs},
        refusals=(404, 409),
        body_needed=False,
    ),
    Operation(
        name="seeds",
        method="POST",
        path="/seeds",
        act=seeds.take,
        answers={202: answered.Accepted},
        refusals=(404, 409),
    ),
    Operation(
        name="explain",
        method="GET",
        path="/explain",
        act=records.explain,
        answers={200: answered.Explained},
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
