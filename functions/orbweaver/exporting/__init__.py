"""Exports: a day of page records as files, the same in every run; change feeds; tables.

Decides units, chunks and manifests; a manifest is written last, and says which files belong to the
export.

    requests          which days are asked for
    manifest          where files lie, and which of them count
    run_state         orders to workers, and what they leave for each other
    runs              which run of a day counts
    exporter          which units a day has; one order worked through
    unit_worker       one unit
    row_reader        its rows
    chunk             a stretch of them in all formats
    workspace         a temporary folder for it
    file_store        files, with patience
    finalizer         the manifest; tables made known
    repair            files that no manifest means
    cells             what stands in a cell
    changes           created, updated, deleted
    snapshot          what the next run is compared with
    snapshot_store    read and written
    change_feed       what a run has changed
    glue_schema       names and types for SQL
    ports             orders, the bus, the catalogue
"""
