"""The console: see and steer crawls in a browser.

Serves a web application on this machine alone, over an open store or stack. What is looked up and
changed goes through the rooms above: the HTTP API, answered in this process, and the actors behind
the command line. Decides who is answered at all, and keeps what the API cannot, which forgets from
one request to the next: how a crawl went while it was watched.

    server       the application: files, the API, routes of its own
    fence        which requests are answered
    tickets      addresses that are good for a while, for what a browser fetches by itself
    watching     crawls as they go, read once for all tabs
    actions      routes that the HTTP API has not: live crawls, dead letters, tables as CSV
    definitions  a crawl before it is started
    comparing    whole runs: a site by its sections, two runs compared
    standing     the store or stack as a whole: queues, workers, alarms, dollars, schedules
    stored       pages as they are stored, on an origin of their own

`static/` has the application, which no tool builds: `vendor/` are files of others, unchanged.
"""
