"""Progress of a crawl, during and after the run.

The state of a crawl is read again and again. Each reading gives a view, and the command line, the
console and programs show parts of the view.

    reader    one reading of a crawl, its queues and hosts
    status    views of a crawl
    forecast  URLs per second, remaining time, and how it was estimated
    spending  budgets and cost
    hosts     hosts of a crawl, retries, requests without a response
"""
