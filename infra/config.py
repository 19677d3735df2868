"""Settings of a stack: `cdk deploy -c key=value`, or "context" in cdk.json.

Every key has a default. `python -m infra.config` lists all keys with their meaning. An unknown key
or invalid value is an error with the key, the value and a remedy. CDK's own keys contain a colon,
an at sign or a slash, or are in `CDK_KEYS`. A limit of the functions (`LIMITS`) has its name, check
and default from `orbweaver.model.settings`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from infra.browser import ARCHITECTURE
from infra.keys import choice, convert, number, secret, text, unfit, unknown
from infra.memory import unfit_memory
from infra.rendering_keys import RenderingKeys
from infra.runtime import PATTERN, TAKES, Runtime, host_runtime
from orbweaver.budget.rounds import BATCH, MEMORY_MB, WORKERS
from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.requests import SPANS
from orbweaver.model.settings import NEWER_WAIT_D, PREFIX, USER_AGENT, Settings, SettingsError
from orbweaver.model.url_limits import Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_S = 86_400
CDK_KEYS = frozenset({"cli-telemetry"})
KEY_ARN = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-)?[0-9a-f-]{32,36}"
# Settings of the functions that a deployment may change. The other settings name parts of the
# stack, or follow from other keys.
LIMITS = (
    "pages_shards",
    "body_bytes_max",
    "sitemap_bytes_max",
    "segment_bytes_max",
    "fetch_total_s",
    "apply_reserve_s",
    "wait_s_max",
    "fetch_concurrency",
    "large_bodies",
    "waiting_bytes_max",
    "held_bytes_max",
    "links_per_page_max",
    *(bound.name for bound in fields(Bounds)),
    "retry_base_s",
    "part_rows_max",
    "part_bytes_max",
)
# The retention periods that CloudWatch Logs accepts, in days.
LOG_RETENTIONS_D = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RenderingKeys):
    """Settings of one deployment. Fields except `limits` and `stack_exists` are context keys."""

    target: str = choice("aws", ("aws", "local"), "an AWS account, or an emulator on this machine")
    stack_name: str = text(
        "Orbweaver",
        "name of the stack, and prefix of its functions' and queues' names",
        pattern="[A-Za-z][A-Za-z0-9-]{0,39}",
        takes="up to 40 letters, digits and hyphens",
    )
    runtime: str = text(
        "arm64/python3.13",
        "architecture and Python version of the functions; local: those of this machine",
        pattern=PATTERN,
        takes=TAKES,
    )
    removal: str = choice(
        "retain",
        ("retain", "destroy"),
        "tables and bucket when the stack is destroyed: keep or delete; retain also protects them",
        local="destroy",
    )
    user_agent: str = text("", "the whole User-Agent; empty: product name and `contact`")
    contact: str = text(
        "", "URL or e-mail address in the User-Agent, so that site owners can reach you"
    )
    allow_addresses: str = text("", "private networks that may be crawled; target=local only")
    closed_ports: str = text(
        "", "ports of this machine that crawls must not reach; target=local only"
    )
    proxy_secret: str = secret(
        "name or ARN of the secret with the list of proxies: docs/proxies.md"
    )
    webhook_secret: str = secret(
        "key that signs webhooks: `generate`, or name or ARN of a secret: docs/webhooks.md",
        also="generate",
        local="generate",
    )
    # 1,769 MB equal one CPU. A worker mostly waits for hosts, and AWS bills that time by memory, so
    # it gets the least memory that suffices (infra/memory.py). Without waiting, more memory would
    # be faster at equal cost.
    worker_memory_mb: int = number(
        MEMORY_MB, 256, 10_240, "memory of a worker in MB; CPU grows with it"
    )
    # Crawling stops after one minute (a round). The rest is for the last requests.
    worker_timeout_s: int = number(120, 30, 900, "timeout of a worker")
    worker_concurrency_max: int = number(
        WORKERS, 2, 1_000, "concurrent workers on the crawl queue", local=2
    )
    express_concurrency_max: int = number(
        10, 2, 1_000, "concurrent workers on the express queue", local=2
    )
    worker_enabled: str = choice(
        "yes", ("yes", "no"), "no: workers are off, and nothing is fetched; see `workers`"
    )
    claims_travel: str = choice(
        "yes",
        ("yes", "no"),
        "no: workers do not share known claims through files: docs/cost.md",
        local="no",
    )
    # All hosts of a batch are crawled concurrently, so more messages mean less idle waiting.
    batch_size: int = number(BATCH, 1, 100, "messages per worker batch", local=10)
    batch_window_s: int = number(1, 0, 300, "seconds to collect a batch", local=0)
    recursive_loop: str = choice(
        "Allow", ("Allow", "Terminate"), "Terminate: Lambda stops a crawl after 16 hops"
    )
    receive_max: int = number(5, 3, 1_000, "receives of a message before it becomes a dead letter")
    queue_retention_d: int = number(4, 1, 13, "retention of messages in days")
    dead_letter_retention_d: int = number(14, 2, 14, "retention of dead letters in days")
    page_retention_d: int = number(
        30, 1, 3_650, "retention of page records in their table, in days"
    )
    crawl_retention_d: int = number(
        90,
        1,
        3_650,
        "days that a crawl's definition and counters stay after its latest possible end",
    )
    body_retention_d: int = number(
        30, 1, 3_650, "retention of bodies and texts in the bucket, in days"
    )
    export_retention_d: str = text(
        "forever",
        "retention of exported files in the bucket, in days; forever: no deletion",
        pattern="forever|[1-9][0-9]{0,3}",
        takes="forever, or a whole number of days from 1 to 9999",
    )
    work_retention_d: int = number(7, 2, 3_650, "retention of unfinished exports, in days")
    snapshot_retention_d: int = number(
        365, 1, 3_650, "retention of a crawl's last state, the baseline of its change feed, in days"
    )
    # A text, because numbers have at most six digits here. Athena accepts no limit below 10 MB.
    athena_bytes_max: str = text(
        "10000000000",
        "bytes that one Athena query may read; then it is cancelled, and billed so far",
        pattern="[1-9][0-9]{7,15}",
        takes="a whole number of bytes from 10000000",
    )
    athena_retention_d: int = number(
        7, 1, 3_650, "retention of query results in the bucket, in days"
    )
    kms_key: str = text(
        "",
        "key that encrypts stored data: `generate`, or the ARN of a key: docs/privacy.md",
        pattern=rf"(generate|{KEY_ARN})?",
        takes="generate, or the whole ARN of a KMS key (no alias)",
    )
    log_retention_d: int = number(14, 1, 1_827, "retention of logs in days")
    exporter_cron: str = text(
        "cron(0 2 * * ? *)",
        "times of exports, in UTC; for export_span=hour use cron(5 * * * ? *)",
        pattern=r"(cron|rate)\([0-9A-Za-z ,\-*/?#]+\)",
        takes="cron(…) or rate(…) as EventBridge Scheduler reads them",
    )
    export_span: str = choice(
        "day",
        SPANS,
        "day: export the previous day; hour: export the current day so far, every hour",
    )
    export_formats: str = text(
        "jsonl,parquet",
        f"formats of exports, from {','.join(FORMATS)}",
        pattern=rf"({'|'.join(FORMATS)})(,({'|'.join(FORMATS)}))*",
        takes="formats, separated by commas",
    )
    exporter_memory_mb: int = number(1024, 256, 10_240, "memory of an exporter in MB")
    # The files of one part of an export have 256 MiB together (`part_bytes_max`, four times). Up to
    # 64 MiB per table wait uncompressed for Parquet. Lambda's default of 512 MB would mostly
    # suffice.
    exporter_storage_mb: int = number(2048, 512, 10_240, "temporary storage of an exporter in MB")
    exporter_timeout_s: int = number(300, 120, 900, "timeout of an exporter")
    exporter_concurrency_max: int = number(20, 2, 1_000, "concurrent exporters", local=2)
    api_rate_max: int = number(20, 1, 10_000, "API requests per second, all callers together")
    api_burst_max: int = number(40, 1, 5_000, "burst of API requests, all callers together")
    api_account_role: str = choice(
        "yes",
        ("yes", "no"),
        "set the role with which API Gateway writes logs, for all APIs of account and region",
    )
    alarm_email: str = text(
        "", "e-mail address for alarms", pattern=r"([^@\s]+@[^@\s]+)?", takes="an e-mail address"
    )
    alarm_key: str = choice(
        "no",
        ("no", "yes"),
        "yes: encrypt the alarm topic with its own key; $1 a month, idle or not",
    )
    limits: tuple[tuple[str, str], ...] = ()
    # Not a context key: True if the app has found the stack in the account.
    stack_exists: bool = False

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Config:
        """Read CDK context. Raises ConfigError for an unknown key or invalid value."""
        given = {key: value for key, value in context.items() if is_ours(key)}
        known = {item.name: item for item in fields(cls) if item.metadata}
        for key, value in given.items():
            if key not in known and key not in LIMITS:
                raise unknown(key, value, [*known, *LIMITS])
        local = given.get("target") == "local"
        values: dict[str, Any] = {}
        for key, item in known.items():
            if key in given:
                values[key] = convert(item, given[key], local=local)
            elif local and item.metadata["local"] is not None:
                values[key] = item.metadata["local"]
        if local:
            values.setdefault("runtime", host_runtime())
        limits = tuple((key, _limit(key, given[key])) for key in LIMITS if key in given)
        config = cls(**values, limits=limits)
        config.check()
        return config

    # On AWS, crawling private addresses would open the account's network to all senders of seeds.
    def _check_addresses(self) -> None:
        for key in ("allow_addresses", "closed_ports"):
            value = getattr(self, key)
            if value and not self.local:
                raise unfit(key, value, "omit it, or add -c target=local")
            if value:
                _limit(key, value)

    def check(self) -> None:
        """Raise ConfigError if values contradict each other."""
        self.check_delivery()
        self.check_watching()
        self.check_console(self.target, self.stack_name)
        self._check_addresses()
        if self.local and self.runtime != host_runtime():
            fix = f"omit it: an emulator runs functions on this machine ({host_runtime()})"
            raise unfit("runtime", self.runtime, fix)
        if self.user_agent and self.contact:
            raise unfit("contact", self.contact, "set either contact or user_agent")
        if self.dead_letter_retention_d <= self.queue_retention_d:
            # A dead letter's age counts from when the message was first sent.
            fix = f"set more than queue_retention_d={self.queue_retention_d}"
            raise unfit("dead_letter_retention_d", self.dead_letter_retention_d, fix)
        if self.batch_size > 10 and self.batch_window_s < 1:  # noqa: PLR2004 - Lambda's own rule
            raise unfit("batch_size", self.batch_size, "add -c batch_window_s=1, or set at most 10")
        if self.log_retention_d not in LOG_RETENTIONS_D:
            fix = f"set one of {', '.join(map(str, LOG_RETENTIONS_D))}"
            raise unfit("log_retention_d", self.log_retention_d, fix)
        settings = Settings.from_environment(self.environment())
        if settings.fetch_total_s + settings.apply_reserve_s > self.worker_timeout_s:
            fix = f"set at least {settings.fetch_total_s + settings.apply_reserve_s:.0f}"
            fix += ", or lower fetch_total_s and apply_reserve_s, which must fit into it"
            raise unfit("worker_timeout_s", self.worker_timeout_s, fix)
        if (why := unfit_memory(self.worker_memory_mb, settings)) is not None:
            raise unfit("worker_memory_mb", self.worker_memory_mb, why)
        self.check_rendering(settings, local=self.local)

    @property
    def local(self) -> bool:
        """True if the target is an emulator on this machine."""
        return self.target == "local"

    @property
    def tls_only(self) -> bool:
        """True if plain HTTP is rejected. Emulators support only HTTP, so they would fail."""
        return not self.local

    @property
    def kept(self) -> bool:
        """True if stored data outlives the stack."""
        return self.removal == "retain"

    @property
    def functions_run_on(self) -> Runtime:
        return Runtime.parse(self.runtime, native=self.local)

    @property
    def renderer_runs_on(self) -> Runtime:
        """The renderer's runtime. The browser exists for one architecture only."""
        runtime = self.functions_run_on
        return runtime if self.local else replace(runtime, architecture=ARCHITECTURE)

    def environment(self) -> dict[str, str]:
        """Return the environment variables of all functions."""
        kept_d = self.queue_retention_d + NEWER_WAIT_D + self.dead_letter_retention_d + 1
        values = {
            "stack": self.stack_name,
            **dict(self.limits),
            "receive_max": str(self.receive_max),
            "page_retention_s": str(self.page_retention_d * DAY_S),
            "crawl_retention_s": str(self.crawl_retention_d * DAY_S),
            # The record of a processed message (ledger) outlives every copy of the message.
            "ledger_retention_s": str(kept_d * DAY_S),
        }
        if self.user_agent or self.contact:
            values["user_agent"] = self.user_agent or f"{USER_AGENT} (+{self.contact})"
        values |= self.of_items()
        if self.webhook_secret:
            # Starting a crawl checks whether its webhook can be signed.
            values["webhook_secret"] = self.webhook_secret
        if self.is_frugal:
            values["custom_metrics"] = "no"
        for key in ("allow_addresses", "closed_ports"):
            if getattr(self, key):
                values[key] = getattr(self, key)
        return {PREFIX + key.upper(): value for key, value in values.items()}


def describe() -> str:
    """Return a Markdown table of all keys, defaults and meanings."""
    rows = ["| key | default | meaning |", "| --- | --- | --- |"]
    for item in fields(Config):
        if item.metadata:
            local = item.metadata["local"]
            other = "" if local is None else f" (local: `{local}`)"
            default = f"`{item.default}`" if item.default != "" else "none"
            rows.append(f"| `{item.name}` | {default}{other} | {item.metadata['meaning']} |")
    for name in LIMITS:
        default = getattr(Settings(), name)
        rows.append(f"| `{name}` | `{default}` | see `orbweaver.model.settings` |")
    return "\n".join(rows)


def is_ours(key: str) -> bool:
    """True for a context key of Orbweaver, False for CDK's own."""
    return key not in CDK_KEYS and not any(sign in key for sign in ":@/")


def _limit(key: str, value: object) -> str:
    try:
        Settings.from_environment({PREFIX + key.upper(): str(value)})
    except SettingsError as error:
        raise unfit(key, value, str(error)) from error
    return str(value)


if __name__ == "__main__":
    sys.stdout.write(describe() + "\n")
