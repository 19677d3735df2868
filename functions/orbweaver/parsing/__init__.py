"""Parse bodies: charset, media type, links, page metadata, sitemaps, main text, redaction.

This package interprets a body. It does not decide what happens with the URL. The work per body is
linear in its bytes and limited.

    media_type     parses the Content-Type header
    sniffing       detects a body's type from its first bytes
    charset        detects the charset and converts text to UTF-8
    markup         rewrites XHTML and shadow roots as HTML
    html_scan      reads the outline and text of HTML by tokens, without a tree
    client_rendering  detects pages that are empty until their scripts run
    page           extracts title, links and directives of a page
    headings       counts main headings
    links          canonicalizes the links of a page, parses the Link and Refresh headers
    link_rows      collects all links of a page with kind and text
    soft_404       detects "not found" pages with status 200
    text_digest    computes digests that are similar for similar texts, counts identical bodies
    robots_tag     parses X-Robots-Tag
    main_part      selects the main content of a page
    text_markup    rewrites elements that would change the meaning of a text
    main_text      converts the main content to plain text and Markdown, without buttons
    pii_redaction  redacts e-mail addresses and phone numbers
    sitemap        reads the entries of a sitemap
    sitemap_xml    decodes XML sitemaps piece by piece, and parses their entries
"""
