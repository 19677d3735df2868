"""The usage meter: AWS units of a container, counted where its clients meet the network.

Rules
- Every request counts for the crawl that the running task is at work for, `of`. What belongs to no
  crawl (a batch's recall, a container's time) goes to the crawl that commits next.
- `booking` takes what a crawl has used so far along with the commit of a pack. A commit that did
  not come about puts it back. What is used afterwards, the commit itself for a start, goes along
  with the next one of this container; what follows the last one of all is in no crawl's counters.
- Time is that of handlers and, with its first invocation, of the container's beginning, by memory.
- What the queue does for Lambda is estimated: messages are received and deleted ten at a time.
- Of what is sent to the web, requests and acknowledgements count, beginnings of connections do not.

Requests that were tried again inside the client count once. Sources: see the modules beside this.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from orbweaver.adapters.aws import usage_dynamodb, usage_requests
from orbweaver.budget.billing_units import Stage, Term, Units, chunks, text_bytes
from orbweaver.budget.prices import dollars
from orbweaver.model.crawl import Counts
from orbweaver.model.http_exchange import Failure, Request, Response, received_of

if TYPE_CHECKING:
    from orbweaver.model.ports import Fetcher

ASKED = "orbweaver.asked"
ROBOTS = "#robots"
BACKLOG = "backlog#"
AWS_HOSTS = ".amazonaws.com"
# Crawls that a container remembers the uses of; what is older belongs to none.
CRAWLS_MAX = 64
BATCH_MESSAGES = 10
SERVER_ERROR_MIN = 500
# What CloudWatch adds to a line of a log; what Lambda writes itself: START, END and REPORT.
LINE_BYTES, PLATFORM_BYTES = 26, 370
# A request beside its URL and what a crawl adds to its headers; a packet that acknowledges two.
HEAD_BYTES, ACK_BYTES, ACKED_BYTES = 180, 52, 2 * 1448

READS, WRITES = "read", "write"
# Which stage a request to a table belongs to: by the table, and what is done there.
STAGES: Mapping[tuple[str, str], Stage] = {
    ("urls", READS): Stage.LOOKUP,
    ("urls", WRITES): Stage.CLAIM,
    ("pages", READS): Stage.HISTORY,
    ("pages", WRITES): Stage.STORE,
    ("hosts", READS): Stage.HOST,
    ("hosts", WRITES): Stage.HOST,
    ("packs", READS): Stage.RECALL,
    ("packs", "PutItem"): Stage.JOURNAL,
    ("packs", WRITES): Stage.SENT,
    ("crawls", READS): Stage.CRAWL,
    ("crawls", "UpdateItem"): Stage.RESERVE,
    ("crawls", WRITES): Stage.CRAWL,
}
# Stages of requests to the table of packs, as far as they are not about backlogs.
OF_PACKS = frozenset({Stage.RECALL, Stage.JOURNAL, Stage.SENT})

_crawl: ContextVar[str | None] = ContextVar("orbweaver.meter.crawl", default=None)
_stage: ContextVar[Stage | None] = ContextVar("orbweaver.meter.stage", default=None)


class UsageMeter:
    """Counts units; one a container."""

    def __init__(
        self,
        *,
        tables: Mapping[str, str] | None = None,
        memory_mb: int = 0,
        time_term: Term = Term.MB_MS,
        files: Stage = Stage.BODIES,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the tables' names with what they hold (`urls`, …), and what files are put for."""
        self._tables = dict(tables or {})
        self._memory_mb = memory_mb
        self._time_term = time_term
        self._files = files
        self._clock_s = clock_s
        self._pots: OrderedDict[str | None, Units] = OrderedDict({None: Units()})
        self._total = Units()
        self._mark_s: float | None = None  # since when time has not been counted
        self._init_ms = 0

    # --- for whom ---------------------------------------------------------------------------

    @contextmanager
    def of(self, crawl: str | None, stage: Stage | None = None) -> Iterator[None]:
        """Have what is used within be of a crawl, and of a stage where one is named."""
        before = _crawl.set(crawl)
        at = _stage.set(stage)
        try:
            yield
        finally:
            _stage.reset(at)
            _crawl.reset(before)

    @contextmanager
    def at(self, stage: Stage, crawl: str | None = None) -> Iterator[None]:
        """Have what is used within be of a stage, and of a crawl if one is named."""
        with self.of(_crawl.get() if crawl is None else crawl, stage):
            yield

    # --- what is used -----------------------------------------------------------------------

    def use(self, term: Term, stage: Stage, number: int) -> None:
        """Count units for whom the running task is at work."""
        if not number:
            return
        self._total.use(term, stage, number)
        crawl = _crawl.get()
        pot = self._pots.get(crawl)
        if pot is None:
            pot = self._pots[crawl] = Units()
            if len(self._pots) > CRAWLS_MAX:
                self._forget()
        pot.use(term, stage, number)

    def _forget(self) -> None:
        """Have what was used for the first crawl belong to none."""
        oldest = next(crawl for crawl in self._pots if crawl is not None)
        self._pots[None].update(self._pots.pop(oldest))

    def logged(self, text: str) -> None:
        """Count a line of the log."""
        self.use(Term.LOG_BYTES, Stage.RUN, text_bytes(text) + LINE_BYTES)

    def begun(self, seconds: float) -> None:
        """Have the container's beginning, so long, counted with the next invocation."""
        self._init_ms = round(seconds * 1000)

    @contextmanager
    def invocation(self, bodies: Sequence[str] = ()) -> Iterator[None]:
        """Count an invocation with messages of a queue, and its time."""
        self._total = Units()
        self._mark_s = self._clock_s()
        self._take(self._init_ms)
        self._init_ms = 0
        self.use(Term.INVOCATIONS, Stage.RUN, 1)
        self.use(Term.LOG_BYTES, Stage.RUN, PLATFORM_BYTES)
        if bodies:
            requests = -(-len(bodies) // BATCH_MESSAGES)
            received = max(requests, chunks(sum(map(text_bytes, bodies))))
            self.use(Term.SQS, Stage.RECEIVE, received + requests)
        try:
            yield
        finally:
            self._pass_time()
            self._mark_s = None

    def _pass_time(self) -> None:
        """Count the time since this was done last, as no crawl's."""
        if self._mark_s is None:
            return
        now_s = self._clock_s()
        self._take(round((now_s - self._mark_s) * 1000))
        self._mark_s = now_s

    def _take(self, milliseconds: int) -> None:
        """Count time as no crawl's, by the memory of the function."""
        if mb_ms := milliseconds * self._memory_mb:
            self._total.use(self._time_term, Stage.RUN, mb_ms)
            self._pots[None].use(self._time_term, Stage.RUN, mb_ms)

    # --- where it goes ----------------------------------------------------------------------

    @property
    def total(self) -> Units:
        """What this invocation has used so far."""
        self._pass_time()
        return Units(self._total)

    def dollars(self) -> float:
        """What this invocation has cost so far."""
        return dollars(self.total.by_term)

    @contextmanager
    def booking(self, crawl: str) -> Iterator[Counts]:
        """Hand out what a crawl is to book; it is put back if that raises."""
        self._pass_time()
        nobodys, self._pots[None] = self._pots[None], Units()
        used = self._pots.pop(crawl, Units())
        used.update(nobodys)
        try:
            yield used.counts
        except BaseException:
            self._pots.setdefault(crawl, Units()).update(used)
            raise

    # --- at the clients ---------------------------------------------------------------------

    def watch(self, client: Any) -> None:
        """Count what a client is asked from now on."""
        service = client.meta.service_model.service_id.hyphenize()
        note = self._ask_dynamodb if service == "dynamodb" else self._ask
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", note)
        events.register_first(f"after-call.{service}", self._answered)
        events.register_first(f"after-call-error.{service}", self._lost)

    def _ask(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context[ASKED] = params, model

    def _ask_dynamodb(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        context[ASKED] = params, model
        if model.name in usage_dynamodb.RULES:
            params.setdefault("ReturnConsumedCapacity", "TOTAL")

    def _answered(
        self, http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any
    ) -> None:
        if http_response.status_code < SERVER_ERROR_MIN:
            self._count(context, parsed, final=AWS_HOSTS in http_response.url)

    def _lost(self, context: dict[str, Any], **_: Any) -> None:
        """Count a request without an answer as if it had been carried out."""
        self._count(context, {}, final=False)

    def _count(self, context: dict[str, Any], answer: dict[str, Any], *, final: bool) -> None:
        params, model = context[ASKED]
        operation, service = model.name, model.service_model.service_name
        stage = _stage.get()
        match service:
            case "dynamodb":
                found = usage_dynamodb.used(operation, params, answer, final=final)
                for (table, term), number in found.items():
                    at = stage or self._stage_of(operation, table, term)
                    if at is Stage.HOST and _is_robots(params):
                        at = Stage.ROBOTS
                    elif at in OF_PACKS and operation != "DeleteItem" and _is_backlog(params):
                        at = Stage.SEND
                    self.use(term, at, number)
            case "sqs":
                self.use(*_placed(usage_requests.sqs(params, answer), stage or Stage.SEND))
            case "s3":
                self.use(*_placed(usage_requests.s3(operation), stage or self._files))
            case "events":
                self.use(*_placed(usage_requests.events(params), stage or Stage.ANNOUNCE))

    def _stage_of(self, operation: str, table: str, term: Term) -> Stage:
        if operation == "TransactWriteItems":
            return Stage.COMMIT
        holds = self._tables.get(table, "")
        kind = WRITES if term is Term.WRITE else READS
        return STAGES.get((holds, operation)) or STAGES.get((holds, kind), Stage.OTHER)


def _is_robots(params: Mapping[str, Any]) -> bool:
    """Whether a request is about a robots.txt alone, which lies beside its host."""
    key = (params.get("Key") or params.get("Item") or {}).get("host")
    return key is not None and str(key.get("S", "")).endswith(ROBOTS)


def _is_backlog(params: Mapping[str, Any]) -> bool:
    """Whether a request puts packs to where they wait for their host, or takes one from there."""
    statements = params.get("Statements")
    if statements:
        key = statements[0]["Parameters"][0]
    else:
        values = params.get("ExpressionAttributeValues") or {}
        key = (params.get("Item") or {}).get("k") or values.get(":k") or {}
    return str(key.get("S", "")).startswith(BACKLOG)


def _placed(used: tuple[Term, int], stage: Stage) -> tuple[Term, Stage, int]:
    term, number = used
    return term, stage, number


class MeteredFetcher:
    """The web, with what is sent to it counted."""

    def __init__(self, fetcher: Fetcher, meter: UsageMeter) -> None:
        self._fetcher = fetcher
        self._meter = meter

    async def fetch(self, request: Request) -> Response | Failure:
        answer = await self._fetcher.fetch(request)
        sent = HEAD_BYTES + len(request.url) + len(request.user_agent) + len(request.body or b"")
        if request.headers:
            sent += sum(len(name) + len(value) for name, value in request.headers)
        sent += ACK_BYTES * -(-received_of(answer) // ACKED_BYTES)
        self._meter.use(Term.SENT_BYTES, Stage.WEB, sent)
        return answer


class MeteredStream:
    """A stream of log lines, counted."""

    def __init__(self, stream: TextIO, meter: UsageMeter) -> None:
        self._stream = stream
        self._meter = meter

    def write(self, text: str) -> int:
        """Write a line."""
        self._meter.logged(text)
        return self._stream.write(text)

    def flush(self) -> None:
        """Write out what is buffered."""
        self._stream.flush()
