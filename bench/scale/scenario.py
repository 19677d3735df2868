"""Scenarios: a crawl, a web, a fleet, and the assumptions about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from orbweaver.model.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Hosts and their responses, with heavy tails."""

    hosts: int = 1_000
    pages: int = 100_000
    # Pages of hosts follow Zipf's law with this exponent; 0 makes all equal. `giant` is the share
    # of one more host.
    zipf: float = 0.8
    giant: float = 0.0
    latency_ms: int = 250
    latency_spread: float = (
        0.7  # sigma of the lognormal latencies of hosts; half of it for requests
    )
    body_bytes: int = 20_000  # median; sigma is 1, so the average is 33 KB
    slow_share: float = 0.01  # share of hosts that are twenty times as slow
    dead_share: float = 0.001  # share of hosts: half never existed, half go down at some time
    strict_share: float = 0.003  # share of hosts that answer one request in fifty with 429
    error_share: float = 0.005  # share of requests with HTTP 500; a tenth of it times out
    missing_share: float = 0.03  # share of requests with HTTP 404
    links: int = 30  # links of a page, drawn from its host's pages
    links_everywhere: int = 20  # links that are the same on all pages of a host


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
    # Assumed: CPU time on a whole virtual CPU (1,769 MB), per page with its request and per pack.
    page_cpu_ms: float = 4.0
    pack_cpu_ms: float = 20.0
    # Measured: a worker of a compiled asset takes 0.76 to 1.01 s of CPU to start, in the init phase
    # on a whole virtual CPU. Without bytecode it takes 1.9 to 2.4 s.
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
    delay_ms: int = 1_000
    shards: int = 16
    # Share of each host that is queued at the start. Links find the rest.
    known: float = 0.0
    # Time limit of the run.
    minutes: float = 60.0
