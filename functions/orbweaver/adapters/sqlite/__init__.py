"""The embedded store: all ports over one SQLite file, for crawls on one machine.

store         the file, transactions, errors
schema        table definitions
timekeeping   the store's time, if the machine's clock is set
messages      queues in the `messages` table
processes     processes that work on a store
queue         sending to queues
receiving     receiving from queues
dead_letters  messages that failed too often
packs         redo logs and commit records of packs (messages with up to 25 URLs)
backlog       packs that wait for their hosts
crawls        crawls and their counters
claims        claims of URLs by packs
pages         page records
hosts         request times, blocks, robots.txt, cookies
budgets       use of limits
schedules     schedules
metrics       counters of services
erasure       reads and deletes for erasure
reaping       deletion of expired rows
"""
