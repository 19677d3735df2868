"""The way of one URL, in order: from a batch of messages to claims, records and the next messages.

Decides the order of effects, on which the invariants rest; speaks to ports only.

    batch              messages in, ids to come back out; what only a newer version reads waits
    seeding            references become candidates
    retracing          what earlier runs left out
    crawl_cache        crawls as they stood a moment ago
    pack               one pack, from where it was left
    pack_context       a pack at work, and the records of its URLs
    fetch_pack         robots, slots, requests, and URLs that end without one
    ending             cut short where the worker is to end
    cookies            of crawls that keep them
    response_handling  what an answer comes to; its links, admitted
    page_reading       what is done with its bytes, and what that may cost
    sitemap_handling   sitemaps, found and read
    body_writer        bodies and texts into one file
    link_dedup         links that need no claim
    call_batching      tasks that share a request
    apply_journal      claim, store, commit, send, finish
    group_commit       many packs in one transaction
"""
