"""A model of thousands of workers and hosts in virtual time, driven by the real decisions.

Real, imported: slots, lines, blocks and rests (`politeness/host_schedule.py`), waiting for slots
(`pace.py`), how hosts take it (`health.py`), what answers mean (`fetching/response_verdict.py`),
retries (`model/backoff.py`), what is put off and what comes back (`frontier/pack_result.py`),
which packs follow (`frontier/journal.py`), what is billed (`budget/billing_units.py`,
`budget/prices.py`).

Modelled: the web, SQS, Lambda and its event source, tables as counters, and the order in which a
worker goes through a pack (`visiting.py`, `working.py`); `test_agreement.py` holds that to the real
worker.
"""
