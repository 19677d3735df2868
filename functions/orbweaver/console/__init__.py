"""The console: monitor and control crawls in a browser.

Serves a web application for an open store or stack: on this machine only, or as a function of a
stack behind a gateway that authenticates users. It reads and changes crawls through the HTTP API,
called in this process, and through the classes behind the command line. It also records the history
of watched crawls, because the API is stateless.

    server         the application on this machine: files, the API, routes of its own
    fence          checks of requests there
    hosted         the application as a function of a stack
    users          users and their permissions there
    tickets        temporary addresses for downloads and frames
    files          the files of the application
    bodies         bodies and queries of requests
    crawl_watcher  running crawls, read once for all tabs
    runs           documents about runs
    actions        routes that the HTTP API lacks: dead letters, tables as CSV
    downloads      tables of a run as a file
    dead_letters   dead letters by cause
    definitions    definitions of new crawls
    run_comparer   sections of a site, and comparison of two runs
    global_status  the store or stack as a whole: queues, workers, alarms, dollars, schedules
    stored         stored pages, on a separate origin

`static/` contains the application, without a build step. `vendor/` contains third-party files.
"""
