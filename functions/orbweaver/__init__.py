"""Orbweaver, a serverless web crawler: the map, in the order in which data travels.

    core/message    what is on the queue                  core/target      a claimed URL on its way
    worker          a batch in, what is to come back out
    advance         one pack, from where earlier deliveries left it
    recent          crawls as they stood a moment ago
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
    core/draft      what a pack is coming to
    core/journal    what a pack came to, and its outbox   core/journal_codec  as stored
    core/record     a page's record                       core/rules       what holds for some URLs
    treasury        what a pack may use of limits         core/allowance  what is used of them
    purse           reserved ahead                        core/cost        what a crawl costs
    settle          claim, store, commit, send, finish    core/crawl       a crawl and its books
    core/seen       claims that need no second look       core/crawl_codec  a crawl as stored
    core/standing   where packs and URLs stand
    core/warc       bodies and texts as records
    core/item       what rules find on pages              core/tables      of an export, and columns
    exporter        a day's records into files            core/export      rows and manifests
    dead_letters    look at them, send them back          core/dead_letters  why they lie there
    control         start and steer crawls                core/plan        what a person asks for
    looking         ask about them                        core/amendment   what may change meanwhile
    samples         examples of what is refused           core/skips       what is left out, and why
    retrying        ask again for what failed             core/rerun       which runs that takes
    core/host_view  how a crawl does at a host
    core/definition  the same as a document           core/definition_keys  what it may say
    core/references  where it begins                  core/duration    spans of time in words
    core/amount     bytes and dollars in words
    recurring       crawls that recur                     core/schedule    when, and what is told
    core/cron       six fields, and when they come
    notify          tell a webhook of the end             core/webhook     what, signed how
    explain         what is stored of one URL             core/explanation  its life, in words
    core/fate       what became of it                     core/meanings     words for reasons
    api             over HTTP: a request in, a reply out  api/operations  what may be asked
    api/asked       with what                             api/answered    and what comes back
    api/reading     requests, read by these types         api/openapi     and described
    api/runs        about crawls                          api/records     about their URLs
    api/seeds       more URLs                             api/means       what answers have at hand
    api/problems    why a request is refused              core/cursor     where a listing goes on
    core/shape      what JSON of a type looks like        core/shape_reader  reading it
    core/definition_schema  what a definition looks like
    cli             the command line

    ports           what the actors need of the world     adapters/        AWS, the web, memory
    ports/queues    what is to be crawled                 ports/outside   files, the web, time
    ports/tables    packs, crawls, claims, hosts, records  ports/allowances  what is used of limits
    ports/errors    what goes wrong
    settings        limits and names                      core/address     what may be dialled
    bootstrap       opens the ports, for containers       wiring           actors over them

Things are in `core/` and do no I/O; actors stand beside it; technologies are in `adapters/`.
"""

__version__ = "0.1.0"
