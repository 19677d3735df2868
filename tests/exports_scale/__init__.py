"""Export of a day with a million pages, by a process limited to 256 MB of memory.

    records     generated pages, by number                table    a table with these pages
    exporting   the exporter with its limit               reading  reads the files with DuckDB

The table is its own process that answers like DynamoDB, so the exporter does the same work as in
Lambda. The kernel limits its data (`RLIMIT_DATA`: heap and private writable memory), and
allocations beyond that fail. Its peak resident memory is also measured.
"""
