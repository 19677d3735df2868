"""Query exports with SQL.

command   the command `query`
exported  options that name exports
tables    tables and their files
duckdb    execution of queries with DuckDB, values as text and as JSON
confined  queries from a browser, in a separate process
child     the process of a query from a browser
saved     built-in queries
"""
