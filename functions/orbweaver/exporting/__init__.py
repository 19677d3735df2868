"""Export page records of a day as deterministic files, with change feeds and tables.

An export is divided into units (a crawl's records of a day, or a part of them) and chunks of rows.
A manifest is written last and names the files of the export.

    manifest          defines the paths of files, and the manifest
    run_state         defines the ports, the messages to workers, and the files that workers share
    runs              stores the plan and the progress of export runs
    exporter          plans the units of a day and handles messages
    unit_worker       reads the rows of a unit, and exports them
    chunk             writes a chunk of rows in all formats
    file_store        reads and writes files with retries, provides temporary folders
    finalizer         publishes the manifest, registers tables, repairs files of outdated runs
    cells             converts values to cells
    link_block        encodes the links of a page as rows for all formats
    changes           decides whether a page was created, updated or deleted
    snapshot          reads and writes snapshots: the pages of a run
    change_feed       computes the changes of a run
    glue_schema       defines SQL names and types
"""
