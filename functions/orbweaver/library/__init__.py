"""Provide `import orbweaver` for Python programs.

This package checks arguments and reports mistakes. The packages that crawls use do the work. A
module is imported when a program first uses one of its names.

    page_budget    parsing of pages, of costly ones in a child process
    reading        URLs, robots.txt, pages, items, Markdown
    crawl_request  a crawl's definition from arguments
    rows           results as rows or as a frame
    client         crawls in a store or on a stack, for asyncio, and delivery of their pages
    blocking       the same without asyncio, and `crawl`
"""
