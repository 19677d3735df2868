"""Progress of a crawl, during and after the run.

Successive readings become views, which command line, console and programs show in parts.

    reader    one reading of a crawl, its queues and hosts
    status    views of a crawl
    rates     URLs per second
    forecast  remaining time, and its basis
    spending  budgets and cost
    hosts     hosts of a crawl
    queued    retries, and requests without a response
    figures   numbers and durations as texts
"""
