"""Writers of export files, one module a format.

registry     which formats there are, and their writers
rows         rows of a record
hashed_file  a file, hashed as it is written
jsonl        lines of JSON
csv          for spreadsheets
parquet      typed columns
warc         answers as they came
surt         keys of its index
"""
