"""The embedded store: all ports over one SQLite file, for crawls on one machine.

store         the file, transactions, errors
schema        table definitions
timekeeping   the store's time, if the machine's clock is set
messages      queues in the `messages` table
processes     processes that work on a store
queue         sending to queues
receiving     receiving from queues
dead_letters  dead letters, for an operator's commands
packs         journals, ledgers, parked packs
backlog       packs that wait for their hosts
shards        counters of crawls
crawls        crawls
claims        claims
pages         page records
hosts         slots, blocks, robots.txt, cookies
budgets       use of limits
schedules     schedules
metrics       counters of services
erasure       reads and deletes for erasure
reaping       deletion of expired rows
"""
