"""Limits of a crawl's bytes, pages and dollars, its costs, and estimates.

Workers reserve a part of a limit before they send requests, so limits hold over all workers.

    budget_rules   whether an amount may be reserved
    reservation    reservations of a delivery
    billing_units  counts of units that AWS bills
    prices         prices of these units, and the charges of a budget
    estimate       the usage that a crawl would have
    ports          port of the stored budgets
"""
