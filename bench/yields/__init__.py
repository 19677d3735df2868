"""Yield: the share of an application's articles that a crawler's first N requests find.

    python -m bench.yields --apps mediawiki,cgit --crawlers ours,wget --requests 500,1000,3000

- The applications are real ones from Debian and PyPI packages. They are filled with articles and
  served below .local/yield. If root starts them, their user is `nobody`.
- The set of articles comes from an application's own database or files, never from a crawl.
- Requests are counted in the web server's access log in the order they began, including robots.txt
  and redirects. An article is found by the first GET with status 200 that shows it, under any URL.
- A crawler is stopped at a limit of requests, time or memory, whichever comes first. Speeds are not
  compared, because servers and crawler share the machine.
"""
