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
    request_texts   digests of stored texts for that
    spared_links    waiting links by kind of URL
    site_sections   a site by its folders
    run_comparison  changes of pages between two runs
    text_diff       line-by-line difference of two texts
"""
