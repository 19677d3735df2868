"""The protocol's values and ports: messages, claims, journals, admission, dead letters.

Decides what belongs to a crawl and how it is written down; orders no effects (`worker` does).

    envelope        what all messages have
    messages        what is on the queues
    belonging       whether a message's URL belongs to its crawl
    file_names      URLs that are no pages by their names
    admission       why a URL is refused
    crawler_traps   URLs without end
    seen_urls       claims that need no second look
    known_claims    those of a host, handed on as digests
    met             what pages have shown by now, told to others as digests
    kind_count      what is counted of each kind
    kind_shape      under which shapes URLs are counted, and what they may share
    kind_scores     what kinds of URLs have brought
    kind_learner    what pages tell of kinds, and which links go first
    late            links that are asked for when little else is out
    claims          states of packs and URLs
    pack_result     what pages came to, and their pack
    journal         its redo log, and its outbox
    journal_codec   the same as stored
    ledger_codec    a commit record as stored
    resumption      earlier runs that a run goes on from
    refetch         pages that lack text or body
    stored_content  what is kept of a page
    body_file       bodies and texts of a batch in one file
    warc            its records
    stored_record   a page's record in it, or why there is none
    yield_drop      a run against the one before
    dead_letters    why they lie there
    backlog         packs that wait for their hosts
    queues          ports of queues
    ports           ports of tables
    retrying        calls of ports, repeated after a fault
"""
