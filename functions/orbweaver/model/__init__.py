"""Define the values that all packages share: URLs, outcomes, crawls, page records, settings.

This package defines the meaning and stored form of values. It has no side effects. Only
`settings` reads the environment.

    value               dataclasses that cost little to declare and to create
    url                 canonical URLs, the site of a host, limits of a URL
    target              a URL on its way through the queue
    outcome             outcomes of a URL, with reasons
    auth                how a crawl logs in, with references to secrets
    crawl_settings      all settings of a crawl
    crawl               one run: definition, state, counters and byte and dollar limits
    crawl_codec         the stored form of a crawl
    url_patterns        regular expressions for URLs
    url_rules           settings for some URLs of a crawl
    render_rules        rendering modes by URL, with reasons
    crawl_rules         validation of a crawl's rules, depth and delay of a URL by them
    url_kind            groups of similar URLs
    request_url         POST requests as URLs
    api_source          APIs that are crawled page by page
    item_rules          extraction rules
    item                extracted items
    columns             tables of exports and their columns
    host_access         time limit, retries and Referer of requests, by host
    http_exchange       HTTP requests, responses and header values
    user_agent          user agent and headers of a request
    auth_checks         validation of logins
    address_policy      addresses that a crawl may connect to
    named_origins       non-public origins that a user named
    page_record         the stored result of one URL
    cuts                truncated and omitted parts of a page, with counts
    backoff             retries and their delays
    metrics             metrics of an invocation
    events              events about crawls that ended
    amounts             bytes, dollars, durations and numbers as text
    compression         compression of stored data
    version             versions of stored data
    settings            settings from the environment
    slices              long work, split into slices
    turns               other tasks run between slices
    errors              errors of storage, queues and the network
    ports               interfaces: files, the web, time, secrets, metrics
"""
