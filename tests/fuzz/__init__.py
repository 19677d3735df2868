"""Fuzzing of all functions that read input from strangers.

    python -m tests.fuzz --seconds 60                   every target; crashes in .local/fuzz
    python -m tests.fuzz --seconds 10 --only robots page
    python -m tests.fuzz --slopes                       repeated fragments, up to 2 MB
    python -m tests.fuzz --worst --seconds 300          search for the most expensive page

`targets.py` lists the fuzzed functions. `corpus/` has inputs worth keeping, which run with all
tests.
"""
