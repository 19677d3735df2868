"""Yield: the share of an application's articles that a crawler's first N requests find.

    python -m bench.yield --apps mediawiki,cgit --crawlers ours,wget --requests 500,1000,3000

Rules
- The applications are real ones, as Debian and PyPI package them, and two made here. All is
  unpacked, seeded and served below .local/yield, by no other user than `nobody` if root asks.
- The articles come from an application's own database or files, never from a crawl.
- Requests are counted in the web server's access log, robots.txt and redirects included, in the
  order in which they began. An article is found by the first GET that was answered with 200 and
  shows it, under whatever URL; a redirect does not find what it leads to.
- A crawler is ended after so many requests, so much time or so much memory, whatever comes first.
- Speeds are not compared: servers, crawler and everything else share the machine.
"""
