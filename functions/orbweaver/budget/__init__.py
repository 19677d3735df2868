"""Bytes, pages and dollars: what a crawl may use, what it costs, what one would cost.

Decides what may be reserved and what is settled; limits hold over all workers.

    budget_rules   what may be reserved, step by step
    reservation    what a delivery reserves and settles
    billing_units  what AWS bills, counted
    prices         what that costs, and what a budget charges
    rounds         how often URLs go round
    estimate       what a crawl would use
    ports          the store of what is used
"""
