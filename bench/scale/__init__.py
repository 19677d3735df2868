"""Model thousands of workers and hosts in virtual time, with the product's real decisions.

Imported from the product: slots, blocks and rests (`politeness/host_schedule.py`), waiting for
slots (`pacer.py`), the pack of a host in flight (`worker/succession.py`, `worker/rounds.py`), host
health (`host_health.py`), verdicts on responses (`fetching/response_verdict.py`), retries
(`model/backoff.py`), deferred and requeued URLs (`frontier/pack_result.py`), following packs
(`frontier/journal.py`), billed units (`budget/billing_units.py`, `budget/prices.py`).

Modelled: the web, SQS, Lambda and its event source, tables as counters, and the order in which a
worker processes a pack (`visiting.py`, `working.py`). `test_scale_agreement.py` compares this with
the real worker.
"""
