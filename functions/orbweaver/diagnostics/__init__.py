"""Diagnostics: the stored facts about a URL, a host or a crawl, described for people.

This room only reads.

    rule_texts      texts on rules and a URL
    url_changes     changes made by canonicalisation
    url_status      status of a URL
    explanation     the history of a URL as text
    explainer       collects the facts for that
    host_status     status of a crawl at a host
    refusal_report  skipped and refused URLs, with reasons
    request_counts  requests by kind (group of similar URLs)
    spared_links    waiting links by kind of URL
    run_comparison  sections of a site, changes of pages and texts between two runs
"""
