"""Models thousands of workers and hosts in virtual time, with the product's real decisions.

The product's modules decide slots, blocks and rests of hosts, verdicts on responses, retries,
deferred URLs, following packs (batches of URLs) and billed units. The web, SQS, Lambda and its
event source, tables (as counters), and the order in which a worker processes a pack are modelled.
`test_scale_agreement.py` compares this with the real worker.
"""
