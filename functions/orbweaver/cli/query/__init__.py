"""SQL over exports.

command   query
tables    which files are which tables
duckdb    asked with DuckDB
cells     values as text and as JSON
confined  asked from a browser: in a process of its own
child     that process
saved     queries that are there already
"""
