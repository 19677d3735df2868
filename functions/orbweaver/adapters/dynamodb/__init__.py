"""Adapters for the DynamoDB tables.

table       codec, batches, transactions
claims      the `urls` table
packs       the `packs` table (messages with up to 25 URLs)
backlog     packs that wait for their hosts, in `packs`
journal     redo logs of packs, in `packs`
ledger      commit records of packs, in `packs`
pages       the `pages` table
crawls      the `crawls` table
seed_lists  long seed lists in `crawls`
counters    counter shards in `crawls`
budgets     use of limits
hosts       the `hosts` table
host_items  item formats of `hosts`
erasure     reads and deletes for erasure
scan        segmented scans
"""
