"""Orbweaver, a serverless web crawler.

The way of one URL: a message on the queue -> `worker.batch` -> its host's robots.txt and slots
(`politeness`) -> a request (`adapters.web`) -> what the answer means (`fetching`), what the page
says (`parsing`), what rules find on it (`extraction`) -> links that belong to the crawl
(`frontier`) -> claims, record, commit and the next messages (`worker.apply_journal`).

Rooms, inner to outer. A room imports itself and the rooms above it in this list, never those
below; each says at its door what it decides and in which order its modules are read.

    model        values that every room speaks, settings, shared ports
    parsing      bytes to a page
    extraction   rules to typed items
    fetching     what an answer means
    politeness   when a host may be asked
    frontier     the protocol's values and ports
    budget       bytes, pages, dollars
    worker       the way of one URL, in order
    exporting    a day into files
    delivery     exports brought elsewhere
    diagnostics  what is stored, in words for a person
    control      a person's commands
    erasure      the right to erasure
    adapters     technologies: AWS, DynamoDB, the web, this machine
    api          the HTTP API
    app          wiring: settings and adapters become actors
    cli          the command line

A module is pure (no I/O, async, clock, chance, environment, logging) unless it is on the list of
actors in `tests/unit/project/test_architecture.py`, which holds all of this.
"""

__version__ = "0.1.0"
