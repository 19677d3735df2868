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
    links          canonicalizes the links of a page
    link_header    parses the Link header
    refresh        detects redirects by meta refresh or the Refresh header
    soft_404       detects "not found" pages with status 200
    duplicates     counts identical bodies
    text_digest    computes digests that are similar for similar texts
    robots_tag     parses X-Robots-Tag
    page_controls  removes buttons and line numbers
    main_part      selects the main content of a page
    text_markup    rewrites elements that would change the meaning of a text
    main_text      converts the main content to plain text and Markdown
    pii_redaction  redacts e-mail addresses and phone numbers
    sitemap        reads the entries of a sitemap
    sitemap_text   decodes a sitemap piece by piece
    sitemap_xml    parses the entries of XML sitemaps
"""
