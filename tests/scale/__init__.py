"""A model of thousands of workers and hosts in virtual time, driven by the real decisions.

Real, imported: slots, lines, blocks and rests (`core/politeness.py`), waiting for slots
(`pace.py`), how hosts take it (`health.py`), what answers mean (`core/answer.py`), retries
(`core/retry.py`), what is put off and what comes back (`core/draft.py`), which packs follow
(`core/journal.py`), what is billed (`core/units.py`, `core/prices.py`).

Modelled: the web, SQS, Lambda and its event source, tables as counters, and the order in which a
worker goes through a pack (`visiting.py`, `working.py`); `test_agreement.py` holds that to the real
worker.
"""
