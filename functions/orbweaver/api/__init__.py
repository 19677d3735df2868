"""Answer requests of the HTTP API with a reply or a problem.

This room reads requests and builds responses. Inner rooms do the work.

    routes     operations: method, path, handler, statuses
    requests   types of parameters, headers and bodies
    responses  types of response bodies
    app        dispatch of a request to its handler
    decoding   decoding of requests by their types
    context    ports and settings of handlers
    crawls     handlers of crawls
    pages      handlers of page records and explanations
    fence      requests that a server on this machine accepts
    results    handlers of items, texts and exported files
    seeds      handler of further seeds
    problems   problem details of refused requests
    openapi    the OpenAPI document
"""
