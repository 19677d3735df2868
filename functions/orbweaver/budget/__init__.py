"""Limits of a crawl's bytes, pages and dollars, its costs, and estimates.

Workers reserve a part of a limit before they send requests, so all workers together keep the limit.

    budget_rules   decides whether an amount can be reserved
    reservation    reservations of a delivery
    billing_units  counts of units that AWS bills
    prices         prices of these units, and the charges of a budget
    estimate       the expected usage of a crawl
    ports          port of the stored budgets
"""
