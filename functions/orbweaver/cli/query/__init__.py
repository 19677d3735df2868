"""SQL over exports.

command  query
tables   which files are which tables
duckdb   asked with DuckDB
saved    queries that are there already
"""
