"""Mutation tests: single random changes of the product against the tests that run the line.

    python -m tests.mutants --count 250 --seed 7    drawn over all groups
    python -m tests.mutants --count 20 --seed 1 --only 'infra/*.py'    in some modules
    python -m tests.mutants --count 250 --seed 7 --again    survivors once more

A mutant is one place of one module (`operators`), drawn by the seed among groups of modules
(`groups`). It is written into a copy of the tree below .local, one copy per lane, so the checkout
is not changed. There the tests of its line run, nearest and fastest first (`trying`), until a
failure or a hang detects it. The lines of each test are measured once per state of the tests
(`covering`). Tests of its own room run first; all others are measured and run only for survivors.
Read every survivor: either the change has no meaning, or a test is missing.

Results are stored below .local by seed, so an interrupted run continues. The hand-written breaks of
the simulation have another purpose: they show what its oracle can detect.
"""
