"""Render pages: run their scripts in a browser without a network (docs/rendering.md).

Each request of the browser is paused, and answered by Orbweaver's own fetcher or refused. A request
that is not paused fails. So the address guard, robots.txt, slots, identity and byte counts apply to
all resources of a page.

    task              defines rendering tasks and results, and the port that answers requests
    asset_cache       caches scripts and styles that several pages use
    page_scripts      contains the scripts that run in pages
    launch            finds or unpacks the browser, disables its network by flags
    process           starts, watches and reaps browser processes, speaks over their pipe
    browser           attaches to targets, pauses their requests, assigns them to pages
    paused_requests   decides which requests of a page are loaded, and answers them
    page_rendering    opens, waits for, reads and closes one page
    renderer          renders many pages and replaces browsers after a number of pages
"""
