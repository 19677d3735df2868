"""Define messages, claims, journals and dead letters, and decide which URLs are requested.

This package decides which URLs belong to a crawl and how data is stored. A *pack* is a message with
up to 25 URLs, a *claim* makes a URL belong to a pack, a *journal* is a pack's redo log, a *kind* is
a group of similar URLs.

    envelope        fields that all messages have
    messages        messages on the queues
    crawl_scope     whether a message's URL belongs to its crawl
    admission       whether a URL is claimed or requested, or why it is refused
    api_paging      the page that follows a page of an API
    crawler_traps   sites that generate URLs without end
    erase_rule      URLs that a crawl must not request again after an erasure
    known_claims    claimed URLs of a host, as digests for other containers
    seen_content    memory of titles, texts, paths and values of pages, as digests
    kind_count      counts of one kind
    kind_shape      forms of URLs, by which they are assigned to kinds
    kind_scores     scores of kinds by their share of new content
    kind_learner    learns from pages, and sorts links by the scores of their kinds
    late_links      links that wait until few URLs are in flight
    claims          stored states of packs and URLs
    pack_result     results of a pack's pages
    journal         redo log of a pack, and the packs that follow from it
    journal_codec   stored form of a journal
    ledger_codec    stored form of a commit record
    resumption      earlier runs that a run continues
    refetch         pages that earlier runs stored with other settings
    stored_content  redacted content of a page to store
    link_table      stored form of a page's links, and rows of their table
    body_file       bodies and texts of a batch in one file
    warc            records of that file
    stored_record   read a page's stored record, or the reason why there is none
    yield_drop      comparison of a run with the previous run
    dead_letters    kinds, causes and redrive of dead letters
    backlog         packs that wait for their hosts
    queues          interfaces to queues
    ports           interfaces to tables
    retrying        calls to storage and queues that are repeated after a fault
"""
