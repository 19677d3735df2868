"""Answer requests of the HTTP API with a reply or a problem.

This room reads requests and builds responses. Inner rooms do the work.

    routes     operations: method, path, handler, statuses; the OpenAPI document
    requests   types of parameters, headers and bodies, cursors of listings
    responses  types of response bodies
    app        decoding of a request, and dispatch to its handler
    context    ports and settings of handlers
    crawls     handlers of crawls and further seeds
    pages      handlers of page records, explanations, items, texts and files
    fence      requests that a server on this machine accepts
    problems   problem details of refused requests
"""
