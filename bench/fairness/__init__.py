"""Fairness: whether a small crawl next to a big one takes about as long as alone.

    python -m bench.fairness            on a deployed stack, in minutes on this machine
    tests/simulation/test_fairness.py   in virtual time, with as many workers as on AWS

MiniStack (1.5.33) accepts a message's group but delivers in order of arrival. `emulator/` and
`neighbours` add SQS's fair queues to it.
"""
