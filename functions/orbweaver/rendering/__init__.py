"""Rendering: pages whose scripts are run, by a browser without a network (docs/rendering.md).

The browser has no way out. Each of its requests is paused, and answered by our own fetcher or
refused; what is not paused fails. So the address guard, robots.txt, slots, identity and byte counts
hold for everything that makes a page.

    task              a page to be rendered and its result, as values; the port behind a browser
    request_rules     which requests are asked for, answered empty, or refused
    asset_cache       scripts and styles that pages share
    page_scripts      scripts that are run in pages
    launch            which browser, and the flags of the fence
    packed_browser    one that a function's code brings along, unpacked
    process           its processes: started, watched, killed, reaped
    protocol          commands and events over its pipe
    browser           targets attached to and fenced, pages by their contexts
    paused_requests   the requests of one page, answered
    page_rendering    one page: opened, waited for, read, closed
    renderer          many pages; browsers replaced before they are worn
"""
