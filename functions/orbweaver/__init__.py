"""Orbweaver, a serverless web crawler: the map, in the order in which data travels.

    core/message    what is on the queue                  core/target      a claimed URL on its way
    core/envelope   of any version                        core/version     what is stored says its
    worker          a batch in, what is to come back out
    advance         one pack, from where earlier deliveries left it
    recent          crawls as they stood a moment ago
    holding         what only a newer version can read waits
    ingest          references dropped by hand become seeds, seeds become candidates
    core/admission  why a URL is refused                  core/belonging   URLs that messages bring
    core/outcome    how a URL ended, and why
    visit           robots, slots, requests, answers      core/exchange    a request, its answer
    core/header     values of its headers
    cookies         of crawls that keep them              core/cookies     which go with a request
    ending          cut short where the worker is to end  core/refetch   pages without text
    retracing       what earlier runs left out            core/resumption  which runs, and pages
    robots          robots.txt, fetched and kept          core/robots      its rules
    core/robots_rules  of one agent, and which decides
    core/robots_readings  what escapes in them mean
    unasked         URLs that end without a request
    core/identity   who asks, with which headers          core/proxies     by way of whom
    conclude        what an answer comes to               health           how hosts take it
    following       links of a page, admitted
    core/reading    what is done with its bytes           core/weight      and what that may cost
    pace            waiting for slots                     core/politeness  when a host may be asked
    core/answer     what an answer means                  core/retry       and when to ask again
    core/page       what a page says                      core/url         canonical URLs
    core/links      the links of a page
    sitemaps        sitemaps, found and taken in          core/sitemap     what one lists
    core/sitemap_text  its text, bounded                  core/sitemap_xml  its items in XML
    core/url_limits  how long URLs may be
    core/traps      URLs without end                      core/suffix      which site a host is of
    core/refresh    pages that lead elsewhere             core/missing     pages that are none
    core/blockpage  pages that keep crawlers out          core/repeats     pages that are others
    core/spelling   what became of a reference        core/patterns  URLs wanted, URLs left out
    core/sniff      what kind of body it is               core/mime        Content-Type headers
    core/charset    which charset it is in                core/markup      its outline and text
    core/recrawl    asking only for what changed
    core/draft      what a pack is coming to
    core/journal    what a pack came to, and its outbox   core/journal_codec  as stored
    core/compression  of it
    core/record     a page's record                       core/cut         what of it is cut
    core/rules      what holds for some URLs              core/crawl_rules  in a crawl
    core/recording  put together
    context         a pack at work
    treasury        what a pack may use of limits         core/allowance  what is used of them
    core/limits     which there are                       core/cost        what a crawl costs
    core/units      what AWS bills, counted               core/prices      and what it asks for that
    core/estimate   what a crawl would use                core/rounds      how often it goes round
    sifting         links that need not be claimed
    settle          claim, store, commit, send, finish    core/crawl       a crawl and its books
    committing      many packs at once                    gathering       tasks that share a call
    core/seen       claims that need no second look       core/crawl_codec  a crawl as stored
    core/standing   where packs and URLs stand            core/metric      what is counted of it
    core/comparison  how a run does beside the one before
    segments        bodies and texts, on their way        core/segment     in one file a batch
    core/warc       its records
    core/harvest    what is kept of a page                core/maintext  its main text
    core/redaction  what is taken out of all that
    core/item       what rules find on pages              core/tables      of an export, and columns
    core/extraction  finding it                           core/tame       pages that may be parsed
    core/item_rule  what is to be taken
    core/extraction/rules  whether that fits              core/extraction/codec  as stored
    core/extraction/definition  as a document             core/extraction/document  a page to them
    core/extraction/locating  where values are            core/extraction/values  what they are
    core/extraction/selectors  CSS, in linear time        core/extraction/regex  within a text
    core/extraction/structured  JSON-LD                   core/extraction/stated  and attributes
    core/extraction/numbers  numbers, prices              core/extraction/currencies  of those
    core/extraction/dates  dates and moments         core/extraction/work  a budget for it
    exporting       a day's records into files            core/export      where, and manifests
    exporting/planning  which units a day has             core/export_job  which days are asked for
    exporting/units  one worked through                   core/export_work  what workers leave
    exporting/runs  who is at it                          core/export_order  and tell each other
    exporting/reading  its rows                           exporting/chunk  a stretch of them
    exporting/desk  where files are made                  exporting/feed   what has changed
    exporting/sealing  all done: the manifest             exporting/mending  what must be true of it
    exporting/store  files, with patience                 exporting/alone  without a queue
    exporting/assembly  put together
    changes         what a run has changed                core/changes     created, deleted, …
    snapshots       what it is compared with              core/snapshot    as it lies there
    registering     tables of items, for queries          core/orphans     pages nothing leads to
    core/catalogue  what tables and columns are called
    delivery        brings exports elsewhere              core/delivery    what must go before
    shipment        one of them, to one receiver          core/hostkey     whom to believe
    formats         as which files                        core/cell        what stands in a cell
    formats/rows    rows of a record                      formats/sink     files, hashed as written
    formats/jsonl   lines of JSON                         formats/csv      for spreadsheets
    formats/parquet  typed columns                        formats/warc     answers as they came
    formats/surt    keys of an archive's index
    dead_letters    look at them, send them back          core/dead_letters  why they lie there
    forget          have something forgotten              core/meant       what is meant
    survey          where there is any of it              core/forgetting  what is left of things
    sweeping        out of messages and journals          ports/traces     all that is stored
    blotting        out of stored pages and files         formats/blot     and out of their rows
    restating       exports without it, said anew
    control         start and steer crawls                core/plan        what a person asks for
    core/planning   the crawl that it becomes
    looking         ask about them                        core/amendment   what may change meanwhile
    samples         examples of what is refused           core/skips       what is left out, and why
    retrying        ask again for what failed             core/rerun       which runs that takes
    core/host_view  how a crawl does at a host
    core/definition  the same as a document           core/definition_keys  what it may say
    core/definition_values  and how that is read
    core/definition_lines  and on which line it stands
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
    api/results     about what was found                  api/seeds       more URLs
    api/means       what answers have at hand             api/problems    why a request is refused
    core/cursor     where a listing goes on
    core/shape      what JSON of a type looks like        core/shape_reader  reading it
    core/definition_schema  what a definition looks like
    cli             the command line

    ports           what the actors need of the world     adapters/        AWS, the web, memory
    patience        asked again after a fault
    ports/queues    what is to be crawled                 ports/outside   files, the web, time
    ports/tables    packs, crawls, claims, hosts, records  ports/allowances  what is used of limits
    ports/hosts     hosts                                 ports/schedules  what recurs
    ports/exports   exporters' orders                     ports/readers   what reads answers
    ports/errors    what goes wrong                       ports/couriers   to whom exports go
    settings        limits and names                      core/address     what may be dialled
    core/named      what of it is not public
    bootstrap       opens the ports, for containers       wiring           actors over them
    wiring_delivery  and over those of receivers          wiring_exporting  exporters
    wiring_ports    ports over AWS, as they are needed

Things are in `core/` and do no I/O; actors stand beside it; technologies are in `adapters/`.
"""

__version__ = "0.1.0"
