"""Deterministic simulation: the product's workers and exporters run under injected faults.

A seed (an integer) decides the web, the crawls, the order of steps, every fault and every clock.
Time is virtual: an hour of crawling takes a fraction of a second. The same seed always takes the
same steps, which the hash of its trace proves.

Invariants have labels. I1: no URL is lost. I2: each crawl ends once, and no request is wasted. I3:
each URL is claimed and recorded once. I4: hosts get their delay, and invocations end. I5: limits
are exact. I6: dead letters are invalid messages. I7: exports are complete. I8: counters per host
agree. I9: crawls end, and use their slots (request times).
"""
