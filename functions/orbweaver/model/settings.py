"""Settings: one frozen object, read once from the environment, validated together.

Every field is an environment variable `ORBWEAVER_<FIELD>` that the stack sets; the defaults are
polite and safe. `0` never means "no limit".
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints
from urllib.parse import urlsplit

from orbweaver.model.backoff import BASE_S
from orbweaver.model.url_limits import DEFAULT_BOUNDS, Bounds

if TYPE_CHECKING:
    from orbweaver.model.address_policy import Allowed

PREFIX = "ORBWEAVER_"
# Of the environment besides: where AWS is, for all of its services or one, and Lambda's runtime.
ENDPOINTS, RUNTIME = "AWS_ENDPOINT_URL", "AWS_LAMBDA_RUNTIME_API"
# Who runs it is for the deployment to say (`-c contact=…`): a made-up address would be a lie.
USER_AGENT = "orbweaver/0.1"
STACK = "Orbweaver"
EXPORT_FORMATS, EXPORT_SPAN = "jsonl,parquet", "day"
NEWER_WAIT_D = 7
STRIKES_MAX = 3
# In place of a browser's path: the one of this machine, by its usual names.
INSTALLED = "installed"
# What functions run on.
ARM, X86 = "arm64", "x86_64"
# The folder of crawls on one machine, where none is named.
STORE = Path(".orbweaver")
CORES = os.cpu_count() or 1
# Up to so many pages one process is quick enough; and an order is better of what one has learned.
ALONE_PAGES_MAX = 5_000


def workers_for(pages_max: int | None) -> int:
    """Say how many processes a crawl with such a limit gets on a store, unless some are named."""
    return CORES if pages_max is None or pages_max > ALONE_PAGES_MAX else 1


class SettingsError(Exception):
    """A setting has no usable value; the text names the variable and what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Names of the deployed parts, and limits."""

    # The stack itself: its metrics and events bear the name, to be told apart from others'.
    stack: str = STACK
    # Names; an empty one is an error only for the function that uses it.
    # Where seeds are dropped; its users know it as the crawl queue (`CrawlQueueUrl`).
    seed_queue_url: str = ""
    # What the functions send each other: packs, planned seeds, word of an end.
    crawl_queue_url: str = ""
    express_queue_url: str = ""
    # That of packs for workers with a browser; empty: there are none of these apart from others.
    render_queue_url: str = ""
    # The browser that a worker has there: a folder with a packed one, the path of a program, or
    # `installed`; empty: this one has none.
    browser: str = ""
    dead_letter_queue_url: str = ""
    urls_table: str = ""
    pages_table: str = ""
    hosts_table: str = ""
    crawls_table: str = ""
    packs_table: str = ""
    bucket: str = ""
    event_bus: str = "default"
    export_queue_url: str = ""
    # Of the catalogue that tables of items are made known in; empty: there is none.
    database: str = ""
    schedule_group: str = ""
    # ARNs: the starter of recurring crawls, the role that may invoke it, and the queue of failures.
    starter_function: str = ""
    schedule_role: str = ""
    failed_calls_queue: str = ""
    # Lifetimes
    page_retention_s: int = 30 * 86_400
    # After a crawl's last possible moment.
    crawl_retention_s: int = 90 * 86_400
    # A ledger outlives every copy of its message: 4 days on the queue, 7 in wait for a newer
    # version, 14 on the DLQ.
    ledger_retention_s: int = 26 * 86_400
    # How long what only a newer version can read waits for one on the queue.
    newer_wait_s: int = NEWER_WAIT_D * 86_400
    pages_shards: int = 16
    # Worker; what lies in memory fits into `memory_mb` (infra/memory.py).
    receive_max: int = 5
    # A single URL that was being processed when its worker died, this often, is to blame.
    strikes_max: int = STRIKES_MAX
    # no: what an invocation counts is in its log alone, and no metric is billed for it.
    custom_metrics: str = "yes"
    user_agent: str = USER_AGENT
    # The module that has functions of the user's own for `[[items]]`; empty: there is none.
    extractor: str = ""
    body_bytes_max: int = 5 * 1024 * 1024
    # As much as one may have (sitemaps.org); one is read at once.
    sitemap_bytes_max: int = 50 * 1024 * 1024
    fetch_total_s: float = 20.0
    # What is left of an invocation when fetching must be over: claims, records, commit, send.
    apply_reserve_s: float = 8.0
    # How long an invocation waits for slots rather than sending URLs round again, of packs that do
    # not come from a backlog. A pack that waits is not there for other crawls.
    wait_s_max: float = 5.0
    fetch_concurrency: int = 64
    # Bodies of more than `SMALL_BYTES` (adapters/web/large_bodies.py) that are fetched at once.
    large_bodies: int = 3
    # Of bodies that wait to be read. One is read alone, however long it is.
    waiting_bytes_max: int = 5 * 1024 * 1024
    # Of what is to be stored of pages whose packs are not done: beyond it these end with what they
    # have, and their other URLs come back.
    held_bytes_max: int = 6 * 1024 * 1024
    # Visits of hosts whose packs wait in a backlog go on until the crawl's round ends, so that
    # all of them come back at the same time.
    round_s: float = 60.0
    # yes: a visit waits for a slot only where that costs less than to come back.
    waits_billed: str = "no"
    # yes: what is known of a host's claims travels with the host (worker/host_claims.py), and what
    # was met is told to others (worker/kind_learning.py). That pays where look-ups are billed, so
    # unless it is said it is so where waits are.
    claims_travel: str = ""
    # How long a pack waits for others to store what is kept of pages in one file, and how large
    # that gets.
    segment_wait_s: float = 5.0
    segment_bytes_max: int = 6_000_000
    # What the function has and runs on, to know what its time costs; a stack's worker has this
    # memory by default.
    memory_mb: int = 375
    architecture: str = ARM
    links_per_page_max: int = 5_000
    # What the waits before further attempts grow from.
    retry_base_s: float = BASE_S
    # What URLs of traps go beyond (frontier/crawler_traps.py); the last two are each container's
    # own count.
    path_segments_max: int = DEFAULT_BOUNDS.path_segments_max
    repeats_max: int = DEFAULT_BOUNDS.repeats_max
    query_parameters_max: int = DEFAULT_BOUNDS.query_parameters_max
    query_chars_max: int = DEFAULT_BOUNDS.query_chars_max
    folder_urls_max: int = DEFAULT_BOUNDS.folder_urls_max
    query_urls_max: int = DEFAULT_BOUNDS.query_urls_max
    # The name or ARN of the secret that lists the proxies; empty: there are none.
    proxy_secret: str = ""
    # That of the key that webhooks are signed with; empty: there are none.
    webhook_secret: str = ""
    # Exporter
    export_formats: str = EXPORT_FORMATS
    # By the day the day before; by the hour a day as far as it is, too (exporting/requests.py).
    export_span: str = EXPORT_SPAN
    # What a file of pages holds at most, and how large the largest of the files gets that are made
    # at once. Four times that has to fit into the function's temporary folder of 512 MB.
    part_rows_max: int = 100_000
    part_bytes_max: int = 64 * 1024 * 1024
    # Deliveries: where exports are brought to; nowhere, where there is no host and no bucket.
    delivery_queue_url: str = ""
    delivery_dead_letter_url: str = ""
    sftp_host: str = ""
    sftp_port: int = 22
    sftp_user: str = ""
    # Below the folder of the login, or below / if it begins with one.
    sftp_folder: str = ""
    sftp_host_key: str = ""
    # The name or ARN of the secret with the private key.
    sftp_secret: str = ""
    # Comma separated; empty: all that are exported.
    sftp_formats: str = ""
    copy_bucket: str = ""
    # The hosted console: who issues tokens of its users, its own name there, and the pages on
    # which one signs in.
    console_issuer: str = ""
    console_client: str = ""
    console_pages: str = ""
    # Hosts and networks that are not global unicast but may be asked all the same, where a seed
    # names address and port, or on the ports given here (127.0.0.1/32, 127.0.0.1:8000); comma
    # separated. Only a stack on an emulator may have any.
    allow_addresses: str = ""
    # Ports that the stack itself listens on, comma separated: closed to crawls wherever an address
    # is not public. Those of AWS's endpoints in the environment come with them.
    closed_ports: str = ""
    # Where a test has the permissions written down that requests of AWS need, whose parameters are
    # validated then, too; empty: nowhere.
    permissions_file: str = ""

    @property
    def bounds(self) -> Bounds:
        """How far URLs may go."""
        return Bounds(**{field.name: getattr(self, field.name) for field in fields(Bounds)})

    @property
    def pack_queues(self) -> frozenset[str]:
        """Names of the queues that hold packs: only the stack's functions may send there."""
        return frozenset(url.rpartition("/")[2] for url in self.pack_queue_urls)

    @property
    def pack_queue_urls(self) -> tuple[str, ...]:
        """Those queues, each once: a frugal stack has one for crawl and express."""
        others = filter(None, [self.render_queue_url])
        return tuple(dict.fromkeys((self.crawl_queue_url, self.express_queue_url, *others)))

    @property
    def hands_on(self) -> bool:
        """Whether workers leave what they know of a crawl to others, in files."""
        return (self.claims_travel or self.waits_billed) == "yes"

    @property
    def renders_elsewhere(self) -> bool:
        """Whether scripts of pages are run by other workers than this one."""
        return bool(self.render_queue_url) and not self.browser

    def is_express(self, queue: str) -> bool:
        """Whether a queue of this name is the express lane."""
        return bool(queue) and queue == self.express_queue_url.rpartition("/")[2]

    @property
    def allowed(self) -> Allowed:
        """What may be dialled besides the public web."""
        from orbweaver.model.address_policy import parse_allowed

        ports = (part.strip() for part in self.closed_ports.split(","))
        return parse_allowed(self.allow_addresses, frozenset(int(port) for port in ports if port))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read `ORBWEAVER_*` variables; raises SettingsError for one that does not fit."""
        source = os.environ if environment is None else environment
        types = get_type_hints(cls)
        values: dict[str, str | int | float] = {}
        for field in fields(cls):
            variable = PREFIX + field.name.upper()
            if variable in source:
                values[field.name] = _convert(variable, source[variable], types[field.name])
        own = (str(values.get("closed_ports", "")), *map(str, _own_ports(source)))
        values["closed_ports"] = ",".join(filter(None, dict.fromkeys(own)))
        settings = cls(**values)  # type: ignore[arg-type] # converted by the fields' own types
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse limits that are no limits."""
        for field in fields(self):
            value = getattr(self, field.name)
            # Neither infinity nor "not a number" is a limit.
            if isinstance(value, int | float) and not 0 < value < math.inf:
                message = f"{PREFIX}{field.name.upper()} must be greater than 0, not {value}"
                raise SettingsError(message)
        if self.allow_addresses or self.closed_ports:
            try:
                _ = self.allowed
            except ValueError as error:
                message = f"{PREFIX}ALLOW_ADDRESSES or {PREFIX}CLOSED_PORTS: {error}"
                raise SettingsError(message) from error


def in_lambda() -> bool:
    """Whether this process is a container of Lambda's, or of an emulator's."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def function_name() -> str:
    """Name the function that this process is a container of; empty where it is none."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")


def _own_ports(source: Mapping[str, str]) -> Iterator[int]:
    """Name the ports of AWS's endpoints and of Lambda's runtime that an environment names."""
    for variable, value in sorted(source.items()):
        if variable == RUNTIME or variable.startswith(ENDPOINTS):
            with suppress(ValueError):  # the client that dials it says it better
                port = urlsplit(value if "://" in value else f"http://{value}").port
                if port is not None:
                    yield port


def _convert(variable: str, text: str, kind: type) -> str | int | float:
    try:
        return kind(text)  # type: ignore[no-any-return] # str, int or float
    except ValueError as error:
        message = f"{variable} must be a number ({kind.__name__}), not {text!r}"
        raise SettingsError(message) from error
