"""Values that every room speaks: URLs, outcomes, crawls, page records, settings, ports.

Decides what a value means and how it is stored; touches nothing but its arguments. Only `settings`
reads the environment.

    url                 canonical URLs
    registrable_domain  the site that a host belongs to
    target              a claimed URL on its way
    outcome             how a URL ended, and why
    crawl_settings      what may be asked of a run: every setting, once
    crawl               a run: what was asked for, and where it stands
    crawl_codec         a crawl as stored
    url_patterns        regular expressions for URLs
    url_rules           what holds for some URLs only
    render_rules        whose scripts are run, by URL, and why
    crawl_rules         the same, of a crawl's own
    url_kind            the shape that URLs of a kind share
    url_limits          how far URLs may go
    limits              bytes and dollars of a crawl
    item_rules          what is taken from pages
    item                what was found there
    columns             tables of exports, and their columns
    http_exchange       a request and its answer
    http_headers        values of an answer's headers
    user_agent          the identity that a host sees
    address_policy      which addresses may be dialled
    redacted_names      origins that a person named
    page_record         the durable result of one URL
    cuts                what of a page is cut, with counts
    backoff             whether and when a request is tried again
    metrics             what an invocation counts
    events              what is told of a crawl that ended
    amounts             bytes and dollars in words
    durations           spans of time in words
    compression         of what is stored
    version             of what is stored
    settings            limits and names, read once
    slices              long work, in slices
    turns               turns of other tasks between them
    errors              what a port raises
    ports               files, the web, time, secrets, metrics
"""
