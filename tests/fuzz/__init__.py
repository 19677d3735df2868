"""Fuzzing: what strangers write, in every shape that a fuzzer can think of.

    python -m tests.fuzz --seconds 60                   every target; finds in .local/fuzz
    python -m tests.fuzz --seconds 10 --only robots page
    python -m tests.fuzz --slopes                       repeated fragments, to two megabytes
    python -m tests.fuzz --worst --seconds 300          looks for the page that costs the most

`targets.py` says what is fuzzed. Inputs worth keeping are in `corpus/`, and run with all tests.
"""
