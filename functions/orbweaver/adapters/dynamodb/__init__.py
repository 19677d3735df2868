"""Adapters for the DynamoDB tables.

table       codec, batches, transactions
claims      the `urls` table
packs       the `packs` table (messages with up to 25 URLs), with redo logs and commit records
backlog     packs that wait for their hosts, in `packs`
pages       the `pages` table
crawls      the `crawls` table
seed_lists  long seed lists in `crawls`
counters    counter shards in `crawls`
budgets     use of limits
hosts       the `hosts` table
erasure     scans and deletes for erasure
"""
