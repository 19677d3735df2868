"""The embedded store: every port over one SQLite file, for crawls on one machine.

store         the file, its transactions, its errors
schema        its tables
messages      queues in one of them
processes     which processes work on a store
queue         what is sent there
receiving     what actors take from there
dead_letters  what operators take from there
packs         journals, ledgers, parked packs
backlog       packs that wait for their hosts
shards        counters of crawls
crawls        crawls
claims        claims
pages         page records
hosts         slots, blocks, robots.txt, cookies
budgets       what limits have been used
schedules     what recurs
metrics       counters of services
erasure       every row
reaping       rows past their time
"""
