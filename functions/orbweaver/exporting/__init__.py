"""Exports: a day of page records as files, the same in every run; change feeds; tables.

Decides units, chunks and manifests; a manifest is written last, and says which files belong to the
export.

    requests           which days are asked for
    orders             messages between exporters
    manifest           where files lie, and which of them count
    planner            which units a day has
    run_state          what workers leave for each other
    runs               which run of a day counts
    exporter           one message worked through
    unit_worker        one unit
    row_reader         its rows
    chunk              a stretch of them in all formats
    workspace          a temporary folder for it
    file_store         files, with patience
    finalizer          the manifest
    repair             files that no manifest means
    local_exporter     without a queue
    assembly           put together
    cells              what stands in a cell
    changes            created, updated, deleted
    orphans            pages that nothing leads to
    snapshot           what the next run is compared with
    snapshot_store     read and written
    change_feed        what a run has changed
    feed               as exporters ask for it
    glue_schema        names and types for SQL
    glue_registration  tables of items made known
    ports              orders, the bus, the catalogue
"""
