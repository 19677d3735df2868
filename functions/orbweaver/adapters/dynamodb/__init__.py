"""The tables.

table       codec, batches, transactions
claims      the `urls` table
packs       the `packs` table
backlog     packs that wait for their hosts, in it too
journal     a journal's items in it
ledger      a ledger's bitmap
pages       the `pages` table
crawls      the `crawls` table
counters    its counter shards
budgets     what limits have been used
hosts       the `hosts` table
host_items  its items
erasure     every item of every table
scan        read in segments
"""
