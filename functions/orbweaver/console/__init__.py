"""The console: see and steer crawls in a browser.

Serves a web application over an open store or stack: on this machine alone, or as a function of a
stack behind a gateway that knows its users. What is looked up and changed goes through the rooms
above: the HTTP API, answered in this process, and the actors behind the command line. Decides who
is answered at all, and keeps what the API cannot, which forgets from one request to the next: how a
crawl went while it was watched.

    server       the application on this machine: files, the API, routes of its own
    fence        which requests are answered there
    hosted       the application as a function of a stack
    users     who is answered there, and what each may
    tickets      addresses that are good for a while, for what a browser fetches by itself
    files        the files of the application
    bodies       what requests bring
    watching     crawls as they go, read once for all tabs
    runs         what is told of them
    actions      routes that the HTTP API has not: dead letters, tables as CSV
    downloads    tables of a run as a file
    letters      dead letters by cause
    definitions  a crawl before it is started
    comparing    whole runs: a site by its sections, two runs compared
    standing     the store or stack as a whole: queues, workers, alarms, dollars, schedules
    stored       pages as they are stored, on an origin of their own

`static/` has the application, which no tool builds: `vendor/` are files of others, unchanged.
"""
