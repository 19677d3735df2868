"""A day of a million pages, exported by a process that may have 256 MB of memory.

    records     the pages, made up by their numbers       table    a table that holds them
    exporting   the exporter, under its limit             reading  the files, read by DuckDB

The table is a process of its own that answers as DynamoDB does, so that what exports does all that
it does in Lambda: requests by aiobotocore, items of JSON, records, rows, files. What it may have is
its data (`RLIMIT_DATA`: heap and whatever memory is private and can be written), enforced by the
kernel: beyond it an allocation fails. Its peak resident memory is measured beside that.
"""
