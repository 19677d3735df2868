"""The HTTP API: a request in, a reply or a problem out.

Decides what may be asked and how it is answered; the work is done by inner rooms.

    routes     what may be asked
    requests   with what
    responses  and what comes back
    app        from a request to a reply
    decoding   requests, read by their types
    context    what answers have at hand
    crawls     about crawls
    pages      about their URLs
    fence      which requests a server on this machine answers
    results    about what was found
    seeds      more URLs
    problems   why a request is refused
    openapi    the API's document
"""
