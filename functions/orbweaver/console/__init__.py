"""The console: monitor and control crawls in a browser.

The console serves a web application for an open store or stack. It runs on this machine only, or as
a function of a stack behind a gateway that authenticates users. It calls the HTTP API in this
process, and the classes behind the command line. It also records the history of watched crawls,
because the API is stateless.

    server         the local server: files, the API, further routes
    fence          access control of the local server
    hosted         the console as a function of a stack
    users          users of the hosted console, and their permissions
    files          the files of the application
    bodies         bodies and queries of requests
    runs           documents about runs; running crawls, read once for all tabs
    actions        routes that the HTTP API lacks: dead letters, tables as CSV or as a file
    dead_letters   dead letters by cause
    definitions    definitions of new crawls
    run_comparer   sections of a site, and comparison of two runs
    global_status  queues, workers, alarms, dollars and schedules of the store or stack
    stored         stored pages, on a separate origin, and tickets for them

`static/` contains the application, without a build step. `vendor/` contains third-party files.
"""
