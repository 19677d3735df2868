"""`orbweaver doctor`: checks assumptions about AWS in an account, and reports the results.

    ground          input and result of a check
    masking         hides secrets in reports
    registry        all checks, in order
    examine         runs them and makes the report
    own             the stack that `--full` deploys and removes
    account, stacks, queues, functions, stores, services    read-only checks
    probe_sqs, probe_queues, probe_tables, probe_batches, probe_files, probe_events, probe_lambda,
    probe_crawl     checks that need a stack of their own (probes)

A check takes a `Ground` and returns a `Finding` with the values it saw: numbers, booleans, and
words defined in this package, never text from AWS. Without `--full` no check writes. With it,
checks write only to the stack deployed for them.
"""
