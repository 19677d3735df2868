"""Count the billed AWS units of a container by crawl, with hooks in its AWS clients.

Usage that belongs to no crawl (such as container time) is charged to the next crawl that commits. A
commit's own usage is charged to the next commit, and usage after the last commit to no crawl. A
request that the client repeats counts once. `usage_requests` names the sources.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from orbweaver.adapters.aws import usage_requests
from orbweaver.budget.billing_units import Stage, Term, Units, chunks, text_bytes
from orbweaver.budget.prices import dollars
from orbweaver.model.crawl import Counts
from orbweaver.model.http_exchange import Failure, Request, Response, received_of

if TYPE_CHECKING:
    from orbweaver.model.ports import Fetcher

ASKED = "orbweaver.asked"
ROBOTS = "#robots"
BACKLOG = "backlog#"
# Number of crawls whose usage a container counts separately. Usage of further, older crawls is
# charged like usage of no crawl.
CRAWLS_MAX = 64
BATCH_MESSAGES = 10
SERVER_ERROR_MIN = 500
# Bytes that CloudWatch adds per log line, and bytes of Lambda's own lines START, END and REPORT.
LINE_BYTES, PLATFORM_BYTES = 26, 370
# Bytes of a request without URL and crawl headers, of a packet that acknowledges two packets, and
# of these two.
HEAD_BYTES, ACK_BYTES, ACKED_BYTES = 180, 52, 2 * 1448

READS, WRITES = "read", "write"
# Stage of a table request, by the table's role and the operation.
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
# Stages of requests to the packs table that can concern waiting packs (backlogs).
OF_PACKS = frozenset({Stage.RECALL, Stage.JOURNAL, Stage.SENT})

_crawl: ContextVar[str | None] = ContextVar("orbweaver.meter.crawl", default=None)


class UsageMeter:
    """Counts the AWS units of one container."""

    def __init__(
        self,
        *,
        tables: Mapping[str, str] | None = None,
        memory_mb: int = 0,
        time_term: Term = Term.MB_MS,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tables` maps table names to roles (`urls`, …)."""
        self._tables = dict(tables or {})
        self._memory_mb = memory_mb
        self._time_term = time_term
        self._clock_s = clock_s
        self._pots: OrderedDict[str | None, Units] = OrderedDict({None: Units()})
        self._total = Units()
        self._mark_s: float | None = None  # start of the time not yet counted
        self._init_ms = 0

    # --- attribution ----------------------------------------------------------------------------

    @contextmanager
    def for_crawl(self, crawl: str) -> Iterator[None]:
        """Attribute usage in this context to a crawl."""
        before = _crawl.set(crawl)
        try:
            yield
        finally:
            _crawl.reset(before)

    # --- counting -------------------------------------------------------------------------------

    def use(self, term: Term, stage: Stage, number: int) -> None:
        """Count units for the crawl of the running task."""
        if not number:
            return
        self._total.use(term, stage, number)
        crawl = _crawl.get()
        pot = self._pots.get(crawl)
        if pot is None:
            pot = self._pots[crawl] = Units()
            if len(self._pots) > CRAWLS_MAX:
                self._evict_oldest()
        pot.use(term, stage, number)

    def _evict_oldest(self) -> None:
        oldest = next(crawl for crawl in self._pots if crawl is not None)
        self._pots[None].update(self._pots.pop(oldest))

    def logged(self, text: str) -> None:
        self.use(Term.LOG_BYTES, Stage.RUN, text_bytes(text) + LINE_BYTES)

    def record_init(self, seconds: float) -> None:
        """Add the container's start-up time to the next invocation."""
        self._init_ms = round(seconds * 1000)

    @contextmanager
    def invocation(self, bodies: Sequence[str] = ()) -> Iterator[None]:
        """Count an invocation, the queue messages it received, and its time."""
        self._total = Units()
        self._mark_s = self._clock_s()
        self._take(self._init_ms)
        self._init_ms = 0
        self.use(Term.INVOCATIONS, Stage.RUN, 1)
        self.use(Term.LOG_BYTES, Stage.RUN, PLATFORM_BYTES)
        if bodies:
            # Estimate of Lambda's requests: it receives and deletes ten messages at a time.
            requests = -(-len(bodies) // BATCH_MESSAGES)
            received = max(requests, chunks(sum(map(text_bytes, bodies))))
            self.use(Term.SQS, Stage.RECEIVE, received + requests)
        try:
            yield
        finally:
            self._count_elapsed()
            self._mark_s = None

    def _count_elapsed(self) -> None:
        if self._mark_s is None:
            return
        now_s = self._clock_s()
        self._take(round((now_s - self._mark_s) * 1000))
        self._mark_s = now_s

    def _take(self, milliseconds: int) -> None:
        if mb_ms := milliseconds * self._memory_mb:
            self._total.use(self._time_term, Stage.RUN, mb_ms)
            self._pots[None].use(self._time_term, Stage.RUN, mb_ms)

    # --- results --------------------------------------------------------------------------------

    @property
    def total(self) -> Units:
        """Usage of this invocation so far."""
        self._count_elapsed()
        return Units(self._total)

    def dollars(self) -> float:
        return dollars(self.total.by_term)

    @contextmanager
    def booking(self, crawl: str) -> Iterator[Counts]:
        """Yield the units that a crawl's commit must record.

        If the block raises, the next one gets them.
        """
        self._count_elapsed()
        nobodys, self._pots[None] = self._pots[None], Units()
        used = self._pots.pop(crawl, Units())
        used.update(nobodys)
        try:
            yield used.counts
        except BaseException:
            self._pots.setdefault(crawl, Units()).update(used)
            raise

    # --- hooks in clients -----------------------------------------------------------------------

    def watch(self, client: Any) -> None:
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", self._before_call)
        events.register_first(f"after-call.{service}", self._after_call)
        events.register_first(f"after-call-error.{service}", self._after_call_error)

    def _before_call(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        context[ASKED] = params, model
        if model.name in usage_requests.REPORTING:
            params.setdefault("ReturnConsumedCapacity", "TOTAL")

    def _after_call(
        self, http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any
    ) -> None:
        if http_response.status_code < SERVER_ERROR_MIN:
            self._count(context, parsed)

    def _after_call_error(self, context: dict[str, Any], **_: Any) -> None:
        # A request without a response counts as carried out.
        self._count(context, {})

    def _count(self, context: dict[str, Any], answer: dict[str, Any]) -> None:
        params, model = context[ASKED]
        match model.service_model.service_name:
            case "dynamodb":
                found = usage_requests.dynamodb(model.name, params, answer)
                for (table, term), number in found.items():
                    self.use(term, self._stage_of(model.name, params, table, term), number)
            case "sqs":
                self.use(Term.SQS, Stage.SEND, usage_requests.sqs(params, answer))
            case "s3":
                term, number = usage_requests.s3(model.name)
                self.use(term, Stage.BODIES, number)
            case "events":
                self.use(Term.EVENTS, Stage.ANNOUNCE, usage_requests.events(params))

    def _stage_of(self, operation: str, params: Mapping[str, Any], table: str, term: Term) -> Stage:
        if operation == "TransactWriteItems":
            return Stage.COMMIT
        role = self._tables.get(table, "")
        kind = WRITES if term is Term.WRITE else READS
        stage = STAGES.get((role, operation)) or STAGES.get((role, kind), Stage.OTHER)
        if stage is Stage.HOST and _is_robots(params):
            return Stage.ROBOTS
        if stage in OF_PACKS and operation != "DeleteItem" and _is_backlog(params):
            return Stage.SEND
        return stage


def _is_robots(params: Mapping[str, Any]) -> bool:
    key = (params.get("Key") or params.get("Item") or {}).get("host")
    return key is not None and str(key.get("S", "")).endswith(ROBOTS)


def _is_backlog(params: Mapping[str, Any]) -> bool:
    """Whether a request adds packs to a host's backlog or removes one."""
    statements = params.get("Statements")
    if statements:
        key = statements[0]["Parameters"][0]
    else:
        values = params.get("ExpressionAttributeValues") or {}
        key = (params.get("Item") or {}).get("k") or values.get(":k") or {}
    return str(key.get("S", "")).startswith(BACKLOG)


class MeteredFetcher:
    """A fetcher that counts the bytes sent to websites, without connection set-up."""

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
    """A log stream that counts the bytes of its lines."""

    def __init__(self, stream: TextIO, meter: UsageMeter) -> None:
        self._stream = stream
        self._meter = meter

    def write(self, text: str) -> int:
        self._meter.logged(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()
