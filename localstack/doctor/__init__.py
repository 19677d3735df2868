"""`orbweaver doctor`: tries in an account what the stack assumes of AWS, and reports.

    ground          what a check is given, and what it finds
    masking         what never reaches a report
    registry        all checks, in the order in which they run
    examine         runs them, and makes the report
    own             the stack that `--full` deploys, and removes
    account, stacks, queues, functions, stores, services    checks that only read
    probe_sqs, probe_queues, probe_tables, probe_batches, probe_files, probe_events, probe_lambda,
    probe_crawl     checks that need a stack of their own

Rules
- A check is a function of its ground; its result and what it saw are values. What it sees are
  numbers, truths, and words that stand in this package: no text of AWS's is handed on.
- Without `--full` nothing is written. With it, only to the stack that was deployed for it.
"""
