"""Process queue messages: from a received batch to claims, records and sent messages.

A pack is one message with up to 25 URLs of a crawl. This package decides the order of effects, on
which the guarantees of docs/protocol.md depend. It uses storage, queues and the network through
interfaces (ports) only. Each module calls only modules below it in this list.

    batch              process a batch, return the failed ids, hold back messages of newer versions
    pack               process one pack from where earlier deliveries stopped
    seeding            turn references and deferred links into links to claim
    earlier_runs       claim links that earlier runs left out
    fetch_pack         apply robots.txt, wait for slots, send requests
    response_handling  read a response, and record or retry its URL
    sitemap_handling   find and read sitemaps
    page_links         links of a page or sitemap to store, with the crawl's decisions
    render_lane        send pages to workers with a browser, if this worker has none
    page_rendering     run a page's scripts
    rendering_choice   choose the pages to render
    rendering_gain     learn from added content which pages are worth rendering
    sessions           logins and cookies of crawls, lost sessions
    login              log in at a site by its form
    session_state      state of a login that all workers share
    host_visits        URLs of one host in a pack, and visits that wait at the same time
    unvisited          end URLs without a request
    cookies            cookie jars of crawls that keep cookies
    page_outcome       decide how a URL ends by its response
    page_fault         end a page whose processing raises an unexpected exception
    pack_context       context of a pack, and the records of its URLs
    crawl_cache        crawls, at most five seconds old
    body_writer        write bodies and texts into one file
    link_dedup         drop links that need no claim
    apply_journal      claim, store, commit, send, finish
    late_packs         store packs of deferred links, and send them when few URLs are in flight
    succession         lease one pack of each host in a crawl with a delay
    lease              decide which delivery may start, resend or release a host's pack
    host_claims        pass known claims of a host to other containers in files
    seen_store         remember claimed, deferred and omitted URLs
    rounds             length of an invocation, and packs started before their message arrives
    shutdown           stop early when the worker must end
    group_commit       commit many packs in one transaction
    kind_learning      share results by group of similar URLs among workers
    call_batching      tasks that share a request
    ports              interfaces that the parts of a worker share
    page_reading       read a page's bytes within limits
    json_reading       read a JSON response, and the next page of an API

Why a crawl does not move: control/progress/status.py reads its state, counters and queues,
diagnostics/explainer.py a single URL; docs/protocol.md ("A crawl does not move") has the order to
look.
"""
