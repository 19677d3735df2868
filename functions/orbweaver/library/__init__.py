"""What a Python program may call: `import orbweaver`.

Decides what is taken and how a mistake is told; the work is done by inner rooms, as in a crawl. The
package offers these names and imports nothing before one of them is asked for.

    reading        URLs, robots.txt, pages, items, Markdown
    crawl_request  what a program asks of a crawl
    page_feed      stored pages, each delivered to a callback
    rows           what was found, row by row or as a frame
    client         crawls in a store or on a stack, for programs with an event loop
    blocking       the same for all others, and `crawl`
"""
