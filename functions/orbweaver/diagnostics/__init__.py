"""Diagnostics: what is stored of a URL, a host or a crawl, in words for a person.

Decides nothing; reads.

    rule_texts      what rules say of a URL, in words
    url_changes     what canonicalisation changed
    url_status      how a URL ended
    explanation     its life, in words
    explainer       what is read for that
    host_status     how a crawl does at a host
    refusal_report  what was left out, and why
    request_counts  where the requests went, by kind of URL
    request_texts   texts that are read for that
    spared_links    which links wait, by kind of URL
    site_sections   a site by its folders
    run_comparison  what became of pages from one run to another
    text_diff       two texts, line by line
"""
