"""A crawl's progress: what can be said of it while it runs and once it has ended.

One reading after another becomes a view, of which command line, console and programs show a part.

    reader    one reading of a crawl, its queues and hosts
    status    what can be said of it
    rates     how fast it goes
    forecast  how long it takes, and why
    spending  its budgets, and what it costs
    hosts     its hosts
    queued    retries, and requests without an answer
    figures   numbers and spans in words
"""
