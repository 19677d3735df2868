"""Chaos: a deployed stack whose workers are lied to, throttled and killed, and must lose nothing.

    python -m tests.chaos --seed 7 --pages 3000

The simulation (`tests/simulation`) attacks the actors over memory adapters, thousands of times;
this attacks the deployed thing, once: real adapters, real processes, real time.

- `faults`     which call goes wrong, and how: by a seed
- `wire`       AWS's JSON protocols, as far as faults are spelled in them
- `proxy`      what stands between the workers and the emulator, and does it
- `layout`     the site to be crawled, by the seed, and what a crawl of it must come to
- `site`       that site in a process of its own, and its access log
- `processes`  which processes are the workers of our emulator
- `lethal`     a page that kills whoever asks for it
- `scale`      how large a run is
- `rig`        the deployed stack: its tuning, its crawls, what can be read back
- `run`        the storm, the calm after it, and the evidence
- `gaps`       how close requests came to each other
- `evidence`   what is known when it is over
- `verdict`    whether all of that is as it must be

Rules
- The emulator, the site, the proxy and the workers are this run's own; nothing else is touched.
- Everything listens on 127.0.0.1 alone, and ends with the run.
- What the storm breaks off, the calm must finish: faults stop at a share of the crawl, or a time.
"""
