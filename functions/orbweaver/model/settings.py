"""Read the deployment's settings from the environment, once, validated together.

Each field is an environment variable `ORBWEAVER_<FIELD>` that the stack sets. The defaults are
polite and safe. `0` never means "no limit".
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from orbweaver.model.backoff import BASE_S
from orbweaver.model.url import DEFAULT_BOUNDS, Bounds
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.address_policy import Allowed

PREFIX = "ORBWEAVER_"
# Other environment variables: AWS endpoints, for all services or one, and Lambda's runtime.
ENDPOINTS, RUNTIME = "AWS_ENDPOINT_URL", "AWS_LAMBDA_RUNTIME_API"
# The deployment adds the operator's contact (`-c contact=…`), because a default would be false.
USER_AGENT = "orbweaver/0.1"
STACK = "Orbweaver"
EXPORT_FORMATS, EXPORT_SPAN = "jsonl,parquet", "day"
NEWER_WAIT_D = 7
STRIKES_MAX = 3
# Instead of a browser's path: find one on this machine by its usual names.
INSTALLED = "installed"
# Architectures of functions.
ARM, X86 = "arm64", "x86_64"
# Default folder of crawls on one machine.
STORE = Path(".orbweaver")
CORES = os.cpu_count() or 1
# Up to this number of pages one process is fast enough, and one process orders links better.
ALONE_PAGES_MAX = 5_000


def workers_for(pages_max: int | None) -> int:
    """Return the default number of processes for a crawl with this page limit on one machine."""
    return CORES if pages_max is None or pages_max > ALONE_PAGES_MAX else 1


class SettingsError(Exception):
    """A setting is invalid. The message names the variable and its valid values."""


@value_class
class Queues:
    """URLs of queues. An empty one is an error only for a function that uses it."""

    # Resource names. An empty one is an error only for a function that uses it. Users send seeds to
    # this queue. The stack's output calls it the crawl queue (`CrawlQueueUrl`).
    seed_queue_url: str = ""
    # Messages between functions: URLs to request, seeds, ends of cancelled crawls.
    crawl_queue_url: str = ""
    express_queue_url: str = ""
    # URLs for workers with a browser. Empty: there is no separate queue for them.
    render_queue_url: str = ""
    dead_letter_queue_url: str = ""
    export_queue_url: str = ""
    # Targets to which exports are delivered. None without a host and a bucket.
    delivery_queue_url: str = ""
    delivery_dead_letter_url: str = ""

    @property
    def pack_queues(self) -> frozenset[str]:
        """Names of the queues for batches of URLs (packs).

        Only functions of the stack send to them.
        """
        return frozenset(url.rpartition("/")[2] for url in self.pack_queue_urls)

    @property
    def pack_queue_urls(self) -> tuple[str, ...]:
        """URLs of the queues for packs. A frugal stack has one queue for crawl and express."""
        others = filter(None, [self.render_queue_url])
        return tuple(dict.fromkeys((self.crawl_queue_url, self.express_queue_url, *others)))

    def is_express(self, queue: str) -> bool:
        return bool(queue) and queue == self.express_queue_url.rpartition("/")[2]


@value_class
class Names:
    """Names and ARNs of other resources."""

    # Name of the stack. Its metrics and events contain it.
    stack: str = STACK
    urls_table: str = ""
    pages_table: str = ""
    hosts_table: str = ""
    crawls_table: str = ""
    packs_table: str = ""
    bucket: str = ""
    event_bus: str = "default"
    # Catalogue in which item tables are registered. Empty: none.
    database: str = ""
    schedule_group: str = ""
    # ARNs: the starter of recurring crawls, the role that may invoke it, and the queue of failures.
    starter_function: str = ""
    schedule_role: str = ""
    failed_calls_queue: str = ""
    # Name or ARN of the secret that lists the proxies. Empty: none.
    proxy_secret: str = ""
    # Name or ARN of the secret that signs webhooks. Empty: none.
    webhook_secret: str = ""


@value_class
class Retention:
    """Times after which items are deleted."""

    # Retention
    page_retention_s: int = 30 * 86_400
    # Retention of a crawl after its latest possible end.
    crawl_retention_s: int = 90 * 86_400
    # A ledger (commit record of a message) outlives all copies of its message: 4 days on the queue,
    # 7 waiting for a newer version, 14 on the DLQ.
    ledger_retention_s: int = 26 * 86_400
    # Time for which a message of a newer version waits on the queue for a deployment.
    newer_wait_s: int = NEWER_WAIT_D * 86_400


@value_class
class FunctionSettings:
    """Memory, browser and billing of a function."""

    # Memory and architecture of the function, for the cost of its time. The default memory is that
    # of a stack's worker.
    memory_mb: int = 375
    architecture: str = ARM
    # no: an invocation's counts are only in its log, and no metric is billed.
    custom_metrics: str = "yes"
    # yes: a worker waits for a slot of a host only if that costs less than requeueing the URL.
    waits_billed: str = "no"
    # yes: workers share which URLs of a host are claimed (worker/host_claims.py), and their results
    # for groups of similar URLs (worker/kind_learning.py). This saves money if look-ups are billed,
    # so the default is the value of `waits_billed`.
    claims_travel: str = ""
    # Browser of such a worker: a folder with a packed one, the path of a program, or `installed`.
    # Empty: this worker has none.
    browser: str = ""
    # Module with the user's functions for `[[items]]`. Empty: none.
    extractor: str = ""
    # File in which a test records the IAM permissions of AWS requests, which also validates their
    # parameters. Empty: none.
    permissions_file: str = ""

    @property
    def shares_claims(self) -> bool:
        """Whether workers share their knowledge of a crawl in files."""
        return (self.claims_travel or self.waits_billed) == "yes"


@value_class
class WorkerSettings:
    """Batches, times and memory of a worker (infra/memory.py)."""

    pages_shards: int = 16
    # Worker. Contents in memory fit into `memory_mb` (infra/memory.py).
    receive_max: int = 5
    # A single URL is dead-lettered after this many deaths of its worker.
    strikes_max: int = STRIKES_MAX
    # Remaining time of an invocation at which fetching must end: it then reserves links, stores
    # records, commits and sends.
    apply_reserve_s: float = 8.0
    # Maximum time in which an invocation waits for slots (times at which a host may be requested)
    # before it requeues URLs. Waiting URLs block capacity for other crawls. URLs from a host's
    # backlog wait longer.
    wait_s_max: float = 5.0
    # Length of a round. Visits of hosts with a backlog of URLs last until the crawl's round ends.
    # So their remaining messages become visible at the same time.
    round_s: float = 60.0
    # Maximum size of all bodies that wait to be read. A single body can be larger.
    waiting_bytes_max: int = 5 * 1024 * 1024
    # Maximum size of the content of pages whose messages are not done. Above it, a message ends
    # with its current results, and its other URLs are requeued.
    held_bytes_max: int = 6 * 1024 * 1024
    # Time for which a worker waits for other batches that store pages in the same file, and the
    # maximum size of that file.
    segment_wait_s: float = 5.0
    segment_bytes_max: int = 6_000_000
    links_per_page_max: int = 5_000


@value_class
class FetchSettings:
    """Limits and identity of requests."""

    user_agent: str = USER_AGENT
    body_bytes_max: int = 5 * 1024 * 1024
    # Maximum size of a sitemap (sitemaps.org). One is read at a time.
    sitemap_bytes_max: int = 50 * 1024 * 1024
    fetch_total_s: float = 20.0
    fetch_concurrency: int = 64
    # Concurrent fetches of bodies with more than `SMALL_BYTES` (adapters/web/large_bodies.py).
    large_bodies: int = 3
    # Base of the delays before further attempts.
    retry_base_s: float = BASE_S
    # Non-public hosts and networks that crawls may connect to, if a seed names address and port, or
    # on the ports given here (127.0.0.1/32, 127.0.0.1:8000). Comma separated. Only for a stack on
    # an emulator.
    allow_addresses: str = ""
    # Ports on which the stack itself listens, comma separated. Crawls never connect to them at
    # non-public addresses. Ports of AWS endpoints in the environment are added.
    closed_ports: str = ""

    @property
    def allowed(self) -> Allowed:
        from orbweaver.model.address_policy import parse_allowed

        ports = (part.strip() for part in self.closed_ports.split(","))
        return parse_allowed(self.allow_addresses, frozenset(int(port) for port in ports if port))


@value_class
class ExportSettings:
    """Formats, days and files of exports."""

    # Exporter
    export_formats: str = EXPORT_FORMATS
    # day: exports the day before. hour: exports the current day so far as well
    # (exporting/run_state.py).
    export_span: str = EXPORT_SPAN
    # Maximum rows of a file of pages, and maximum size of the largest of the files written at the
    # same time. Four times that must fit into the function's temporary folder of 512 MB.
    part_rows_max: int = 100_000
    part_bytes_max: int = 64 * 1024 * 1024


@value_class
class DeliverySettings:
    """Targets to which exports are delivered. There is none without a host and a bucket."""

    sftp_host: str = ""
    sftp_port: int = 22
    sftp_user: str = ""
    # Relative to the login's folder, or absolute if it begins with /.
    sftp_folder: str = ""
    sftp_host_key: str = ""
    # Name or ARN of the secret with the private key.
    sftp_secret: str = ""
    # Comma separated. Empty: all exported formats.
    sftp_formats: str = ""
    copy_bucket: str = ""


@value_class
class ConsoleSettings:
    """The hosted console."""

    # Hosted console: token issuer, client id, and URL of the sign-in pages.
    console_issuer: str = ""
    console_client: str = ""
    console_pages: str = ""


@value_class
class Settings:
    """Settings of a deployment, in groups. Names of fields differ in all groups."""

    queues: Queues = Queues()
    names: Names = Names()
    retention: Retention = Retention()
    function: FunctionSettings = FunctionSettings()
    worker: WorkerSettings = WorkerSettings()
    fetching: FetchSettings = FetchSettings()
    bounds: Bounds = DEFAULT_BOUNDS
    exports: ExportSettings = ExportSettings()
    delivery: DeliverySettings = DeliverySettings()
    console: ConsoleSettings = ConsoleSettings()

    @property
    def renders_elsewhere(self) -> bool:
        """Whether other workers than this one render pages."""
        return bool(self.queues.render_queue_url) and not self.function.browser

    @classmethod
    def of(cls, **values: str | float) -> Settings:
        """Return settings with values of fields, whatever their group, and defaults for others.

        Raises TypeError for an unknown field.
        """
        return cls().having(**values)

    def having(self, **values: str | float) -> Settings:
        """Return these settings with other values of fields. Raises TypeError like `of`."""
        changed: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in values.items():
            if name not in GROUPS:
                raise TypeError(f"there is no setting {name}")
            changed[GROUPS[name]][name] = value
        groups = {group: replace(getattr(self, group), **new) for group, new in changed.items()}
        return replace(self, **groups)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read `ORBWEAVER_*` variables. Raises SettingsError for an invalid one."""
        source = os.environ if environment is None else environment
        values: dict[str, str | float] = {}
        for name, default in DEFAULTS.items():
            variable = PREFIX + name.upper()
            if variable in source:
                values[name] = _convert(variable, source[variable], type(default))
        own = (str(values.get("closed_ports", "")), *map(str, _own_ports(source)))
        values["closed_ports"] = ",".join(filter(None, dict.fromkeys(own)))
        settings = cls.of(**values)
        settings.check()
        return settings

    def check(self) -> None:
        for name, group in GROUPS.items():
            value = getattr(getattr(self, group), name)
            # Infinity and NaN are not limits.
            if isinstance(value, int | float) and not 0 < value < math.inf:
                message = f"{PREFIX}{name.upper()} must be greater than 0, not {value}"
                raise SettingsError(message)
        if self.fetching.allow_addresses or self.fetching.closed_ports:
            try:
                _ = self.fetching.allowed
            except ValueError as error:
                message = f"{PREFIX}ALLOW_ADDRESSES or {PREFIX}CLOSED_PORTS: {error}"
                raise SettingsError(message) from error


_DEFAULT = Settings()
# The group of each field, and its default.
GROUPS = {
    field.name: group.name
    for group in fields(Settings)
    for field in fields(getattr(_DEFAULT, group.name))
}
DEFAULTS: Mapping[str, str | float] = {
    name: getattr(getattr(_DEFAULT, group), name) for name, group in GROUPS.items()
}


def in_lambda() -> bool:
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def function_name() -> str:
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")


def _own_ports(source: Mapping[str, str]) -> Iterator[int]:
    for variable, value in sorted(source.items()):
        if variable == RUNTIME or variable.startswith(ENDPOINTS):
            with suppress(ValueError):  # the HTTP client reports it better
                port = urlsplit(value if "://" in value else f"http://{value}").port
                if port is not None:
                    yield port


def _convert(variable: str, text: str, kind: type[str | float]) -> str | float:
    try:
        return kind(text)
    except ValueError as error:
        message = f"{variable} must be a number ({kind.__name__}), not {text!r}"
        raise SettingsError(message) from error
