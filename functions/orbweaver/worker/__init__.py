"""The way of one URL, in order: from a batch of messages to claims, records and messages.

Decides the order of effects, on which the invariants rest; speaks to ports only. A step calls those
below it, and returns to the one that called it; none calls one above.

    batch              messages in, ids to come back out; what only a newer version reads waits
    pack               one pack, from where it was left
    seeding            references become candidates
    retracing          what earlier runs left out
    fetch_pack         robots, slots, requests
    host_visits        the URLs of one host in a pack, and visits that wait together
    unvisited          URLs that end without one
    cookies            of crawls that keep them
    response_handling  an answer's outcome; its links, admitted
    sitemap_handling   sitemaps, found and read
    render_lane        pages that are for workers with a browser, where this one has none
    page_rendering     its scripts, run where a crawl wants that
    rendering_choice   of which pages it does
    rendering_gain     what scripts added, and what that says of others
    page_reading       the work on its bytes, bounded
    page_fault         what a page comes to whose processing raises
    pack_context       a pack at work, and the records of its URLs
    crawl_cache        crawls as they stood a moment ago
    body_writer        bodies and texts into one file
    link_dedup         links that need no claim
    apply_journal      claim, store, commit, send, finish
    succession         which pack of a host is out
    host_claims        claims of a host, handed on by files
    rounds             how long an invocation goes on, and with what
    ending             cut short where the worker is to end
    group_commit       many packs in one transaction
    kind_learning      what kinds of URLs have brought, for all workers
    call_batching      tasks that share a request
"""
