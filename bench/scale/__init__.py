"""A model of thousands of workers and hosts in virtual time, driven by the real decisions.

Real, imported: slots, blocks and rests (`politeness/host_schedule.py`), waiting for slots
(`pacer.py`), which pack of a host is out and until when (`worker/succession.py`,
`worker/rounds.py`), how hosts take it (`host_health.py`), what answers mean
(`fetching/response_verdict.py`), retries (`model/backoff.py`), what is put off and what comes back
(`frontier/pack_result.py`), which packs follow (`frontier/journal.py`), what is billed
(`budget/billing_units.py`, `budget/prices.py`).

Modelled: the web, SQS, Lambda and its event source, tables as counters, and the order in which a
worker goes through a pack (`visiting.py`, `working.py`); `test_scale_agreement.py` holds that to
the real worker.
"""
