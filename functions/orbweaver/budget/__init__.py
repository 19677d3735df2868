"""Budgets of bytes, pages and dollars: limits of a crawl, its costs, and estimates.

This package decides how much may be reserved and how reservations are settled. Limits hold over all
workers.

    budget_rules   whether an amount may be reserved
    reservation    reservations of a delivery
    billing_units  counts of units that AWS bills
    prices         prices of these units, and the charges of a budget
    rounds         how often packs are visited
    estimate       the usage that a crawl would have
    ports          port of the stored budgets
"""
