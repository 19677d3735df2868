"""Single random changes of the product, each against the tests that run its line.

    python -m tests.mutants --count 250 --seed 7    drawn over all groups
    python -m tests.mutants --count 20 --seed 1 --only 'infra/*.py'    in some modules
    python -m tests.mutants --count 250 --seed 7 --again    survivors, once more

A mutant is one place of one module (`operators`), drawn by the seed among groups of modules
(`groups`). It is written into a copy of the tree below .local, one copy a lane: the checkout stays
as it is. There the tests that run its line (`covering`, measured once for each state of the
tests) are tried, nearest and fastest first (`trying`), up to a failure or a hang: it is noticed.
Tests of its own room are tried alone at first; all others are measured, and tried, if any mutant
survives those. A survivor is to be read: either the change means nothing, or a test is missing.

Results are kept below .local by seed: an interrupted run goes on where it was. The hand-written
breaks of the simulation are another matter: they show what its oracle can see.
"""
