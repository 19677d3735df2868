"""Chaos: a deployed stack with failing calls and killed workers must lose no URL.

    python -m tests.chaos --seed 7 --pages 3000

The simulation (`tests/simulation`) runs the product over memory adapters thousands of times. Chaos
runs the deployed stack once, with real adapters, processes and time. A run has two phases: a storm
with faults, and a calm without.

- `faults`     faulty calls and their faults, by a seed
- `wire`       AWS's JSON protocols, as far as faults need them
- `proxy`      the proxy between workers and emulator that injects the faults
- `layout`     the generated site, by the seed, and the expected result of its crawl
- `site`       that site in its own process, with its access log
- `processes`  the worker processes of the run's emulator
- `lethal`     a page that kills the worker that requests it
- `scale`      the size of a run
- `rig`        the deployed stack: its tuning, its crawls, its stored data
- `run`        the storm, the calm after it, and the evidence
- `gaps`       distances between requests
- `evidence`   all facts of a finished run
- `verdict`    whether the promises hold

Rules
- The run uses its own emulator, site, proxy and workers only.
- All servers listen on 127.0.0.1 and end with the run.
- The crawl must finish in the calm. So faults stop at a share of the crawl, or after a time.
"""
