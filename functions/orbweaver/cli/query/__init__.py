"""SQL over exports.

command   query
tables    tables and their files
duckdb    execution with DuckDB
cells     values as text and as JSON
confined  queries from a browser, in a separate process
child     the process of such a query
saved     built-in queries
"""
