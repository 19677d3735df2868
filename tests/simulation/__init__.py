"""Deterministic simulation: the real actors in a world where everything that can fail does.

One seed decides the web, the crawls, the order of steps, every fault and every clock. Time is
virtual: an hour of crawling takes a fraction of a second. The same seed takes the same steps, down
to the hash of its trace.
"""
