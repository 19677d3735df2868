"""Settings of a stack: `cdk deploy -c key=value`, or "context" in cdk.json.

Every key has a default. `python -m infra.config` lists all keys with their meaning. An unknown key
or invalid value is an error with the key, the value and a remedy. CDK's own keys contain a colon,
an at sign or a slash, or are in `CDK_KEYS`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from infra.asset import EXTRACTOR
from infra.browser import ARCHITECTURE
from infra.keys import choice, convert, number, secret, text, unfit, unknown
from infra.memory import needed_mb
from infra.wheels import AWS_RUNTIME, Runtime, host_runtime
from orbweaver.app.file_retention import BODIES, KEPT_D
from orbweaver.budget.estimate import MEMORY_MB, WORKERS
from orbweaver.delivery.plan import HostKeyError, host_keys_of
from orbweaver.exporting.formats import FORMATS
from orbweaver.model.settings import NEWER_WAIT_D, PREFIX, USER_AGENT, Settings, SettingsError
from orbweaver.rendering.launch import INSTALL, find_browser

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_S = 86_400
CDK_KEYS = frozenset({"cli-telemetry"})
KEY_ARN = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-)?[0-9a-f-]{32,36}"
POLICY_ARN = r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[!-~]{1,512}"
# The retention periods in days that CloudWatch Logs accepts.
LOG_RETENTIONS_D = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827)
# Cognito rejects a sign-in domain that contains one of these words.
RESERVED = ("aws", "amazon", "cognito")
# One user, one host, an optional port, and an optional folder, without a password.
SFTP_URL = (
    r"sftp://[^\s/:@]{1,64}@(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)"
    r"(:\d{1,5})?(/[^\s\\?#]*)?"
)
RENDERERS, LOCAL_RENDERERS = 10, 2
ONCE_A_DAY = r"cron\(\d+ \d+ .+\)|rate\(\d+ days?\)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one deployment. Fields with metadata are context keys."""

    # The stack.
    target: str = choice("aws", ("aws", "local"), "an AWS account, or an emulator on this machine")
    stack_name: str = text(
        "Orbweaver",
        "name of the stack, and prefix of its functions' and queues' names",
        pattern="[A-Za-z][A-Za-z0-9-]{0,39}",
        takes="up to 40 letters, digits and hyphens",
    )
    removal: str = choice(
        "retain",
        ("retain", "destroy"),
        "tables and bucket when the stack is destroyed: keep or delete; retain also protects them",
        local="destroy",
    )
    frugal: str = choice(
        "no",
        ("no", "yes"),
        "yes: almost no cost while idle; docs/cost.md lists the missing parts",
    )
    kms_key: str = text(
        "",
        "key that encrypts stored data: `generate`, or the ARN of a key: docs/privacy.md",
        pattern=rf"(generate|{KEY_ARN})?",
        takes="generate, or the whole ARN of a KMS key (no alias)",
    )

    # The account.
    permissions_boundary: str = text(
        "",
        "name or ARN of the permissions boundary that the account requires for every role",
        pattern=rf"({POLICY_ARN}|[A-Za-z0-9+=,.@_-]{{1,128}})?",
        takes="the name or whole ARN of a managed policy",
    )
    qualifier: str = text(
        "",
        "the account's bootstrap qualifier (`cdk bootstrap --qualifier`); empty: CDK's default",
        pattern="[A-Za-z0-9_-]{0,10}",
        takes="up to 10 letters, digits, hyphens and underscores",
    )
    keep_settings: str = choice(
        "yes",
        ("yes", "no"),
        "no: `cdk` uses only the context, not the deployed settings, and does not call AWS",
    )
    api_account_role: str = choice(
        "yes",
        ("yes", "no"),
        "set the role with which API Gateway writes logs, for all APIs of account and region",
    )

    # Requests to sites.
    contact: str = text(
        "", "URL or e-mail address in the User-Agent, so that site owners can reach you"
    )
    proxy_secret: str = secret(
        "name or ARN of the secret with the list of proxies: docs/proxies.md"
    )
    allow_addresses: str = text("", "private networks that may be crawled; target=local only")
    body_bytes_max: int = number(
        Settings().fetching.body_bytes_max,
        1,
        1_000_000_000,
        "bytes of a body, decoded; the rest is cut. Larger bodies need more worker_memory_mb",
    )

    # Workers.
    worker_enabled: str = choice(
        "yes", ("yes", "no"), "no: workers are off, and nothing is fetched; see `workers`"
    )
    # 1,769 MB equal one CPU. A worker usually waits for hosts, and AWS bills that time by memory.
    # So a worker gets the least memory that it needs (infra/memory.py). Without waiting, more
    # memory would be faster at equal cost.
    worker_memory_mb: int = number(
        MEMORY_MB, 256, 10_240, "memory of a worker in MB; CPU grows with it"
    )
    worker_concurrency_max: int = number(
        WORKERS, 2, 1_000, "concurrent workers on the crawl queue", local=2
    )
    express_concurrency_max: int = number(
        10, 2, 1_000, "concurrent workers on the express queue", local=2
    )
    rendering: str = choice(
        "no",
        ("no", "yes"),
        "yes: functions with a browser can run the scripts of pages: docs/rendering.md",
    )
    renderer_concurrency_max: int = number(
        RENDERERS, 2, 1_000, "concurrent renderers", local=LOCAL_RENDERERS
    )
    extractor: str = text(
        "",
        "a Python file with your own functions for `[[items]]`: docs/extraction.md",
        pattern=r"(/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*\.py)?",
        takes="the path of a .py file; in cdk.json relative to its folder",
    )

    # Stored data.
    page_retention_d: int = number(
        30, 1, 3_650, "retention of page records in their table, in days"
    )
    body_retention_d: int = number(
        KEPT_D[BODIES], 1, 3_650, "retention of bodies and texts in the bucket, in days"
    )
    export_retention_d: str = text(
        "forever",
        "retention of exported files in the bucket, in days; forever: no deletion",
        pattern="forever|[1-9][0-9]{0,3}",
        takes="forever, or a whole number of days from 1 to 9999",
    )
    log_retention_d: int = number(14, 1, 1_827, "retention of logs in days")

    # Exports and their receivers.
    exporter_cron: str = text(
        "cron(0 2 * * ? *)",
        "times of exports, in UTC; once a day: the day before; more often: the current day so far",
        pattern=r"(cron|rate)\([0-9A-Za-z ,\-*/?#]+\)",
        takes="cron(…) or rate(…) as EventBridge Scheduler reads them",
    )
    export_formats: str = text(
        "jsonl,parquet",
        f"formats of exports, from {','.join(FORMATS)}",
        pattern=rf"({'|'.join(FORMATS)})(,({'|'.join(FORMATS)}))*",
        takes="formats, separated by commas",
    )
    exporter_concurrency_max: int = number(20, 2, 1_000, "concurrent exporters", local=2)
    copy_bucket: str = text(
        "",
        "name of a bucket, in any account and region, that receives copies of exports",
        pattern=r"([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?",
        takes="the name of a bucket",
    )
    sftp_url: str = text(
        "",
        "SFTP server that receives exports, `sftp://user@host:port/folder`: docs/delivery.md",
        pattern=rf"({SFTP_URL})?",
        takes="sftp://user@host, with an optional :port and /folder, and without a password",
    )
    sftp_host_key: str = text(
        "",
        "the server's host key: output of `ssh-keyscan`, or a fingerprint (SHA256:…)",
        pattern=r"[ -~\s]*",
    )
    sftp_secret: str = secret("name or ARN of the secret with the private key of that user")

    # People and programs.
    alarm_email: str = text(
        "", "e-mail address for alarms", pattern=r"([^@\s]+@[^@\s]+)?", takes="an e-mail address"
    )
    alarms: str = choice(
        "free",
        ("free", "all"),
        "all: also ErrorRate, Unreadable, ExportMissing, YieldDrop, NeedsRendering and"
        " InvalidItems, $1.10 a month, idle or not",
    )
    webhook_secret: str = secret(
        "key that signs webhooks: `generate`, or name or ARN of a secret: docs/webhooks.md",
        also="generate",
        local="generate",
    )
    console: str = choice(
        "no",
        ("no", "yes"),
        "yes: host the console for users in two groups (look, steer): docs/console.md",
    )

    # No context key: True if the app has found the stack in the account.
    stack_exists: bool = False

    # Constants that several constructs use. The doctor compares a deployed stack with them.
    #
    # Crawling stops after one minute (a round). The remaining time is for the last requests.
    worker_timeout_s: ClassVar[int] = 120
    # By default, Lambda stops a function that feeds its own queue after about 16 hops. With
    # `Allow`, only depth, budget and `orbweaver workers off` end such a loop.
    recursive_loop: ClassVar[str] = "Allow"
    # Deliveries before a message becomes a dead letter. If the account's concurrency is used up,
    # Lambda can receive a message without processing it, and that counts.
    receive_max: ClassVar[int] = 5
    # A message that becomes a dead letter keeps its age, so dead letters have a longer retention.
    # 14 days is SQS's maximum.
    queue_retention_d: ClassVar[int] = 4
    dead_letter_retention_d: ClassVar[int] = 14
    # One minute of crawling (a round), and time for a last request, a last page, and saving the
    # results.
    renderer_timeout_s: ClassVar[int] = 240
    # 1,769 MB equal one CPU. Rendering four pages at a time uses one CPU fully.
    renderer_memory_mb: ClassVar[int] = 2_048
    # Space for the browser (214 MB unpacked), for Chromium's files (functions have no shared
    # memory), and for files of pages. Lambda's default is 512 MB.
    renderer_storage_mb: ClassVar[int] = 1_024
    exporter_memory_mb: ClassVar[int] = 1_024
    # The files of one part of an export have at most 256 MiB together (four times
    # `part_bytes_max`). Rows for Parquet files are kept uncompressed until then, at most 512 MiB
    # per table (SHRINKS_BY_MAX). 100,000 pages take 66 MB, so Lambda's default of 512 MB usually
    # suffices.
    exporter_storage_mb: ClassVar[int] = 2_048
    exporter_timeout_s: ClassVar[int] = 300
    # Athena cancels a query that reads more bytes, and bills the bytes read, $5 per TB: at most 5
    # cents.
    athena_bytes_max: ClassVar[int] = 10_000_000_000

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Config:
        """Create the settings from CDK context.

        Raises ConfigError for an unknown key or invalid value.
        """
        given = {key: value for key, value in context.items() if is_ours(key)}
        known = {item.name: item for item in fields(cls) if item.metadata}
        for key, value in given.items():
            if key not in known:
                raise unknown(key, value, known)
        local = given.get("target") == "local"
        values: dict[str, Any] = {}
        for key, item in known.items():
            if key in given:
                values[key] = convert(item, given[key])
            elif local and item.metadata["local"] is not None:
                values[key] = item.metadata["local"]
        config = cls(**values)
        config.check()
        return config

    def check(self) -> None:
        """Raise ConfigError if values contradict each other."""
        self._check_delivery()
        self._check_console()
        self._check_addresses()
        if self.is_frugal and self.alarms == "all":
            fix = "omit it or frugal=yes, which sends no metrics of its own"
            raise unfit("alarms", self.alarms, fix)
        if self.log_retention_d not in LOG_RETENTIONS_D:
            fix = f"set one of {', '.join(map(str, LOG_RETENTIONS_D))}"
            raise unfit("log_retention_d", self.log_retention_d, fix)
        self._check_rendering()
        self._check_memory()

    def _check_delivery(self) -> None:
        for key in ("sftp_host_key", "sftp_secret"):
            value = getattr(self, key)
            if bool(value) != bool(self.sftp_url):
                fix = "set sftp_url as well" if value else f"sftp_url={self.sftp_url} needs it"
                raise unfit(key, value, fix)
        if not self.sftp_url:
            return
        try:
            host_keys_of(self.sftp_host_key)
        except HostKeyError as error:
            raise unfit("sftp_host_key", self.sftp_host_key, str(error)) from error
        try:
            folder = self.sftp_settings["sftp_folder"]
        except ValueError as error:  # an invalid port, or invalid brackets of an address
            raise unfit("sftp_url", self.sftp_url, str(error)) from error
        if ".." in folder.split("/"):
            raise unfit("sftp_url", self.sftp_url, "set a folder without ..")

    def _check_console(self) -> None:
        if not self.hosts_console:
            return
        if self.local:
            fix = "omit it: `orbweaver console` shows a stack on this machine"
            raise unfit("console", self.console, fix)
        found = next((word for word in RESERVED if word in self.stack_name.lower()), None)
        if found is not None:
            fix = f"the address of its sign-in page must not contain {found!r}: choose another name"
            raise unfit("stack_name", self.stack_name, fix)

    # On AWS, this would open the account's network to all who can send seeds.
    def _check_addresses(self) -> None:
        if self.allow_addresses and not self.local:
            raise unfit("allow_addresses", self.allow_addresses, "omit it, or add -c target=local")
        try:
            Settings.from_environment(self.environment())
        except SettingsError as error:
            raise unfit("allow_addresses", self.allow_addresses, str(error)) from error

    def _check_rendering(self) -> None:
        if self.renders and self.local and find_browser() is None:
            raise unfit("rendering", self.rendering, INSTALL)
        given = self.renderer_concurrency_max
        if not self.renders and given not in (RENDERERS, LOCAL_RENDERERS):
            raise unfit("renderer_concurrency_max", given, "add -c rendering=yes, or omit it")

    def _check_memory(self) -> None:
        settings = Settings.from_environment(self.environment())
        needed, parts = needed_mb(settings)
        if needed > self.worker_memory_mb:
            fix = f"set {needed}, or lower body_bytes_max: it may need {needed} MB at once: {parts}"
            raise unfit("worker_memory_mb", self.worker_memory_mb, fix)
        needed, parts = needed_mb(settings, renders=True)
        if self.renders and needed > self.renderer_memory_mb:
            fix = f"lower it: a renderer has {self.renderer_memory_mb} MB,"
            fix += f" and may need {needed} MB at once: {parts}"
            raise unfit("body_bytes_max", self.body_bytes_max, fix)

    @property
    def local(self) -> bool:
        """True if the target is an emulator on this machine."""
        return self.target == "local"

    @property
    def tls_only(self) -> bool:
        """True if queues, topics and the bucket reject plain HTTP.

        Emulators support only plain HTTP.
        """
        return not self.local

    @property
    def kept(self) -> bool:
        """True if stored data outlives the stack."""
        return self.removal == "retain"

    @property
    def is_frugal(self) -> bool:
        """True if the stack leaves out resources that cost money while idle."""
        return self.frugal == "yes"

    @property
    def renders(self) -> bool:
        return self.rendering == "yes"

    @property
    def hosts_console(self) -> bool:
        return self.console == "yes"

    @property
    def has_receiver(self) -> bool:
        return bool(self.sftp_url or self.copy_bucket)

    @property
    def batch_window_s(self) -> int:
        """Seconds that Lambda collects messages for a batch.

        On AWS, batches of more than ten messages require at least one second.
        """
        return 0 if self.local else 1

    @property
    def export_span(self) -> str:
        """Span of a scheduled export: the day before (`day`), or the day so far (`hour`)."""
        return "day" if re.fullmatch(ONCE_A_DAY, self.exporter_cron) else "hour"

    @property
    def sftp_settings(self) -> dict[str, str]:
        """The settings of functions that `sftp_url` contains.

        Raises ValueError for a bad port or address. As in curl's URLs, `/~/folder` is relative to
        the login folder, and `/folder` is absolute.
        """
        url = urlsplit(self.sftp_url)
        return {
            "sftp_host": url.hostname or "",
            "sftp_port": str(url.port or 22),
            "sftp_user": unquote(url.username or ""),
            "sftp_folder": re.sub(r"^/(~(/|$)|$)", "", unquote(url.path)),
            "sftp_host_key": self.sftp_host_key,
            "sftp_secret": self.sftp_secret,
        }

    @property
    def functions_run_on(self) -> Runtime:
        """The runtime of the functions. An emulator runs functions on this machine."""
        return Runtime.parse(host_runtime() if self.local else AWS_RUNTIME, native=self.local)

    @property
    def renderer_runs_on(self) -> Runtime:
        """The runtime of the renderer. The browser exists for one architecture only."""
        runtime = self.functions_run_on
        return runtime if self.local else replace(runtime, architecture=ARCHITECTURE)

    def environment(self) -> dict[str, str]:
        """Return the environment variables that all functions get. Default values are left out."""
        kept_d = self.queue_retention_d + NEWER_WAIT_D + self.dead_letter_retention_d + 1
        values = {
            "stack": self.stack_name,
            "receive_max": str(self.receive_max),
            "page_retention_s": str(self.page_retention_d * DAY_S),
            # The record of a processed message (ledger) must exist longer than any copy of the
            # message.
            "ledger_retention_s": str(kept_d * DAY_S),
        }
        if self.body_bytes_max != Settings().fetching.body_bytes_max:
            values["body_bytes_max"] = str(self.body_bytes_max)
        if self.contact:
            values["user_agent"] = f"{USER_AGENT} (+{self.contact})"
        if self.extractor:
            values["extractor"] = EXTRACTOR
        if self.webhook_secret:
            # Starting a crawl checks whether its webhook can be signed.
            values["webhook_secret"] = self.webhook_secret
        if self.is_frugal:
            values["custom_metrics"] = "no"
        if self.allow_addresses:
            values["allow_addresses"] = self.allow_addresses
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
    return "\n".join(rows)


def is_ours(key: str) -> bool:
    """Return True for a context key of Orbweaver, False for a key of CDK."""
    return key not in CDK_KEYS and not any(sign in key for sign in ":@/")


if __name__ == "__main__":
    sys.stdout.write(describe() + "\n")
