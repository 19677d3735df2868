"""Deterministic simulation: the product's workers and exporters run under injected faults.

A seed (an integer) decides the web, the crawls, the order of steps, every fault and every clock.
Time is virtual: an hour of crawling takes a fraction of a second. The same seed always takes the
same steps, which the hash of its trace proves.
"""
