"""A small crawl beside a big one: is it done in about the time it takes alone.

    python -m bench.fairness            on a deployed stack, in minutes of this machine
    tests/simulation/test_fairness.py   in virtual time, with as many workers as AWS would give

MiniStack (1.5.33) takes a message's group and delivers in order of arrival all the same; it is
taught fair queues here (`emulator/`, `neighbours`).
"""
