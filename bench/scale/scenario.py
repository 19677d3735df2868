"""Define scenarios: a crawl, a web, a fleet, and the assumptions about them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orbweaver.model.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Decisions that differ from today's: earlier or possible ones. All are off by default."""

    # Take a place among a container's requests before a slot of the host, not after.
    room_before_slot: bool = False
    # Commit every pack by itself, as earlier versions did.
    commit_each: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Hosts and their responses, with heavy tails."""

    hosts: int = 1_000
    pages: int = 100_000
    # Pages of hosts by Zipf's law with this exponent; 0: all equal. `giant` is one host's share.
    zipf: float = 0.8
    giant: float = 0.0
    latency_ms: int = 250
    latency_spread: float = (
        0.7  # of hosts' medians, and half of it of requests: sigma of a lognormal
    )
    body_bytes: int = 20_000  # median; sigma 1, so 33 KB on average
    slow_share: float = 0.01  # of hosts, which take twenty times as long
    dead_share: float = 0.001  # of hosts: half were never there, half go down at some time
    strict_share: float = 0.003  # of hosts, which answer one request in fifty with 429
    error_share: float = 0.005  # of requests: HTTP 500; and a tenth of it: time-outs
    missing_share: float = 0.03  # of requests: HTTP 404
    links: int = 30  # of a page, drawn from its host's pages
    links_everywhere: int = 20  # of a page, the same on all pages of a host


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Workers, and the event source that gives them messages (AWS docs: services-sqs-scaling)."""

    workers_max: int = 1_000
    workers_first: int = 5
    workers_more_a_minute: int = 300
    batch_size: int = 40
    batch_window_ms: int = 1_000
    timeout_s: int = 120
    memory_mb: int = 1_024
    # Assumed: CPU of a whole virtual CPU (1,769 MB), for a page with its request and for a pack.
    page_cpu_ms: float = 4.0
    pack_cpu_ms: float = 20.0
    # Measured: a worker of a compiled asset takes 0.76 to 1.01 s of CPU to start, in the init
    # phase on a whole virtual CPU. Without bytecode it takes 1.9 to 2.4 s.
    cold_start_ms: int = 900
    recall_ms: int = 10
    settle_ms: int = 80
    transaction_ms: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run of the model."""

    seed: int = 1
    web: Web = field(default_factory=Web)
    fleet: Fleet = field(default_factory=Fleet)
    settings: Settings = field(default_factory=Settings)
    changes: Changes = field(default_factory=Changes)
    delay_ms: int = 1_000
    shards: int = 16
    # Share of each host that is queued at the start; links find the rest.
    known: float = 0.0
    # Time limit of the run.
    minutes: float = 60.0

    def of_stack(self) -> Settings:
        """Return the settings that the stack gives to its worker."""
        return replace(
            self.settings,
            waits_billed="yes",
            memory_mb=self.fleet.memory_mb,
        )
