"""Provide `import orbweaver` for Python programs.

This package checks arguments and reports mistakes. Inner packages do the work, as in a crawl. A
module is imported when one of its names is first used.

    page_budget    readings of pages, costly ones in a child process
    reading        URLs, robots.txt, pages, items, Markdown
    crawl_request  a crawl's definition from arguments
    page_feed      delivery of stored pages to a callback
    rows           results as rows or as a frame
    client         crawls in a store or on a stack, for asyncio
    blocking       the same without asyncio, and `crawl`
"""
