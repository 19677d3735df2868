"""Orbweaver, a serverless web crawler: the map, in the order in which data travels.

    core/message    what is on the queue                  core/target      a claimed URL on its way
    worker          a batch in, what is to come back out
    advance         one pack, from where earlier deliveries left it
    ingest          references dropped by hand become seeds, seeds become candidates
    core/admission  why a URL is refused                  core/outcome     how it ended, and why
    visit           robots, slots, requests, answers      core/exchange    a request, its answer
    robots          robots.txt, fetched and kept          core/robots      its rules
    core/identity   who asks, with which headers          core/proxies     by way of whom
    conclude        what an answer comes to               health           how hosts take it
    pace            waiting for slots                     core/politeness  when a host may be asked
    core/answer     what an answer means                  core/retry       and when to ask again
    core/page       what a page says                      core/url         canonical URLs
    sitemaps        sitemaps, found and taken in          core/sitemap     what one lists
    core/sitemap_text  its text, bounded                  core/sitemap_xml  its items in XML
    core/traps      URLs without end                      core/suffix      which site a host is of
    core/refresh    pages that lead elsewhere             core/missing     pages that are none
    core/blockpage  pages that keep crawlers out          core/repeats     pages that are others
    core/spelling   what became of a reference        core/patterns  URLs wanted, URLs left out
    core/sniff      what kind of body it is               core/mime        Content-Type headers
    core/charset    which charset it is in                core/markup      its outline and text
    core/recrawl    asking only for what changed
    core/journal    what a pack came to, and its outbox   core/record      a page's record
    settle          claim, store, commit, send, finish    core/crawl       a crawl and its books
    core/seen       claims that need no second look       core/crawl_codec  a crawl as stored
    core/standing   where packs and URLs stand
    exporter        a day's records into files            core/export      rows and manifests
    dead_letters    look at them, send them back          core/dead_letters  why they lie there
    control         start, steer and ask about crawls     core/plan        what a person asks for
    core/definition  the same as a document           core/definition_keys  what it may say
    core/duration   spans of time in words
    explain         what is stored of one URL             core/explanation  its life, in words
    core/fate       what became of it                     core/meanings     words for reasons
    api             seeds over HTTP
    cli             the command line

    ports           what the actors need of the world     adapters/        AWS, the web, memory
    settings        limits and names                      core/address     what may be dialled
    bootstrap       wires all of it

Things are in `core/` and do no I/O; actors stand beside it; technologies are in `adapters/`.
"""

__version__ = "0.1.0"
