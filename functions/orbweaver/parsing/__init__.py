"""Bytes to a page: charset, media type, links, page signals, sitemaps, main text, redaction.

Decides what a body says; never what becomes of it. Work is linear in the bytes, and bounded.

    media_type     the Content-Type header
    sniffing       what a body is by its first bytes
    charset        and the text as UTF-8
    markup         XHTML and shadow roots, as HTML
    html_scan      the outline and text of HTML, by tokens
    open_elements  the elements of HTML that are open
    tree_construction  which a tag opens and ends
    parse_guard    which HTML may become a tree
    client_rendering  pages that are empty until their scripts have run
    page           what a page says
    links          the links of a page
    link_header    the links of a Link header
    refresh        pages that lead elsewhere
    soft_404       pages that say "not found"
    duplicates     content that comes again
    text_digest    texts that are nearly the same
    robots_tag     directives of X-Robots-Tag
    page_controls  links that offer something, line numbers
    main_part      the part of a page that is its own
    text_markup    elements that would change the meaning of a text
    main_text      plain text and Markdown
    pii_redaction  addresses and phone numbers
    sitemap        what a sitemap lists
    sitemap_text   its text, a piece at a time
    sitemap_xml    its items in XML
"""
