"""`orbweaver doctor`: checks assumptions about AWS in an account, and reports the results.

    checks.txt      all checks, in order: assumption, title, steps and expected values
    script          runs the steps of a check
    reads, probes   steps that are Python functions: without and with writes; masks of reports
    own             deploys and removes the stack that `--full` uses
    ground          input and result of a check
    examine         reads checks.txt, runs the checks and makes the report

A check returns a `Finding` with the values that it read: numbers, booleans, and words defined in
this package, never text from AWS. Without `--full` no check writes. With `--full`, checks write
only to the stack that is deployed for them.
"""
