"""`orbweaver doctor`: checks assumptions about AWS in an account, and reports the results.

    checks.txt      all checks, in order: assumption, title, steps and expected values
    registry        reads checks.txt
    script          runs the steps of a check
    reads, probes   steps in Python
    own             the stack that `--full` deploys and removes
    ground          input and result of a check
    masking         hides secrets in reports
    examine         runs the checks and makes the report

A check returns a `Finding` with the values it saw: numbers, booleans, and words defined in this
package, never text from AWS. Without `--full` no check writes. With it, checks write only to the
stack deployed for them.
"""
